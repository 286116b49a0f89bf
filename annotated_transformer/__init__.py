"""The Transformer of "Attention Is All You Need": train it, translate, look inside.

    >>> from annotated_transformer import load
    >>> load().translate("the twenty-first of March")
    'der einundzwanzigste März'

The names below are the package's face. Each is imported from its room when it is first
used, so that importing the package takes no time, and no PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .engine.runs import fit as fit
    from .engine.runs import prepare as prepare
    from .errors import UserError as UserError
    from .loading import load as load
    from .model.config import TransformerConfig as TransformerConfig
    from .model.config import preset as preset
    from .model.transformer import Transformer as Transformer
    from .training.recipes import Recipe as Recipe
    from .training.recipes import recipe as recipe
    from .training.trainer import TrainingConfig as TrainingConfig
    from .training.trainer import train as train
    from .translation.search import SearchOptions as SearchOptions
    from .translation.translator import Translator as Translator

# Where each name of the face comes from; the imports above say the same to tools that
# read the source: type checkers, editors and the book's cache.
_HOMES = {
    "Recipe": "training.recipes",
    "SearchOptions": "translation.search",
    "TrainingConfig": "training.trainer",
    "Transformer": "model.transformer",
    "TransformerConfig": "model.config",
    "Translator": "translation.translator",
    "UserError": "errors",
    "fit": "engine.runs",
    "load": "loading",
    "prepare": "engine.runs",
    "preset": "model.config",
    "recipe": "training.recipes",
    "train": "training.trainer",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Import a name of the face from its room and keep it here."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
