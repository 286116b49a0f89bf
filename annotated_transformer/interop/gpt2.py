"""GPT-2: a decoder without a source, its published checkpoints opened and written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..after.text_generation import TextGenerator
from ..data.text_tokenizer import TextTokenizer
from ..errors import check_integer
from ..model.attention import causal_mask
from ..model.cache import KVCache
from ..model.position import LearnedPositions
from .parts import ActivatedFeedForward, BiasedAttention
from .published import Stored, renamed
from .text_models import Layout, PublishedTextModel, TextConfig
from .text_tokenizer import read_published_tokenizer


@dataclass(frozen=True)
class GPT2Config(TextConfig):
    """The architecture of a GPT-2; the defaults are the smallest published one's."""

    model_type: ClassVar[str] = "gpt2"
    d_ff: int = None  # type: ignore[assignment]  # 4 d_model, unless said otherwise

    def __post_init__(self) -> None:
        if self.d_ff is None:
            check_integer(self, "d_model")
            object.__setattr__(self, "d_ff", 4 * self.d_model)
        super().__post_init__()


class PreNormLayer(nn.Module):
    """x + f(norm(x)) for causal attention, and again for the network."""

    def __init__(self, config: GPT2Config):
        super().__init__()
        sizes = config.d_model, config.h, config.d_k, config.d_v
        self.before_attention = nn.LayerNorm(config.d_model, config.norm_eps)
        self.self_attention = BiasedAttention(*sizes)
        self.before_feed_forward = nn.LayerNorm(config.d_model, config.norm_eps)
        self.feed_forward = ActivatedFeedForward(
            config.d_model, config.d_ff, config.activation
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Float[Tensor, "batch new d_model"], cache: KVCache
    ) -> Float[Tensor, "batch new d_model"]:
        """New positions, which see those in the cache and themselves; extends it."""
        attention, start = self.self_attention, cache.length
        normed = self.before_attention(x)
        key, value = cache.update(*attention.keys_values(normed))
        mask = causal_mask(cache.length, x.device)[start:]
        attended = attention.attend(attention.queries(normed), key, value, mask)
        x = x + self.dropout(attended)
        return x + self.dropout(self.feed_forward(self.before_feed_forward(x)))


class GPT2(nn.Module):
    """A decoder without a source: ids in, a score for each next token out."""

    def __init__(self, config: GPT2Config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = LearnedPositions(config.max_length, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(PreNormLayer(config) for _ in range(config.N))
        self.norm = nn.LayerNorm(config.d_model, config.norm_eps)

    def forward(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocab"]:
        """A score for the token after each position."""
        return self.step(ids, self.start(len(ids)))

    def start(self, rows: int = 1) -> list[KVCache]:
        """An empty cache for each layer."""
        config = self.config
        empty = self.embedding.weight.new_empty(rows, config.h, 0, config.d_k)
        return [KVCache(empty, empty) for _ in self.layers]

    def step(
        self, ids: Int[Tensor, "rows new"], caches: list[KVCache]
    ) -> Float[Tensor, "rows new vocab"]:
        """`forward` for new tokens alone; extends the caches by them.

        Raises: UserError past max_length.
        """
        x = self.dropout(self.positions(self.embedding(ids), caches[0].length))
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, cache)
        return F.linear(self.norm(x), self.embedding.weight)


NAMES = {
    "before_attention": "ln_1",
    "before_feed_forward": "ln_2",
    "self_attention.W_O": "attn.c_proj",
    "feed_forward.W_1": "mlp.c_fc",
    "feed_forward.W_2": "mlp.c_proj",
    "embedding": "wte",
    "positions.table": "wpe.weight",
    "layers": "h",
    "norm": "ln_f",
} | {f"self_attention.W_{part}": "attn.c_attn" for part in "QKV"}


def gpt2_stored(name: str) -> Stored:
    """How a published file holds the parameter of this name."""
    published = renamed(name, NAMES)
    third = next((i for i, part in enumerate("QKV") if f"W_{part}." in name), None)
    transposed = ".c_" in published and name.endswith("weight")
    return Stored(published, third, transposed)


LAYOUT = Layout(
    gpt2_stored,
    settings={
        "n_layer": "N",
        "n_embd": "d_model",
        "n_inner": "d_ff",
        "n_head": "h",
        "vocab_size": "vocab_size",
        "n_positions": "max_length",
        "activation_function": "activation",
        "layer_norm_epsilon": "norm_eps",
        "resid_pdrop": "dropout",
    },
    fixed={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    },
    copies={"lm_head.weight": "wte.weight"},
    skipped=(".attn.bias", ".attn.masked_bias"),
    prefix="transformer.",
)


class GPT2Generator(PublishedTextModel, TextGenerator):
    """A `TextGenerator` whose model is a published GPT-2."""

    config_class: ClassVar[Any] = GPT2Config
    model_class: ClassVar[Any] = GPT2
    layout: ClassVar[Layout] = LAYOUT

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[TextTokenizer]:
        """The tokenizer. Raises: UserError if it is damaged, or another model's."""
        return (TextTokenizer(read_published_tokenizer(folder, config.vocab_size)),)
