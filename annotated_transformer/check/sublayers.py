"""Checks of the feed-forward network, the embedding, positions and add-and-norm."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..model.position import sinusoids as reference
from .assertions import close, expect, expect_touched, require
from .parts import Part, check_of, depart, forward_of
from .probes import normalised
from .weights import fill_matrices, matrices_of, require_gradients, size_of


@check_of("FeedForward")
def feed_forward(part: Part) -> str:
    """`FeedForward(d_model, d_ff)`, `forward(x)`, equation (2)."""
    module = part.module(6, 10)
    x = torch.randn(2, 5, 6)
    forward = forward_of(module)
    hint = "the network works at each position alone, along the last axis"
    expect_touched(forward, x, 2, [2], hint)
    require_gradients(module, forward(x))
    fill_matrices(module, -0.5)
    _numbers_of_feed_forward(forward(x), x)
    require(
        size_of(module.parameters()) == 2 * 6 * 10 + 10 + 6,
        "Equation (2) has two biases, b_1 and b_2: with sizes of 6 and 10 it learns "
        f"136 numbers, and here are {size_of(module.parameters())}.",
    )
    return "widened to d_ff, cut off below zero, narrowed again"


def _numbers_of_feed_forward(found: Tensor, x: Tensor) -> None:
    """With −0.5 in both matrices and zero in the biases the output is a formula."""

    def result(hidden: Tensor) -> Tensor:
        return (-0.5 * 10 * hidden).expand_as(found)

    inner = -0.5 * x.sum(-1, keepdim=True)
    right = result(inner.relu())
    for gelu in (functional.gelu(inner), functional.gelu(inner, approximate="tanh")):
        if close(found, result(gelu), 1e-3):
            depart("GELU in the place of ReLU, as GPT-2 and BERT have it")
            return
    mistakes = {
        "The ReLU is missing: two linear layers in a row are one.": result(inner),
        "The ReLU stands after both layers; it belongs between them.": (
            result(inner).relu()
        ),
    }
    sentence = (
        "It should be max(0, x W_1 + b_1) W_2 + b_2, with a ReLU between the layers "
        "alone: these are its outputs with −0.5 in the matrices and 0 in the biases."
    )
    expect(found, right, sentence, mistakes, tolerance=1e-3)


@check_of("Embedding")
def embedding(part: Part) -> str:
    """`Embedding(vocab_size, d_model)` with `forward(ids)` and `logits(x)`, §3.4.

    forward looks rows up and multiplies them by √d_model; logits compares vectors with
    the same rows, unscaled.
    """
    vocab_size, d_model = 7, 16
    module = part.module(vocab_size, d_model)
    ids = torch.tensor([[3, 1, 4], [0, 6, 3]])
    vectors = Part("forward", module).tensor(ids, shape=(2, 3, d_model))
    require(
        hasattr(module, "logits"),
        "Embedding lacks logits(x), the way back from vectors to scores.",
    )
    logits: Any = module.logits
    scores = Part("logits", logits).tensor(vectors, shape=(2, 3, vocab_size))
    require_gradients(module, scores)
    units, nothing = torch.eye(d_model)[None], torch.zeros(1, 1, d_model)
    with torch.no_grad():
        table = module(torch.arange(vocab_size)[None])[0]
        # Each unit vector picks a column of the output's matrix; a bias falls out.
        rows = (logits(units) - logits(nothing))[0].T
    ratio = ((table * rows).sum() / rows.square().sum()).item()
    one_matrix = size_of(module.parameters()) < 2 * table.numel()
    if not one_matrix or not close(table, ratio * rows, 1e-4):
        depart(
            "the output isn't tied, so that what trains one matrix doesn't train the "
            "other"
        )
        return "one matrix each way"
    weight = next(p for p in matrices_of(module) if p.numel() == table.numel())
    _scales(ratio, rows.norm() / weight.norm(), d_model, part)
    return "one matrix both ways, scaled by √d_model on the way in alone"


UNSCALED = (
    "the embedding isn't multiplied by √d_model, and begins with a standard deviation "
    "of {spread:.2g}"
)


def _scales(ratio: float, scaled_out: Tensor, d_model: int, part: Part) -> None:
    """Raises: Wrong unless rows go in times √d_model, and out as they are."""
    root = math.sqrt(d_model)
    # As the reader's class draws it; `part.module` has drawn its own.
    spread = part(500, d_model)(torch.arange(500)[None]).std().item()
    require(
        abs(scaled_out - 1) < 1e-3,
        f"logits scales the matrix by {scaled_out:.3g}; on the way out it is as it is.",
    )
    if abs(ratio - 1) < 1e-3 and not 0.5 < root * spread < 2:  # drawn for no scale
        depart(UNSCALED.format(spread=spread) + ", as GPT-2's" * (spread < 0.1))
        return
    require(
        abs(ratio / root - 1) < 1e-3,
        f"forward multiplies the rows by {ratio:.3g}, and it should by √d_model, "
        f"{root:.3g}.",
    )
    require(
        abs(spread - 1) < 0.1,
        f"forward's entries begin with a standard deviation of {spread:.3g} instead of "
        "1: draw the table with d_model^−½.",
    )


@check_of("sinusoids")
def sinusoids(part: Part) -> str:
    """`sinusoids(n, d_model)`: sines in the even columns, cosines in the odd, §3.5."""
    n, d_model = 12, 8
    found = part.tensor(n, d_model, shape=(n, d_model)).float()
    right = reference(n, d_model)
    sines, cosines = right[:, 0::2], right[:, 1::2]
    mistakes = {
        "Sines and cosines stand in two halves; the paper's take turns: sine in column "
        "0, cosine in column 1.": torch.cat([sines, cosines], 1),
        "Sine and cosine are exchanged: the even columns hold the sines.": (
            torch.stack([cosines, sines], -1).flatten(1)
        ),
    }
    row, column = divmod(int(((found - right).abs() > 1e-3).int().argmax()), d_model)
    wave = "cos" if column % 2 else "sin"
    sentence = (
        f"Position {row}, column {column} should be {wave}({row} / "
        f"10000^({column - column % 2}/{d_model})) = {right[row, column]:.3f} and is "
        f"{found[row, column]:.3f}."
    )
    expect(found, right, sentence, mistakes, tolerance=1e-3)
    expect(
        part.tensor(2000, d_model, shape=(2000, d_model)).float(),
        reference(2000, d_model),
        "Far from the start the numbers are others: the base is 10000.",
        tolerance=1e-3,
    )
    return "sines and cosines take turns, from fast columns to slow ones"


@check_of("AddNorm")
def add_norm(part: Part) -> str:
    """`AddNorm(d_model, dropout)`, `forward(x, sublayer_output)`, §3.1 and §5.4.

    LayerNorm(x + Dropout(sublayer_output)); both are (batch, positions, d_model).
    """
    module = part.module(8, 0.5)
    x, sublayer = 2 * torch.randn(2, 5, 8) + 1, torch.randn(2, 5, 8)
    found = forward_of(module)(x, sublayer)
    if size_of(module.parameters()):  # a norm needs no gain
        require_gradients(module, found)
    require(
        close(found, module(x, sublayer)),
        "Dropout goes on in evaluation mode: use nn.Dropout, or pass self.training.",
    )
    mistakes = {
        "The norm is of the sub-layer's output alone; the paper's is of the sum: "
        "norm(x + sublayer_output).": x + normalised(sublayer),
        "The residual is missing: add x to the sub-layer's output.": (
            normalised(sublayer)
        ),
    }
    sentence = "It should be norm(x + sublayer_output), at each position by itself."
    expect(found, normalised(x + sublayer), sentence, mistakes, tolerance=1e-3)
    module.train()
    nothing = torch.zeros_like(x)
    require(
        close(module(x, nothing), normalised(x), 1e-3),
        "Dropout falls on x or on the sum: drop the sub-layer's output alone, before "
        "it is added.",
    )
    require(
        not close(module(x, sublayer), found, 1e-3),
        "Dropout does nothing in training mode: drop the sub-layer's output.",
    )
    return "drop, add, normalise, in this order"
