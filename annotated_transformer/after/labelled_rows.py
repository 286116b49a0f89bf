"""Texts as rows of tokens with the numbers of their classes: batches of them to train
on, and the probabilities that a classifier gives them, read cut or to the end.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..data.batching import pad_rows
from ..model.config import PAD, UNK
from ..training.task import TensorBatch
from .classifier import ClassifierModel

Rows = list[list[int]]


def shorten(ids: list[int], most: int) -> list[int]:
    """At most so many tokens of a text: the first quarter from its beginning, the rest
    from its end.
    """
    if len(ids) <= most:
        return ids
    head = most // 4
    return ids[:head] + ids[len(ids) - (most - head) :]


def classifier_batches(
    rows: Rows,
    labels: Sequence[int],
    most: int,
    size: int,
    seed: int,
    word_dropout: float = 0.0,
) -> Iterator[TensorBatch]:
    """Endless batches of texts of similar length, some words hidden as unknown."""
    draw, pool = torch.Generator().manual_seed(seed), 50 * size
    while True:
        order = torch.randperm(len(rows), generator=draw).tolist()
        cuts = []
        for start in range(0, len(order), pool):
            near = sorted(order[start : start + pool], key=lambda i: len(rows[i]))
            cuts += [near[i : i + size] for i in range(0, len(near), size)]
        for number in torch.randperm(len(cuts), generator=draw).tolist():
            ids = pad_rows([shorten(rows[i], most) for i in cuts[number]])
            hidden = torch.rand(ids.shape, generator=draw) < word_dropout
            ids = ids.masked_fill(hidden & (ids != PAD), UNK)
            classes = torch.tensor([labels[i] for i in cuts[number]])
            yield TensorBatch((ids, classes), len(classes))


def pieces(ids: list[int], most: int) -> Rows:
    """A text cut into as few pieces of at most so many tokens as it takes, all about
    equally long.
    """
    count = -(-len(ids) // most)
    starts = [i * len(ids) // count for i in range(count + 1)]
    return [ids[a:b] for a, b in zip(starts, starts[1:], strict=False)]


@torch.no_grad()
def read_long(model: ClassifierModel, rows: Rows) -> Float[Tensor, "texts classes"]:
    """The probability of each class, with long texts read to the end, in pieces.

    Attention stays within a piece, and the mean is over all positions of all pieces.
    """
    model.eval()
    device, most = model.output.weight.device, model.config.max_length
    cut = [(i, piece) for i, row in enumerate(rows) for piece in pieces(row, most)]
    cut.sort(key=lambda each: len(each[1]))
    totals = torch.zeros(len(rows), len(model.config.classes))
    for start in range(0, len(cut), 64):
        owners, parts = zip(*cut[start : start + 64], strict=True)
        scores = model(pad_rows(parts, device)).cpu()
        lengths = torch.tensor([len(part) for part in parts])
        totals.index_add_(0, torch.tensor(owners), scores * lengths[:, None])
    return (totals / torch.tensor([len(row) for row in rows])[:, None]).softmax(dim=-1)


def read_short(model: ClassifierModel, rows: Rows) -> Float[Tensor, "texts classes"]:
    """The probability of each class, with long texts cut as in training."""
    return read_long(model, [shorten(row, model.config.max_length) for row in rows])
