"""Phrases with gaps in six languages, and the values that fill the gaps."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import prod
from string import Formatter

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
