"""What each model after the paper brings to its training."""

import hashlib
import math
from collections.abc import Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor, nn

from ..data.images import ImageSet
from ..data.text_tokenizer import TextTokenizer
from ..errors import UserError
from ..training.checkpoint import Savable
from ..training.task import Position, SummedLoss, Task, TensorBatch, numbered
from .classifier import Rows, class_loss, classifier_batches, probabilities_of
from .config import (
    BatchedTraining,
    ClassifierTraining,
    ImageTraining,
    LanguageTraining,
    MaskedTraining,
    SeriesTraining,
)
from .language_model import next_token_loss, text_batches, token_losses
from .masked_language_model import masked_batches, masked_loss, predictions
from .series import forecast_errors, forecaster, window_batches, window_loss
from .vision import VisionTransformer, class_probabilities, image_batches

Data = TypeVar("Data", bound=Sized)


class HeldOutTask(Task, Generic[Data]):
    """A model, what is saved beside it, and data to train on and to validate on."""

    config: Any

    def __init__(
        self,
        model: nn.Module,
        beside: Savable | Tokenizer | None,
        train: Data,
        valid: Data,
        config: BatchedTraining,
    ):
        self.model, self.train, self.valid = model, train, valid
        files = TextTokenizer(beside) if isinstance(beside, Tokenizer) else beside
        each = max(1, self.count_batches(config.batch))
        super().__init__(model, config, files, each)

    def count_batches(self, size: int) -> int:
        """How many batches of a size make an epoch."""
        return math.ceil(len(self.train) / size)

    def draw(self) -> Iterator[TensorBatch]:
        """Batches without end, the same ones each time."""
        raise NotImplementedError

    def batches(self, start: Position) -> Iterator[tuple[Position, TensorBatch]]:
        """Those of `draw` from a position on."""
        return numbered(self.draw(), self.epoch_batches, start)

    def describe(self) -> dict[str, Any]:
        """The size and the hash of both parts of the data."""
        sides = {"train": self.train, "valid": self.valid}
        return {"data": {name: data_fingerprint(side) for name, side in sides.items()}}


def data_fingerprint(data: Any) -> dict[str, Any]:
    """The size and the hash of some data; of images, their pixels alone."""
    data = data.images if isinstance(data, ImageSet) else data
    tensor = isinstance(data, Tensor)
    whole = data.numpy().tobytes() if tensor else repr(data).encode()
    return {"size": len(data), "sha256": hashlib.sha256(whole).hexdigest()}


class LanguageModelTask(HeldOutTask[Tensor]):
    """A language model, its tokenizer, and the ids of a text and of its held-out part.

    Raises: UserError for a text too short for one window, or a held-out part of fewer
    than two tokens.
    """

    config: LanguageTraining

    def count_batches(self, size: int) -> int:
        """A window for each `max_length` of the tokens."""
        if len(self.valid) < 2:
            few = "the held-out text has fewer than two tokens"
            raise UserError(f"{few}: take a longer one")
        length = self.model.config.max_length
        next(text_batches(self.train, 1, length, seed=0))  # is there one?
        return len(self.train) // (size * length)

    def loss(self, objective: nn.Module, batch: TensorBatch) -> Tensor:
        """The cross-entropy of each next token."""
        return next_token_loss(objective, batch)

    def draw(self) -> Iterator[TensorBatch]:
        """Windows of the text, at random."""
        sizes = self.config.batch, self.model.config.max_length
        return text_batches(self.train, *sizes, self.config.seed)

    def evaluate(self, loss: SummedLoss) -> dict[str, float]:
        """The loss per token of the first 128 windows, and the perplexity."""
        some = self.valid[: 128 * self.model.config.max_length + 1]
        found = token_losses(self.model, some).mean().item()
        return {"loss": found, "perplexity": math.exp(min(found, 700))}


