"""A task whose data are two parts: one to train on, and one to validate on."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch.nn.functional as F
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor, nn

from ..data.images import ImageSet
from ..data.text_tokenizer import TextTokenizer
from .checkpoint import Savable
from .config import RunConfig
from .task import Position, Task, TensorBatch, numbered


@dataclass(frozen=True)
class BatchedTraining(RunConfig):
    """How to train on batches of `batch` examples."""

    batch: int = 64
    counts: ClassVar[tuple[str, ...]] = (*RunConfig.counts, "batch")


class HeldOutTask(Task):
    """A model, what is saved beside it, and data to train on and to validate on."""

    config: Any

    def __init__(
        self,
        model: nn.Module,
        beside: Savable | Tokenizer | None,
        train: Any,
        valid: Any,
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
    content = data.numpy().tobytes() if tensor else repr(data).encode()
    return {"size": len(data), "sha256": hashlib.sha256(content).hexdigest()}


def class_metrics(
    probabilities: Float[Tensor, "examples classes"], truth: Int[Tensor, "examples"]
) -> dict[str, float]:
    """The mean loss of probabilities, in nats, and the share of right answers."""
    right = probabilities.argmax(-1) == truth
    nats = F.nll_loss(probabilities.clamp_min(1e-30).log(), truth)
    return {"loss": nats.item(), "accuracy": right.double().mean().item()}
