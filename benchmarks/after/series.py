"""Forecast ETTh1 with the Transformer, a linear model and two naive forecasts.

    python -m benchmarks.after.series
    python -m benchmarks.after.series --groups 336-96 512-96 --runs runs/series

Needs timeseries/ETTh1.csv below ANNOTATED_TRANSFORMER_DATA, or fetches it. The first 20
months of 30 days, 12 for training, 4 for validation, 4 for the test; MSE and MAE on
standardised values over all test windows and channels. A group is a context and a
horizon, and in each both sides make eight trials, judged on the validation part: eight
penalties for the linear model; four rates with overlapping patches and four without for
the Transformer, with a seed that isn't used again. The Transformer has the sizes that
Nie et al. 2023 take for this series. Then it is trained with three seeds; each training
keeps the weights that were best in validation.

A GPU is used where there is one, else one thread. Each group's runs are lines of a file
in --runs, so several processes may make a group each; a run that is there isn't made
again. Once all are there, results/after/series.json is written, which
nbs/after/series.ipynb shows. Takes four hours of one core, or ten minutes of a GPU.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from statistics import mean
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
from annotated_transformer.devices import find_device
from annotated_transformer.errors import UserError
from annotated_transformer.training.task import train_task
from benchmarks.after.shards import Run, add, matching, origins, plain, read
from benchmarks.record import ROOT, command_line, save

RECORD, RUNS = "after/series.json", ROOT / "runs/series"
CONTEXTS, HORIZONS = (512, 336), (96, 720, 192, 336)
GROUPS = {f"{c}-{h}": (c, h) for h, c in product(HORIZONS, CONTEXTS)}
SIZES = {"N": 3, "d_model": 16, "d_ff": 128, "h": 4, "dropout": 0.3, "patch": 16}
STRIDES, PEAKS = (8, 16), (1e-3, 3e-3, 1e-2, 3e-2)
TRAINING = SeriesTraining(steps=1_000)
SEEDS, TRIAL_SEED = (1, 2, 3), 0


def errors(
    forecast: Forecaster, series: Series, context: int, horizon: int
) -> dict[str, float]:
    """Both errors on the test part."""
    test = split_series(series, context, horizon)[2]
    squared, absolute = forecast_errors(forecast, test, context, horizon)
    return {"mse": squared, "mae": absolute}


# -- the Transformer -------------------------------------------------------------------


def train(
    series: Series, context: int, horizon: int, stride: int, peak: float, seed: int
) -> Run:
    """One training: best validation error, curve, time; unless a trial, test errors."""
    known, valid, *_ = split_series(series, context, horizon)
    torch.manual_seed(seed)
    sizes = SeriesConfig(**SIZES, context=context, horizon=horizon, stride=stride)
    model, device = SeriesTransformer(sizes), find_device()
    model.to(device)
    begun = time.perf_counter()
    settings = SeriesTraining(**asdict(TRAINING) | {"seed": seed, "peak": peak})
    points = train_task(SeriesTask(model, None, known, valid, settings))
    about = {"context": context, "horizon": horizon, "stride": stride, "peak": peak}
    about["seed"] = seed
    try:
        curve = [[each["step"], each["train"], each["loss"]] for each in points]
    except UserError as error:
        return about | {"validation": 700.0, "diverged": str(error)}
    found = {
        "parameters": sum(each.numel() for each in model.parameters()),
        "device": device.type,
        "seconds": round(time.perf_counter() - begun, 1),
        "validation": min(error for *_, error in curve),
        "curve": [[step, round(a, 4), round(b, 4)] for step, a, b in curve],
    }
    if seed != TRIAL_SEED:
        found |= errors(forecaster(model), series, context, horizon)
    return about | found


def run_group(series: Series, name: str, folder: Path) -> None:
    """The trials of a group, and its best settings with each seed; what is missing."""
    context, horizon = GROUPS[name]

    def make(stride: int, peak: float, seed: int) -> Run:
        wanted = {"stride": stride, "peak": peak, "seed": seed}
        group = {"context": context, "horizon": horizon}
        if there := matching(read(folder), **group, **wanted):
            return there[0]
        return add(folder, name, train(series, **group, **wanted))

    trials = [make(s, p, TRIAL_SEED) for s, p in product(STRIDES, PEAKS)]
    best = min(trials, key=lambda each: each["validation"])
    for seed in SEEDS:
        make(best["stride"], best["peak"], seed)


# -- the record ------------------------------------------------------------------------


def linear_model(series: Series, context: int, horizon: int) -> Run:
    """The linear model with the penalty that is best in validation."""
    begun = time.perf_counter()
    forecast, _, penalty = tuned_ridge(series, horizon, [context])
    seconds = round(time.perf_counter() - begun, 1)
    valid = split_series(series, context, horizon)[1]
    found, _ = forecast_errors(forecast, valid, context, horizon, stride=8)
    about = {"context": context, "penalty": penalty, "seconds": seconds}
    about |= {"validation": found}
    return about | errors(forecast, series, context, horizon)


def measure(series: Series, context: int, horizon: int, runs: Sequence[Run]) -> Run:
    """All forecasts of a group, the trials from the best to the worst."""
    found = [plain(run, "context", "horizon") for run in runs]
    trials = [plain(run, "curve") for run in matching(found, seed=TRIAL_SEED)]
    sizes = context, horizon
    return {
        "naive": errors(repeat_last(horizon), series, *sizes),
        "seasonal naive": errors(repeat_period(horizon, 24), series, *sizes),
        "linear": linear_model(series, *sizes),
        "tries": sorted(trials, key=lambda each: float(each["validation"])),
        "Transformer": [run for run in found if run["seed"] in SEEDS],
    }


def better(parts: Sequence[Run], side: str) -> Any:
    """A side with the context at which its validation error is lower."""

    def validation(part: Run) -> float:
        runs = part[side] if side == "Transformer" else [part[side]]
        return mean(run["validation"] for run in runs)

    return min(parts, key=validation)[side]


def collect(series: Series, folder: Path) -> None:
    """Write the record."""
    runs, contexts = read(folder), {}
    for context in sorted(CONTEXTS):
        contexts[str(context)] = {
            str(h): measure(
                series, context, h, matching(runs, context=context, horizon=h)
            )
            for h in sorted(HORIZONS)
        }
    horizons = {}
    for horizon, first in contexts[str(min(CONTEXTS))].items():
        parts = [each[horizon] for each in contexts.values()]
        sides = {name: better(parts, name) for name in ("linear", "Transformer")}
        naive = {name: first[name] for name in ("naive", "seasonal naive")}
        horizons[horizon] = naive | sides
    about: Run = {
        "sizes": SIZES,
        "training": asdict(TRAINING),
        "origins": origins(runs),
    }
    about |= {"command": "python -m benchmarks.after.series"} | about["origins"][0]
    save(RECORD, about | {"contexts": contexts, "horizons": horizons})


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the runs that are missing, and the record if no other group's are."""
    parser = command_line(__doc__)
    known = list(GROUPS)
    parser.add_argument("--groups", nargs="+", choices=known, default=known)
    parser.add_argument("--runs", type=Path, default=RUNS, help="a folder of runs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    series = ett()
    for name in options.groups:
        run_group(series, name, options.runs)
    wanted = len(GROUPS) * (len(STRIDES) * len(PEAKS) + len(SEEDS))
    if (there := len(read(options.runs))) < wanted:
        print(f"{there} of {wanted} runs are there", file=sys.stderr)
    else:
        collect(series, options.runs)


if __name__ == "__main__":
    main()