class ClassifierTask(HeldOutTask[tuple[Rows, Sequence[int]]]):
    """A classifier, its tokenizer, and (rows of ids, classes) to train and validate."""

    config: ClassifierTraining
    unit = "texts"

    def count_batches(self, size: int) -> int:
        """Every text once."""
        return math.ceil(len(self.train[0]) / size)

    def loss(self, objective: nn.Module, batch: TensorBatch) -> Tensor:
        """The cross-entropy of the class."""
        return class_loss(objective, batch, self.config.smoothing)

    def draw(self) -> Iterator[TensorBatch]:
        """Texts of similar length, some words hidden."""
        length = self.model.config.max_length
        return classifier_batches(*self.train, length, self.config)

    def evaluate(self, loss: SummedLoss) -> dict[str, float]:
        """The loss per text, and the share of right answers."""
        rows, classes = self.valid
        found = probabilities_of(self.model, rows)
        return class_metrics(found, torch.tensor(classes))


def class_metrics(
    found: Float[Tensor, "examples classes"], truth: Int[Tensor, "examples"]
) -> dict[str, float]:
    """The mean loss of probabilities, in nats, and the share of right answers."""
    right = found.argmax(-1) == truth
    nats = F.nll_loss(found.clamp_min(1e-30).log(), truth)
    return {"loss": nats.item(), "accuracy": right.double().mean().item()}


class MaskedLanguageModelTask(HeldOutTask[Rows]):
    """A masked language model, its tokenizer, and rows of ids to train and validate."""

    config: MaskedTraining

    def loss(self, objective: nn.Module, batch: TensorBatch) -> Tensor:
        """The cross-entropy at the chosen positions."""
        return masked_loss(objective, batch)

    def draw(self) -> Iterator[TensorBatch]:
        """Rows of similar length, hidden anew each time."""
        return masked_batches(self.train, self.model.config.mask_id, self.config)

    def evaluate(self, loss: SummedLoss) -> dict[str, float]:
        """The loss per hidden token, and the share of right predictions."""
        found, right = predictions(self.model, self.valid)
        return {"loss": found, "accuracy": right}


class VisionTask(HeldOutTask[ImageSet]):
    """A vision Transformer, and images to train and validate."""

    config: ImageTraining
    unit = "images"

    def __init__(
        self,
        model: VisionTransformer,
        train: ImageSet,
        valid: ImageSet,
        config: ImageTraining,
    ):
        super().__init__(model, None, train, valid, config)

    def loss(self, objective: nn.Module, batch: TensorBatch) -> Tensor:
        """The smoothed cross-entropy of the class."""
        return class_loss(objective, batch, smoothing=0.1)

    def draw(self) -> Iterator[TensorBatch]:
        """Every image once an epoch, moved a little."""
        settings = self.config.seed, self.config.shift, self.config.batch
        return image_batches(self.train, *settings)

    def evaluate(self, loss: SummedLoss) -> dict[str, float]:
        """The loss per image, and the share of right answers."""
        found = class_probabilities(self.model, self.valid.images)
        return class_metrics(found, self.valid.labels.long())


class SeriesTask(HeldOutTask[Tensor]):
    """A forecaster, the scale of its series, and (time, channel) of both parts."""

    config: SeriesTraining
    unit = "steps"

    def count_batches(self, size: int) -> int:
        """A window for each number of the series."""
        return self.train.numel() // size

    def loss(self, objective: nn.Module, batch: TensorBatch) -> Tensor:
        """The squared error of the forecasts."""
        return window_loss(objective, batch)

    def draw(self) -> Iterator[TensorBatch]:
        """Windows, at random."""
        settings = self.model.config, self.config.seed, self.config.batch
        return window_batches(self.train, *settings)

    def evaluate(self, loss: SummedLoss) -> dict[str, float]:
        """The mean squared and absolute error of one window in eight."""
        sizes = self.model.config.context, self.model.config.horizon
        forecast = forecaster(self.model)
        squared, absolute = forecast_errors(forecast, self.valid, *sizes, stride=8)
        return {"loss": squared, "absolute": absolute}
