"""What is wrong with a translation model, as far as its answers show."""

import math
import random
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

import torch

from ..data.batching import pad_rows
from ..decoding.model_search import ModelSearch, teacher_forcing
from ..decoding.options import SearchOptions
from ..errors import UserError
from .diagnosis import Measure

Rows = Sequence[Sequence[int]]
SEARCHED = 24  # sentences that are translated
NEAR = 2e-3  # nats that rounding may make of one batch and another


class Asked:
    """A model, and the log-probabilities that it gives to targets."""

    def __init__(self, model: Any):
        self.model, self.pad = model, model.config.pad_id
        self.device = next(model.parameters()).device

    @torch.no_grad()
    def scores(self, src: Rows, tgt: Rows) -> list[list[float]]:
        """The log-probability of each target token, all rows in one batch."""
        ids = [pad_rows([*side], self.device, self.pad) for side in (src, tgt)]
        found = teacher_forcing(self.model, *ids).tolist()
        return [row[: len(ids)] for row, ids in zip(found, tgt, strict=True)]

    def loss(self, src: Rows, tgt: Rows) -> float:
        """The mean loss of a target token, in nats."""
        tokens = [score for row in self.scores(src, tgt) for score in row]
        return -sum(tokens) / len(tokens)


def difference(rows: Sequence[list[float]], others: Sequence[list[float]]) -> float:
    """The largest difference of two numbers in the same place; NaN if one is none."""
    pairs = zip(rows, others, strict=True)
    each = [abs(a - b) for row, other in pairs for a, b in zip(row, other, strict=True)]
    return max(each) if all(map(math.isfinite, each)) else math.nan


def turned(rows: Rows) -> Rows:
    """Each row's neighbour."""
    return [*rows[1:], rows[0]]


def shuffled(rows: Rows) -> Rows:
    """The tokens of each row in another order, the end in its place."""
    rng = random.Random(1)
    return [[*rng.sample(row[:-1], len(row) - 1), row[-1]] for row in rows]


def model_measures(model: Any, src: Rows, tgt: Rows, unk: int) -> Iterator[Measure]:
    """Those of a model on pairs of ids, each ending in the end token.

    Without finite weights there is nothing more to measure.
    Raises: UserError for fewer than eight pairs of two words and more.
    """
    pairs = [pair for pair in zip(src, tgt, strict=False) if min(map(len, pair)) > 2]
    if len(pairs) < 8:
        raise UserError("too few pairs to measure a model on: give eight and more")
    src, tgt = map(list, zip(*pairs, strict=True))
    weights = [*weight_measures(model)]
    yield from weights
    if not weights[0].healthy:
        return
    asked = Asked(model)
    yield from exact_measures(asked, src, tgt)
    for side, rows in (("source", src), ("target", tgt)):
        unknown = sum(row.count(unk) for row in rows) / sum(map(len, rows))
        says = f"{side} tokens are unknown: the vocabulary was made for other text"
        yield Measure(f"unknown {side} tokens, share", unknown, 0, 0.02, says)
    yield from reading_measures(asked, src, tgt)
    rows = [[*row] for row in src[:SEARCHED]]
    found = ModelSearch(model).search(rows, SearchOptions(beam_size=1))
    ended = sum(best.finished for best, *_ in found) / len(rows)
    says = "translations don't end: it never learned the end token"
    yield Measure("translations that end, share", ended, 0.9, 1, says)


def exact_measures(asked: Asked, src: Rows, tgt: Rows) -> Iterator[Measure]:
    """What an answer must not depend on: the moment, later tokens, its company."""
    scores = asked.scores(src, tgt)
    again = difference(scores, asked.scores(src, tgt))
    says = "asked twice, it answers otherwise: dropout is on, eval() was not called"
    yield Measure("change when asked twice, nats", again, 0, 1e-5, says)
    later = difference(
        [row[:-2] for row in scores],
        [row[:-2] for row in asked.scores(src, [[*r[:-2], r[0], r[-1]] for r in tgt])],
    )
    says = "it reads the token to come: the decoder lacks its causal mask"
    yield Measure("change by later tokens, nats", later, 0, NEAR, says)
    alone = [asked.scores([s], [t])[0] for s, t in zip(src, tgt, strict=True)]
    beside = difference(scores, alone)
    says = "it reads padding: a sentence has another score in a batch than alone"
    yield Measure("change beside others, nats", beside, 0, NEAR, says)


def reading_measures(asked: Asked, src: Rows, tgt: Rows) -> Iterator[Measure]:
    """Whether it reads the source, and the order of its words."""
    own = asked.loss(src, tgt)
    others = min(asked.loss(turned(src), tgt), asked.loss(src, turned(tgt)))
    says = "targets fit their neighbours' sources better: the lines are shifted"
    yield Measure("loss above a neighbour's, nats", own - others, -inf, 0.3, says)
    chance = own / math.log(asked.model.config.tgt_vocab_size)
    says = "it knows little more than chance: untrained, or of another kind of text"
    yield Measure("loss as a share of ln V", chance, 0, 0.6, says)
    says = "it doesn't read the source, or learned from lines that don't fit"
    yield Measure("rise with a neighbour's source, nats", others - own, 1, inf, says)
    order = asked.loss(shuffled(src), tgt) - own
    says = "the order of the source's words is lost: positions don't reach the encoder"
    yield Measure("rise with source words shuffled, nats", order, 0.1, inf, says)


def weight_measures(model: Any) -> Iterator[Measure]:
    """Whether weights are numbers, and layers have their own."""
    weights = {
        name: each for name, each in model.state_dict().items() if each.dim() > 1
    }
    broken = sum(not each.isfinite().all() for each in weights.values())
    says = "weights hold NaN or infinity: the training has diverged"
    yield Measure("matrices with no numbers", broken, 0, 0, says)
    prints = [each.float().cpu().numpy().tobytes() for each in weights.values()]
    says = "layers hold the very same weights: one layer was put in several places"
    yield Measure("equal matrices", len(prints) - len({*prints}), 0, 0, says)
