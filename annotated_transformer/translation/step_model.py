"""What a search needs of a model, and what is seen to before and after a search."""

from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import UserError
from .options import SearchOptions


@runtime_checkable
class StepCache(Protocol):
    """What a model keeps between two steps."""

    def reorder(self, rows: Int[Tensor, "kept"]) -> None:
        """New row i continues old row `rows[i]`; beams stay beside each other."""


@runtime_checkable
class StepModel(Protocol):
    """What a search needs of a model."""

    config: Any
    training: bool

    def start(self, src: Int[Tensor, "batch src"], beam_size: int = 1) -> StepCache:
        """Read the sources; the cache has `beam_size` neighbouring rows for each."""

    def step(
        self, tokens: Int[Tensor, "rows"], cache: Any
    ) -> Float[Tensor, "rows vocab"]:
        """Feed one token a row; a score for each next token."""


def check_source(model: StepModel, src: Int[Tensor, "batch src"]) -> None:
    """Raises: UserError if dropout is on or a source row holds no token."""
    if model.training:
        raise UserError(
            "the model is in training mode, so dropout would change the output: call "
            "model.eval() first"
        )
    empty = (src == model.config.pad_id).all(dim=1)
    if empty.any():
        raise UserError(
            f"source row {int(empty.nonzero()[0])} holds nothing but padding: leave it "
            "out"
        )


def check_numbers(values: Float[Tensor, "*shape"]) -> None:
    """Raises: UserError if one of them is NaN."""
    if values.isnan().any():
        raise UserError(
            "the model's scores are not numbers (NaN): take an earlier checkpoint or "
            "another copy"
        )


def random_numbers(
    options: SearchOptions, device: torch.device
) -> torch.Generator | None:
    """The generator that a seed asks for; None is PyTorch's own."""
    if options.seed is None:
        return None
    return torch.Generator(device).manual_seed(options.seed)
