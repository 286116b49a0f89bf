"""Checks of a Transformer that you write yourself, part by part.

    >>> from annotated_transformer import check
    >>> check.attention(attention).sentence
    The scores aren't divided by √d_k before the softmax.

Each takes your function or class and answers that it is right, or shows what it
expected beside what it found and says the first thing that is wrong. Its docstring
holds the signature to write.
What counts is behaviour: attributes have the names that you like, linear layers a bias
or none, weights any start.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .report import progress as progress
from .verdict import Verdict as Verdict

if TYPE_CHECKING:
    from .checks import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """The checks are imported, and PyTorch with them, when one is asked for."""
    return getattr(import_module(f"{__name__}.checks"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(import_module(f"{__name__}.checks"))})
