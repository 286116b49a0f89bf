"""How a series goes on: the forecaster as one trains, opens and uses it."""

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..data.published_files import own_path
from ..data.series import Series, as_series, ett, read_series, several_series
from ..decoding.checks import check_numbers
from ..errors import UserError
from ..files import read_json, write_json
from ..pretrained import PretrainedModel
from ..registry import ModelType, Root
from ..training.held_out import BatchedTraining, HeldOutTask
from ..training.task import TensorBatch
from .series import (
    SeriesConfig,
    SeriesTransformer,
    forecast_errors,
    forecaster,
    repeat_period,
    split_series,
    tuned_ridge,
    window_batches,
    window_loss,
)


@dataclass(frozen=True)
class SeriesTraining(BatchedTraining):
    """How to train a forecaster; `batch` counts windows."""

    steps: int = 600
    batch: int = 256
    peak: float = 1e-2
    save_every: int = 50


class SeriesTask(HeldOutTask):
    """A forecaster, the scale of its series, and (time, channel) of both parts."""

    config: SeriesTraining
    unit = "steps"
    loss = staticmethod(window_loss)

    def count_batches(self, size: int) -> int:
        """A window for each number of the series."""
        return self.train.numel() // size

    def draw(self) -> Iterator[TensorBatch]:
        """Windows, at random."""
        settings = self.model.config, self.config.seed, self.config.batch
        return window_batches(self.train, *settings)

    def evaluate(self) -> dict[str, float]:
        """The mean squared and absolute error of one window in eight."""
        sizes = self.model.config.context, self.model.config.horizon
        forecast = forecaster(self.model)
        squared, absolute = forecast_errors(forecast, self.valid, *sizes, stride=8)
        return {"loss": squared, "absolute": absolute}


