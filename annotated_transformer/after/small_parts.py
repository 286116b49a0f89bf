"""The smaller parts of today: GELU, query-key norm, and no biases."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..model.feed_forward import FeedForward
from .configurable_attention import Model, attentions, replace_modules
from .parts import RMSNorm


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
