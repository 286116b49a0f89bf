"""The recurrent translator of 2015, opened and used as any other."""

from typing import Any, ClassVar

from ..before.recurrent_model import RecurrentConfig, RecurrentModel
from .translator import Translator


class RecurrentTranslator(Translator):
    """A translator whose model is `before.recurrent_model`'s."""

    config_class: ClassVar[Any] = RecurrentConfig
    model_class: ClassVar[Any] = RecurrentModel
