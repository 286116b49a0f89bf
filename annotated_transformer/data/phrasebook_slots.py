"""The gaps of the phrasebook's patterns: what may fill each, and how it is said."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache, partial
from math import perm, prod
from random import Random

from . import phrasebook_grammar as grammar
from .phrasebook_grammar import framed
from .text_files import read_table


@dataclass(frozen=True)
class Values:
    """What a slot can hold: how many values there are, and how to draw one."""

    name: str
    size: int
    draw: Callable[[Random], Hashable]


def choices(name: str, *axes: Sequence[Hashable]) -> Values:
    """One entry from each axis, equally likely; a single axis gives bare entries."""

    def draw(rng: Random) -> Hashable:
        picked = tuple(axis[int(rng.random() * len(axis))] for axis in axes)
        return picked if len(axes) > 1 else picked[0]

    return Values(name, prod(map(len, axes)), draw)


@dataclass(frozen=True)
class Slot:
    """A gap in a pattern: what may fill it, and how each language says that."""

    values: Values
    say: grammar.Say


def magnitudes(name: str, digits: int) -> Values:
    """Whole numbers of 1 to `digits` digits: their number is drawn first."""

    def draw(rng: Random) -> int:
        length = 1 + int(rng.random() * digits)
        low = 10 ** (length - 1) if length > 1 else 0
        return low + int(rng.random() * (10**length - low))

    return Values(name, 10**digits, draw)


def selections(name: str, items: Sequence[Hashable]) -> Values:
    """Two or three different items, in any order."""

    def draw(rng: Random) -> tuple[Hashable, ...]:
        return tuple(rng.sample(items, 2 if rng.random() < 0.5 else 3))

    return Values(name, perm(len(items), 2) + perm(len(items), 3), draw)


# CLDR's keys of what it names.
KEYS = {row["kind"]: row["keys"].split() for row in read_table("phrasebook_keys.tsv")}
COUNTRIES, NAMED_LANGUAGES, CITIES = KEYS["country"], KEYS["language"], KEYS["city"]

_COUNTS = range(2, 100)
_RANKED, _THINGS = (range(len(grammar.WORDS[k])) for k in ("ranked", "things"))
_TENTHS, _INTEGERS = range(1, 1000), range(20, 10_000, 10)
_DAYS = [date.fromordinal(n) for n in range(693_596, 766_645)]  # 1900 to 2099
_FIRSTS = [day for day in _DAYS if day.day == 1]

_DATE = choices("date", _DAYS)
_DAY = choices("day", [day for day in _DAYS if day.year == 2000])
_YEAR = choices("year", range(1900, 2100))
_MONTH, _WEEKDAY = choices("month", range(1, 13)), choices("weekday", range(7))
_TWO_DAYS = Values("weekdays", 42, lambda rng: tuple(rng.sample(range(7), 2)))
_CLOCK = choices("clock", range(1, 12), range(4))
_SPAN = choices("span", KEYS["span"], range(1, 60))
_CITY = choices("city", CITIES)


def in_digits(year: int, language: str) -> str:
    """A year in digits, which is the same in every language."""
    return str(year)


def amounts(unit: str, numbers: range) -> Slot:
    """A slot for amounts of one unit."""
    return Slot(choices(unit, [unit], numbers), grammar.measure)


def lists(
    name: str, kind: str, items: Sequence[Hashable], style: grammar.Style
) -> Slot:
    """A slot for two or three names, joined by "and" or by "or"."""
    return Slot(selections(name, items), partial(grammar.listed_names, kind, style))


_full_date = partial(grammar.cldr_date, "full")
_long_date = partial(grammar.cldr_date, "long")
_short_day = partial(grammar.cldr_date, "MMMMd")
_month_name = partial(grammar.cldr_name, "month")
_weekday_name = partial(grammar.cldr_name, "weekday")

SLOTS: dict[str, Slot] = {
    # numbers and things
    "number": Slot(magnitudes("number", 6), grammar.number_words),
    "count": Slot(choices("count", _COUNTS), grammar.number_words),
    "ordinal": Slot(choices("ordinal", range(1, 100), _RANKED), grammar.ordinal),
    "things": Slot(choices("things", _COUNTS, _THINGS), grammar.things),
    # dates
    "full_date": Slot(_DATE, _full_date),
    "long_date": Slot(_DATE, _long_date),
    "numeric_date": Slot(_DATE, partial(grammar.cldr_date, "yMd")),
    "on_date": Slot(_DATE, framed("on", _long_date)),
    "today": Slot(_DATE, framed("today is", _full_date)),
    "date_in_words": Slot(_DATE, grammar.date_in_words),
    "day": Slot(_DAY, _short_day),
    "on_day": Slot(_DAY, framed("on", _short_day)),
    "day_in_words": Slot(_DAY, grammar.day_in_words),
    "month_year": Slot(
        choices("month and year", _FIRSTS), partial(grammar.cldr_date, "yMMMM")
    ),
    "quarter": Slot(
        choices("quarter", _FIRSTS[::3]), partial(grammar.cldr_date, "yQQQQ")
    ),
    "month": Slot(_MONTH, _month_name),
    "in_month": Slot(_MONTH, framed("in month", _month_name)),
    "weekday": Slot(_WEEKDAY, _weekday_name),
    "on_weekday": Slot(_WEEKDAY, framed("on weekday", _weekday_name)),
    "weekday_span": Slot(_TWO_DAYS, grammar.weekday_span),
    "year": Slot(_YEAR, in_digits),
    "recent_year": Slot(choices("recent year", range(1950, 2026)), in_digits),
    "year_in_words": Slot(_YEAR, grammar.year_words),
    # times
    "time": Slot(choices("time", range(1440)), grammar.clock_time),
    "at_time": Slot(  # not at one o'clock: "la 1:30" is singular
        choices("time", range(360, 1380)), framed("at time", grammar.clock_time)
    ),
    "at_clock": Slot(_CLOCK, framed("at", grammar.clock_words)),
    "it_is_clock": Slot(_CLOCK, framed("it is", grammar.clock_words)),
    "hence": Slot(_SPAN, partial(grammar.relative, 1)),
    "ago": Slot(_SPAN, partial(grammar.relative, -1)),
    # amounts
    "percent": Slot(choices("percent", range(1, 1001)), grammar.percent),
    "measure": Slot(
        choices("measure", KEYS["unit"], [*_TENTHS, *_INTEGERS]), grammar.measure
    ),
    "money": Slot(choices("money", KEYS["currency"], range(2, 1000)), grammar.money),
    "price": Slot(
        choices("price", KEYS["currency with a sign"], range(1, 100_000)), grammar.price
    ),
    "kilograms": amounts("mass-kilogram", range(11, 1000)),
    "metres": amounts("length-meter", _INTEGERS),
    "distance": amounts("length-kilometer", _INTEGERS),
    "celsius": amounts("temperature-celsius", range(20, 410, 10)),
    "minutes": amounts("duration-minute", range(20, 2000, 10)),
    # names and lists
    "country": Slot(
        choices("country", COUNTRIES), partial(grammar.cldr_name, "country")
    ),
    "city": Slot(_CITY, grammar.city_name),
    "in_city": Slot(_CITY, framed("in city", grammar.city_name)),
    "language": Slot(
        choices("language", NAMED_LANGUAGES), partial(grammar.cldr_name, "language")
    ),
    "countries": lists("countries", "country", COUNTRIES, "standard"),
    "countries_or": lists("either country", "country", COUNTRIES, "or"),
    "languages": lists("languages", "language", NAMED_LANGUAGES, "standard"),
    "weekdays": lists("weekday list", "weekday", range(7), "standard"),
    "months": lists("month list", "month", range(1, 13), "standard"),
}


@lru_cache(maxsize=1 << 16)
def say(slot: str, value: Hashable, language: str) -> str:
    """What a language puts into a slot for a value."""
    return SLOTS[slot].say(value, language)
