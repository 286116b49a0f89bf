"""Every model type: its name, the record that says all else, and what it is for; and
what else is imported when its name is asked for.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UserError, check_kind, nearest
from .registry import MAKERS, SUMMARIES, model_type, register
from .training.config import with_settings

if TYPE_CHECKING:
    from .training.task import Task

for name, home, summary in (
    ("transformer", "translation.translator:Translator", ""),
    ("recurrent", "translation.recurrent_translator:RecurrentTranslator", ""),
    ("transformer-since-2017", "after.parts_by_name:Since2017Translator", ""),
    ("marian", "interop.marian:MarianTranslator", ""),
    ("gpt2", "interop.gpt2:GPT2Generator", ""),
    ("bert", "interop.bert:BertFiller", ""),
    (
        *("classifier", "after.text_classification:MODEL_TYPE"),
        "Put texts into classes: train on IMDb or on your own examples.",
    ),
    (
        *("language-model", "after.text_generation:MODEL_TYPE"),
        "Predict the next token: train a decoder-only model on a text, and sample.",
    ),
    (
        *("masked-language-model", "after.mask_filling:MODEL_TYPE"),
        "Pretrain an encoder on texts without labels, and fine-tune it on a few.",
    ),
    (
        *("vision", "after.image_classification:MODEL_TYPE"),
        "Classify images with patches as tokens: MNIST, or any set in its format.",
    ),
    (
        *("series", "after.forecasting:MODEL_TYPE"),
        "Forecast time series with days as tokens: ETTh1, or any CSV file.",
    ),
):
    register(name, home, summary)

MAKERS.update(
    torch="performance.decoding:fast_engine",
    plain="decoding.model_search:plain_engine",
    ctranslate2="interop.ctranslate2:ctranslate2_engine",
    objective="performance.update:fast_training",
)


def make_task(
    model_type_name: str,
    data: str | Path | None = None,
    root: str | Path | None = None,
    **settings: Any,
) -> "Task":
    """A new model and its training, for `start_run`: "classifier", "language-model",
    "masked-language-model", "vision" or "series".

    `data` is a named data set or the path of your own; `settings` are sizes of the
    model and settings of its training by name. Steps count in the place of epochs.
    Raises: UserError for unknown names, or data that don't suffice.
    """
    if model_type_name not in SUMMARIES:
        known = nearest(model_type_name, SUMMARIES)
        raise UserError(f"unknown task {model_type_name!r}: {known}")
    check_kind("data", data, str | Path | None, "a data set's name, or a path of yours")
    kind = model_type(model_type_name)
    if "steps" in settings:
        settings = {"epochs": 0} | settings
    parts = kind.model.config_class(), kind.training
    config, training = with_settings(settings, *parts, decided=kind.decided)
    assert kind.task
    task: Task = kind.task(data or kind.default_data, config, training, root)
    return task
