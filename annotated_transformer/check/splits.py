"""A check of what decides which split a phrase of the phrasebook belongs to."""

from collections import Counter
from datetime import date, timedelta
from inspect import unwrap
from itertools import product
from random import Random

from ..data.phrasebook import SPLITS
from ..data.phrasebook_patterns import PATTERNS, Pattern, Phrase
from ..data.phrasebook_slots import CITIES
from .assertions import Wrong, require
from .parts import Part, check_of, described

DATES = [date(1900, 1, 1) + timedelta(days=4 * n) for n in range(16_000)]
SHARE = 1 / 32
SIZES = {0: "none", 1: "all"} | {1 / n: f"1 in {n}" for n in (256, 100, 64, 16, 10, 3)}


@check_of("split_of")
def split_of(part: Part) -> str:
    """`split_of(phrase)`: "train", "val" or "test", by a hash of `phrase.meaning`.

    One meaning in 32 is in val, one in test, the same ones in every process. A phrase
    of a pattern with fewer than 100 phrases, `phrase.pattern.size`, is always in train.
    """
    few = [Phrase(_patterns("date")[0], (day,)) for day in DATES[:300]]
    first = [_split(part, phrase) for phrase in few]
    again = [_split(part, Phrase(each.pattern, each.values)) for each in few]
    require(
        first == again,
        "The same phrase, asked twice, gets different splits: they mustn't hang on "
        "random numbers, or on where an object lies in memory.",
    )
    require(
        first == _with_other_salt(part, few),
        "In another process the splits are different: Python's `hash` of a text starts "
        "from a random number in each. Take a hash of the bytes alone, such as blake2b "
        "or crc32.",
    )
    for name, day in product(("day", "date"), DATES[:40]):
        _same_side(part, [Phrase(each, (day,)) for each in _patterns(name)])
    _small_ones_in_training(part)
    _shares(part)
    _both_values_count(part)
    return (
        "all wordings of a meaning are on one side, in every process, and 1 in 32 is "
        "in test"
    )


def _split(part: Part, phrase: Phrase) -> str:
    """The split of a phrase. Raises: Wrong for anything that is none."""
    found = part(phrase)
    require(
        isinstance(found, str) and found in SPLITS,
        f"split_of should return 'train', 'val' or 'test' and returns "
        f"{described(found)}.",
    )
    return str(found)


def _patterns(*names: str) -> list[Pattern]:
    """The patterns whose values are of these sets."""
    return [each for each in PATTERNS if [it.name for it in each.values] == [*names]]


def _with_other_salt(part: Part, phrases: list[Phrase]) -> list[str]:
    """The splits where the reader's `hash` starts from another number."""
    names = getattr(unwrap(part.function), "__globals__", {})
    if "hash" in names:  # one of their own
        return [_split(part, each) for each in phrases]
    names["hash"] = lambda value: hash(("another process", value))
    try:
        return [_split(part, each) for each in phrases]
    finally:
        del names["hash"]


def _same_side(part: Part, wordings: list[Phrase]) -> None:
    """Raises: Wrong if wordings of one meaning are apart."""
    sides = {_split(part, phrase): phrase for phrase in wordings}
    if len(sides) > 1:
        (one, first), (other, second), *_ = sides.items()
        raise Wrong(
            f"“{first.say('en')}” is in {one} and “{second.say('en')}” in {other}: one "
            "meaning in two wordings. Hash the meaning alone, not the sentence and not "
            "the pattern."
        )


def _small_ones_in_training(part: Part) -> None:
    """Raises: Wrong if a phrase of a small pattern is held out."""
    draw = Random(0)
    for pattern in (each for each in PATTERNS if each.size < 100):
        for _ in range(20):
            phrase = Phrase(pattern, tuple(each.draw(draw) for each in pattern.values))
            split = _split(part, phrase)
            require(
                split == "train",
                f"“{phrase.say('en')}” is in {split}, and its pattern has only "
                f"{pattern.size} phrases: patterns of fewer than 100 are for training.",
            )


def _shares(part: Part) -> None:
    """Raises: Wrong if more or less than one meaning in 32 is in val or in test."""
    pattern = _patterns("date")[0]
    found = Counter(_split(part, Phrase(pattern, (day,))) for day in DATES)
    for split in ("test", "val"):
        share = found[split] / len(DATES)
        if abs(share - SHARE) > 0.007:
            near = [text for each, text in SIZES.items() if abs(share - each) < 0.003]
            words = f", {near[0]}" if near else ""
            raise Wrong(
                f"Of {len(DATES):,} dates {share:.1%} are in {split}{words}, where 1 "
                f"in 32, {SHARE:.1%}, should be: take the hash modulo 32, and one "
                "remainder for each of the two."
            )
    pattern = _patterns("day")[0]
    year = [date(2000, 1, 1) + timedelta(days=n) for n in range(366)]
    require(
        any(_split(part, Phrase(pattern, (day,))) != "train" for day in year),
        "Of the 366 days of a year none is held out: only patterns of fewer than 100 "
        "phrases are all for training.",
    )


def _both_values_count(part: Part) -> None:
    """Raises: Wrong if one of a phrase's two values alone decides."""
    pattern = _patterns("city", "date")[0]
    table = [
        [_split(part, Phrase(pattern, (city, day))) for day in DATES[:100]]
        for city in CITIES
    ]
    for name, rows in (("city", zip(*table, strict=True)), ("date", table)):
        require(
            any(len(set(row)) > 1 for row in rows),
            f"“{Phrase(pattern, (CITIES[0], DATES[0])).say('en')}” has two values, and "
            f"the {name} makes no difference: hash all of them, as phrase.meaning has "
            "them.",
        )
