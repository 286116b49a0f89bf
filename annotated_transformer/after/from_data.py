"""A training task of each model type from its data: a named set, or your own files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from ..data.images import ImageSet, mnist, read_images
from ..data.labelled_texts import Examples, imdb, read_examples
from ..data.series import Series, ett, read_series
from ..data.text_tokenizer import encode_texts
from ..data.texts import load_text, unlabelled
from ..errors import UserError, nearest
from ..training.config import with_settings
from ..training.task import Task
from .classifier import ClassifierConfig, TextClassifier
from .config import (
    ClassifierTraining,
    ImageTraining,
    LanguageTraining,
    MaskedTraining,
    SeriesTraining,
)
from .language_model import LanguageModel, LanguageModelConfig, byte_pairs, characters
from .masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    classifier_from,
    draw_examples,
    mask_tokenizer,
    text_rows,
)
from .series import SeriesConfig, SeriesTransformer, split_series
from .series_forecaster import Scale
from .tasks import (
    ClassifierTask,
    LanguageModelTask,
    MaskedLanguageModelTask,
    SeriesTask,
    VisionTask,
)
from .text_classifier import new_classifier
from .vision import VisionConfig, VisionTransformer, cut

FINE_TUNING = ClassifierTraining(batch=32, peak=3e-3, word_dropout=0.1)
FEWEST = 40  # with fewer texts, nothing may be left for validation
Root = str | Path | None


def own_path(data: str | Path, name: str) -> Path | None:
    """The path of data of one's own; None for the named data set.

    Raises: UserError where there is nothing of that name.
    """
    if str(data) == name:
        return None
    if not Path(data).exists():
        raise UserError(f"{data}: no such file or folder; or name {name}")
    return Path(data)


def load_examples(
    data: str | Path,
    split: str,
    classes: Sequence[str] | None = None,
    root: Root = None,
) -> tuple[Examples, tuple[str, ...]]:
    """Labelled texts, of IMDb or a file, and their classes, which may be given.

    Raises: UserError as `read_examples`, or where IMDb has other classes.
    """
    path, own = own_path(data, "imdb"), ClassifierConfig().classes
    if path:
        return read_examples(path, classes)
    if classes and set(classes) != set(own):
        raise UserError(
            f"the model knows the classes {', '.join(classes)}, and IMDb has others: "
            "name your own examples"
        )
    return imdb(split, root)[0], own


def load_images(data: str | Path, part: str, root: Root = None) -> ImageSet:
    """The "train" or the "t10k" images of MNIST, or of a folder."""
    path = own_path(data, "mnist")
    return read_images(path, part) if path else mnist(part, root)


def load_series(data: str | Path, root: Root = None) -> Series:
    """ETTh1, or the series of a CSV file."""
    path = own_path(data, "ett-h1")
    return read_series(path) if path else ett(root)


def classifier_task(
    data: str | Path, config: ClassifierConfig, training: ClassifierTraining, root: Root
) -> Task:
    """A new classifier with a vocabulary of its own."""
    examples, classes = load_examples(data, "train", root=root)
    check_count(examples)
    texts = examples.divide()[0].texts
    new = new_classifier(texts, replace(config, classes=classes), training.seed)
    return labelled_task(new.model, new.tokenizer, examples, training)


def fine_tuning_task(
    filler: Any,
    data: str | Path,
    labels: int | None = None,
    training: ClassifierTraining = FINE_TUNING,
    root: Root = None,
) -> Task:
    """A classifier made of a pretrained masked language model; `labels` is how many
    examples are drawn, all of them if None.

    Raises: UserError for a model that isn't our own, or too few examples.
    """
    check_own(filler)
    examples, classes = load_examples(data, "train", root=root)
    if labels is not None:
        examples = draw_examples(examples, labels, training.seed)
    check_count(examples)
    torch.manual_seed(training.seed)
    model = classifier_from(filler.model, classes)
    return labelled_task(model, filler.tokenizer, examples, training)


def labelled_task(
    model: TextClassifier,
    tokenizer: Tokenizer,
    examples: Examples,
    training: ClassifierTraining,
) -> Task:
    """The training of a classifier on nine tenths of some examples."""
    train, valid = (
        (encode_texts(tokenizer, each.texts), each.labels) for each in examples.divide()
    )
    return ClassifierTask(model, tokenizer, train, valid, training)


def check_count(examples: Examples) -> None:
    """Raises: UserError where a tenth of the texts may be none."""
    if len(examples) < FEWEST:
        raise UserError(
            f"{len(examples)} texts are too few to keep a tenth for validation: give "
            f"at least {FEWEST}"
        )


def check_own(filler: Any) -> None:
    """Raises: UserError for a masked language model of another kind, such as a BERT."""
    if not isinstance(filler.model, MaskedLanguageModel):
        raise UserError(
            "this model isn't one of ours: masked-language-model fill uses it"
        )


def language_model_task(
    data: str | Path,
    config: LanguageModelConfig,
    training: LanguageTraining,
    root: Root,
) -> Task:
    """A new language model: of characters, or of byte pairs if vocab_size was set.

    The characters of both parts are known, byte pairs are learned from the first alone.
    """
    sides = known, held = load_text(str(data), root)
    if config.vocab_size == LanguageModelConfig().vocab_size:
        tokenizer = characters(known + held)
    else:
        tokenizer = byte_pairs(known, config.vocab_size)
    torch.manual_seed(training.seed)
    model = LanguageModel(replace(config, vocab_size=tokenizer.size))
    train, valid = (torch.tensor(tokenizer.encode(part)) for part in sides)
    return LanguageModelTask(model, tokenizer, train, valid, training)


def masked_language_model_task(
    data: str | Path,
    config: MaskedLanguageModelConfig,
    training: MaskedTraining,
    root: Root,
) -> Task:
    """A new masked language model with a vocabulary of its own."""
    texts = unlabelled(own_path(data, "imdb"), root)
    tokenizer = mask_tokenizer(texts[0], config.vocab_size)
    config = replace(config, vocab_size=tokenizer.get_vocab_size())
    torch.manual_seed(training.seed)
    model = MaskedLanguageModel(config)
    train, valid = (text_rows(tokenizer, part, config.max_length) for part in texts)
    return MaskedLanguageModelTask(model, tokenizer, train, valid, training)


def vision_task(
    data: str | Path, config: VisionConfig, training: ImageTraining, root: Root
) -> Task:
    """A new vision model of the images' size.

    Raises: UserError for images of one class alone, or moved out of sight.
    """
    images = load_images(data, "train", root)
    height, width = images.images.shape[1:]
    if training.shift >= min(height, width):
        raise UserError(
            f"shift is {training.shift} and the images have {height} × {width} pixels: "
            "take a smaller one"
        )
    highest = int(images.labels.max())
    if highest == int(images.labels.min()):
        raise UserError(
            "all training images are of one class: take images of two or more"
        )
    sizes: dict[str, int] = {"height": height, "width": width, "classes": highest + 1}
    torch.manual_seed(training.seed)
    model = VisionTransformer(replace(config, **sizes))
    return VisionTask(model, *cut(images), training)


def series_task(
    data: str | Path, config: SeriesConfig, training: SeriesTraining, root: Root
) -> Task:
    """A new forecaster, with the scale of the series."""
    series = load_series(data, root)
    train, valid, _, mean, spread = split_series(series, config.context, config.horizon)
    torch.manual_seed(training.seed)
    scale = Scale(series.names, tuple(mean.tolist()), tuple(spread.tolist()))
    return SeriesTask(SeriesTransformer(config), scale, train, valid, training)


@dataclass(frozen=True)
class TaskType:
    """How to make a task: its function, default settings, and the name of its data.

    `decided` names fields of the model's configuration that the data decides.
    """

    make: Callable[[str | Path, Any, Any, Root], Task]
    config: Any
    training: Any
    data: str
    decided: tuple[str, ...] = ()


TASK_TYPES = {
    "classifier": TaskType(
        *(classifier_task, ClassifierConfig(), ClassifierTraining()),
        *("imdb", ("classes",)),
    ),
    "language-model": TaskType(
        *(language_model_task, LanguageModelConfig(), LanguageTraining()),
        "tiny-shakespeare",
    ),
    "masked-language-model": TaskType(
        *(masked_language_model_task, MaskedLanguageModelConfig(), MaskedTraining()),
        "imdb",
    ),
    "vision": TaskType(
        *(vision_task, VisionConfig(), ImageTraining()),
        *("mnist", ("height", "width", "classes")),
    ),
    "series": TaskType(series_task, SeriesConfig(), SeriesTraining(), "ett-h1"),
}


def make_task(
    model_type: str,
    data: str | Path | None = None,
    root: str | Path | None = None,
    **settings: Any,
) -> Task:
    """A new model and its training, for `start_run`: "classifier", "language-model",
    "masked-language-model", "vision" or "series".

    `data` is a named data set or the path of your own; `settings` are sizes of the
    model and settings of its training by name. Steps count in the place of epochs.
    Raises: UserError for unknown names, or data that don't suffice.
    """
    if model_type not in TASK_TYPES:
        raise UserError(
            f"unknown task {model_type!r}: {nearest(model_type, TASK_TYPES)}"
        )
    found = TASK_TYPES[model_type]
    if "steps" in settings:
        settings = {"epochs": 0} | settings
    parts = found.config, found.training
    config, training = with_settings(settings, *parts, decided=found.decided)
    return found.make(data or found.data, config, training, root)
