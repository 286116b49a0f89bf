"""Whether a comparison is fair, by what its record says of each side.

Fair means: each setting was tried at several values and the winner lies inside its
grid, no further than tenfold from its neighbours, all sides had as many trials and were
tuned on the same task, all made the same passes over the data, or as many updates where
the data differ, and each has three seeds or more.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from annotated_transformer.translation.table3 import Spread

Value = float | str
FEWEST_SEEDS = 3
WIDEST = 10  # times the winner, or a tenth of it: where its neighbours may lie
HEADER = ("side", "tried", "won", "trials", "passes or updates", "seeds", "score")


@dataclass(frozen=True)
class Side:
    """What one side tried, which values won, its training and its score by seed.

    An exact side is solved, not trained: its passes are None, and without seeds it has
    one score. Several winners are those of several seeds, each of which chose anew.
    `tuned_on` is the task of the search, None without one. Bounds are values beyond
    which a setting can't go, such as a dropout of 0.
    """

    name: str
    grid: Mapping[str, tuple[Value, ...]]
    winners: tuple[Mapping[str, Value], ...]
    trials: int
    passes: float | None
    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    tuned_on: str | None
    bounds: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Several sides, and the score by which they are compared."""

    name: str
    score: str
    sides: tuple[Side, ...]
    unit: str = "passes"  # over the data; or updates, or seconds


def unfair(comparison: Comparison) -> list[str]:
    """Every reason against a comparison; each names the side and the setting."""
    reasons = [] if len(comparison.sides) > 1 else ["there is one side alone"]
    for side in comparison.sides:
        reasons += [*_grid(side), *_edges(side), *_seeds(side)]
    kinds = {"trials": "trials", "tasks of tuning": "tuned_on"}
    for kind, name in (kinds | {comparison.unit: "passes"}).items():
        values = {side.name: getattr(side, name) for side in comparison.sides}
        reasons += _difference(kind, values)
    return reasons


def _grid(side: Side) -> Iterator[str]:
    """Settings that had one value alone."""
    untuned = {name: v for name, v in side.grid.items() if len(set(v)) < 2}
    if len(untuned) == len(side.grid):
        yield f"{side.name} was not tuned"
        return
    for setting, values in untuned.items():
        yield f"{side.name}'s {setting} was not tuned: {_words(values)} alone was tried"


def _edges(side: Side) -> Iterator[str]:
    """Winners that lie on the edge of their grid, or outside it."""
    for setting, values in side.grid.items():
        for value in _distinct(side, setting):
            said = f"{side.name}'s {setting} {_words([value])} is"
            if value not in values:
                yield f"{said} not among those that were tried"
            elif value in side.bounds.get(setting, ()) or len(set(values)) < 2:
                continue
            elif not any(isinstance(each, str) for each in values):
                ends = {min(values): "smallest", max(values): "largest"}
                if value in ends:
                    yield f"{said} the {ends[value]} that was tried"
                else:
                    for each in _far(value, values):
                        yield f"{said} alone: {_words([each])} was tried next to it"


def _far(value: Any, values: Sequence[Any]) -> Iterator[Value]:
    """The neighbours of a number that are far from it; zero is no distance away."""
    beside = max(v for v in values if v < value), min(v for v in values if v > value)
    for each in beside:
        if each * value > 0 and max(each / value, value / each) > 1.01 * WIDEST:
            yield each


def _seeds(side: Side) -> Iterator[str]:
    """Too few seeds, or scores that are not one for each."""
    if side.passes is None and not side.seeds:
        expected = 1
    else:
        expected = len(set(side.seeds))
        if expected < FEWEST_SEEDS:
            plural = "s" * (expected != 1)
            yield f"{side.name} has {expected} seed{plural}, fewer than {FEWEST_SEEDS}"
    if len(side.scores) != expected:
        yield f"{side.name} has {len(side.scores)} scores where {expected} belong"


def _difference(kind: str, values: Mapping[str, Value | None]) -> Iterator[str]:
    """The reason, if this value isn't the same for all sides that have it."""
    there = {name: value for name, value in values.items() if value is not None}
    if len(set(there.values())) > 1:
        told = ", ".join(f"{name} {_words([value])}" for name, value in there.items())
        yield f"{kind} differ: {told}"


# -- a table ---------------------------------------------------------------------------


def table(comparison: Comparison) -> list[list[str]]:
    """A row for each side under HEADER; scores as mean ± half of a 95 % interval."""
    return [
        [
            side.name.removeprefix("the "),
            _settings(side.grid),
            _settings({name: _distinct(side, name) for name in side.grid}),
            str(side.trials),
            "exact" if side.passes is None else _count(side.passes),
            ", ".join(map(str, side.seeds)) or "none",
            score(side.scores),
        ]
        for side in comparison.sides
    ]


def score(scores: tuple[float, ...]) -> str:
    """The mean of some scores, and half the width of its 95 % t-interval if known."""
    half = Spread.of({"": scores}).half_width(len(scores))
    return f"{mean(scores):.4g}" + (f" ± {half:.2g}" if math.isfinite(half) else "")


def _distinct(side: Side, setting: str) -> list[Value]:
    """The values of a setting that won, each once."""
    return list(dict.fromkeys(each[setting] for each in side.winners))


def _settings(values: Mapping[str, Sequence[Value]]) -> str:
    return "; ".join(f"{name} {_words(each)}" for name, each in values.items())


def _count(passes: float) -> str:
    return f"{passes:,.0f}" if passes >= 1_000 else f"{passes:.4g}"


def _words(values: Sequence[Value]) -> str:
    return ", ".join(v if isinstance(v, str) else f"{v:,.6g}" for v in values)
