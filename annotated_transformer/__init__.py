"""The Transformer of "Attention Is All You Need": train it, translate, look inside.

    >>> from annotated_transformer import load
    >>> load().translate("the twenty-first of March")
    'der einundzwanzigste März'

The names below are the package's face. Each is imported from its room when it is first
used, so that importing the package takes no time, and no PyTorch.
"""

from typing import TYPE_CHECKING

from .lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .engine.runs import fit as fit
    from .engine.runs import prepare as prepare
    from .errors import UserError as UserError
    from .files import verify as verify
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
    "verify": "files",
}

__all__ = ["__version__", *_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
