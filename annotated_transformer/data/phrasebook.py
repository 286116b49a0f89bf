"""Bilingual phrases made on the fly from Unicode's CLDR: the corpus that ships."""

from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from random import Random

from ..errors import UserError, nearest
from .pairs import split_of
from .phrasebook_grammar import LANGUAGES
from .phrasebook_patterns import PATTERNS, Phrase

SPLITS = ("train", "val", "test")


def meanings(split: str, seed: int = 0) -> Iterator[Phrase]:
    """Endless random phrases of one split, the same for the same seed.

    Raises: UserError for an unknown split.
    """
    if split not in SPLITS:
        raise UserError(f"unknown split {split!r}: {nearest(split, SPLITS)}")
    patterns = [each for each in PATTERNS if split == "train" or each.size >= 100]
    totals = list(accumulate(each.weight for each in patterns))

    def drawn() -> Iterator[Phrase]:
        rng = Random(f"{split} {seed}")
        while True:
            pattern = rng.choices(patterns, cum_weights=totals)[0]
            phrase = Phrase(pattern, tuple(each.draw(rng) for each in pattern.values))
            if split_of(phrase) == split:
                yield phrase

    return drawn()


def phrases(
    src: str, tgt: str, split: str = "train", seed: int = 0
) -> Iterator[tuple[str, str]]:
    """Endless pairs of one split.

    Raises: UserError for an unknown language or split, or the same language twice.
    """
    for language in (src, tgt):
        if language not in LANGUAGES:
            hint = nearest(language, LANGUAGES)
            raise UserError(f"the phrasebook lacks {language!r}: {hint}")
    if src == tgt:
        raise UserError(f"source and target are both {src!r}: choose two languages")
    return ((phrase.say(src), phrase.say(tgt)) for phrase in meanings(split, seed))


def different(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The pairs whose source has not come before."""
    seen = set()
    for pair in pairs:
        if pair[0] not in seen:
            seen.add(pair[0])
            yield pair


def phrasebook(
    src: str, tgt: str, split: str, count: int, seed: int = 0
) -> list[tuple[str, str]]:
    """`count` pairs of one split with different sources.

    Raises: UserError as `phrases`, and for a count below 1 or above a quarter of what
    the split holds.
    """
    share = 30 if split == "train" else 1
    most = sum(each.size for each in PATTERNS) * share // (4 * 32)
    if not 1 <= count <= most or count % 1:
        raise UserError(
            f"count is {count}: ask for a whole number of pairs from 1 to {most}"
        )
    return list(islice(different(phrases(src, tgt, split, seed)), count))
