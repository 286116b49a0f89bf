"""What is wrong with a translation model, as far as its answers show."""

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from ..data.batching import pad_rows
from ..decoding.model_search import ModelSearch, teacher_forcing
from ..decoding.options import SearchOptions
from ..errors import UserError
from .diagnosis import Measure

Rows = Sequence[list[int]]
NEAR = 2e-3  # nats that rounding may make of one batch and another


def model_measures(model: Any, src: Rows, tgt: Rows, unk: int) -> Iterator[Measure]:
    """Those of a model on pairs of ids, each ending in the end token.

    Raises: UserError for fewer than eight pairs of two words and more.
    """
    pairs = [pair for pair in zip(src, tgt, strict=False) if min(map(len, pair)) > 2]
    if len(pairs) < 8:
        raise UserError("too few pairs to measure a model on: give eight and more")
    src, tgt = map(list, zip(*pairs, strict=True))
    weights = [each for each in model.state_dict().values() if each.dim() > 1]
    broken = sum(not each.isfinite().all() for each in weights)
    says = "weights hold NaN or infinity: the training has diverged"
    yield Measure("matrices with no numbers", broken, "≤", 0, says)
    if broken:
        return
    prints = [each.float().cpu().numpy().tobytes() for each in weights]
    says = "layers hold the very same weights: one layer was put in several places"
    yield Measure("equal matrices", len(prints) - len({*prints}), "≤", 0, says)
    yield from exact_measures(model, src, tgt)
    for side, rows in (("source", src), ("target", tgt)):
        unknown = sum(row.count(unk) for row in rows) / sum(map(len, rows))
        says = f"{side} tokens are unknown: the vocabulary was made for other text"
        yield Measure(f"unknown {side} tokens, share", unknown, "≤", 0.02, says)
    yield from reading_measures(model, src, tgt)
    found = ModelSearch(model).search(src, SearchOptions(beam_size=1))
    ended = sum(best.finished for best, *_ in found) / len(src)
    says = "translations don't end: it never learned the end token"
    yield Measure("translations that end, share", ended, "≥", 0.9, says)


@torch.no_grad()
def scores(model: Any, src: Rows, tgt: Rows) -> torch.Tensor:
    """The log-probability of each target token, all rows in one batch."""
    device = next(model.parameters()).device
    ids = [pad_rows([*side], device, model.config.pad_id) for side in (src, tgt)]
    return teacher_forcing(model, *ids).cpu()


def exact_measures(model: Any, src: Rows, tgt: Rows) -> Iterator[Measure]:
    """What an answer must not depend on: the moment, later tokens, its company."""
    first = scores(model, src, tgt)
    again = float(torch.dist(first, scores(model, src, tgt), math.inf))
    says = "asked twice, it answers otherwise: dropout is on, eval() was not called"
    yield Measure("change when asked twice, nats", again, "≤", 1e-5, says)
    after = scores(model, src, [[*row[:-2], row[0], row[-1]] for row in tgt])
    rows = [(i, slice(len(row) - 2)) for i, row in enumerate(tgt)]
    later = max(float(torch.dist(first[row], after[row], math.inf)) for row in rows)
    says = "it reads the token to come: the decoder lacks its causal mask"
    yield Measure("change by later tokens, nats", later, "≤", NEAR, says)
    alone = [scores(model, [s], [t])[0] for s, t in zip(src, tgt, strict=True)]
    beside = float(torch.dist(first, pad_sequence(alone, True), math.inf))
    says = "it reads padding: a sentence has another score in a batch than alone"
    yield Measure("change beside others, nats", beside, "≤", NEAR, says)


def chance(loss: float, vocabulary: int) -> Measure:
    """That of a loss, in nats, beside the one of guessing uniformly."""
    says = "its loss is near chance or worse: untrained, or made for other text, such "
    says += "as the other direction"
    share = loss / math.log(vocabulary)
    return Measure("loss as a share of ln V", share, "≤", 0.6, says)


def reading_measures(model: Any, src: Rows, tgt: Rows) -> Iterator[Measure]:
    """Whether it reads the source, and the order of its words."""
    rng, count = random.Random(1), sum(map(len, tgt))
    mixed = [[*rng.sample(row[:-1], len(row) - 1), row[-1]] for row in src]
    sources = src, [*src[1:], src[0]], mixed
    own, others, order = (-float(scores(model, s, tgt).sum()) / count for s in sources)
    yield chance(own, model.config.tgt_vocab_size)
    says = "it doesn't read the source, or its pairs don't belong together"
    yield Measure("rise with a neighbour's source, nats", others - own, "≥", 1, says)
    says = "the order of the source's words is lost: positions don't reach the encoder"
    yield Measure("rise with source words shuffled, nats", order - own, "≥", 0.1, says)
