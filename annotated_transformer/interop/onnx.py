"""A Transformer as ONNX graphs."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..cache import Cache
from ..data.pair_tokenizer import PairTokenizer
from ..files import write_json
from ..model.attention import MultiHeadAttention, attention, causal_mask
from ..model.cache import KVCache
from ..model.transformer import Transformer
from .export_folder import exported_folder
from .extras import needed


@contextmanager
def noted_attention(
    model: nn.Module,
) -> Iterator[list[Float[Tensor, "batch h query key"]]]:
    """In this context every attention of the model appends its weights to a list."""
    notes: list[Tensor] = []

    def attend(
        module: MultiHeadAttention,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        mask = causal_mask(query.size(2), query.device) if is_causal else mask
        heads, weights = attention(query, key, value, mask)
        notes.append(weights)
        return module.W_O(heads.transpose(1, 2).flatten(2))

    modules = [each for each in model.modules() if isinstance(each, MultiHeadAttention)]
    for module in modules:
        vars(module)["attend"] = partial(attend, module)
    try:
        yield notes
    finally:
        for module in modules:
            del vars(module)["attend"]


class GrowingCache(KVCache):
    """A cache without room to spare: in a graph appending is one node."""

    def update(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append new positions; all keys and values."""
        self.key = torch.cat([self.key, key], dim=2)
        self.value = torch.cat([self.value, value], dim=2)
        return self.key, self.value


class OnnxEncoder(nn.Module):
    """Source ids to all that the decoder needs of them, and to attention if asked."""

    def __init__(self, model: Transformer, attention: bool = False):
        super().__init__()
        self.model, self.attention = model, attention

    def forward(self, ids: Int[Tensor, "batch src"]) -> tuple[Tensor, ...]:
        """Memory, mask, the source's keys and values of every layer, [attention]."""
        with noted_attention(self.model) as notes:
            memory, mask = self.model.encode(ids)
        layers = cast(Any, self.model.decoder.layers)
        sources = [layer.start(memory)[1] for layer in layers]
        keys = torch.stack([source.key for source in sources])
        values = torch.stack([source.value for source in sources])
        outputs = memory, mask[:, 0, 0], keys, values
        return (*outputs, torch.stack(notes)) if self.attention else outputs


class OnnxStep(nn.Module):
    """One step of the decoder with its cache as plain tensors."""

    def __init__(self, model: Transformer, attention: bool = False):
        super().__init__()
        self.model, self.attention = model, attention

    def forward(
        self,
        token: Int[Tensor, "batch"],
        mask: Bool[Tensor, "batch src"],
        memory_keys: Float[Tensor, "layer batch h src d_k"],
        memory_values: Float[Tensor, "layer batch h src d_v"],
        keys: Float[Tensor, "layer batch h past d_k"],
        values: Float[Tensor, "layer batch h past d_v"],
    ) -> tuple[Tensor, ...]:
        """Logits, new keys, new values, [attention to the past and to the source]."""
        pasts = [GrowingCache(*past) for past in zip(keys, values, strict=True)]
        sources = [
            KVCache(*each) for each in zip(memory_keys, memory_values, strict=True)
        ]
        layers = tuple(zip(pasts, sources, strict=True))
        cache = Cache(layers=layers, src_mask=mask[:, None, None], length=keys.size(3))
        with noted_attention(self.model) as notes:
            logits = self.model.step(token, cache)
        new_keys = torch.stack([past.key for past in pasts])
        new_values = torch.stack([past.value for past in pasts])
        outputs = logits, new_keys, new_values
        if not self.attention:
            return outputs
        past, source = (
            torch.stack(each)[..., 0, :] for each in (notes[::2], notes[1::2])
        )
        return *outputs, past, source


def to_onnx(
    module: nn.Module,
    inputs: dict[str, Tensor],
    outputs: list[str],
    varying: dict[str, dict[int, Any]],
    path: Path,
) -> None:
    """Record a module on example inputs; `varying` names the axes that may vary."""
    with _quietly(), torch.inference_mode():
        torch.onnx.export(
            module.eval(),
            tuple(inputs.values()),
            str(path),
            dynamo=True,
            external_data=False,
            verbose=False,
            input_names=list(inputs),
            output_names=outputs,
            opset_version=20,
            dynamic_shapes=tuple(varying[name] for name in inputs),
        )


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the exporter's remarks about itself back; errors are raised as ever."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def write_graphs(folder: Path, model: Transformer, attention: bool) -> None:
    """Write encoder.onnx and decoder_step.onnx."""
    config, size = model.config, torch.export.Dim
    batch, src = size("batch"), size("src", max=config.max_length)
    past = size("past", max=config.max_length - 1)
    encoder, step = OnnxEncoder(model, attention), OnnxStep(model, attention)
    ids = torch.full((2, 3), config.eos_id)
    names = ["memory", "mask", "memory_keys", "memory_values"]
    with torch.inference_mode():
        outputs = dict(zip(names, encoder(ids), strict=False))
    inputs = {"token": ids[:, 0]} | {name: outputs[name] for name in names[1:]}
    inputs |= {
        name: outputs[f"memory_{name}"][..., :2, :] for name in ("keys", "values")
    }
    varying: dict[str, dict[int, Any]] = {
        "ids": {0: batch, 1: src},
        "token": {0: batch},
        "mask": {0: batch, 1: src},
        "memory_keys": {1: batch, 3: src},
        "memory_values": {1: batch, 3: src},
        "keys": {1: batch, 3: past},
        "values": {1: batch, 3: past},
    }
    names += ["attention"] * attention
    to_onnx(encoder, {"ids": ids}, names, varying, folder / "encoder.onnx")
    names = ["logits", "new_keys", "new_values"]
    names += ["self_attention", "source_attention"] * attention
    to_onnx(step, inputs, names, varying, folder / "decoder_step.onnx")


def export_onnx(
    model: Transformer,
    tokenizer: PairTokenizer,
    folder: str | Path,
    attention: bool = False,
) -> None:
    """Write a folder with the two graphs; `attention` has them return all weights.

    Raises: UserError for a folder that holds something, or when onnx or onnxscript is
    missing.
    """
    for package in ("onnx", "onnxscript"):
        needed(package)
    with exported_folder(folder, "onnx", model, tokenizer) as draft:
        write_graphs(draft, deepcopy(model).cpu().float().eval(), attention)
        config = model.config.to_dict() | {"attention": attention}
        write_json(draft / "config.json", config)
