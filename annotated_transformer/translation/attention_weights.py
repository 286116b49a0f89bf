"""§3.2: the attention weights of one sentence pair, recorded module by module."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, get_ident
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..data.batching import pad_rows
from ..data.pair_tokenizer import PairTokenizer
from ..decoding.checks import check_numbers, check_source
from ..errors import UserError
from ..model.attention import MultiHeadAttention

RECORDING = Lock()


def _forget_other_threads() -> None:
    """A forked process has no thread that could release the lock."""
    global RECORDING
    RECORDING = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


@contextmanager
def record_attention(
    model: nn.Module,
) -> Iterator[dict[str, Float[Tensor, "batch head query key"]]]:
    """Each uncached pass in this thread leaves its attention weights, by module."""
    weights: dict[str, Tensor] = {}
    here = get_ident()

    def recorder(name: str) -> Any:
        def record(module: MultiHeadAttention, inputs: Any, named: Any) -> None:
            if get_ident() == here:
                weights[name] = module.weights(*inputs, **named)

        return record

    modules = [
        (name, m)
        for name, m in model.named_modules()
        if isinstance(m, MultiHeadAttention)
    ]
    with RECORDING:  # one thread at a time
        handles = [
            module.register_forward_pre_hook(recorder(name), with_kwargs=True)
            for name, module in modules
        ]
        try:
            yield weights
        finally:
            for handle in handles:
                handle.remove()


@dataclass(frozen=True)
class Attention:
    """All attention weights of one sentence pair, as (layer, head, query, key).

    A decoder row stands for the `target` token it predicts; the keys of `decoder` are
    the `inputs` it read by then.
    """

    source: list[str]
    target: list[str]
    inputs: list[str]
    encoder: Float[Tensor, "layer head src src"]
    decoder: Float[Tensor, "decoder_layer head tgt tgt"]
    cross: Float[Tensor, "decoder_layer head tgt src"]

    def __repr__(self) -> str:
        source, target = " ".join(self.source), " ".join(self.target)
        layers = f"{len(self.encoder)} + {len(self.cross)} layers"
        return f"Attention({layers}, {self.cross.size(1)} heads)\n  {source} → {target}"

    def panels(self) -> list[dict[str, Any]]:
        """What `attention_view` shows, of each kind."""
        axes = {
            "encoder": (self.source, self.source, self.encoder),
            "decoder": (self.target, self.inputs, self.decoder),
            "cross": (self.target, self.source, self.cross),
        }
        return [
            {"name": name, "queries": queries, "keys": keys, "weights": weights}
            for name, (queries, keys, weights) in axes.items()
        ]

    def _repr_html_(self) -> str:
        from ..attention_view import attention_view

        return attention_view(self.panels())


def token_labels(tokenizer: Any, ids: list[int]) -> list[str]:
    """Ids as readable tokens: '<s>' and '</s>' for begin and end."""
    tokens = [tokenizer.id_to_token(i) for i in ids]
    return [{"[bos]": "<s>", "[eos]": "</s>"}.get(token, token) for token in tokens]


def inspect_attention(
    model: nn.Module, tokenizer: PairTokenizer, source: list[int], target: list[int]
) -> Attention:
    """The attention of one pass over one pair of ids, as recorded module by module."""
    device = model.tgt_embedding.weight.device
    config: Any = model.config
    src, inputs = pad_rows([source], device), [config.bos_id, *target[:-1]]
    check_source(model, src)
    with torch.inference_mode(), record_attention(model) as weights:
        model(src, pad_rows([inputs], device))
    if not weights:
        raise UserError("this model has no heads to look at: open a Transformer")

    def stack(part: str) -> Float[Tensor, "layer head query key"]:
        side, module = part.split(".")
        depth = len(getattr(model, side).layers)
        layers = [weights[f"{side}.layers.{i}.{module}"] for i in range(depth)]
        check_numbers(torch.cat(layers))
        return torch.cat(layers).float().cpu()

    return Attention(
        token_labels(tokenizer.source, source),
        token_labels(tokenizer.target, target),
        token_labels(tokenizer.target, inputs),
        stack("encoder.self_attention"),
        stack("decoder.self_attention"),
        stack("decoder.source_attention"),
    )
