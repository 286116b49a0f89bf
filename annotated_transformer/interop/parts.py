"""What Marian, GPT-2 and BERT have and the paper doesn't: biases, other activations."""

from functools import partial
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import UserError, nearest
from ..model.attention import MultiHeadAttention
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
}
ACTIVATIONS["gelu_new"] = partial(F.gelu, approximate="tanh")  # GPT-2's


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


def check_activation(activation: str) -> None:
    """Raises: UserError for an activation that isn't here."""
    if activation not in ACTIVATIONS:
        hint = nearest(activation, ACTIVATIONS)
        raise UserError(f"activation is {activation!r}: {hint}")
