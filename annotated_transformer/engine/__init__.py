"""What machines want and a reader may skip: the same functions, faster, and other engines.

    >>> from annotated_transformer import engine
    >>> objective = engine.fast_training(model, smoothing=0.1)  # instead of Objective
    >>> faster = engine.fast(model)  # the same scores, for translating

Both are imported from their modules when they are first used.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .decoding import fast as fast
    from .update import fast_training as fast_training

_HOMES = {"fast": "decoding", "fast_training": "update"}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
