"""What is wrong with a training run, by its data and its log."""

import math
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from statistics import fmean, median

from ..data.tokenized_pairs import TokenizedPairs
from ..training.log import Record
from ..training.loss import entropy_floor
from .diagnosis import Measure

UPDATES = 25  # so many make one point of the curve


def leak(train: TokenizedPairs, valid: TokenizedPairs) -> Measure:
    """That of a run's validation pairs in its training pairs."""
    known, held = (
        [tuple(side.tobytes() for side in pairs[i]) for i in range(len(pairs))]
        for pairs in (train, valid)
    )
    seen = fmean(map({*known}.__contains__, held))
    says = "validation pairs are in the training text: their loss measures memory"
    return Measure("valid seen before, share", seen, "≤", 0.01, says)


def log_measures(
    records: Iterable[Record], vocabulary: int, smoothing: float
) -> Iterator[Measure]:
    """Those of a run's log: where the loss begins, ends, jumps and shakes."""
    updates = (record for record in records if record["event"] == "update")
    groups = groupby(updates, lambda record: record["step"] // UPDATES)
    points = {n: fmean(each["loss"] for each in group) for n, group in groups}
    if len(losses := [*points.values()]) < 8:
        return
    says = "the first loss is far above ln V: weights or rate are out of scale"
    above = losses[0] - math.log(vocabulary)
    yield Measure("first loss above ln V, nats", above, "≤", 3, says)
    later = pairwise(losses[len(losses) // 2 :])
    rise = fmean(max(0, after - before) for before, after in later)
    says = "the loss shakes to the end: the rate is too high, or gradients add up"
    yield Measure("mean rise from point to point, nats", rise, "≤", 0.1, says)
    jumps = [losses[i] - median(losses[i - 3 : i]) for i in range(3, len(losses))]
    step = [*points][jumps.index(max(jumps)) + 3] * UPDATES
    says = f"the loss jumped near update {step:,}: were Adam's averages lost there?"
    yield Measure("largest rise of the loss, nats", max(jumps), "≤", 0.3, says)
    floor = entropy_floor(vocabulary, smoothing)
    says = "the loss is lower than label smoothing allows: was it smoothed?"
    name = f"last loss above {floor:.2f}, the floor of label smoothing, nats"
    yield Measure(name, losses[-1] - floor, "≥", 0, says)
