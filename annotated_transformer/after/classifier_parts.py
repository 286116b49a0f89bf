"""The sizes of a text classifier, and the three stacks that it may have."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..before.self_attention import simple_self_attention
from ..data.labelled_texts import check_classes
from ..errors import check_choice, check_integer
from ..model.config import UNK, StackConfig
from ..model.layers import Encoder


@dataclass(frozen=True)
class ClassifierConfig(StackConfig):
    """A stack of encoder layers and the classes that it chooses from.

    `attention` is "learned", "plain" (without parameters) or "none". `max_length` is
    the most tokens that are read at once.
    """

    model_type: ClassVar[str] = "classifier"
    N: int = 1
    d_model: int = 64
    d_ff: int = 128
    dropout: float = 0.3
    vocab_size: int = 16_000
    classes: tuple[str, ...] = ("negative", "positive")
    max_length: int = 256
    attention: str = "learned"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self, "vocab_size", least=UNK + 1)
        check_integer(self, "max_length", below=2**20)
        check_choice(self, "attention", ("none", "plain", "learned"))
        check_classes(self.classes)


class NoAttention(nn.Module):
    """Hands the words' vectors on as they are: the classifier averages words."""

    def __init__(self, config: ClassifierConfig):
        super().__init__()

    def forward(
        self, x: Float[Tensor, "batch n d_model"], mask: Bool[Tensor, "batch 1 1 n"]
    ) -> Float[Tensor, "batch n d_model"]:
        """The same vectors."""
        return x


class PlainAttention(NoAttention):
    """One self-attention without parameters, `before.self_attention`."""

    def forward(
        self, x: Float[Tensor, "batch n d_model"], mask: Bool[Tensor, "batch 1 1 n"]
    ) -> Float[Tensor, "batch n d_model"]:
        """Each vector as an average of all, weighted by dot products."""
        return simple_self_attention(x, mask[:, 0, 0])[0]


STACKS = {"none": NoAttention, "plain": PlainAttention, "learned": Encoder}
