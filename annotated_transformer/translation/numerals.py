"""Numbers in words, German and English."""

import re
from collections.abc import Iterator
from itertools import product

TIMES = {"hundert": 100, "tausend": 1000}


def _german() -> dict[str, int]:
    small = (
        "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn"
    )
    teens = "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
    tens = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
    words = {word: value for value, word in enumerate(f"{small} {teens}".split())}
    units = [(word, value) for word, value in words.items() if 0 < value < 10]
    for (word, unit), (value, ten) in product(units, enumerate(tens, start=2)):
        words |= {ten: 10 * value, f"{word}und{ten}": 10 * value + unit}
    return words | TIMES | {"erst": 1, "dritt": 3, "siebt": 7}


def _english() -> dict[str, int]:
    small = "zero one two three four five six seven eight nine ten eleven twelve"
    teens = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    words = {word: value for value, word in enumerate(f"{small} {teens}".split())}
    words |= {"first": 1, "once": 1, "second": 2, "twice": 2, "third": 3, "fifth": 5}
    words |= {"eighth": 8, "ninth": 9, "twelfth": 12, "twentieth": 20}
    units = [(word, value) for word, value in words.items() if 0 < value < 10]
    for (word, unit), (value, ten) in product(units, enumerate(tens, start=2)):
        words |= {ten: 10 * value, f"{ten}-{word}": 10 * value + unit}
    return words | {"hundred": 100, "thousand": 1000}


NUMERALS = {"de": _german(), "en": _english()}
ENDINGS = {"de": r"(hundert|tausend)?\w*", "en": "()(?:s|th)?"}
WORDS = {
    lang: re.compile(f"({'|'.join(sorted(words, key=len)[::-1])}){ENDINGS[lang]}")
    for lang, words in NUMERALS.items()
}


def numerals(text: str, lang: str) -> Iterator[int]:
    """The numbers that a text has in words, endings and all; none in a language that
    isn't known here.
    """
    if lang not in WORDS:
        return
    for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)?", text.lower()):
        if known := WORDS[lang].fullmatch(word):
            value, times = NUMERALS[lang][known[1]], TIMES.get(known[2] or "", 1)
            if times == 1 or value < times:  # "tausendtausend" is no number
                yield value * times
