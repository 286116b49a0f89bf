"""What is checked before and after a model answers: its texts, sources and scores."""

from collections.abc import Mapping, Sequence

from jaxtyping import Float, Int
from torch import Tensor

from ..errors import UserError, check_kind
from .step_model import StepModel


def as_list(texts: str | Sequence[str]) -> list[str]:
    """One text or several as a list.

    Raises: UserError for what is neither, such as bytes, an iterator or a table.
    """
    if isinstance(texts, str):
        return [texts]
    if isinstance(texts, bytes):
        raise UserError("expected text and got bytes: decode it, as in text.decode()")
    several = hasattr(texts, "__len__") and hasattr(texts, "__getitem__")
    if not several or isinstance(texts, Mapping) or getattr(texts, "ndim", 1) != 1:
        raise UserError(
            f"expected a text or a list of texts and got {type(texts).__name__}: put "
            "them in a list (a translator's stream reads lines as they come)"
        )
    for number, text in enumerate(lines := list(texts), start=1):
        check_kind(f"line {number}", text, str, "a text, of type str")
    return lines


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
