"""What machines want and a reader may skip: the same functions, faster, and other engines.

    >>> from annotated_transformer import engine
    >>> objective = engine.fast_training(model, smoothing=0.1)  # instead of Objective
    >>> faster = engine.fast(model)  # the same scores, for translating

Both are imported from their modules when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .decoding import fast as fast
    from .update import fast_training as fast_training

_HOMES = {"fast": "decoding", "fast_training": "update"}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import a name from its module and keep it here."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
