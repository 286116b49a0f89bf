"""What Marian, GPT-2 and BERT have and the paper doesn't: biases, other activations."""

from functools import partial
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..after.configurable_attention import replace_modules
from ..model.attention import MultiHeadAttention
from ..model.embedding import Embedding
from ..model.feed_forward import FeedForward
from ..performance.decoding import PART_MODULES

PART_MODULES.append(f"{__package__}.")  # the fast search knows them


class BiasedAttention(MultiHeadAttention):
    """Multi-head attention whose four projections have biases."""

    def __init__(self, d_model: int, h: int, d_k: int, d_v: int):
        super().__init__(d_model, h, d_k, d_v)
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            plain = getattr(self, name)
            setattr(self, name, nn.Linear(plain.in_features, plain.out_features))


ACTIVATIONS: dict[str, Any] = {
    "relu": F.relu,
    "swish": F.silu,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),  # GPT-2's
}


class ActivatedFeedForward(FeedForward):
    """The feed-forward network with an activation of this name."""

    def __init__(self, d_model: int, d_ff: int, activation: str):
        super().__init__(d_model, d_ff)
        self.activation = activation

    def forward(
        self, x: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch d_model"]:
        """Widen to d_ff, gate, narrow to d_model."""
        return self.W_2(ACTIVATIONS[self.activation](self.W_1(x)))


def published_parts(model: nn.Module, config: Any) -> None:
    """Biases in each attention, and the activation that the configuration names."""
    sizes = config.d_model, config.h, config.d_k, config.d_v
    widths = config.d_model, config.d_ff, config.activation
    replace_modules(model, MultiHeadAttention, lambda _: BiasedAttention(*sizes))
    replace_modules(model, FeedForward, lambda _: ActivatedFeedForward(*widths))


class UnscaledEmbedding(Embedding):
    """A vector for each token, as it is."""

    def forward(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d_model"]:
        """Look each id up."""
        return F.embedding(ids, self.weight)


def set_norm_eps(model: nn.Module, eps: float) -> None:
    """Add this number to the variance in each layer normalization."""
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = eps
