"""A translator with parts of today, opened and used as any other."""

from typing import Any, ClassVar

from ..translation.translator import Translator
from .since_2017 import Since2017Config, assemble


class Since2017Translator(Translator):
    """A translator whose model `since_2017.assemble` has made."""

    config_class: ClassVar[Any] = Since2017Config
    model_class: ClassVar[Any] = staticmethod(assemble)
