"""What a search needs of a model."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


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
