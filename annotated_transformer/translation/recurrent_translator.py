"""The recurrent translator of 2015, opened and used as any other."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ..before.recurrent_model import RecurrentModel
from ..errors import UserError, check_integer
from ..model.config import BOS, EOS, PAD, ModelConfig, check_dropout, check_vocabularies
from .translator import Translator


@dataclass(frozen=True)
class RecurrentConfig(ModelConfig):
    """The architecture of a `RecurrentModel`; ids as in the rest of the package.

    Raises: UserError naming the first setting out of range.
    """

    model_type: ClassVar[str] = "recurrent"
    src_vocab_size: int
    tgt_vocab_size: int
    shared_vocab: bool = True
    d_model: int = 256
    dropout: float = 0.1
    max_length: int = 1024
    pad_id: int = PAD
    bos_id: int = BOS
    eos_id: int = EOS

    def __post_init__(self) -> None:
        check_vocabularies(self)
        check_integer(self, "d_model")
        check_integer(self, "max_length", below=2**20)
        check_dropout(self)
        if self.d_model % 2:
            halves = "it must be even, since two directions share it"
            raise UserError(f"d_model is {self.d_model}: {halves}")


class RecurrentTranslator(Translator):
    """A translator whose model is `before.recurrent_model`'s."""

    config_class: ClassVar[Any] = RecurrentConfig
    model_class: ClassVar[Any] = RecurrentModel
