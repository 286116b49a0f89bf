"""`series`: train and measure a forecaster, and forecast how a series goes on."""

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .opening import import_torch, open_kind
from .options import Device, Root, app
from .streams import refuse_folder, say, tell

if TYPE_CHECKING:
    from ..after.series import Series, SeriesForecaster

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Forecast time series: days as tokens, on ETTh1 or any CSV file.",
)
app.add_typer(commands, name="series")

Data = Annotated[
    Path | None,
    typer.Option(
        help="A CSV file, gzipped or not: dates in the first column, numbers in the "
        "others; ETTh1 if none is named."
    ),
]
Folder = Annotated[Path, typer.Argument(help="A model folder that `train` wrote.")]


@commands.command("train")
def train_(
    out: Annotated[Path, typer.Argument(help="The model folder to write.")],
    data: Data = None,
    horizon: Annotated[int, typer.Option(min=1, help="Steps to forecast.")] = 96,
    context: Annotated[int, typer.Option(min=2, help="Steps to look back.")] = 336,
    patch: Annotated[
        int, typer.Option(min=1, help="Steps in one token; they must fill the context.")
    ] = 24,
    steps: Annotated[int, typer.Option(min=1, help="Updates of the weights.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Of weights and windows.")] = 1,
    root: Root = None,
    device: Device = None,
) -> None:
    """Train on the first 60 % of a series, and keep what is best on the next 20 %.

    Of ETT's files the first 20 months count, as in the literature. Ctrl-C ends with
    status 130 and writes no model.

    **Examples**

    `annotated-transformer series train runs/etth1 --horizon 96`

    `annotated-transformer series train runs/sales --data sales.csv --context 56`
    `--patch 7 --horizon 14`
    """
    refuse_folder(out, "series")
    import torch

    from ..after.series import Scale, SeriesConfig, SeriesTransformer, parts
    from ..after.series import train_series
    from ..files import claimed
    from ..loading import find_device
    from ..training.checkpoint import save_model

    place = find_device(device)
    config = SeriesConfig(context=context, patch=patch, horizon=horizon)
    series = read(data, root)
    train, valid, _, mean, spread = parts(series, context, horizon)
    torch.manual_seed(seed)
    model = SeriesTransformer(config).to(place)
    best = float("inf")
    scale = Scale(series.names, tuple(mean.tolist()), tuple(spread.tolist()))
    with claimed(out):
        for told in train_series(model, train, valid, steps, seed):
            best = min(best, told["error"])
            say(line(told, steps))
        save_model(out, model, scale)
    tell(f"validation MSE {best:.4f}, standardised: {out}")


@commands.command("evaluate")
def evaluate_(
    model: Folder, data: Data = None, root: Root = None, device: Device = None
) -> None:
    """Errors on the last 20 %, beside naive forecasts and a tuned linear model.

    **Examples**

    `annotated-transformer series evaluate runs/etth1`

    `annotated-transformer series evaluate runs/sales --data sales.csv`
    """
    from ..after.series import errors, forecaster, parts, repeat_last, repeat_period
    from ..after.series import tuned_ridge

    opened_model = opened(model, device)
    context, horizon = opened_model.config.context, opened_model.config.horizon
    series = read(data, root)
    opened_model.standardised(series)  # the same columns
    period = min(series.day, context)
    linear, back, _ = tuned_ridge(series, horizon, [context])
    forecasts = {
        "Transformer": forecaster(opened_model.model),
        "linear": linear,
        f"seasonal naive, {period} steps": repeat_period(horizon, period),
        "naive": repeat_last(horizon),
    }
    test = parts(series, back, horizon)[2]
    tell(f"{'':<26}{'MSE':>8}{'MAE':>8}  standardised, {horizon} steps")
    for name, forecast in forecasts.items():
        squared, absolute = errors(forecast, test, context, horizon)
        tell(f"{name:<26}{squared:>8.4f}{absolute:>8.4f}")


@commands.command("forecast")
def forecast_(
    model: Folder,
    data: Annotated[Path, typer.Argument(help="A CSV file with the model's columns.")],
    device: Device = None,
) -> None:
    """Print how a series goes on after its last row, as CSV in its own units.

    **Example**

    `annotated-transformer series forecast runs/etth1 ETTh1.csv`
    """
    import csv

    from ..after.series import read_series

    series = read_series(data)
    found = opened(model, device).forecast(series)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["date", *series.names])
    for date, row in zip(coming(series.dates, len(found)), found.tolist(), strict=True):
        writer.writerow([date, *(f"{value:.6g}" for value in row)])


def read(data: Path | None, root: Path | None) -> "Series":
    """The series of a file, or else ETTh1."""
    from ..after.series import ett, read_series

    return read_series(data) if data else ett(root)


def opened(folder: Path, device: str | None) -> "SeriesForecaster":
    """The forecaster of a folder. Raises: UserError for anything else."""
    import_torch()
    from ..after.series import SeriesForecaster

    return open_kind(
        folder,
        device,
        SeriesForecaster,
        "forecaster: name one that `series train` wrote",
    )


def coming(dates: tuple[str, ...], count: int) -> list[str]:
    """The dates that follow the last two; +1, +2, … where they are no dates."""
    try:
        before, last = map(datetime.fromisoformat, dates[-2:])
        return [str(last + (last - before) * step) for step in range(1, count + 1)]
    except (ValueError, OverflowError, TypeError):
        return [f"+{step}" for step in range(1, count + 1)]


def line(told: dict[str, int | float], steps: int) -> str:
    """One report of the training as a line of text."""
    return (
        f"update {told['step']:>5} of {steps}  loss {told['loss']:.4f}  validation "
        f"MSE {told['error']:.4f}"
    )
