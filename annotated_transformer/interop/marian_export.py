"""Translators of ours as folders that Hugging Face's `MarianMTModel` opens."""

from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from ..data.pair_tokenizer import PairTokenizer
from ..files import write_json
from ..model.config import TransformerConfig
from ..model.transformer import Transformer
from .export_folder import exported_folder
from .marian import FIXED, SETTINGS
from .marian_tokenizer import MarianTokenizer
from .marian_weights import marian_weights
from .published import CLASSES


def marian_config(config: TransformerConfig) -> dict[str, Any]:
    """The content of config.json for a `MarianMTModel` of this architecture."""
    values = {"activation": "relu", "decoder_N": config.N} | config.to_dict()
    settings = {published: values[name] for published, name in SETTINGS.items()}
    return {
        "architectures": [CLASSES["marian"]],
        "is_encoder_decoder": True,
        "bos_token_id": config.bos_id,
        "forced_eos_token_id": None,
        **FIXED,
        **settings,
    }


def marian_generation(config: TransformerConfig) -> dict[str, Any]:
    """The content of generation_config.json, whose `max_length` counts the begin."""
    barred = sorted({config.pad_id, config.bos_id})
    return {
        "pad_token_id": config.pad_id,
        "bos_token_id": config.bos_id,
        "eos_token_id": config.eos_id,
        "decoder_start_token_id": config.bos_id,
        "bad_words_ids": [[token] for token in barred],
        "num_beams": 4,
        "length_penalty": 0.6,
        "max_length": config.max_length + 1,
    }


def tokenizer_settings(tokenizer: PairTokenizer) -> dict[str, Any]:
    """The content of tokenizer_config.json, for SentencePiece or byte pairs."""
    if isinstance(tokenizer, MarianTokenizer):
        return tokenizer.settings()
    special = {f"{name}_token": f"[{name}]" for name in ("pad", "bos", "eos", "unk")}
    return special | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "attention_mask"],
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
    }


def write_settings(
    folder: Path, config: TransformerConfig, tokenizer: PairTokenizer
) -> None:
    """Write config.json, generation_config.json and tokenizer_config.json."""
    settings = tokenizer_settings(tokenizer) | {"model_max_length": config.max_length}
    write_json(folder / "config.json", marian_config(config))
    write_json(folder / "generation_config.json", marian_generation(config))
    write_json(folder / "tokenizer_config.json", settings)


def export_marian(
    model: Transformer, tokenizer: PairTokenizer, folder: str | Path
) -> None:
    """Write a folder that Hugging Face's `MarianMTModel` and `AutoTokenizer` load.

    Raises: UserError for learned positions, heads larger than d_model / h, or a folder
    that holds something.
    """
    weights = marian_weights(model)
    with exported_folder(folder, "marian", model, tokenizer) as draft:
        save_file(weights, draft / "model.safetensors", metadata={"format": "pt"})
        write_settings(draft, model.config, tokenizer)
