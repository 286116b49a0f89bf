"""The check of `without_heads`, in a small model with random weights."""

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..model.config import TransformerConfig
from ..model.transformer import Transformer
from ..translation.heads import without_heads as silent
from .assertions import Wrong, changed, close, reason, require
from .parts import Part, check_of
from .weights import draw

PLACES = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.source_attention",
}
Choice = tuple[str, int, list[int]]  # kind, layer and heads
CHOICES: list[Choice] = [
    ("cross", 1, [2]),
    ("encoder", 0, [3]),
    ("decoder", 1, [1]),
    ("cross", 0, [0, 2]),
]


@check_of("without_heads")
def without_heads(part: Part) -> str:
    """`without_heads(model, kind, layer, heads)`: a model in which those say nothing.

    kind is encoder, decoder or cross; layers and heads count from 0. The given model
    stays as it was; in the new one each head's part of W_O (or of W_V) is zero.
    """
    config = TransformerConfig(20, 20, N=2, d_model=12, d_ff=16, h=4)
    model = Transformer(config).eval()
    draw(model)
    kept = copy.deepcopy(model)
    for which in CHOICES:
        found = part(model, *which)
        require(
            isinstance(found, torch.nn.Module),
            "It should return a model: the changed copy.",
        )
        require(
            all(map(torch.equal, model.parameters(), kept.parameters())),
            "The given model has changed, too: change a deepcopy and return it.",
        )
        _compare(found, kept, which)
    return "these heads say nothing, and the given model is as it was"


def _logits(model: Any) -> Tensor:
    ids = torch.tensor([[3, 9, 4, 7, 2], [5, 6, 8, 9, 2]])
    with torch.no_grad():
        return model.eval()(ids, ids)


def _compare(found: Any, model: Transformer, which: Choice) -> None:
    """Raises: Wrong unless the model found writes as one with silent heads."""
    alike = partial(close, tolerance=1e-4)
    got = _logits(found)
    if alike(got, _logits(silent(model, *which))):
        return
    words = "With {}, layer {}, heads {}".format(*which)
    require(
        changed(_logits(model), got),
        f"{words} the model writes as before: what is zero?",
    )
    logits = {text: _logits(each) for text, each in _mistakes(model, *which).items()}
    general = (
        " the model should write as if these gave zeros, and writes otherwise: a "
        "head's part of W_O are its d_v columns, from head · d_v on"
    )
    raise Wrong(f"{words}{reason(got, logits, alike) or general}.")


def _mistakes(
    model: Transformer, kind: str, layer: int, heads: list[int]
) -> dict[str, Transformer]:
    """What is silent in which mistake."""
    d_v = model.config.d_v
    rows = copy.deepcopy(model)
    weight = rows.get_parameter(f"{PLACES[kind].format(layer)}.W_O.weight").detach()
    for head in heads:
        weight[head * d_v : (head + 1) * d_v] = 0
    return {
        "outputs of W_O are zero, not a head's inputs: nn.Linear keeps the transpose, "
        "so a head has columns, weight[:, …]": rows,
        "heads and layers count from 0": silent(
            model, kind, layer, [(head - 1) % 4 for head in heads]
        ),
        "only the first of the heads is silent": silent(model, kind, layer, heads[:1]),
        "another layer's heads are silent": silent(model, kind, 1 - layer, heads),
        "all heads of the layer are silent": silent(model, kind, layer, range(4)),
    } | {
        f"those of {other} are silent instead": silent(model, other, layer, heads)
        for other in PLACES
        if other != kind
    }
