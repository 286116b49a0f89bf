"""What a model type brings to a run: model, loss, data, optimizer and validation."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from .checkpoint import Savable
from .config import RunConfig
from .schedule import cosine

Position = tuple[int, int]  # epoch, and how many of its batches are taken
SummedLoss = Callable[[Any], float]  # of a batch, over all processes


@dataclass(frozen=True, eq=False)
class TensorBatch:
    """Tensors with a row for each example; `tokens` counts what their loss sums."""

    tensors: tuple[Tensor, ...]
    tokens: int

    def to(self, device: torch.device | str) -> tuple[Tensor, ...]:
        """The tensors on a device."""
        return tuple(tensor.to(device) for tensor in self.tensors)

    def shard(self, rank: int, world: int) -> "TensorBatch":
        """Every `world`-th row from `rank` on."""
        rows = tuple(tensor[rank::world] for tensor in self.tensors)
        return TensorBatch(rows, self.tokens)

    def split(self, n: int) -> "list[TensorBatch]":
        """Exactly `n` parts, which together are this batch."""
        return [self.shard(i, n) for i in range(n)]


Batch = TypeVar("Batch")


def numbered(
    batches: Iterable[Batch], each: int, start: Position = (0, 0)
) -> Iterator[tuple[Position, Batch]]:
    """Batches from a position on, each with the position after it; `each` of them make
    an epoch.

    Those before are drawn and dropped, so that the random draws are the same.
    """
    done = start[0] * each + start[1]
    for number, batch in enumerate(islice(batches, done, None), done + 1):
        yield divmod(number, each), batch


class ModelWithLoss(nn.Module):
    """A model and the loss of its batches as one module, which `train` calls."""

    def __init__(self, model: nn.Module, loss: Callable[[nn.Module, Any], Tensor]):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: Any) -> Tensor:
        """The loss of a batch, summed."""
        return self.loss(self.model, batch)


class Task:
    """A model and how to train it; a run does the rest.

    `objective` is the model with its loss: of a batch it makes one summed loss. `unit`
    names what a batch's `tokens` counts.
    """

    unit = "tokens"
    shardable = False
    fine_tunes = False  # whether the model has been trained before

    def __init__(
        self,
        model: nn.Module,
        config: RunConfig,
        tokenizer: Savable | None = None,
        epoch_batches: int = 2**31,
    ):
        self.model, self.tokenizer = model, tokenizer
        self.objective: nn.Module = ModelWithLoss(model, self.loss)
        self.epoch_batches = epoch_batches
        if config.epochs:
            every = {"log_every": epoch_batches, "save_every": epoch_batches}
            config = replace(config, steps=config.epochs * epoch_batches, **every)
        self.config = config
        self.batch_loss: SummedLoss = self.local_loss  # a run's, over its processes

    def local_loss(self, batch: Any) -> float:
        """The loss of a batch on this process, summed."""
        return self.objective(batch).item()

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """The loss of a batch, summed; unless a task brings an objective of its own."""
        raise NotImplementedError

    def batches(self, start: Position) -> Iterator[tuple[Position, Any]]:
        """Batches without end from a position on, each with the position after it."""
        raise NotImplementedError

    def evaluate(self) -> dict[str, Any]:
        """Figures on the validation data, "loss" and the config's `scores` among them.

        `batch_loss` is that of a batch over all processes, which have to share the work
        if the model is spread over them (`shardable`).
        """
        raise NotImplementedError

    def criterion(self, figures: dict[str, Any]) -> float:
        """What is lowest in the best validation: the loss, or minus the score that
        `select` names.
        """
        name = self.config.select
        return -figures[name] if name in self.config.scores else figures["loss"]

    def inspect_start(self, figures: dict[str, Any]) -> None:
        """Warn if figures say that the model was trained for something else."""

    def optimizer(self) -> torch.optim.Optimizer:
        """Of the Adam family: its averages are what a checkpoint stores.

        AdamW with a weight decay of 0.01, which first clips the gradient to length 1.
        """
        weights = list(self.model.parameters())
        optimizer = torch.optim.AdamW(weights, self.config.peak, weight_decay=0.01)

        def clip(*_: Any) -> None:
            nn.utils.clip_grad_norm_(weights, 1.0)

        optimizer.register_step_pre_hook(clip)
        return optimizer

    def schedule(self, step: int) -> float:
        """The learning rate of an update."""
        return cosine(step, self.config.steps, self.config.peak)

    def describe(self) -> dict[str, Any]:
        """What has to be the same for a run to go on, besides model and settings."""
        return {}

    def notes(self) -> dict[str, Any]:
        """What the log's first record says about the data, if there is anything."""
        return {}

    def __repr__(self) -> str:
        count = sum(each.numel() for each in self.model.parameters())
        config: Any = self.model.config
        size = f"{config.model_type}, {count:,} parameters"
        return f"{type(self).__name__}({size}, {self.config.steps:,} updates)"
