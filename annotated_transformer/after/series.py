"""Forecasts of time series: an encoder over days, a linear model, and naive ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..data.series import Series
from ..errors import UserError, check_integer
from ..model.config import StackConfig
from ..model.layers import Encoder
from ..model.position import LearnedPositions
from ..model.transformer import initialise
from ..training.task import TensorBatch


def windows(
    values: Float[Tensor, "time channel"], context: int, horizon: int
) -> Float[Tensor, "window channel step"]:
    """All stretches of `context` known and `horizon` coming steps; no copy is made."""
    return values.unfold(0, context + horizon, 1)


def split_series(
    series: Series, context: int, horizon: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Training, validation and test part, standardised, then the mean and deviation.

    60, 20 and 20 % of the rows; of ETT's files, known by their columns, of the first
    20 months of 30 days. The last two parts begin `context` rows early, so that their
    first row can be forecast. Raises: UserError for a series that is too short.
    """
    rows = len(series.values)
    if series.names == ETT:
        rows = min(rows, 600 * series.day)
    first, second = 3 * rows // 5, 4 * rows // 5
    if min(first - context, second - first, rows - second) < horizon:
        raise UserError(
            f"{rows:,} rows are too few for context={context} and horizon={horizon} in "
            "each of three parts: set smaller ones (--set), or give more rows"
        )
    values = series.values[:rows].double()
    spread, mean = torch.std_mean(values[:first], dim=0, correction=0)
    spread = torch.where(spread > 0, spread, 1.0)  # a column may stand still
    values = ((values - mean) / spread).float()
    pieces = (
        values[:first],
        values[first - context : second],
        values[second - context :],
    )
    return *pieces, mean.float(), spread.float()


ETT = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")


Forecaster = Callable[[Tensor], Tensor]  # (batch, context) to (batch, horizon)


@torch.no_grad()
def forecast_errors(
    forecast: Forecaster,
    values: Float[Tensor, "time channel"],
    context: int,
    horizon: int,
    stride: int = 1,
) -> tuple[float, float]:
    """The mean squared and the mean absolute error over windows, steps and channels.

    A window begins every `stride` steps. `values` begin `context` steps before the
    first that is to be forecast.
    """
    squared = absolute = 0.0
    pieces = windows(values, context, horizon)[::stride]
    for part in pieces.split(64):
        rows = part.flatten(0, 1)
        gap = forecast(rows[:, :context]) - rows[:, context:]
        squared += gap.square().sum().item()
        absolute += gap.abs().sum().item()
    count = pieces.size(0) * pieces.size(1) * horizon
    return squared / count, absolute / count


def repeat_period(horizon: int, period: int) -> Forecaster:
    """The seasonal naive forecast: the last `period` steps, again and again.

    With a period of 1 it is the naive forecast.
    """
    steps = torch.arange(horizon) % period
    return lambda past: past[:, -period:][:, steps]


class Ridge:
    """Linear regression from the past to each coming step, with a penalty on weights.

    Past and future are taken relative to the last known value, and all channels share
    the weights.
    """

    def __init__(
        self, values: Float[Tensor, "time channel"], context: int, horizon: int
    ):
        count = 0
        squares, products = torch.zeros(context, context), torch.zeros(context, horizon)
        for channel in windows(values, context, horizon).transpose(0, 1):
            relative = channel - channel[:, context - 1 : context]
            past, future = relative.split([context, horizon], dim=1)
            squares += past.T @ past
            products += past.T @ future
            count += len(channel)
        self.scales, self.axes = torch.linalg.eigh(squares.double() / count)
        self.targets = self.axes.T @ (products.double() / count)

    def forecaster(self, penalty: float) -> Forecaster:
        """The forecast with this penalty."""
        turned = self.targets / (self.scales[:, None] + penalty)
        weights = (self.axes @ turned).float()
        return lambda past: (past - past[:, -1:]) @ weights + past[:, -1:]


