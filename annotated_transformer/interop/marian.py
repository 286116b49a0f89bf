"""Marian: published translation models opened, run and written."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..data.pair_tokenizer import PairTokenizer
from ..errors import UserError, check_choice, check_integer
from ..files import new_folder
from ..model.config import TransformerConfig
from ..model.layers import Decoder
from ..model.transformer import Transformer, initialise
from ..pretrained import SavedModel, find_model
from ..training.checkpoint import MADE_BY, empty_model, write_model
from ..translation.translator import Translator
from .marian_tokenizer import MarianTokenizer
from .marian_weights import (
    marian_copies,
    marian_stored,
    reorder_stream,
    sines_first,
    without_positions,
)
from .parts import ACTIVATIONS, published_parts
from .published import convert_weights, published_config, read_published


@dataclass(frozen=True)
class MarianConfig(TransformerConfig):
    """The architecture of a Marian model, with its own number of decoder layers."""

    model_type: ClassVar[str] = "marian"
    activation: str = "swish"
    decoder_N: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "activation", ACTIVATIONS)
        check_integer(self, "decoder_N")


class MarianTransformer(Transformer):
    """The Transformer as Marian builds it.

    Decoding starts from `bos_id`, which in OPUS-MT is the padding token.
    """

    def __init__(self, config: MarianConfig):
        super().__init__(config)
        self.decoder = Decoder(replace(config, N=config.decoder_N))
        published_parts(self, config)
        self.logits_bias = nn.Parameter(torch.zeros(config.tgt_vocab_size))
        self.apply(initialise)

    def logits(
        self, hidden: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocab"]:
        """The output layer: the target embedding's matrix and a bias for each token."""
        return super().logits(hidden) + self.logits_bias


SETTINGS = {
    "d_model": "d_model",
    "encoder_layers": "N",
    "decoder_layers": "decoder_N",
    "encoder_attention_heads": "h",
    "decoder_attention_heads": "h",
    "encoder_ffn_dim": "d_ff",
    "decoder_ffn_dim": "d_ff",
    "activation_function": "activation",
    "dropout": "dropout",
    "max_position_embeddings": "max_length",
    "vocab_size": "src_vocab_size",
    "decoder_vocab_size": "tgt_vocab_size",
    "share_encoder_decoder_embeddings": "shared_vocab",
    "pad_token_id": "pad_id",
    "decoder_start_token_id": "bos_id",
    "eos_token_id": "eos_id",
}
# Settings that change what is computed, and of which the code above knows one value.
FIXED = {
    "model_type": "marian",
    "scale_embedding": True,
    "tie_word_embeddings": True,
    "static_position_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
}


def read_marian_config(published: dict[str, Any], folder: Path) -> MarianConfig:
    """The architecture that a published directory's config.json describes.

    Raises: UserError naming the setting that doesn't fit.
    """
    path = folder / "config.json"
    defaults: dict[str, Any] = {"scale_embedding": False, "dropout": 0.1}
    defaults["share_encoder_decoder_embeddings"] = True
    defaults["decoder_vocab_size"] = published.get("vocab_size")
    settings = defaults | published
    for name in SETTINGS:
        if settings.get(name) is None:
            raise UserError(f"{path} lacks the setting {name!r}: download it again")
    return published_config(settings, SETTINGS, FIXED, MarianConfig, path)


def check_vocabulary(
    config: MarianConfig, tokenizer: MarianTokenizer, folder: Path
) -> None:
    """Raises: UserError when a tokenizer's ids are not those of the model."""
    sizes = {"source": config.src_vocab_size, "target": config.tgt_vocab_size}
    for name, size in sizes.items():
        side = getattr(tokenizer, name)
        stored = side.get_vocab_size(), side.eos_id, side.pad_id, side.unk_id
        asked = size, config.eos_id, config.pad_id, tokenizer.unk_id
        if stored != asked or side.names.keys() != set(range(size)):
            raise UserError(
                f"{folder}: the {name} vocabulary has {stored} and the model {asked} "
                "as number of tokens and ids of </s>, <pad> and <unk>: they don't "
                "belong together"
            )


def read_marian_weights(folder: Path, config: MarianConfig) -> dict[str, Tensor]:
    """The weights of a published directory, under our names and in our order."""
    tensors = without_positions(read_published(folder, "marian"), config, folder)
    if (bias := tensors.get("final_logits_bias")) is not None:
        tensors["final_logits_bias"] = bias.flatten()
    empty = empty_model(MarianTransformer, config, tensors, folder)
    stored = partial(marian_stored, shared_vocab=config.shared_vocab)
    copies = marian_copies(config.shared_vocab)
    converted = convert_weights(tensors, copies, stored, empty, folder)
    return reorder_stream(converted, sines_first(config.d_model).argsort())


class MarianTranslator(Translator):
    """A translator of a published Marian directory, or of an imported one."""

    config_class: ClassVar[Any] = MarianConfig
    model_class: ClassVar[Any] = MarianTransformer

    @classmethod
    def read_config(cls, values: dict[str, Any], folder: Path) -> MarianConfig:
        """The configuration, from their config.json or ours. Raises: UserError."""
        if MADE_BY in values:
            return super().read_config(values, folder)
        return read_marian_config(values, folder)

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[PairTokenizer]:
        """The tokenizer, ours in a folder of `export_marian`.

        Raises: UserError if it is damaged, or another model's.
        """
        if (folder / "text.json").exists():
            return super().read_files(folder, config)
        tokenizer = MarianTokenizer.load(folder)
        check_vocabulary(config, tokenizer, folder)
        return (tokenizer,)

    @classmethod
    def read_weights(cls, saved: SavedModel, config: Any) -> dict[str, Tensor]:
        """The weights by our names, from their file or ours. Raises: UserError."""
        if MADE_BY in saved.json:
            return super().read_weights(saved, config)
        return read_marian_weights(saved.folder, config)


def import_marian(
    folder: str | Path,
    out: str | Path,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
) -> None:
    """Write a published Marian directory as one of our model folders.

    Languages named here stand in for the directory's. The weights keep their type.
    Raises: UserError naming what is missing, damaged, foreign or not supported, or for
    a folder `out` that isn't new or empty.
    """
    there = Path(folder, "config.json").is_file()
    saved = find_model(Path(folder)) if there else None
    if not saved or saved.model_type != "marian" or MADE_BY in saved.json:
        raise UserError(
            f"{folder} is no published Marian directory: name a downloaded OPUS-MT, or "
            "a folder of `export marian`; a model of ours opens as it is"
        )
    config = saved.config()
    (tokenizer,) = MarianTranslator.read_files(saved.folder, config)
    src, tgt = src_lang or tokenizer.src_lang, tgt_lang or tokenizer.tgt_lang
    tokenizer = replace(tokenizer, src_lang=src, tgt_lang=tgt)
    weights = MarianTranslator.read_weights(saved, config)
    with new_folder(out, "import_marian") as draft:
        write_model(draft, weights, config, tokenizer)
