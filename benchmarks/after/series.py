"""Forecast ETTh1 with the Transformer, a linear model and two naive forecasts.

    python -m benchmarks.after.series [--horizons 96 192 336 720]

Needs timeseries/ETTh1.csv below ANNOTATED_TRANSFORMER_DATA, or fetches it. The first 20
months of 30 days, 12 for training, 4 for validation, 4 for the test; MSE and MAE on
standardised values over all test windows and channels. The linear model's context and
penalty are chosen on the validation part for each horizon. The Transformer's context,
learning rate and number of updates are chosen there as well, at 96 hours and with a
seed that isn't used again; then it is trained for each horizon with three seeds, and
each training keeps the weights that were best in validation. What an earlier run found
for other horizons stays. One thread; times are processor seconds. Writes
results/after/series.json, which nbs/after/series.ipynb shows.
"""

import sys
import time
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch

from annotated_transformer.after.config import SeriesTraining
from annotated_transformer.after.series import (
    Forecaster,
    SeriesConfig,
    SeriesTransformer,
    forecast_errors,
    forecaster,
    repeat_last,
    repeat_period,
    split_series,
    tuned_ridge,
)
from annotated_transformer.after.tasks import SeriesTask
from annotated_transformer.data.series import Series, ett
from annotated_transformer.training.task import train_task
from benchmarks.record import command_line, load, save

RECORD, COMMAND = "after/series.json", "python -m benchmarks.after.series"
HORIZONS, SEEDS, TRIAL_SEED = (96, 192, 336, 720), (1, 2, 3), 0
CONTEXTS, PEAKS, STEPS = (336, 504), (2e-3, 5e-3, 1e-2), (300, 600)
LINEAR_CONTEXTS = (168, 336, 504, 720)


def tell(*words: object) -> None:
    """A line of progress."""
    print(*words, file=sys.stderr, flush=True)


def score(
    forecast: Forecaster, series: Series, context: int, horizon: int
) -> dict[str, float]:
    """Both errors on the test part."""
    test = split_series(series, context, horizon)[2]
    squared, absolute = forecast_errors(forecast, test, context, horizon)
    return {"mse": squared, "mae": absolute}


def train(
    series: Series, horizon: int, context: int, peak: float, steps: int, seed: int
) -> dict[str, Any]:
    """One training: the best validation error, the curve, the test errors, the time."""
    known, valid, *_ = split_series(series, context, horizon)
    torch.manual_seed(seed)
    model = SeriesTransformer(SeriesConfig(context=context, horizon=horizon))
    start = time.process_time()
    settings = SeriesTraining(steps=steps, seed=seed, peak=peak)
    points = train_task(SeriesTask(model, None, known, valid, settings))
    curve = [
        {"step": each["step"], "loss": each["train"], "error": each["loss"]}
        for each in points
    ]
    seconds = round(time.process_time() - start, 1)
    found = {
        "seed": seed,
        "parameters": sum(each.numel() for each in model.parameters()),
        "seconds": seconds,
        "validation": min(point["error"] for point in curve),
        "curve": curve,
        **score(forecaster(model), series, context, horizon),
    }
    tell(
        horizon, context, peak, steps, {k: v for k, v in found.items() if k != "curve"}
    )
    return found


def choose(series: Series) -> list[dict[str, float]]:
    """The tries of three settings with their validation errors, the best first."""
    tries = []
    for context, peak, steps in product(CONTEXTS, PEAKS, STEPS):
        found = train(series, HORIZONS[0], context, peak, steps, TRIAL_SEED)
        settings = {"context": context, "peak": peak, "steps": steps}
        tries.append(settings | {"validation": found["validation"]})
    return sorted(tries, key=lambda each: each["validation"])


def measure(
    series: Series, horizon: int, context: int, peak: float, steps: int
) -> dict[str, Any]:
    """All forecasts of one horizon."""
    start = time.process_time()
    linear, back, penalty = tuned_ridge(series, horizon, LINEAR_CONTEXTS)
    about = {
        "context": back,
        "penalty": penalty,
        "seconds": round(time.process_time() - start, 1),
    }
    return {
        "naive": score(repeat_last(horizon), series, context, horizon),
        "seasonal naive": score(repeat_period(horizon, 24), series, context, horizon),
        "linear": about | score(linear, series, back, horizon),
        "Transformer": [
            train(series, horizon, context, peak, steps, seed) for seed in SEEDS
        ],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Choose, measure, and write the record after each horizon."""
    parser = command_line(__doc__)
    parser.add_argument(
        "--horizons", nargs="+", type=int, choices=HORIZONS, default=list(HORIZONS)
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    series, before = ett(), load(RECORD)
    tries, found = before.get("tries") or choose(series), before.get("horizons", {})
    best = tries[0]
    chosen = int(best["context"]), best["peak"], int(best["steps"])
    for horizon in options.horizons:
        found[str(horizon)] = measure(series, horizon, *chosen)
        about = {"command": COMMAND, "threads": 1, "tries": tries, "horizons": found}
        save(RECORD, about)


if __name__ == "__main__":
    main()
