"""The check of `without_heads`: right ways pass, each mistake gets its reason."""

from copy import copy, deepcopy

import pytest
import torch

from annotated_transformer import check
from annotated_transformer.translation import heads

PLAIN = """
def without_heads(model, kind, layer, heads):
    model = deepcopy(model)
    side = model.encoder if kind == "encoder" else model.decoder
    part = side.layers[layer]
    attention = part.source_attention if kind == "cross" else part.self_attention
    d_v = model.config.d_v
    with torch.no_grad():
        for head in heads:
            attention.W_O.weight[:, head * d_v : (head + 1) * d_v] = 0
    return model
"""
MISTAKES = [
    ("weight[:, head", "weight[head", "a head has columns, weight[:, …]"),
    ("    model = deepcopy(model)\n", "", "The given model has changed, too"),
    ("    model = deepcopy(model)\n", "    model = copy(model)\n", "has changed, too"),
    ("    return model", "    model", "`return` missing"),
    ("for head in heads", "for head in heads[:1]", "only the first of the heads"),
    ("head * d_v : (head + 1) * d_v", "(head - 1) * d_v : head * d_v", "count from 0"),
    ("side.layers[layer]", "side.layers[1 - layer]", "another layer's heads"),
    ("side.layers[layer]", "side.layers[layer - 1]", "another layer's heads"),
    ("head * d_v : (head + 1) * d_v", ":", "all heads of the layer are silent"),
    ('== "cross"', '== "other"', "those of decoder are silent instead"),
    ('if kind == "encoder"', "if False", "those of decoder are silent instead"),
    ('kind == "cross"', 'kind != "encoder"', "those of cross are silent instead"),
    ("head * d_v : (head + 1) * d_v", "head", "its d_v columns, from head · d_v on"),
    ("] = 0", "] *= 1", "writes as before"),
    ("return model", "return attention.W_O.weight", "should return a model"),
    ("attention.W_O.weight[:, ", "attention.W_Q.weight[", "should write as if"),
    ("    with torch.no_grad():", "    if True:", "raised RuntimeError"),
]


def verdict(old="", new=""):
    """What the check says when a piece of the plain solution is another."""
    assert old in PLAIN
    names = {"copy": copy, "deepcopy": deepcopy, "torch": torch}
    exec(PLAIN.replace(old, new, 1), names)
    return check.without_heads(names["without_heads"])


@pytest.mark.parametrize(
    "old, new",
    [("", ""), ("attention.W_O.weight[:, ", "attention.W_V.weight[")],
    ids=["W_O", "W_V"],
)
def test_right_ways_pass(old, new):
    found = verdict(old, new)
    assert found, found
    assert check.without_heads(heads.without_heads)


@pytest.mark.parametrize("old, new, sentence", MISTAKES)
def test_each_mistake_gets_its_reason(old, new, sentence):
    found = verdict(old, new)
    assert not found and sentence in found.sentence
