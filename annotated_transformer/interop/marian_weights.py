"""Marian's weights and ours: one mapping of names, an order of the stream, widths."""

import math
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from ..errors import UserError
from ..model.config import TransformerConfig
from ..model.position import sinusoids
from ..model.transformer import Transformer
from .published import Stored, WeightMapping, renamed


def sines_first(d_model: int) -> Int[Tensor, "d_model"]:
    """The order of columns that turns the paper's sinusoids into Marian's."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


def stream_axis(name: str) -> int | None:
    """Which axis of the weight of this name lies along the stream, if one does."""
    inside = ("W_1.bias", "W_Q.bias", "W_K.bias", "W_V.bias", "logits_bias")
    if name.endswith(inside):
        return None
    return 0 if any(part in name for part in ("W_O", "W_2", "norm")) else 1


def reorder_stream(
    weights: dict[str, Tensor], order: Int[Tensor, "d_model"]
) -> dict[str, Tensor]:
    """The same function, its stream in another order; `order.argsort()` undoes it."""
    reordered = {}
    for name, weight in weights.items():
        axis = stream_axis(name)
        reordered[name] = weight if axis is None else weight.index_select(axis, order)
    return reordered


MARIAN_NAMES = {
    "after_attention.norm": "self_attn_layer_norm",
    "after_self_attention.norm": "self_attn_layer_norm",
    "after_source_attention.norm": "encoder_attn_layer_norm",
    "after_feed_forward.norm": "final_layer_norm",
    "self_attention": "self_attn",
    "source_attention": "encoder_attn",
    "feed_forward.W_1": "fc1",
    "feed_forward.W_2": "fc2",
    "W_Q": "q_proj",
    "W_K": "k_proj",
    "W_V": "v_proj",
    "W_O": "out_proj",
    "src_embedding": "encoder.embed_tokens",
    "tgt_embedding": "decoder.embed_tokens",
}


def marian_name(name: str) -> str:
    """What `MarianMTModel` calls one of our parameters; an embedding by its use."""
    if name == "logits_bias":
        return "final_logits_bias"
    return f"model.{renamed(name, MARIAN_NAMES)}"


SHARED = "model.shared.weight"


def marian_stored(name: str, shared_vocab: bool) -> Stored:
    """How a Marian file holds the parameter of this name."""
    shared = shared_vocab and name == "tgt_embedding.weight"
    return Stored(SHARED if shared else marian_name(name))


def marian_copies(shared_vocab: bool) -> dict[str, str]:
    """The matrices that a Marian file may hold again under these names."""
    sides = [marian_name(f"{side}_embedding.weight") for side in ("src", "tgt")]
    if shared_vocab:
        return dict.fromkeys(["lm_head.weight", *sides], SHARED)
    return {"lm_head.weight": sides[1]}


def without_positions(
    tensors: dict[str, Tensor], config: TransformerConfig, folder: Path
) -> dict[str, Tensor]:
    """A file's tensors but stored position codes, which are computed here.

    Raises: UserError for codes that are no sinusoids.
    """
    kept, shape = dict(tensors), (config.max_length, config.d_model)
    for name in [name for name in tensors if name.endswith("embed_positions.weight")]:
        stored = kept.pop(name).float()
        if stored.shape == shape:
            codes = sinusoids(*shape)[:, sines_first(config.d_model)]
            if torch.allclose(stored, codes, atol=1e-2):
                continue
        raise UserError(
            f"{folder}: {name} holds no sinusoids, and this package knows no others "
            "here"
        )
    return kept


def weights_of(model: Transformer) -> dict[str, Tensor]:
    """Copies of a model's weights by name, in float32 on the CPU."""
    return {
        name: weight.detach().float().cpu().clone()
        for name, weight in model.named_parameters()
    }


def head_width(config: TransformerConfig) -> int:
    """d_model / h, the size of every head in Marian and CTranslate2.

    Raises: UserError if this model's don't fit.
    """
    width, rest = divmod(config.d_model, config.h)
    if rest or max(config.d_k, config.d_v) > width:
        raise UserError(
            f"d_k is {config.d_k} and d_v is {config.d_v}, but this format's heads "
            f"have d_model / h = {config.d_model} / {config.h} entries: export to onnx "
            "instead"
        )
    return width


def widen_heads(
    weights: dict[str, Tensor], config: TransformerConfig
) -> dict[str, Tensor]:
    """The same function with heads of d_model / h entries.

    Raises: UserError if they are larger than that.
    """
    width, wide = head_width(config), dict(weights)
    for name, weight in weights.items():
        if name.endswith("W_O.weight"):
            wide[name] = _widen(weight.T, config.h, width).T
        elif "W_Q" in name:
            scale = math.sqrt(width / config.d_k)
            wide[name] = _widen(weight, config.h, width) * scale
        elif "W_K" in name or "W_V" in name:
            wide[name] = _widen(weight, config.h, width)
    return wide


def _widen(weight: Tensor, h: int, width: int) -> Tensor:
    """Zero rows appended to each of h heads, up to `width` rows a head."""
    heads = weight.unflatten(0, (h, -1))
    padding = [0, 0] * (weight.dim() - 1) + [0, width - heads.size(1)]
    return F.pad(heads, padding).flatten(0, 1)


def marian_weights(model: Transformer) -> dict[str, Tensor]:
    """The weights of a `MarianMTModel` that computes the same scores.

    Raises: UserError for learned positions, or heads larger than d_model / h.
    """
    config = model.config
    if config.positions != "sinusoidal":
        raise UserError(
            f"positions is {config.positions!r}: Marian computes sinusoids and stores "
            "no positions; export to ctranslate2 or onnx, which carry any table"
        )
    wide = widen_heads(weights_of(model), config)
    parameters = reorder_stream(wide, sines_first(config.d_model))
    for name in [name for name in parameters if ".W_" in name and "attention" in name]:
        parameters.setdefault(
            name.replace("weight", "bias"), torch.zeros(config.d_model)
        )
    parameters.setdefault("logits_bias", torch.zeros(config.tgt_vocab_size))
    stored = partial(marian_stored, shared_vocab=config.shared_vocab)
    published = WeightMapping(parameters, stored).to_published(parameters)
    published["final_logits_bias"] = published["final_logits_bias"][None]
    return published
