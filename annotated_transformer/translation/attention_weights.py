"""§3.2: the attention weights of one sentence pair, recorded module by module."""

from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..data.batching import pad_rows
from ..data.pair_tokenizer import PairTokenizer, token_labels
from ..decoding.checks import check_numbers, check_source
from ..errors import UserError
from ..model.attention import MultiHeadAttention


def recording_copy(
    model: nn.Module,
) -> tuple[nn.Module, dict[str, Float[Tensor, "batch head query key"]]]:
    """A copy that shares the model's weights, and a table in which each uncached pass
    of it leaves its attention weights, by module.
    """
    weights: dict[str, Tensor] = {}
    shared = {id(each): each for each in chain(model.parameters(), model.buffers())}
    copy = deepcopy(model, shared)

    def recorder(name: str) -> Any:
        def record(module: MultiHeadAttention, inputs: Any, named: Any) -> None:
            weights[name] = module.weights(*inputs, **named)

        return record

    for name, module in copy.named_modules():
        if isinstance(module, MultiHeadAttention):
            module.register_forward_pre_hook(recorder(name), with_kwargs=True)
    return copy, weights


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


def inspect_attention(
    model: nn.Module, tokenizer: PairTokenizer, source: list[int], target: list[int]
) -> Attention:
    """The attention of one pass over one pair of ids, as recorded module by module."""
    device = model.tgt_embedding.weight.device
    config: Any = model.config
    src, inputs = pad_rows([source], device), [config.bos_id, *target[:-1]]
    check_source(model, src)
    copy, weights = recording_copy(model)
    with torch.inference_mode():
        copy(src, pad_rows([inputs], device))
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