PENALTIES = (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


def tuned_ridge(series: Series, context: int, horizon: int) -> tuple[Forecaster, float]:
    """The linear forecaster with the penalty that is best in validation, and that."""
    train, valid, *_ = split_series(series, context, horizon)
    ridge = Ridge(train, context, horizon)

    def error(penalty: float) -> float:
        linear = ridge.forecaster(penalty)
        return forecast_errors(linear, valid, context, horizon, stride=8)[0]

    best = min(PENALTIES, key=error)
    return ridge.forecaster(best), best


@dataclass(frozen=True)
class SeriesConfig(StackConfig):
    """The sizes of a forecaster: its stack, and the steps it reads and writes.

    A patch begins `stride` steps after the last one; 0 is as many as a patch has.
    """

    model_type: ClassVar[str] = "series"
    N: int = 2
    d_model: int = 32
    d_ff: int = 64
    dropout: float = 0.2
    context: int = 336
    patch: int = 24
    stride: int = 0
    horizon: int = 96

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("context", "patch", "horizon"):
            check_integer(self, name, below=2**20)
        check_integer(self, "stride", least=0, below=2**20)
        beyond = self.context - self.patch
        if beyond < 0 or beyond % self.between or self.context < 2:
            raise UserError(
                f"context is {self.context}, patch {self.patch} and stride "
                f"{self.stride}: the context must be two steps or more, and whole "
                "patches"
            )

    @property
    def between(self) -> int:
        """The steps from the beginning of one patch to that of the next."""
        return self.stride or self.patch

    @property
    def tokens(self) -> int:
        """How many patches the context has."""
        return (self.context - self.patch) // self.between + 1


class SeriesTransformer(nn.Module):
    """Patches of one channel's past through the paper's encoder, to its future.

    Source: Nie et al. 2023, here with the paper's layer norm.
    """

    def __init__(self, config: SeriesConfig):
        super().__init__()
        self.config = config
        self.embed = nn.Linear(config.patch, config.d_model)
        self.positions = LearnedPositions(config.tokens, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.output = nn.Linear(config.tokens * config.d_model, config.horizon)
        self.apply(initialise)

    def forward(
        self, past: Float[Tensor, "batch context"]
    ) -> Float[Tensor, "batch horizon"]:
        """The coming steps, at the level and in the spread of the past."""
        spread, level = torch.std_mean(past, dim=-1, correction=0, keepdim=True)
        spread = spread + 1e-3
        past = (past - level) / spread
        x = past.unfold(-1, self.config.patch, self.config.between)
        x = self.dropout(self.positions(self.embed(x)))
        return self.output(self.encoder(x).flatten(1)) * spread + level


def window_batches(
    values: Float[Tensor, "time channel"],
    config: SeriesConfig,
    seed: int,
    size: int = 256,
) -> Iterator[TensorBatch]:
    """Batches of windows drawn at random from all places and channels, for ever."""
    generator = torch.Generator().manual_seed(seed)
    pieces = windows(values, config.context, config.horizon)
    while True:
        starts, channels = (
            torch.randint(0, count, (size,), generator=generator)
            for count in pieces.shape[:2]
        )
        yield TensorBatch((pieces[starts, channels],), size * config.horizon)


def window_loss(model: nn.Module, batch: TensorBatch) -> Float[Tensor, ""]:
    """The squared error of the forecasts of some windows, summed."""
    (values,) = batch.to(model.embed.weight.device)
    sizes = [model.config.context, model.config.horizon]
    past, future = values.split(sizes, dim=1)
    return F.mse_loss(model(past), future, reduction="sum")


def forecaster(model: SeriesTransformer) -> Forecaster:
    """The model in evaluation mode, as one forecaster among others, on the CPU."""
    model.eval()
    device = model.embed.weight.device
    return lambda past: model(past.to(device)).cpu()
