"""Phrases with gaps in six languages, and the values that fill the gaps."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from math import prod
from string import Formatter

from .phrasebook_grammar import LANGUAGES
from .phrasebook_slots import SLOTS, Values, say
from .text_files import read_table


@dataclass(frozen=True, eq=False)
class Pattern:
    """A phrase with gaps, in every language, and its weight when phrases are drawn."""

    topic: str
    weight: float
    texts: dict[str, str]
    values: tuple[Values, ...]

    @property
    def size(self) -> int:
        """How many different phrases it holds."""
        return prod(each.size for each in self.values)


@cache
def gaps(text: str) -> list[str]:
    """The slots of a pattern's text, in their order."""
    return [slot for _, slot, *_ in Formatter().parse(text) if slot]


def parse_pattern(row: dict[str, str]) -> Pattern:
    """One row of phrasebook.tsv. All languages must have gaps for the same values."""
    texts = {language: row[language] for language in LANGUAGES}
    sets = [{SLOTS[slot].values for slot in gaps(text)} for text in texts.values()]
    assert all(each == sets[0] for each in sets), texts
    values = tuple(sorted(sets[0], key=lambda each: each.name))
    return Pattern(row["topic"], float(row["weight"]), texts, values)


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

    def say(self, language: str) -> str:
        """The phrase in one language; a sentence starts with a capital."""
        pattern, values = self.pattern.texts[language], self.by_name
        said = {
            slot: say(slot, values[SLOTS[slot].values.name], language)
            for slot in gaps(pattern)
        }
        text = pattern.format(**said)
        return text[0].upper() + text[1:] if pattern.endswith((".", "?")) else text
