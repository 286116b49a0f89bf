"""Bilingual phrases made on the fly from Unicode's CLDR: the corpus that ships."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, islice
from math import prod
from random import Random
from string import Formatter

from ..errors import UserError, nearest
from .phrasebook_grammar import LANGUAGES
from .phrasebook_slots import SLOTS, Values, say
from .text_files import read_table


@dataclass(frozen=True, eq=False)
class Pattern:
    """A phrase with gaps, in every language, and its weight when phrases are drawn.

    `pieces` are its texts cut at the gaps: (plain words, slot that follows or None).
    """

    topic: str
    weight: float
    texts: dict[str, str]
    pieces: dict[str, list[tuple[str, str | None]]]
    values: tuple[Values, ...]

    @property
    def size(self) -> int:
        """How many different phrases it holds."""
        return prod(each.size for each in self.values)


def parse_pattern(row: dict[str, str]) -> Pattern:
    """One row of phrasebook.tsv. All languages must have gaps for the same values."""
    texts = {language: row[language] for language in LANGUAGES}
    pieces, slots = {}, {}
    for language, text in texts.items():
        parts = [(words, slot) for words, slot, *_ in Formatter().parse(text)]
        values = [SLOTS[slot].values for _, slot in parts if slot]
        pieces[language] = parts
        slots[language] = {each.name: each for each in values}
    assert all(each.keys() == slots["en"].keys() for each in slots.values()), texts
    gaps = tuple(slots["en"][name] for name in sorted(slots["en"]))
    return Pattern(row["topic"], float(row["weight"]), texts, pieces, gaps)


PATTERNS = tuple(map(parse_pattern, read_table("phrasebook.tsv")))


@dataclass(frozen=True)
class Phrase:
    """A pattern with a value for each gap, before any language says it."""

    pattern: Pattern
    values: tuple[Hashable, ...]

    @property
    def by_name(self) -> dict[str, Hashable]:
        """The values by the names of their sets."""
        names = (each.name for each in self.pattern.values)
        return dict(zip(names, self.values, strict=True))

    @property
    def meaning(self) -> str:
        """The values by name, without the pattern: what decides the split."""
        return ", ".join(f"{name} {value}" for name, value in self.by_name.items())

    def parts(self, language: str) -> Iterator[tuple[str, str]]:
        """What a language says, piece by piece: (words, name of the value in them)."""
        values = self.by_name
        for words, slot in self.pattern.pieces[language]:
            yield words, ""
            if slot:
                name = SLOTS[slot].values.name
                yield say(slot, values[name], language), name

    def say(self, language: str) -> str:
        """The phrase in one language; a sentence starts with a capital."""
        text = "".join(words for words, _ in self.parts(language))
        sentence = self.pattern.texts[language].endswith((".", "?"))
        return text[0].upper() + text[1:] if sentence else text


SPLITS = ("train", "val", "test")


def split_of(phrase: Phrase) -> str:
    """The split of a phrase, by a hash of its meaning.

    Patterns of fewer than 100 phrases are for training.
    """
    if phrase.pattern.size < 100:
        return "train"
    meaning = phrase.meaning.encode()
    number = blake2b(meaning, digest_size=1, person=b"phrasebook 12").digest()[0]
    return {0: "test", 1: "val"}.get(number % 32, "train")


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
