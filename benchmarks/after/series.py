"""Forecast ETTh1 with the Transformer, a linear model and two naive forecasts.

    python -m benchmarks.after.series

Needs timeseries/ETTh1.csv below ANNOTATED_TRANSFORMER_DATA, or fetches it. The first 20
months of 30 days, 12 for training, 4 for validation, 4 for the test; MSE and MAE on
standardised values over all test windows and channels. For each context and horizon
each side makes ten trials, judged on the validation part: ten penalties for the linear
model; five rates with overlapping patches and five without for the Transformer, with a
seed that isn't used again. The Transformer has the sizes that Nie et al. 2023 take for
this series, once with the paper's layer norm and once with their batch norm. Then it is
trained with three seeds; each training keeps the weights that were best in validation.

A GPU is used where there is one, else one thread for each worker. A run is a line of
results/after/series.jsonl, which nbs/after/patches.ipynb shows; one that is there isn't
made again. Takes some two hours of one core for each norm, minutes of a GPU.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from itertools import product
from multiprocessing import get_context
from typing import Any

import torch
from torch import Tensor, nn

from annotated_transformer.after.forecasting import SeriesTask, SeriesTraining
from annotated_transformer.after.series import (
    PENALTIES,
    Forecaster,
    SeriesConfig,
    SeriesTransformer,
    forecast_errors,
    forecaster,
    repeat_period,
    split_series,
    tuned_ridge,
)
from annotated_transformer.data.series import Series, ett
from annotated_transformer.devices import find_device
from annotated_transformer.errors import UserError
from annotated_transformer.model.layers import AddNorm
from benchmarks.record import add_run, command_line, read_runs
from benchmarks.train import train_task

RECORD = "after/series.jsonl"
LAYER_NORM, BATCH_NORM = "Transformer", "Transformer, batch norm"
CONTEXTS, HORIZONS = (336, 512), (96, 192)
SIZES = {"N": 3, "d_model": 16, "d_ff": 128, "h": 4, "dropout": 0.3, "patch": 16}
STRIDES = 8, 16
PEAKS = {  # batch norm's best rates are lower; 0.1 was tried and given up
    LAYER_NORM: (1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    BATCH_NORM: (3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
}
TRAINING = SeriesTraining(steps=1_000)
SEEDS, TRIAL_SEED = (1, 2, 3), 0
DIVERGED = 700.0  # the validation error of a training that broke off
Run = dict[str, Any]


@cache
def read_series() -> Series:
    """ETTh1."""
    return ett()


def recorded(**settings: Any) -> Run | None:
    """The run with these settings, if it was made."""
    runs = (run for run in read_runs(RECORD) if settings.items() <= run.items())
    return next(runs, None)


def errors(
    forecast: Forecaster, series: Series, context: int, horizon: int
) -> dict[str, float]:
    """Both errors on the test part."""
    *_, test, _, _ = split_series(series, context, horizon)
    squared, absolute = forecast_errors(forecast, test, context, horizon)
    return {"mse": squared, "mae": absolute}


class BatchNorm(nn.BatchNorm1d):
    """Over all patches of a batch, for each entry of their vectors."""

    def forward(self, x: Tensor) -> Tensor:
        """(batch, patches, d_model), normalised."""
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


def new_model(about: Run) -> SeriesTransformer:
    """A Transformer with the norm of its side."""
    sizes = SIZES | {name: about[name] for name in ("context", "horizon", "stride")}
    model = SeriesTransformer(SeriesConfig(**sizes))
    if about["side"] == BATCH_NORM:
        for part in model.modules():
            if isinstance(part, AddNorm):
                part.norm = BatchNorm(model.config.d_model)
    return model.to(find_device())


def train(about: Run) -> Run:
    """One training: best validation error and time; unless a trial, test errors."""
    context, horizon, seed = (about[name] for name in ("context", "horizon", "seed"))
    known, valid, *_ = split_series(read_series(), context, horizon)
    torch.manual_seed(seed)
    begun, model = time.perf_counter(), new_model(about)
    settings = replace(TRAINING, seed=seed, peak=about["peak"])
    points = train_task(SeriesTask(model, None, known, valid, settings))
    try:
        lowest = min(each["loss"] for each in points)
    except UserError as error:
        return {"validation": DIVERGED, "diverged": str(error)}
    found = {
        "parameters": sum(each.numel() for each in model.parameters()),
        "updates": settings.steps,
        "device": find_device().type,
        "seconds": round(time.perf_counter() - begun, 1),
        "validation": lowest,
    }
    if seed != TRIAL_SEED:
        found |= errors(forecaster(model), read_series(), context, horizon)
    return found


def make(cases: Sequence[Run], workers: int) -> None:
    """The trainings that are missing, several at a time."""
    missing = [case for case in cases if recorded(**case) is None]
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, torch.set_num_threads, (1,)) as pool:
        running = {pool.submit(train, case): case for case in missing}
        for future in as_completed(running):
            add_run(RECORD, running[future] | future.result())


def transformers(group: Run, workers: int) -> None:
    """The trials of both norms, and the best settings of each with every seed."""
    trials = {
        side: [
            {"side": side, **group, "stride": stride, "peak": peak, "seed": TRIAL_SEED}
            for stride, peak in product(STRIDES, peaks)
        ]
        for side, peaks in PEAKS.items()
    }
    make([each for side in trials.values() for each in side], workers)

    def best(side: str) -> Run:
        tried = [run for each in trials[side] if (run := recorded(**each))]
        won = min(tried, key=lambda run: run["validation"])
        return {name: won[name] for name in trials[side][0]}

    make([best(side) | {"seed": s} for side in trials for s in SEEDS], workers)


def linear_model(series: Series, context: int, horizon: int) -> Run:
    """The linear model with the penalty that is best in validation."""
    begun = time.perf_counter()
    forecast, penalty = tuned_ridge(series, context, horizon)
    seconds = round(time.perf_counter() - begun, 1)
    about = {"tried": list(PENALTIES), "penalty": penalty, "seconds": seconds}
    return about | errors(forecast, series, context, horizon)


def untrained(series: Series, group: Run) -> None:
    """The forecasts that have no seed; what is missing of them."""
    context, horizon = group["context"], group["horizon"]
    naive = {
        "naive": repeat_period(horizon, 1),
        "seasonal naive": repeat_period(horizon, 24),
    }
    for side, forecast in naive.items():
        if recorded(side=side, **group) is None:
            found = errors(forecast, series, context, horizon)
            add_run(RECORD, {"side": side, **group, **found})
    if recorded(side="linear", **group) is None:
        found = linear_model(series, context, horizon)
        add_run(RECORD, {"side": "linear", **group, **found})


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("--workers", type=int, default=1, help="trainings at a time")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for horizon, context in product(HORIZONS, CONTEXTS):
        group = {"context": context, "horizon": horizon}
        untrained(read_series(), group)
        transformers(group, asked.workers)


if __name__ == "__main__":
    main()
