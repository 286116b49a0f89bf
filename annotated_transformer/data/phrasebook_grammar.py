"""How each language says the phrasebook's numbers, names, dates, times and amounts."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date, time, timedelta
from functools import cache
from typing import Any, Literal

from babel import Locale, dates
from babel.lists import format_list
from babel.numbers import format_currency, format_percent
from babel.units import format_unit
from num2words import num2words

from .text_files import read_table

LANGUAGES = ("en", "de", "fr", "es", "it", "nl")
WORDS: dict[str, list[dict[str, str]]] = defaultdict(list)  # by kind
for _row in read_table("phrasebook_words.tsv"):
    WORDS[_row["kind"]].append(_row)

# What a language changes where words meet, and what num2words and CLDR get wrong.
_BEFORE_A_VOWEL = {"^il (?=[aeiou]|(8|11) )": "l'", "^a (?=A)": "ad "}
CHANGES = {
    ("cardinal", "de"): {"einstausend": "eintausend"},
    ("cardinal", "es"): {"veintiuno mil": "veintiún mil", " uno mil": " un mil"},
    ("cardinal", "it"): {"(?<!^)tre$": "tré"},  # ventitré
    ("cardinal", "nl"): {"(?<!^)éé|éé(?!n$)": "ee"},  # één alone, honderdeen
    ("year", "fr"): {"(cent|vingt)s$": r"\1"},
    ("ordinal", "fr"): {"vingtsième": "vingtième"},
    ("ordinal", "es"): {
        "quadra": "cuadra",
        "^décimo ?primero$": "undécimo",
        "^décimo ?segundo$": "duodécimo",
        "(prime|terce)ro$": r"\1r",  # el primer día
    },
    ("things", "es"): {"^veintiuno ": "veintiún ", " uno ": " un "},
    ("ranked", "it"): _BEFORE_A_VOWEL,
    ("in city", "it"): _BEFORE_A_VOWEL,
    ("list", "es"): {" y (?=h?[iIíÍ])": " e ", " o (?=[Hh]?[oOóÓ])": " u "},
    ("list", "it"): {" e (?=[eEèÈ])": " ed "},
    ("date", "fr"): {"(^| )1 ": r"\g<1>1er "},
    ("on", "it"): _BEFORE_A_VOWEL,
    ("today is", "de"): {", ": ", der "},
    ("day", "fr"): {"^un$": "premier"},
    ("day", "it"): {"^uno$": "primo"},
    ("day in words", "it"): _BEFORE_A_VOWEL,
    ("clock", "de"): {"^eins Uhr": "ein Uhr"},
    ("clock", "fr"): {"^un heures": "une heure"},
    ("clock", "es"): {"^uno": "una"},
    ("clock", "it"): {"^uno": "una"},
    ("at", "es"): {"las una": "la una"},
    ("at", "it"): {"alle una": "all'una"},
    ("it is", "es"): {"son las una": "es la una"},
    ("it is", "it"): {"sono le una": "è l'una"},
}


def corrected(words: str, kind: str, language: str) -> str:
    """Words of a kind with the changes that a language makes there."""
    for pattern, replacement in CHANGES.get((kind, language), {}).items():
        words = re.sub(pattern, replacement, words)
    return words


def worded(kind: str, language: str, *words: str, row: int = 0) -> str:
    """A pattern of the table phrasebook_words.tsv with words in its gaps."""
    return corrected(WORDS[kind][row][language].format(*words), kind, language)


Say = Callable[[Any, str], str]  # what a language says for a value


def framed(kind: str, say: Say) -> Say:
    """What `say` says, in the table's pattern of a kind."""
    return lambda value, language: worded(kind, language, say(value, language))


def typable(text: str) -> str:
    """The same text with the spaces and the apostrophe of a keyboard."""
    return text.translate({0xA0: " ", 0x202F: " ", 0x2019: "'"})


# -- numbers and things ----------------------------------------------------------------


@cache
def round_number(n: int, language: str) -> str:
    """A number below 1,000, or a multiple of 1,000, in words by num2words."""
    return str(num2words(n, lang=language))


def number_words(n: int, language: str) -> str:
    """A whole number from 0 to 999,999 in words."""
    thousands, rest = n - n % 1000, n % 1000
    joint = {"en": " and " if rest < 100 else ", ", "de": "", "it": ""}
    parts = [thousands, rest] if thousands and rest else [n]
    words = [round_number(part, language) for part in parts]
    return corrected(joint.get(language, " ").join(words), "cardinal", language)


@cache
def year_words(year: int, language: str) -> str:
    """A year from 1900 to 2099 as it is read aloud: "nineteen eighty-nine"."""
    if language in ("en", "de"):
        return str(num2words(year, lang=language, to="year"))
    if language == "nl" and year < 2000:
        rest = number_words(year % 100, "nl") if year % 100 else ""
        return corrected(f"negentienhonderd{rest}", "cardinal", "nl")
    return corrected(number_words(year, language), "year", language)