@dataclass(frozen=True)
class Scale:
    """What turns a file's numbers into a model's: saved beside it as scale.json."""

    names: tuple[str, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]

    def save(self, folder: Path) -> None:
        """Write scale.json."""
        write_json(folder / "scale.json", asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "Scale":
        """Read scale.json. Raises: UserError when it is missing or damaged."""
        values = read_json(folder / "scale.json")
        try:
            names = tuple(str(name) for name in values["names"])
            mean, spread = (
                tuple(float(each) for each in values[name])
                for name in ("mean", "spread")
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            names, mean, spread = (), (), ()
        if not len(names) == len(mean) == len(spread) > 0:
            raise UserError(
                f"{folder / 'scale.json'} is damaged: take another copy of the model"
            )
        return cls(names, mean, spread)


class SeriesForecaster(PretrainedModel):
    """A series in, its next steps out; the scale of the series belongs to the model."""

    config_class: ClassVar[Any] = SeriesConfig
    model_class: ClassVar[Any] = SeriesTransformer
    hub_task = "time-series-forecasting"

    def __init__(self, model: SeriesTransformer, scale: Scale):
        super().__init__(model)
        self.scale = scale

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[Scale]:
        """The scale. Raises: UserError when it is missing or damaged."""
        return (Scale.load(folder),)

    def files(self) -> Scale:
        """The scale, which saves itself."""
        return self.scale

    def forecast(
        self, series: Any
    ) -> Float[Tensor, "horizon channel"] | list[Float[Tensor, "horizon channel"]]:
        """The steps that follow the end of a series, or of each in a list, in its own
        units.

        A series is a `Series`, a CSV file, a table such as pandas' DataFrame, or an
        array (time, channel) with the model's columns in their order.
        Raises: UserError for other columns, gaps, or too few rows.
        """
        if several_series(series, len(self.scale.names)):
            return [self._forecast(each) for each in series]
        return self._forecast(series)

    def _forecast(self, series: Any) -> Float[Tensor, "horizon channel"]:
        values = self.standardised(series)[-self.config.context :]
        if len(values) < self.config.context:
            raise UserError(
                f"the series has {len(values):,} rows and the model reads "
                f"{self.config.context:,}: give it a longer one"
            )
        with torch.no_grad():
            forecast = forecaster(self.model)(values.T)
        check_numbers(forecast)
        return forecast.T * torch.tensor(self.scale.spread) + torch.tensor(
            self.scale.mean
        )

    def standardised(self, series: Any) -> Float[Tensor, "time channel"]:
        """A series in the units of the model. Raises: UserError for other columns."""
        series = as_series(series, self.scale.names)
        if series.names != self.scale.names:
            raise UserError(
                f"the columns are {', '.join(series.names)} and the model knows "
                f"{', '.join(self.scale.names)}: give it a series like its own"
            )
        mean, spread = torch.tensor(self.scale.mean), torch.tensor(self.scale.spread)
        return (series.values - mean) / spread

    def evaluate(
        self, data: str | Path = "ett-h1", root: Root = None
    ) -> dict[str, Any]:
        """Errors on the last 20 %, beside naive forecasts and a tuned linear model: of
        standardised values, squared (MSE) and absolute (MAE).
        """
        context, horizon = self.config.context, self.config.horizon
        series = load_series(data, root)
        self.standardised(series)  # the same columns
        period = min(series.day, context)
        linear, _ = tuned_ridge(series, context, horizon)
        test, sizes = split_series(series, context, horizon)[2], (context, horizon)
        rows = []
        for name, forecast in {
            "Transformer": forecaster(self.model),
            "linear": linear,
            f"seasonal naive, {period} steps": repeat_period(horizon, period),
            "naive": repeat_period(horizon, 1),
        }.items():
            squared, absolute = forecast_errors(forecast, test, *sizes)
            rows.append({"forecast": name, "MSE": squared, "MAE": absolute})
        return {"horizon": horizon, "forecasts": rows}


def load_series(data: str | Path, root: Root = None) -> Series:
    """ETTh1, or the series of a CSV file."""
    path = own_path(data, "ett-h1")
    return read_series(path) if path else ett(root)


def series_task(
    data: str | Path, config: SeriesConfig, training: SeriesTraining, root: Root
) -> SeriesTask:
    """A new forecaster, with the scale of the series."""
    series = load_series(data, root)
    train, valid, _, mean, spread = split_series(series, config.context, config.horizon)
    torch.manual_seed(training.seed)
    scale = Scale(series.names, tuple(mean.tolist()), tuple(spread.tolist()))
    return SeriesTask(SeriesTransformer(config), scale, train, valid, training)


def forecast(
    model: SeriesForecaster, data: str = "ett-h1", *, root: Root = None
) -> Iterator[str]:
    """How a series goes on after its last row, as CSV in its own units.

    **Examples**

    `annotated-transformer series forecast runs/series`

    `annotated-transformer series forecast runs/own sales.csv`
    """
    series = load_series(data, root)
    coming = model.forecast(series)
    writer = csv.writer(text := io.StringIO(), lineterminator="\n")
    writer.writerow(["date", *series.names])
    dates = coming_dates(series.dates, len(coming))
    for date, row in zip(dates, coming.tolist(), strict=True):
        writer.writerow([date, *(f"{value:.6g}" for value in row)])
    yield text.getvalue().removesuffix("\n")


def coming_dates(dates: tuple[str, ...], count: int) -> list[str]:
    """The dates that follow the last two; +1, +2, … where they are no dates."""
    try:
        before, last = map(datetime.fromisoformat, dates[-2:])
        return [str(last + (last - before) * step) for step in range(1, count + 1)]
    except (ValueError, OverflowError, TypeError):
        return [f"+{step}" for step in range(1, count + 1)]


MODEL_TYPE = ModelType(
    SeriesForecaster,
    series_task,
    SeriesTraining(),
    data="ett-h1, or a CSV file: dates in the first column, numbers in the others",
    about="The first 60 % are for training, the next 20 % for validation (of ETT's "
    "files the first 20 months count, as in the literature). Evaluated are the errors "
    "on the last 20 %, beside naive forecasts and a tuned linear model.",
    example=("sales.csv", "horizon=48"),
    commands={"forecast": forecast},
)
