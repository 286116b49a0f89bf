"""A Transformer as ONNX graphs, under the names that Hugging Face's optimum reads."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..data.pair_tokenizer import PairTokenizer
from ..model.cache import KVCache
from ..model.transformer import Transformer
from .export_folder import exported_folder
from .extras import needed
from .marian_export import write_settings

GRAPHS = ENCODER, DECODER = "encoder_model.onnx", "decoder_model_merged.onnx"


class GrowingCache(KVCache):
    """A cache without room to spare: in a graph appending is one node."""

    def update(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append new positions; all keys and values."""
        self.key = torch.cat([self.key, key], dim=2)
        self.value = torch.cat([self.value, value], dim=2)
        return self.key, self.value


class OnnxEncoder(nn.Module):
    """Source ids and which of them are real, to all that the decoder reads."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(
        self, ids: Int[Tensor, "batch src"], mask: Int[Tensor, "batch src"]
    ) -> Float[Tensor, "batch src d_model"]:
        """The memory."""
        x = self.model.embed(self.model.src_embedding, ids)
        return self.model.encoder(x, mask[:, None, None] != 0)


class OnnxDecoder(nn.Module):
    """Some tokens after those that the caches hold, with the caches as plain tensors.

    What the source's cache lacks of the memory is added: all of it at the first call,
    nothing later.
    """

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(
        self,
        ids: Int[Tensor, "batch new"],
        memory: Float[Tensor, "batch src d_model"],
        mask: Int[Tensor, "batch src"],
        past: list[Float[Tensor, "batch h _ _"]],
    ) -> tuple[Tensor, ...]:
        """Logits of all new positions; of each layer the target's keys and values and
        the source's, old and new.
        """
        start, end = past[0].size(2), past[0].size(2) + ids.size(1)
        memory, src_mask = memory[:, past[2].size(2) :], mask[:, None, None] != 0
        y = self.model.embed(self.model.tgt_embedding, ids, start)
        present: list[Tensor] = []
        for i, layer in enumerate(cast(Any, self.model.decoder.layers)):
            target = GrowingCache(*past[4 * i : 4 * i + 2])
            source = GrowingCache(*past[4 * i + 2 : 4 * i + 4])
            target.seen = torch.arange(end) <= torch.arange(start, end)[:, None]
            source.update(*layer.source_attention.keys_values(memory))
            y = layer.step(y, target, source, src_mask)
            present += [target.key, target.value, source.key, source.value]
        return self.model.logits(y), *present


def to_onnx(
    module: nn.Module,
    examples: tuple[Any, ...],
    axes: tuple[Any, ...],
    inputs: list[str],
    outputs: list[str],
    path: Path,
) -> None:
    """Record a module on example inputs; `axes` names those of each that may vary."""
    with _quietly(), torch.inference_mode():
        torch.onnx.export(
            module.eval(),
            examples,
            str(path),
            dynamo=True,
            external_data=False,
            verbose=False,
            input_names=inputs,
            output_names=outputs,
            opset_version=20,
            dynamic_shapes=axes,
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


def write_graphs(folder: Path, model: Transformer) -> None:
    """Write both graphs."""
    config, layers = model.config, len(cast(Any, model.decoder.layers))
    ids, mask = torch.full((2, 3), config.eos_id), torch.ones(2, 3, dtype=torch.long)
    source, target = {0: "batch", 1: "source"}, {0: "batch", 1: "new"}
    names, outputs = ["input_ids", "attention_mask"], ["last_hidden_state"]
    encoder, read = OnnxEncoder(model), (source, source)
    to_onnx(encoder, (ids, mask), read, names, outputs, folder / ENCODER)
    parts = [
        (f"{layer}.{side}.{part}", torch.zeros(2, config.h, 2, size), length)
        for layer in range(layers)
        for side, length in (("decoder", "past"), ("encoder", "past_source"))
        for part, size in (("key", config.d_k), ("value", config.d_v))
    ]
    names = ["input_ids", "encoder_hidden_states", "encoder_attention_mask"]
    names += [f"past_key_values.{name}" for name, _, _ in parts]
    outputs = ["logits", *(f"present.{name}" for name, _, _ in parts)]
    past = [example for _, example, _ in parts]
    memory = torch.zeros(2, 3, config.d_model)
    axes = target, source, source, [{0: "batch", 2: length} for _, _, length in parts]
    examples = ids[:, :2], memory, mask, past
    to_onnx(OnnxDecoder(model), examples, axes, names, outputs, folder / DECODER)


def export_onnx(
    model: Transformer, tokenizer: PairTokenizer, folder: str | Path
) -> None:
    """Write a folder with the two graphs that optimum's `ORTModelForSeq2SeqLM` opens.

    Raises: UserError for a folder that holds something, or when onnx or onnxscript is
    missing.
    """
    for package in ("onnx", "onnxscript"):
        needed(package)
    with exported_folder(folder, "onnx", model, tokenizer) as draft:
        write_graphs(draft, deepcopy(model).cpu().float().eval())
        write_settings(draft, model.config, tokenizer)
