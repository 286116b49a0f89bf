"""A tiny task of each model type, for the tests of runs."""

import random
from collections.abc import Callable

import torch
from tiny_run import task as translation_task
from torch import nn

from annotated_transformer.after.classifier_parts import ClassifierConfig
from annotated_transformer.after.forecasting import Scale, SeriesTask, SeriesTraining
from annotated_transformer.after.image_classification import ImageTraining, VisionTask
from annotated_transformer.after.language_model import (
    LanguageModel,
    LanguageModelConfig,
)
from annotated_transformer.after.mask_filling import (
    MaskedLanguageModelTask,
    MaskedTraining,
)
from annotated_transformer.after.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)
from annotated_transformer.after.masked_texts import mask_tokenizer, text_rows
from annotated_transformer.after.parts_by_name import Since2017Config, assemble
from annotated_transformer.after.series import SeriesConfig, SeriesTransformer
from annotated_transformer.after.text_classification import (
    ClassifierTask,
    ClassifierTraining,
    new_classifier,
)
from annotated_transformer.after.text_generation import (
    LanguageModelTask,
    LanguageTraining,
)
from annotated_transformer.after.vision import ImageSet, VisionConfig, VisionTransformer
from annotated_transformer.before.recurrent_model import RecurrentModel
from annotated_transformer.data.text_tokenizer import characters, encode_texts
from annotated_transformer.training.task import Task
from annotated_transformer.translation.recurrent_translator import RecurrentConfig
from annotated_transformer.translation.task import TranslationTask

SMALL = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "dropout": 0.1}
EVERY = {"log_every": 2, "save_every": 4}
WORDS = ["ba", "du", "ki", "lo", "me", "na"]


def texts(count: int = 60) -> list[str]:
    """Seeded nonsense of uneven length."""
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=rng.randint(2, 9))) for _ in range(count)]


def translation(**settings: object) -> Task:
    """The paper's Transformer."""
    return translation_task(**EVERY | settings)


def translating(model: nn.Module, task: TranslationTask) -> TranslationTask:
    """The same training of another model."""
    data = task.tokenizer, task.train, task.valid, task.config
    return TranslationTask(model, *data, texts=task.texts)


def recurrent(**settings: object) -> Task:
    """The recurrent translator of 2015."""
    task = translation(**settings)
    size = task.tokenizer.src_vocab_size
    torch.manual_seed(0)
    model = RecurrentModel(RecurrentConfig(size, size, d_model=16, dropout=0.1))
    return translating(model, task)


def since_2017(**settings: object) -> Task:
    """A Transformer with parts that came later."""
    task = translation(**settings)
    sizes = task.model.config.to_dict() | {"parts": ["pre-norm", "rotary", "swiglu"]}
    torch.manual_seed(0)
    model = assemble(Since2017Config.from_dict(sizes))
    return translating(model, task)


def language_model(**settings: object) -> Task:
    """Letters."""
    text = "\n".join(texts())
    tokenizer = characters(text)
    torch.manual_seed(0)
    sizes = {"vocab_size": tokenizer.size, "max_length": 16}
    ids = torch.tensor(tokenizer.encode(text))
    config = LanguageTraining(**EVERY | {"steps": 12, "batch": 4} | settings)
    model = LanguageModel(LanguageModelConfig(**SMALL, **sizes))
    return LanguageModelTask(model, tokenizer, ids, ids[:100], config)


def classifier(**settings: object) -> Task:
    """Does a text begin with "ba"?"""
    found = texts()
    labels = [int(text.startswith("ba")) for text in found]
    config = ClassifierConfig(**SMALL, vocab_size=60, max_length=12)
    begun = new_classifier(found, config)
    side = encode_texts(begun.tokenizer, found), labels
    training = ClassifierTraining(**{"epochs": 3, "batch": 16} | settings)
    return ClassifierTask(begun.model, begun.tokenizer, side, side, training)


def masked_language_model(**settings: object) -> Task:
    """Hidden tokens."""
    tokenizer = mask_tokenizer(texts(), 60)
    sizes = {"vocab_size": tokenizer.get_vocab_size(), "max_length": 12}
    rows = text_rows(tokenizer, texts(), 12)
    torch.manual_seed(0)
    model = MaskedLanguageModel(MaskedLanguageModelConfig(**SMALL, **sizes))
    config = MaskedTraining(**EVERY | {"steps": 12, "batch": 8, "short": 4} | settings)
    return MaskedLanguageModelTask(model, tokenizer, rows, rows[:20], config)


def vision(**settings: object) -> Task:
    """Bright or dark."""
    torch.manual_seed(0)
    images = torch.randint(0, 256, (60, 8, 8), dtype=torch.uint8)
    found = ImageSet(images, (images.float().mean((1, 2)) > 127).long())
    sizes = {"height": 8, "width": 8, "patch": 4, "classes": 2}
    model = VisionTransformer(VisionConfig(**SMALL, **sizes))
    config = ImageTraining(**{"epochs": 3, "batch": 16, "shift": 1} | settings)
    return VisionTask(model, None, found, found[:20], config)


def series(**settings: object) -> Task:
    """Two noisy waves."""
    torch.manual_seed(0)
    hours = torch.arange(200)[:, None] / torch.tensor([4.0, 7.0])
    values = torch.sin(hours) + 0.1 * torch.randn(200, 2)
    sizes = {"context": 16, "patch": 4, "horizon": 4}
    model = SeriesTransformer(SeriesConfig(**SMALL, **sizes))
    scale = Scale(("a", "b"), (0.0, 0.0), (1.0, 1.0))
    config = SeriesTraining(**EVERY | {"steps": 12, "batch": 8} | settings)
    return SeriesTask(model, scale, values, values[:60], config)


TASKS: dict[str, Callable[..., Task]] = {
    "transformer": translation,
    "recurrent": recurrent,
    "transformer-since-2017": since_2017,
    "language-model": language_model,
    "classifier": classifier,
    "masked-language-model": masked_language_model,
    "vision": vision,
    "series": series,
}
