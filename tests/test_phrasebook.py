"""The phrasebook: one meaning in six languages, held-out ones never in training, and a
source has one target.
"""

import hashlib
import re
from datetime import date
from itertools import islice

import pytest

from annotated_transformer.data.pairs import split_of
from annotated_transformer.data.phrasebook import SPLITS, meanings, phrasebook
from annotated_transformer.data.phrasebook_grammar import (
    LANGUAGES,
    cldr_date,
    clock_words,
    day_in_words,
    listed,
    number_words,
    ordinal,
    things,
    year_words,
)
from annotated_transformer.data.phrasebook_patterns import PATTERNS, Phrase
from annotated_transformer.data.phrasebook_slots import (
    COUNTRIES,
    NAMED_LANGUAGES,
    say,
)
from annotated_transformer.errors import UserError


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[dict[str, str]]]:
    """Each split's phrases in every language; more of training than of the held-out
    splits, to find a leak.
    """
    sizes = {"train": 6_000, "val": 600, "test": 600}
    return {
        split: [
            {language: each.say(language) for language in LANGUAGES}
            for each in islice(meanings(split), size)
        ]
        for split, size in sizes.items()
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_held_out_texts_never_occur_in_training_and_mean_one_thing(drawn, language):
    """So no pair has a side that training has, whichever two languages it joins."""
    train, val, test = ({each[language] for each in drawn[it]} for it in SPLITS)
    assert not train & (val | test) and not val & test
    seen = {}
    for each in drawn["train"] + drawn["val"] + drawn["test"]:
        assert seen.setdefault(each[language], each) == each


def test_wordings_of_one_meaning_fall_on_the_same_side():
    dated = [each for each in PATTERNS if [it.name for it in each.values] == ["date"]]
    assert len(dated) >= 8
    for day in (date(1900, 1, 1), date(2000, 2, 29), date(2099, 12, 31)):
        assert len({split_of(Phrase(pattern, (day,))) for pattern in dated}) == 1


def test_one_meaning_in_32_is_held_out():
    days = [date.fromordinal(number) for number in range(700_000, 716_000)]
    pattern = next(each for each in PATTERNS if each.texts["en"] == "{long_date}")
    found = [split_of(Phrase(pattern, (day,))) for day in days]
    for split in ("val", "test"):
        assert abs(found.count(split) / len(days) - 1 / 32) < 0.006


@pytest.mark.parametrize(
    ("slot", "keys"), [("language", NAMED_LANGUAGES), ("country", COUNTRIES)]
)
def test_closed_lists_are_for_training_and_complete_there(drawn, slot, keys):
    said = "\n".join(each["en"] for each in drawn["train"])
    names = {say(slot, key, "en") for key in keys}
    assert len(names) == len(keys) and not [name for name in names if name not in said]
    for split in ("val", "test"):
        assert not names & {each["en"] for each in drawn[split]}


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("train", "0ce52ffd2edce6f6"),
        ("val", "a1e19b195205b6b6"),
        ("test", "1cf13d1769a4311a"),
    ],
)
def test_the_meanings_never_change(split, expected):
    """Recorded scores hold for these; what a language says may follow CLDR."""
    drawn = islice(meanings(split), 2_000)
    lines = [f"{each.pattern.texts['en']} | {each.meaning}" for each in drawn]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] == expected


@pytest.mark.parametrize("split", SPLITS)
def test_a_phrasebook_has_different_sources_and_the_asked_number(split):
    pairs = phrasebook("it", "es", split, 500)
    assert len(pairs) == len({source for source, _ in pairs}) == 500


def test_texts_are_clean_and_sentences_start_with_a_capital():
    for phrase in islice(meanings("train"), 6_000):
        sentence = phrase.pattern.texts["en"].endswith((".", "?"))
        for language in LANGUAGES:
            text = phrase.say(language)
            assert text == " ".join(text.split()) and len(text) < 120, text
            assert not re.search("[\xa0\u202f\u2019{}_]|duration-", text), text
            assert not (sentence and text[0].islower()), text


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (21, "twenty-one|einundzwanzig|vingt et un|veintiuno|ventuno|eenentwintig"),
        (
            101_200,
            "one hundred and one thousand, two hundred|einhunderteintausendzweihundert|"
            "cent un mille deux cents|ciento un mil doscientos|centounomiladuecento|"
            "honderdeenduizend tweehonderd",
        ),
    ],
)
def test_numbers_in_words(n, words):
    assert [number_words(n, each) for each in LANGUAGES] == words.split("|")


FIRST, SPRING = date(1989, 3, 1), date(2000, 3, 21)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (day_in_words(SPRING, "en"), "the twenty-first of March"),
        (day_in_words(SPRING, "de"), "der einundzwanzigste März"),
        (cldr_date("full", FIRST, "fr"), "mercredi 1er mars 1989"),
        (clock_words((2, 2), "de"), "halb drei"),
        (say("it_is_clock", (1, 2), "es"), "es la una y media"),
        (say("at_clock", (1, 0), "it"), "all'una"),
        (year_words(1905, "nl"), "negentienhonderdvijf"),
        (year_words(1900, "fr"), "mille neuf cent"),
        (listed(["español", "inglés"], "es"), "español e inglés"),
        (listed(["Italia", "Francia"], "es"), "Italia y Francia"),
        (listed(["siete", "ocho"], "es", "or"), "siete u ocho"),
        (listed(["Italia", "Egitto"], "it"), "Italia ed Egitto"),
        (ordinal((8, 0), "it"), "l'ottavo giorno"),
        (ordinal((11, 0), "es"), "el undécimo día"),
        (things((21, 0), "es"), "veintiún libros"),
    ],
)
def test_each_language_follows_its_grammar(words, expected):
    assert words == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("en", "pt", "train", 5), "lacks 'pt': choose one of: de, en, es, fr, it, nl"),
        (("en", "en", "train", 5), "both 'en'"),
        (("en", "de", "tset", 5), "did you mean 'test'"),
        (("en", "de", "test", 0), "count is 0: ask for a whole number of"),
        (
            ("en", "de", "test", 1_000_000),
            "count is 1000000: ask for a whole number of",
        ),
    ],
)
def test_user_errors_name_the_thing_and_the_remedy(arguments, expected):
    with pytest.raises(UserError, match=expected):
        phrasebook(*arguments)