@cache
def ordinal_words(n: int, language: str) -> str:
    """An ordinal from 1 to 99 in words, as it stands before a masculine noun."""
    words = str(num2words(n, lang=language, to="ordinal"))
    return corrected(words, "ordinal", language)


def ordinal(value: tuple[int, int], language: str) -> str:
    """The n-th of some things, with its article; value is (n, row of the table)."""
    n, row = value
    return worded("ranked", language, ordinal_words(n, language), row=row)


def things(value: tuple[int, int], language: str) -> str:
    """So many things; value is (count from 2, row of the table)."""
    count, row = value
    return worded("things", language, number_words(count, language), row=row)


# -- names and lists -------------------------------------------------------------------


@cache
def cldr_name(kind: str, key: int | str, language: str) -> str:
    """CLDR's name of a "month", "weekday", "country" or "language"."""
    locale = Locale.parse(language)
    names = {
        "month": locale.months["stand-alone"]["wide"],
        "weekday": locale.days["stand-alone"]["wide"],
        "country": locale.territories,
        "language": locale.languages,
    }
    return typable(names[kind][key])


@cache
def city_name(zone: str, language: str) -> str:
    """The city that stands for a time zone."""
    return typable(dates.get_timezone_location(zone, language, return_city=True))


Style = Literal["standard", "or"]


def listed(names: Sequence[str], language: str, style: Style = "standard") -> str:
    """Names joined by "and" ("standard") or "or", with the changes before a vowel."""
    return corrected(format_list(names, style, language), "list", language)


def listed_names(
    kind: str, style: Style, keys: Sequence[int | str], language: str
) -> str:
    """The names of several things of a kind, as a list."""
    return listed([cldr_name(kind, key, language) for key in keys], language, style)


# -- dates -----------------------------------------------------------------------------


def cldr_date(style: str, day: date, language: str) -> str:
    """A date in one of CLDR's styles (full, long) or skeletons (MMMMd, yMd…)."""
    if style in ("full", "long"):
        text = dates.format_date(day, style, locale=language)
    else:
        text = dates.format_skeleton(style, day, locale=language)
    return corrected(typable(text), "date", language)


def day_in_words(day: date, language: str) -> str:
    """Day and month as they are read aloud: "the twenty-first of March"."""
    ranked = language in ("en", "de")
    count = (ordinal_words if ranked else number_words)(day.day, language)
    month = cldr_name("month", day.month, language)
    return worded("day in words", language, corrected(count, "day", language), month)


def date_in_words(day: date, language: str) -> str:
    """Day, month and year as they are read aloud."""
    year = year_words(day.year, language)
    return worded("date in words", language, day_in_words(day, language), year)


def weekday_span(value: tuple[int, int], language: str) -> str:
    """From one weekday to another, both included."""
    names = (cldr_name("weekday", each, language) for each in value)
    return worded("weekdays", language, *names)


# -- times -----------------------------------------------------------------------------


def clock_time(minute: int, language: str) -> str:
    """A minute of the day by the clock, with 12 hours in English and 24 elsewhere."""
    at = time(*divmod(minute, 60))
    return typable(dates.format_time(at, "short", locale=language))


def clock_words(value: tuple[int, int], language: str) -> str:
    """A quarter hour in words: "half past two" is "halb drei".

    The value is (hour from 1 to 11, quarter from 0 to 3).
    """
    hour, quarter = value
    hours = (number_words(each, language) for each in (hour, hour + 1))
    return worded("clock", language, *hours, row=quarter)


def relative(sign: int, value: tuple[Any, int], language: str) -> str:
    """So many units from now (sign 1) or before now (sign -1): "in 3 days"."""
    unit, count = value
    gap = timedelta(seconds=sign * count * dict(dates.TIMEDELTA_UNITS)[unit])
    return typable(
        dates.format_timedelta(gap, unit, 1e9, add_direction=True, locale=language)
    )


# -- amounts ---------------------------------------------------------------------------


def measure(value: tuple[str, int], language: str) -> str:
    """An amount with its unit; value is (CLDR's name of the unit, tenths)."""
    unit, tenths = value
    amount = tenths // 10 if tenths % 10 == 0 else tenths / 10
    return typable(format_unit(amount, unit, locale=language))


def money(value: tuple[str, int], language: str) -> str:
    """A whole amount with the name of its currency."""
    code, amount = value
    style: dict[str, Any] = {"currency_digits": False, "format_type": "name"}
    return typable(format_currency(amount, code, "0", language, **style))


def price(value: tuple[str, int], language: str) -> str:
    """An amount with the sign of its currency; value is (code, hundredths)."""
    code, cents = value
    return typable(format_currency(cents / 100, code, locale=language))


def percent(tenths: int, language: str) -> str:
    """A percentage with at most one decimal."""
    share = tenths / 1000
    return typable(format_percent(share, locale=language, decimal_quantization=False))
