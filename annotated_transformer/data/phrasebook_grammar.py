"""How each language says the phrasebook's numbers, names, dates, times and amounts."""

import re
from collections import defaultdict
from collections.abc import Sequence
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


def worded(kind: str, language: str, *words: str, row: int = 0) -> str:
    """A pattern of the table phrasebook_words.tsv with words in its gaps."""
    return WORDS[kind][row][language].format(*words)


def typable(text: str) -> str:
    """The same text with the spaces and the apostrophe of a keyboard."""
    return text.translate({0xA0: " ", 0x202F: " ", 0x2019: "'"})


# -- numbers and things ----------------------------------------------------------------


def repaired(words: str, n: int, language: str) -> str:
    """num2words' cardinal with the accents and short forms that it misses put right."""
    if language == "it" and n > 3:
        words = re.sub("tre$", "tré", words)  # ventitré, milleventitré
    if language == "nl" and n > 1:
        words = words.replace("éé", "ee")  # één alone, honderdeen
    if language == "de":
        words = words.replace("einstausend", "eintausend")
    if language == "es":
        words = words.replace("veintiuno mil", "veintiún mil")
        words = words.replace(" uno mil", " un mil")
    return words


@cache
def round_number(n: int, language: str) -> str:
    """A number below 1,000, or a multiple of 1,000, in words by num2words."""
    return str(num2words(n, lang=language))


def number_words(n: int, language: str) -> str:
    """A whole number from 0 to 999,999 in words."""
    thousands, rest = n - n % 1000, n % 1000
    if not thousands or not rest:
        return repaired(round_number(n, language), n, language)
    joint = {"en": " and " if rest < 100 else ", ", "de": "", "it": ""}
    words = [round_number(part, language) for part in (thousands, rest)]
    return repaired(joint.get(language, " ").join(words), n, language)


