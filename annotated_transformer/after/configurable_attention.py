"""The paper's attention with openings for parts, and where parts are exchanged."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..model.attention import MultiHeadAttention, causal_mask, split_heads
from ..model.layers import Decoder, Encoder
from ..model.transformer import Transformer
from .language_model import LanguageModel

Model = Transformer | LanguageModel  # what parts are exchanged in


def replace_modules(
    model: nn.Module, old: type[nn.Module], new: Callable[[Any], nn.Module]
) -> None:
    """Put `new(part)` in the place of every part of the class `old`."""
    made: dict[nn.Module, nn.Module] = {}
    for owner in list(model.modules()):
        for name, part in list(owner.named_children()):
            if type(part) is old:
                made[part] = made.get(part) or new(part)
                setattr(owner, name, made[part])


class ConfigurableAttention(MultiHeadAttention):
    """The paper's attention with openings for parts; with none of them it is the same.

    `norm` and `memory_norm` see what it reads, `transforms` change queries and keys,
    `bias` is added to scores, `groups` heads of keys and values serve all h queries.
    """

    def __init__(self, plain: MultiHeadAttention):
        nn.Module.__init__(self)
        self.h = self.groups = plain.h
        self.W_Q, self.W_K = plain.W_Q, plain.W_K
        self.W_V, self.W_O = plain.W_V, plain.W_O
        self.norm: nn.Module = nn.Identity()
        self.memory_norm: nn.Module = nn.Identity()
        self.transforms = nn.ModuleList()
        self.bias: nn.Module | None = None

    def queries(self, x: Tensor) -> Tensor:
        """Those of the normalised input."""
        return super().queries(self.norm(x))

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """What each position offers, group by group; a decoder keeps these."""
        memory = self.memory_norm(memory)
        key, value = self.W_K(memory), self.W_V(memory)
        return split_heads(key, self.groups), split_heads(value, self.groups)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Equation (1) of what `prepare` makes, then W_O."""
        mask = causal_mask(query.size(2), query.device) if is_causal else mask
        heads = F.scaled_dot_product_attention(*self.prepare(query, key, value, mask))
        return self.W_O(heads.transpose(1, 2).flatten(2))

    def weights(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The attention weights alone: what comes back from an identity matrix."""
        mask = causal_mask(x.size(1), x.device) if is_causal else mask
        key, _ = self.keys_values(memory)
        identity = torch.eye(key.size(2)).to(key).expand(*key.shape[:2], -1, -1)
        ready = self.prepare(self.queries(x), key, identity, mask)
        return F.scaled_dot_product_attention(*ready)

    def prepare(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Turn, share, add the bias; the queries are those of the last positions."""
        for transform in self.transforms:
            query, key = transform(query, key)
        share = self.h // self.groups
        if share > 1:
            key, value = (each.repeat_interleave(share, dim=1) for each in (key, value))
        if self.bias is not None:
            bias = self.bias(query.size(2), key.size(2))
            mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)
        return query, key, value, mask


def stacks(model: nn.Module) -> list[Encoder | Decoder]:
    """An encoder and a decoder, or a language model's only one; the last one writes."""
    return [part for part in model.modules() if isinstance(part, Encoder | Decoder)]


def layers(model: nn.Module) -> list[Any]:
    """Those of all stacks."""
    return [layer for stack in stacks(model) for layer in stack.layers]


def attentions(model: nn.Module) -> Iterator[ConfigurableAttention]:
    """All of them, those to the source too."""
    return (each for each in model.modules() if isinstance(each, ConfigurableAttention))
