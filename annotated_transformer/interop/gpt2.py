"""GPT-2: a decoder without a source, its published checkpoints opened and written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..after.configurable_attention import ConfigurableAttention, replace_modules
from ..after.language_model import LanguageModel
from ..after.parts import pre_norm
from ..after.text_generation import TextGenerator
from ..data.text_tokenizer import TextTokenizer
from ..errors import check_integer
from ..model.position import LearnedPositions
from .parts import BiasedAttention, UnscaledEmbedding, published_parts, set_norm_eps
from .published import Stored, renamed
from .text_models import PublishedTextModel, TextConfig, read_published_tokenizer


@dataclass(frozen=True)
class GPT2Config(TextConfig):
    """The architecture of a GPT-2; the defaults are the smallest published one's."""

    model_type: ClassVar[str] = "gpt2"
    d_ff: int = None  # 4 d_model, unless said otherwise

    def __post_init__(self) -> None:
        if self.d_ff is None:
            check_integer(self, "d_model")
            object.__setattr__(self, "d_ff", 4 * self.d_model)
        super().__post_init__()


class GPT2(LanguageModel):
    """Our language model with other parts; the norms stand before the sub-layers."""

    def __init__(self, config: GPT2Config):
        super().__init__(config)
        self.embedding = UnscaledEmbedding(config.vocab_size, config.d_model)
        self.positions = LearnedPositions(config.max_length, config.d_model)
        published_parts(self, config)
        replace_modules(self, BiasedAttention, ConfigurableAttention)
        pre_norm(self)
        set_norm_eps(self, config.norm_eps)


NAMES = {
    "self_attention.norm": "ln_1",
    "self_attention.W_O": "attn.c_proj",
    "feed_forward.0": "ln_2",
    "feed_forward.1.W_1": "mlp.c_fc",
    "feed_forward.1.W_2": "mlp.c_proj",
    "embedding": "wte",
    "positions.table": "wpe.weight",
    "stack.layers": "h",
} | {f"self_attention.W_{part}": "attn.c_attn" for part in "QKV"}


class GPT2Generator(PublishedTextModel, TextGenerator):
    """A `TextGenerator` whose model is a published GPT-2."""

    config_class: ClassVar[Any] = GPT2Config
    model_class: ClassVar[Any] = GPT2
    settings = {
        "n_layer": "N",
        "n_embd": "d_model",
        "n_inner": "d_ff",
        "n_head": "h",
        "vocab_size": "vocab_size",
        "n_positions": "max_length",
        "activation_function": "activation",
        "layer_norm_epsilon": "norm_eps",
        "resid_pdrop": "dropout",
    }
    fixed = {
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    }
    copies = {"lm_head.weight": "wte.weight"}
    skipped = (".attn.bias", ".attn.masked_bias")
    prefix = "transformer."

    @staticmethod
    def stored(name: str) -> Stored:
        """How a published file holds the parameter of this name."""
        if "after_feed_forward" in name:  # the norm at the stack's top
            return Stored(f"ln_f.{name.rpartition('.')[2]}")
        published = renamed(name, NAMES)
        third = next((i for i, part in enumerate("QKV") if f"W_{part}." in name), None)
        transposed = ".c_" in published and name.endswith("weight")
        return Stored(published, third, transposed)

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[TextTokenizer]:
        """The tokenizer. Raises: UserError if it is damaged, or another model's."""
        return (TextTokenizer(read_published_tokenizer(folder, config.vocab_size)),)
