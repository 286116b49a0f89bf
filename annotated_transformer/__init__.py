"""The Transformer of "Attention Is All You Need": train it, translate, look inside.

    >>> from annotated_transformer import load
    >>> load().translate("the twenty-first of March")
    'der einundzwanzigste März'

Train one of six model types, on the command line or in Python. The same lines again go
on where a run stopped. For a translation, PAIRS are (source, target), or files of two
languages; DATA is the name of a data set or a file of yours:
    annotated-transformer train RECIPE --out RUN                         # translation
    annotated-transformer classifier train DATA --out RUN
    annotated-transformer language-model train DATA --out RUN
    annotated-transformer masked-language-model train DATA --out RUN
    annotated-transformer vision train DATA --out RUN
    annotated-transformer series train DATA --out RUN --set steps=900

    from annotated_transformer import fine_tune, fit, make_task, prepare, recipe
    from annotated_transformer import start_run
    fit(prepare(recipe("phrasebook"), RUN, PAIRS, VALID_PAIRS))          # translation
    fit(fine_tune("tatoeba-en-de", RUN, PAIRS, VALID_PAIRS))  # from a trained model
    fit(start_run(make_task("classifier", DATA), RUN))
    fit(start_run(make_task("language-model", DATA), RUN))
    fit(start_run(make_task("masked-language-model", DATA), RUN))
    fit(start_run(make_task("vision", DATA), RUN))
    fit(start_run(make_task("series", DATA, steps=900), RUN))      # 900 updates
A run prints its progress; `report=None`, where it is made, keeps it silent.

What DATA may be, and the class that opens the trained model:
    classifier             "imdb", or a file of lines: class, tab, text   TextClassifier
    language-model         "tiny-shakespeare", or a text file              TextGenerator
    masked-language-model  "imdb", or a file with a text a line               MaskFiller
    vision                 "mnist", or a folder in MNIST's format        ImageClassifier
    series                 "ett-h1", or a CSV file with dates first     SeriesForecaster

Open a model: a run or another folder, a shipped model's name, or "hf:owner/name":
    load(name), of any type; or TextClassifier.from_pretrained(name, device=…) and so on

Use it: `annotated-transformer translate -m RUN`, `classifier predict RUN`, and so on
with generate, fill, predict and forecast. In Python a text, an image (PIL, path, array)
or a table goes in, or a list of them, and one answer or a list comes out:
    Translator                    translate, confidence, n_best, score, attention
    TextClassifier                predict, probabilities, evaluate    (texts)
    TextGenerator                 generate, measure, evaluate         (language models)
    MaskFiller                    fill, evaluate                    (masked ones, BERT)
    ImageClassifier               predict, probabilities, evaluate
    SeriesForecaster              forecast, evaluate

Save it, share it, move it; each of them has:
    model.save_pretrained(folder), model.push_to_hub("owner/name"), model.to("cuda")

The parts of a translation model and its training:
    TransformerConfig(d_model=64, h=4), preset("base"), Transformer(config)
    Recipe, TrainingConfig        the corpus and the settings of a training
    train(objective, optimizer, pairs, config)         the loop alone

Write one yourself, with a check of each part, in a notebook or in a file:
    from annotated_transformer import check; check.attention(attention)
    annotated-transformer check my_transformer.py

`doctor(RUN)`, or of a model, or of pairs with their languages, says what is likely
wrong. What a user can mend is a `UserError`; `verify(folder)` sees whether files are as
they were written. Each name is imported from its module when it is first used, so
importing the package takes no time, and no PyTorch.
"""

import os
import signal
import sys

# A Ctrl-C while the command line is imported, of which this comes first, ends it in
# silence. A program that imports the package keeps its own way.
if os.path.basename(sys.argv[0]) in ("-m", "annotated-transformer"):
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import model_types as model_types  # which registers them

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .after.forecasting import SeriesForecaster as SeriesForecaster
    from .after.image_classification import ImageClassifier as ImageClassifier
    from .after.mask_filling import MaskFiller as MaskFiller
    from .after.text_classification import TextClassifier as TextClassifier
    from .after.text_generation import TextGenerator as TextGenerator
    from .decoding.options import SearchOptions as SearchOptions
    from .errors import UserError as UserError
    from .files import verify as verify
    from .model.config import TransformerConfig as TransformerConfig
    from .model.config import preset as preset
    from .model.transformer import Transformer as Transformer
    from .model_types import make_task as make_task
    from .pretrained import load as load
    from .training.config import TrainingConfig as TrainingConfig
    from .training.recipes import Recipe as Recipe
    from .training.recipes import recipe as recipe
    from .training.run import fit as fit
    from .training.run import start_run as start_run
    from .training.trainer import train as train
    from .translation.doctor import doctor as doctor
    from .translation.task import fine_tune as fine_tune
    from .translation.task import prepare as prepare
    from .translation.translator import Translator as Translator

# Where each name comes from; the imports above say the same to tools that read the
# source: type checkers, editors and the book's cache.
_HOMES = {
    "ImageClassifier": "after.image_classification",
    "MaskFiller": "after.mask_filling",
    "Recipe": "training.recipes",
    "SearchOptions": "decoding.options",
    "SeriesForecaster": "after.forecasting",
    "TextClassifier": "after.text_classification",
    "TextGenerator": "after.text_generation",
    "TrainingConfig": "training.config",
    "Transformer": "model.transformer",
    "TransformerConfig": "model.config",
    "Translator": "translation.translator",
    "UserError": "errors",
    "doctor": "translation.doctor",
    "fine_tune": "translation.task",
    "fit": "training.run",
    "load": "pretrained",
    "make_task": "model_types",
    "prepare": "translation.task",
    "preset": "model.config",
    "recipe": "training.recipes",
    "start_run": "training.run",
    "train": "training.trainer",
    "verify": "files",
}


def __getattr__(name: str) -> Any:
    """Import a name from its module and keep it here."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