@cache
def year_words(year: int, language: str) -> str:
    """A year from 1900 to 2099 as it is read aloud: "nineteen eighty-nine"."""
    if language in ("en", "de"):
        return str(num2words(year, lang=language, to="year"))
    if language == "nl" and year < 2000:
        rest = number_words(year % 100, "nl") if year % 100 else ""
        return repaired(number_words(year // 100, "nl") + "honderd" + rest, year, "nl")
    words = number_words(year, language)
    return re.sub("(cent|vingt)s$", r"\1", words) if language == "fr" else words


@cache
def ordinal_words(n: int, language: str) -> str:
    """An ordinal from 1 to 99 in words, as it stands before a masculine noun."""
    words = str(num2words(n, lang=language, to="ordinal"))
    if language == "fr":
        words = words.replace("vingtsième", "vingtième")
    if language == "es":
        words = words.replace("quadra", "cuadra")
        words = {11: "undécimo", 12: "duodécimo"}.get(n, words)
        words = re.sub("(prime|terce)ro$", r"\1r", words)  # el primer día
    return words


def ordinal(value: tuple[int, int], language: str) -> str:
    """The n-th of some things, with its article; value is (n, index of the noun)."""
    n, noun = value
    words, name = ordinal_words(n, language), WORDS["ranked noun"][noun][language]
    if language in ("de", "nl"):  # whose nouns carry their article
        article, name = name.split()
        return f"{article} {words} {name}"
    if language == "it" and words[0] in "aeiou":
        return f"l'{words} {name}"
    article = {"en": "the", "fr": "le", "es": "el", "it": "il"}[language]
    return f"{article} {words} {name}"


def things(value: tuple[int, int], language: str) -> str:
    """So many things; value is (count from 2, index of the noun)."""
    count, noun = value
    words = number_words(count, language)
    if language == "es":
        words = re.sub(" uno$", " un", re.sub("veintiuno$", "veintiún", words))
    return f"{words} {WORDS['things'][noun][language]}"


# -- names and lists -------------------------------------------------------------------


@cache
def cldr_name(kind: str, key: int | str, language: str) -> str:
    """CLDR's name of a "month", "weekday", "country" or "language"."""
    locale = Locale.parse(language)
    if kind in ("month", "weekday"):
        names = locale.months if kind == "month" else locale.days
        return typable(names["stand-alone"]["wide"][key])
    names = locale.territories if kind == "country" else locale.languages
    return typable(names[key])


@cache
def city_name(zone: str, language: str) -> str:
    """The city that stands for a time zone."""
    return typable(dates.get_timezone_location(zone, language, return_city=True))


def in_city(zone: str, language: str) -> str:
    """A city after "in"; Italian says "ad" before another a."""
    name = city_name(zone, language)
    vowel = language == "it" and name[0] == "A"
    return f"ad {name}" if vowel else worded("in city", language, name)


Style = Literal["standard", "or"]


def listed(names: Sequence[str], language: str, style: Style = "standard") -> str:
    """Names joined by "and" ("standard") or "or", with the changes before a vowel."""
    text = format_list(names, style, language)
    if language == "es":
        text = re.sub(r" y (?=h?[iIíÍ])", " e ", text)
        text = re.sub(r" o (?=[Hh]?[oOóÓ])", " u ", text)
    return re.sub(r" e (?=[eEèÈ])", " ed ", text) if language == "it" else text


def listed_names(
    kind: str, style: Style, keys: Sequence[int | str], language: str
) -> str:
    """The names of several things of a kind, as a list."""
    return listed([cldr_name(kind, key, language) for key in keys], language, style)


# -- dates -----------------------------------------------------------------------------


def in_month(month: int, language: str) -> str:
    """A month after "in"."""
    return worded("in month", language, cldr_name("month", month, language))


def on_weekday(weekday: int, language: str) -> str:
    """A weekday, from 0 for Monday, after "on" where a language has a word for that."""
    return worded("on weekday", language, cldr_name("weekday", weekday, language))


def cldr_date(style: str, day: date, language: str) -> str:
    """A date in one of CLDR's styles (full, long) or skeletons (MMMMd, yMd…)."""
    if style in ("full", "long"):
        text = typable(dates.format_date(day, style, locale=language))
    else:
        text = typable(dates.format_skeleton(style, day, locale=language))
    first = language == "fr" and day.day == 1
    return re.sub(r"(^| )1 ", r"\g<1>1er ", text) if first else text


def on_date(style: str, day: date, language: str) -> str:
    """A date after its preposition or article: "on March 3", "l'8 marzo"."""
    text = cldr_date(style, day, language)
    vowel = language == "it" and re.match("(8|11) ", text)
    return f"l'{text}" if vowel else worded("on", language, text)


def today(day: date, language: str) -> str:
    """A full date after "today is": German puts an article after the weekday."""
    text = cldr_date("full", day, language)
    return text.replace(", ", ", der ") if language == "de" else text


def day_in_words(day: date, language: str) -> str:
    """Day and month as they are read aloud: "the twenty-first of March"."""
    ranked = language in ("en", "de")
    count = (ordinal_words if ranked else number_words)(day.day, language)
    if day.day == 1:
        count = {"fr": "premier", "it": "primo"}.get(language, count)
    vowel = language == "it" and day.day in (8, 11)
    month = cldr_name("month", day.month, language)
    return (
        f"l'{count} {month}"
        if vowel
        else worded("day in words", language, count, month)
    )


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


def at_time(minute: int, language: str) -> str:
    """A time after "at"; German and Dutch add their word for the hour.

    Not for one o'clock: "la 1:30" is singular.
    """
    return worded("at time", language, clock_time(minute, language))


def clock_words(value: tuple[int, int], language: str) -> str:
    """A quarter hour in words: "half past two" is "halb drei".

    The value is (hour from 1 to 11, quarter from 0 to 3).
    """
    hour, quarter = value
    words = number_words(hour, language)
    if hour == 1:
        one = {"de": "ein" if quarter == 0 else "eins", "es": "una", "it": "una"}
        words = one.get(language, words)
    if language == "fr":
        words = "une heure" if hour == 1 else f"{words} heures"
    following = number_words(hour + 1, language)
    return worded("clock", language, words, following, row=quarter)


def framed_clock(frame: str, value: tuple[int, int], language: str) -> str:
    """A quarter hour in words after "at" or "it is"."""
    kind = f"{frame} one" if value[0] == 1 else frame
    return worded(kind, language, clock_words(value, language))


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
