"""BERT: an encoder without a decoder, its published checkpoints opened and written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor, nn

from ..after.mask_filling import MaskFiller
from ..errors import check_integer
from ..model.attention import padding_mask
from ..model.layers import Encoder
from ..model.position import LearnedPositions
from .parts import ACTIVATIONS, UnscaledEmbedding, published_parts, set_norm_eps
from .published import Stored, renamed
from .text_models import PublishedTextModel, TextConfig, read_published_tokenizer


@dataclass(frozen=True)
class BertConfig(TextConfig):
    """The architecture of a BERT; the defaults are BERT-base's, uncased."""

    model_type: ClassVar[str] = "bert"
    vocab_size: int = 30522
    max_length: int = 512
    activation: str = "gelu"
    norm_eps: float = 1e-12
    segments: int = 2
    pad_id: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self, "segments", below=2**20)
        check_integer(self, "pad_id", least=0, below=self.vocab_size)


class Bert(nn.Module):
    """An encoder without a decoder: ids in, a score for each position's token out."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config, d_model = config, config.d_model
        self.embedding = UnscaledEmbedding(config.vocab_size, d_model)
        self.positions = LearnedPositions(config.max_length, d_model)
        self.segments = UnscaledEmbedding(config.segments, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.stack = Encoder(config)
        self.head = nn.Linear(d_model, d_model)
        self.head_norm = nn.LayerNorm(d_model)
        self.logits_bias = nn.Parameter(torch.zeros(config.vocab_size))
        published_parts(self, config)
        set_norm_eps(self, config.norm_eps)

    def encode(
        self,
        ids: Int[Tensor, "batch n"],
        segments: Int[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch n d_model"]:
        """A vector for each position, which saw all real ones.

        Without `segments` all belong to the first.
        Raises: UserError past max_length.
        """
        segments = torch.zeros_like(ids) if segments is None else segments
        x = self.positions(self.embedding(ids)) + self.segments(segments)
        mask = padding_mask(ids, self.config.pad_id)
        return self.stack(self.dropout(self.norm(x)), mask)

    def logits(
        self, hidden: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocab"]:
        """The small network, then the table of tokens and a bias for each."""
        activate = ACTIVATIONS[self.config.activation]
        hidden = self.head_norm(activate(self.head(hidden)))
        return F.linear(hidden, self.embedding.weight, self.logits_bias)

    def forward(
        self,
        ids: Int[Tensor, "batch n"],
        segments: Int[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch n vocab"]:
        """A score for what the token at each position might be."""
        return self.logits(self.encode(ids, segments))


NAMES = {
    "after_attention.norm": "attention.output.LayerNorm",
    "after_feed_forward.norm": "output.LayerNorm",
    "self_attention.W_Q": "attention.self.query",
    "self_attention.W_K": "attention.self.key",
    "self_attention.W_V": "attention.self.value",
    "self_attention.W_O": "attention.output.dense",
    "feed_forward.W_1": "intermediate.dense",
    "feed_forward.W_2": "output.dense",
    "stack.layers.": "bert.encoder.layer.",
    "head.": "cls.predictions.transform.dense.",
    "head_norm.": "cls.predictions.transform.LayerNorm.",
    "logits_bias": "cls.predictions.bias",
    "embedding.": "bert.embeddings.word_embeddings.",
    "positions.table": "bert.embeddings.position_embeddings.weight",
    "segments.": "bert.embeddings.token_type_embeddings.",
    "norm.": "bert.embeddings.LayerNorm.",
}


class BertFiller(PublishedTextModel, MaskFiller):
    """A `MaskFiller` whose model is a published BERT."""

    config_class: ClassVar[Any] = BertConfig
    model_class: ClassVar[Any] = Bert
    settings = {
        "num_hidden_layers": "N",
        "hidden_size": "d_model",
        "intermediate_size": "d_ff",
        "num_attention_heads": "h",
        "vocab_size": "vocab_size",
        "max_position_embeddings": "max_length",
        "hidden_act": "activation",
        "layer_norm_eps": "norm_eps",
        "hidden_dropout_prob": "dropout",
        "type_vocab_size": "segments",
        "pad_token_id": "pad_id",
    }
    fixed = {
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    }
    copies = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }
    skipped = ("embeddings.position_ids", "bert.pooler.", "cls.seq_relationship.")

    @staticmethod
    def stored(name: str) -> Stored:
        """How a published file holds the parameter of this name."""
        return Stored(renamed(name, NAMES))

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[Tokenizer]:
        """The tokenizer. Raises: UserError if it is damaged, or another model's."""
        return (read_published_tokenizer(folder, config.vocab_size),)
