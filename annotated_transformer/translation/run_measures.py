"""What is wrong with a training run, by its data and its log."""

import math
from collections.abc import Iterator, Sequence
from math import inf
from statistics import fmean, median
from typing import Any

import numpy as np

from ..data.tokenized_pairs import TokenizedPairs
from ..training.log import Record
from ..training.loss import entropy_floor
from .alignment import Likeness
from .diagnosis import Measure
from .text_measures import alignment_measures, share

UPDATES = 25  # at least so many make one point of the curve


def pairs_measures(
    train: TokenizedPairs, valid: TokenizedPairs, joint: bool
) -> Iterator[Measure]:
    """Those of a run's tokenized pairs; in one vocabulary, lines can be compared."""
    if joint:
        src, tgt = (Side(train, number) for number in (0, 1))
        yield from alignment_measures(Likeness(src, tgt, lambda row: frozenset(row)))
    known = {as_bytes(train, i) for i in range(len(train))}
    leaked = share(as_bytes(valid, i) in known for i in range(len(valid)))
    says = "validation pairs are in the training text: their loss measures memory"
    yield Measure("valid seen before, share", leaked, 0, 0.01, says)


class Side(Sequence[Sequence[int]]):
    """One side of tokenized pairs, as rows of ids."""

    def __init__(self, pairs: TokenizedPairs, number: int):
        self.pairs, self.number = pairs, number

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, i: Any) -> Any:
        return self.pairs[i][self.number].tolist()


def as_bytes(pairs: TokenizedPairs, i: int) -> tuple[bytes, ...]:
    """A pair in a form that a set can hold."""
    return tuple(row.astype(np.int32).tobytes() for row in pairs[i])


def curve(records: Sequence[Record]) -> list[tuple[int, float]]:
    """The update and the loss of each point: means of 25 updates or more."""
    points, losses, start = [], [], 0
    for record in records:
        if record["event"] == "update":
            losses.append(record["loss"])
            if record["step"] - start >= UPDATES:
                points.append((record["step"], fmean(losses)))
                losses, start = [], record["step"]
    return points


def log_measures(records: Sequence[Record], vocabulary: int) -> Iterator[Measure]:
    """Those of a run's log: where the loss begins, ends, jumps and shakes."""
    points, guess = curve(records), math.log(vocabulary)
    if len(points) < 8:
        return
    losses = [loss for _, loss in points]
    says = "the first loss is far above ln V: weights or rate are out of scale"
    yield Measure("first loss above ln V, nats", losses[0] - guess, -inf, 3, says)
    later = losses[len(losses) // 2 :]
    rises = [max(0, b - a) for a, b in zip(later, later[1:], strict=False)]
    says = "the loss shakes to the end: the rate is too high, or gradients add up"
    yield Measure("mean rise from point to point, nats", fmean(rises), 0, 0.1, says)
    jumps = [
        (losses[i] - median(losses[i - 3 : i]), points[i][0])
        for i in range(3, len(losses))
    ]
    jump, step = max(jumps)
    says = f"the loss jumped before update {step:,}: were Adam's averages lost there?"
    yield Measure("largest rise of the loss, nats", jump, -inf, 0.3, says)
    says = "the loss stays near guessing: a rate too high, no warm-up, a broken mask"
    yield Measure("last loss as a share of ln V", losses[-1] / guess, 0, 0.6, says)


def floor_note(records: Sequence[Record], vocabulary: int, smoothing: float) -> str:
    """That a loss near the smoothing's floor is no fault, if it is near; else ""."""
    points, floor = curve(records), entropy_floor(vocabulary, smoothing)
    if not points or not smoothing or points[-1][1] > floor + 1:
        return ""
    return (
        f"the training loss ends at {points[-1][1]:.2f} and can't fall below "
        f"{floor:.2f}, the floor of label smoothing {smoothing:g}: no fault"
    )
