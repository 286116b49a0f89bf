"""Parts of today by name, the smaller ones too: which go together, and a translator
made with some.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import UserError, nearest
from ..model.attention import MultiHeadAttention
from ..model.config import TransformerConfig
from ..model.feed_forward import FeedForward
from ..model.transformer import Transformer
from ..translation.translator import Translator
from .configurable_attention import (
    ConfigurableAttention,
    Model,
    attentions,
    replace_modules,
)
from .long_texts import SHARING, alibi, grouped_queries, rotary
from .parts import RMSNorm, pre_norm, rms_norm, use_swiglu


class GELUFeedForward(FeedForward):
    """GELU(x W_1 + b_1) W_2 + b_2: equation (2) without its corner."""

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Widen to d_ff, let the negatives fade, narrow to d_model."""
        return self.W_2(F.gelu(self.W_1(x)))


def use_gelu(model: Model) -> None:
    """GELU in the place of each ReLU, with the weights that are there."""

    def with_gelu(old: FeedForward) -> FeedForward:
        new = GELUFeedForward(model.config.d_model, model.config.d_ff)
        new.load_state_dict(old.state_dict())
        return new

    replace_modules(model, FeedForward, with_gelu)


class QKNorm(nn.Module):
    """Queries and keys brought to one length before they meet, each with a gain."""

    def __init__(self, d_k: int):
        super().__init__()
        self.query, self.key = RMSNorm(d_k), RMSNorm(d_k)

    def forward(
        self, query: Float[Tensor, "batch h n d_k"], key: Float[Tensor, "batch g m d_k"]
    ) -> tuple[Float[Tensor, "batch h n d_k"], Float[Tensor, "batch g m d_k"]]:
        """Both normalised."""
        return self.query(query), self.key(key)


def qk_norm(model: Model) -> None:
    """A norm on the queries and keys of each attention."""
    for part in attentions(model):
        part.transforms.append(QKNorm(model.config.d_k))


def no_biases(model: Model) -> None:
    """Matrices and gains alone: every bias is left out."""
    for part in model.modules():
        if isinstance(part, nn.Linear | nn.LayerNorm):
            part.bias = None


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

    Raises: UserError as `check_config`, or for parts that are unknown or don't fit.
    """

    model_type: ClassVar[str] = "transformer-since-2017"
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.parts:
            if name not in PARTS:
                raise UserError(f"unknown part {name!r}: {nearest(name, PARTS)}")
        for one, other in (("gelu", "swiglu"), ("rotary", "alibi")):
            if one in self.parts and other in self.parts:
                raise UserError(f"{one} and {other} replace the same part: choose one")
        if "grouped-queries" in self.parts and self.h % SHARING:
            raise UserError(
                f"h is {self.h}: grouped-queries puts {SHARING} heads into a group, so "
                f"h must be a multiple of {SHARING}"
            )
        if "rotary" in self.parts and self.d_k % 2:
            raise UserError(
                f"d_k is {self.d_k}: rotary turns pairs, so it must be even"
            )


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
