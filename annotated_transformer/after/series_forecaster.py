"""A forecaster of series, opened and used: how a series goes on, in its own units."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..data.series import as_series
from ..decoding.checks import check_numbers
from ..errors import UserError
from ..files import read_json, write_json
from ..pretrained import PretrainedModel
from .series import SeriesConfig, SeriesTransformer, forecaster


@dataclass(frozen=True)
class Scale:
    """What turns a file's numbers into a model's: saved beside it as scale.json."""

    names: tuple[str, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]

    def save(self, folder: Path) -> None:
        """Write scale.json."""
        values = {"names": self.names, "mean": self.mean, "spread": self.spread}
        write_json(folder / "scale.json", values)

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

    def forecast(self, series: Any) -> Float[Tensor, "horizon channel"]:
        """The steps that follow the end of a series, in its own units.

        `series` is a `Series`, a CSV file, a table such as pandas' DataFrame, or an
        array (time, channel) with the model's columns in their order.
        Raises: UserError for other columns, gaps, or too few rows.
        """
        values = self.standardised(series)[-self.config.context :]
        if len(values) < self.config.context:
            raise UserError(
                f"the series has {len(values):,} rows and the model reads "
                f"{self.config.context:,}: give it a longer one"
            )
        with torch.no_grad():
            found = forecaster(self.model)(values.T)
        check_numbers(found)
        return found.T * torch.tensor(self.scale.spread) + torch.tensor(self.scale.mean)

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
