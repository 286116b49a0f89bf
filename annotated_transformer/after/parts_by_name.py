"""Parts of today by name: which go together, and a translator made with some."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import UserError, nearest
from ..model.attention import MultiHeadAttention
from ..model.config import TransformerConfig
from ..model.transformer import Transformer
from ..translation.translator import Translator
from .configurable_attention import ConfigurableAttention, Model, replace_modules
from .long_texts import SHARING, alibi, grouped_queries, rotary
from .parts import pre_norm, rms_norm, use_swiglu
from .small_parts import no_biases, qk_norm, use_gelu

PARTS: dict[str, Callable[[Model], None]] = {
    "pre-norm": pre_norm,
    "rms-norm": rms_norm,
    "gelu": use_gelu,
    "swiglu": use_swiglu,
    "qk-norm": qk_norm,
    "rotary": rotary,
    "alibi": alibi,
    "grouped-queries": grouped_queries,
    "no-biases": no_biases,
}


@dataclass(frozen=True)
class Since2017Config(TransformerConfig):
    """The paper's architecture and the names of the parts that replace its own.

    Raises: UserError as `check_config`, or `check_parts`.
    """

    model_type: ClassVar[str] = "transformer-since-2017"
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parts(self)


def check_parts(config: Since2017Config) -> None:
    """Raises: UserError for parts that are unknown or don't fit."""
    for name in config.parts:
        if name not in PARTS:
            raise UserError(f"unknown part {name!r}: {nearest(name, PARTS)}")
    for one, other in (("gelu", "swiglu"), ("rotary", "alibi")):
        if one in config.parts and other in config.parts:
            raise UserError(f"{one} and {other} replace the same part: choose one")
    if "grouped-queries" in config.parts and config.h % SHARING:
        raise UserError(
            f"h is {config.h}: grouped-queries puts {SHARING} heads into a group, so h "
            f"must be a multiple of {SHARING}"
        )
    if "rotary" in config.parts and config.d_k % 2:
        raise UserError(f"d_k is {config.d_k}: rotary turns pairs, so it must be even")


def assemble(config: Since2017Config) -> Transformer:
    """The paper's Transformer with its parts replaced, in the order of `PARTS`."""
    model = Transformer(config)
    exchange_parts(model, config.parts)
    return model


def exchange_parts(model: Model, parts: Collection[str]) -> None:
    """Replace the parts of a model that are named, in the order of `PARTS`."""
    replace_modules(model, MultiHeadAttention, ConfigurableAttention)
    for name, replace_parts in PARTS.items():
        if name in parts:
            replace_parts(model)


class Since2017Translator(Translator):
    """A translator whose model `assemble` has made."""

    config_class: ClassVar[Any] = Since2017Config
    model_class: ClassVar[Any] = staticmethod(assemble)
