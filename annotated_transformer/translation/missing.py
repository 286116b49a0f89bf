"""What a translation lacks: numbers, prices and addresses of its source."""

import re
from collections import Counter

from ..data.normalization import ADDRESS
from .numerals import NUMERALS, numerals

NUMBER = r"[0-9]+(?:[.,'’][0-9]+)*"
# A number as text has it, with what belongs to it; groups of digits with spaces,
# hyphens or slashes between, as of a telephone number or a date; a time of day.
ITEM = re.compile(
    r"(?P<groups>(?<![.,:$€£0-9])[0-9]+(?:[ ()/-]{1,2}[0-9]+)+(?![.,:]?[0-9]))"
    r"|(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?![0-9])"
    rf"|(?:(?P<sign>[$€£]) ?)?(?P<number>{NUMBER})(?:(?P<half> ?[ap]\.?m\b\.?| Uhr\b)"
    r"|(?P<scale> [mb]illion)?(?: ?(?P<unit>[$€£%]))?)"
)
ISO = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
SPACED = re.compile(r"(?<=[0-9])[ \u00a0\u202f](?=[0-9]{3}(?![0-9]))")
SIGNS = {
    "$": re.compile(r"(?i)\$|dollar|usd"),
    "€": re.compile("(?i)€|euro?"),
    "£": re.compile("(?i)£|pfund|pound|gbp"),
    "%": re.compile("(?i)%|prozent|per ?cent"),
    " million": re.compile("(?i)million|mio"),
    " billion": re.compile("(?i)milliarde|mrd|billion"),
}
POINTED = ("en", "he", "ja", "ko", "th", "zh")  # these write 3.5 where others write 3,5


def missing(
    source: str, translation: str, src_lang: str = "en", tgt_lang: str = "de"
) -> list[str]:
    """The numbers, prices and addresses that a translation lacks, as its source writes
    them.

    A number may stand in any form that has the same value in the target language:
    "1.250,50" for "1,250.50", "zwei" for "2", "14 Uhr" for "2 pm"; a telephone number
    with other spaces. Numbers that the source has in words are not looked for.
    """
    lost, rest = [], ADDRESS.sub(" ", source)
    for address in ADDRESS.findall(source):
        whole = re.compile(rf"(?<!\w){re.escape(address)}")
        translation, found = whole.subn(" ", translation, count=1)
        lost += [address] * (not found)
    if not re.search("[0-9]", rest):
        return lost
    there, joined = _values(translation, tgt_lang), _joined(translation)
    for item in ITEM.finditer(rest):
        text, signs = item[0].strip(), item.group("sign", "scale", "unit")
        if item["groups"]:
            lost += _lost_groups(text, there, joined)
        elif not _take(_ways(item, src_lang), there):
            small = re.fullmatch("[0-9]|1[0-2]", text)  # it may stand there as a word
            lost += [text] * (tgt_lang in NUMERALS or not small)
        elif tgt_lang in NUMERALS:
            signs_lost = [s for s in signs if s and not SIGNS[s].search(translation)]
            lost += [text] * bool(signs_lost)
    return lost


def _ways(item: re.Match[str], lang: str) -> list[list[str]]:
    """The values of a number or a time, in each way that it may be told."""
    point = "." if lang in POINTED else ","
    minute = [_value(item["minute"], point)] if item["hour"] else []
    value = _value(item["hour"] or item["number"], point)
    if not (item["hour"] or item["half"]) or not value.isdigit():
        return [[value]]
    hours = value, str(int(value) + 12), str(int(value) - 12)
    return [[hour, *(each for each in minute if each != "0")] for hour in hours]


def _lost_groups(text: str, there: Counter[str], joined: set[str]) -> list[str]:
    """What is lost of groups of digits, which are one number or several."""
    groups = re.findall("[0-9]+", text)
    digits, values = "".join(groups), [_value(each, ".") for each in groups]
    if len(digits) > 5 and not ISO.fullmatch(text) and digits in joined:
        return []
    if len(digits) > 5:
        return [] if _take([values], there) else [text]
    both = zip(groups, values, strict=True)
    return [group for group, value in both if not _take([[value]], there)]


def _take(ways: list[list[str]], there: Counter[str]) -> bool:
    """Whether all values of one of the ways are there; if so, they are used up."""
    for way in ways:
        if Counter(way) <= there:
            there.subtract(way)
            return True
    return False


def _value(number: str, point: str) -> str:
    """A number's value in one form: "1250.5" for "1,250.50", if `point` is "."."""
    whole, part = re.sub("[^0-9]", "", number), ""
    *_, mark, after = re.split("([^0-9])", "." + number)[1:]
    decimal = mark == point or (mark in ".," and len(after) != 3)
    if number.count(mark) == 1 and decimal:
        whole, part = whole[: -len(after)], after.rstrip("0")
    if len(whole) < 3:
        whole = whole.lstrip("0") or "0"
    return f"{whole}.{part}" if part else whole


def _values(text: str, lang: str) -> Counter[str]:
    """The values of the numbers that a text has in digits or words."""
    found: Counter[str] = Counter()
    point = "." if lang in POINTED else ","
    for number in re.findall(NUMBER, SPACED.sub("", text)):
        found[_value(number, point)] += 1
        parts = number.split(".")
        if len(parts) > 1 and all(len(each) < 3 for each in parts[:2]):  # date or time
            found.update(_value(each, point) for each in parts if each.isdigit())
    found.update(map(str, numerals(text, lang)))
    return found


def _joined(text: str) -> set[str]:
    """The groups of digits in a text, and up to six of them that signs keep apart."""
    runs = re.findall("[0-9](?:[ ()/.–-]{0,2}[0-9])*", text)
    groups = [re.findall("[0-9]+", run) for run in runs]
    return {
        "".join(run[start:end])
        for run in groups
        for start in range(len(run))
        for end in range(start + 1, start + 7)
    }
