"""Whether a comparison is fair, by what its record says of each side.

Fair means: each setting was tried at several values and the winner lies inside its
grid, beside its neighbours and not beyond tenfold, all sides had as many trials, of one
length, on the same task, which isn't the test, by a seed that isn't scored; all made
the same passes over the data, or as many updates where the data differ, on batches of
one size, and each has three seeds or more. What else a reader should know is a remark:
sizes that differ, trials shorter than the run, and grids of three won by their middle.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from annotated_transformer.translation.table3 import Spread

Value = float | str
FEWEST_SEEDS = 3
NEAREST, WIDEST = 1.1, 10  # times the winner, or its share: where its neighbours lie
APART = 1.05  # times as many parameters, or the length of a trial: told beyond
# The values beyond which a setting can't go by its nature; a winner may lie there.
BOUNDS = {"dropout": 0, "inverse": 0, "n-grams": 1, "order": 0, "penalty": 0}
TEST = "the test"  # as the task of a search: what it was scored by
TOLD = "side", "tried", "won", "trials", "passes or updates", "seeds", "score"
HEADER = (*TOLD, "of a trial", "parameters", "batch", "seconds a run")


@dataclass(frozen=True)
class Side:
    """What one side tried, which values won, its training and its score by seed.

    An exact side is solved, not trained: its passes are None, and without seeds it has
    one score. Several winners are those of several seeds, each of which chose anew.
    `tuned_on` is the task of the search, None without one, and `trial` the length of a
    trial, as passes. A batch is the tokens or rows of an update; seconds are a
    run's mean, on machines that the record names. None: not known.
    """

    name: str
    grid: Mapping[str, tuple[Value, ...]]
    winners: tuple[Mapping[str, Value], ...]
    trials: int
    passes: float | None
    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    tuned_on: str | None
    tuning_seeds: tuple[int, ...] = ()
    trial: float | None = None
    parameters: float | None = None
    batch: float | None = None
    seconds: float | None = None


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
    kinds = {"trials": "trials", "tasks of tuning": "tuned_on", "batches": "batch"}
    kinds |= {f"{comparison.unit} of a trial": "trial", comparison.unit: "passes"}
    for kind, name in kinds.items():
        values = _known(comparison, name).items()
        if len({value for _, value in values}) > 1:
            told = ", ".join(f"{side} {_words([value])}" for side, value in values)
            reasons.append(f"{kind} differ: {told}")
    return reasons


def remarks(comparison: Comparison) -> list[str]:
    """What is no reason against a comparison, and should be known of it."""
    found, sizes = [], _known(comparison, "parameters")
    few, most = (end(sizes, key=sizes.get, default="") for end in (min, max))
    if sizes and sizes[most] > APART * sizes[few]:
        told = (f"{sizes[each]:,} ({each})" for each in (few, most))
        found.append("parameters: from {} to {}".format(*told))
    for side in comparison.sides:
        if side.trial and side.passes and side.passes > APART * side.trial:
            told = f"{_count(side.trial)} of {_count(side.passes)} {comparison.unit}"
            found.append(f"{side.name}'s trials were shorter than its runs: {told}")
    threes = [
        sorted(set(values))[1:2] == _distinct(side, setting)
        for side in comparison.sides
        for setting, values in side.grid.items()
        if len(set(values)) == 3 and not _words_of(values)
    ]
    if threes and all(threes):
        found.append("each grid of three values was won by its middle")
    return found


def _grid(side: Side) -> Iterator[str]:
    """Settings that had one value alone, and numbers that pass for words."""
    untuned = {name: v for name, v in side.grid.items() if len(set(v)) < 2}
    if len(untuned) == len(side.grid):
        yield f"{side.name} was not tuned"
        return
    if all(name in untuned or _words_of(v) for name, v in side.grid.items()):
        yield f"{side.name} was tuned in words alone, in no number"
    for setting, values in side.grid.items():
        said, words = f"{side.name}'s {setting}", _words_of(values)
        if setting in untuned:
            yield f"{said} was not tuned: {_words(values)} alone was tried"
        if words and len(words) < len(values) or any(map(str.isdigit, "".join(words))):
            yield f"{said} has numbers as words: {_words(values)}"


def _edges(side: Side) -> Iterator[str]:
    """Winners that lie on the edge of their grid, or outside it."""
    for setting, values in side.grid.items():
        for value in _distinct(side, setting):
            said = f"{side.name}'s {setting} {_words([value])} is"
            if value not in values:
                yield f"{said} not among those that were tried"
            elif _words_of(values) or len(set(values)) < 2:
                continue
            elif value == max(values):
                yield f"{said} the largest that was tried"
            elif value == min(values) != BOUNDS.get(setting):
                yield f"{said} the smallest that was tried"
            else:
                for each in _far(setting, value, values):
                    yield f"{said} alone: {_words([each])} was tried next to it"


def _far(setting: str, value: Any, values: Sequence[Any]) -> Iterator[Value]:
    """The neighbours of a number that are far from it, or as good as equal.

    Zero is no distance away where it is a bound, or where values are of both signs.
    """
    below, above = (v for v in values if v < value), (v for v in values if v > value)
    for each in [*sorted(below)[-1:], min(above)]:
        if each * value > 0:
            if not NEAREST < max(each / value, value / each) < 1.01 * WIDEST:
                yield each
        elif min(values) >= 0 and BOUNDS.get(setting) != 0:
            yield each


def _seeds(side: Side) -> Iterator[str]:
    """Too few seeds, scores that are not one for each, a search by what is scored."""
    expected, solved = len(set(side.seeds)), side.passes is None and not side.seeds
    if expected < FEWEST_SEEDS and not solved:
        plural = "s" * (expected != 1)
        yield f"{side.name} has {expected} seed{plural}, fewer than {FEWEST_SEEDS}"
    expected += solved  # one score
    if len(side.scores) != expected:
        yield f"{side.name} has {len(side.scores)} scores where {expected} belong"
    for seed in sorted({*side.tuning_seeds} & {*side.seeds}):
        yield f"{side.name}'s seed {seed} chose its settings and is scored"
    if side.tuned_on == TEST:
        yield f"{side.name} was tuned on the test by which it is scored"


def _known(comparison: Comparison, name: str) -> dict[str, Any]:
    """A value of all sides that have it."""
    found = {side.name: getattr(side, name) for side in comparison.sides}
    return {side: value for side, value in found.items() if value is not None}


def table(comparison: Comparison) -> list[list[str]]:
    """A row for each side under HEADER; scores as mean ± half of a 95 % interval."""
    return [
        [
            side.name.removeprefix("the "),
            _settings(side.grid),
            _settings({name: _distinct(side, name) for name in side.grid}),
            str(side.trials),
            _count(side.passes) or "exact",
            ", ".join(map(str, side.seeds)) or "none",
            score(side.scores),
            *map(_count, (side.trial, side.parameters, side.batch, side.seconds)),
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


def _count(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.4g}"


def _words_of(values: Sequence[Value]) -> list[str]:
    return [each for each in values if isinstance(each, str)]


def _words(values: Sequence[Value]) -> str:
    return ", ".join(v if isinstance(v, str) else f"{v:,.6g}" for v in values)
