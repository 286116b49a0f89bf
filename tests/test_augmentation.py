"""The everyday model's pairs, varied as people vary them, the same on both sides."""

import re
from collections import Counter
from random import Random

import pytest

from annotated_transformer.data.near_copies import split_pairs
from benchmarks.paper import augmentation
from benchmarks.paper.augmentation import (
    SLIPS,
    Names,
    augmented,
    everyday_pairs,
    exchange_names,
    exchange_numbers,
    frames,
    joined,
    names,
    read_table,
    title_case,
    typo,
)

EN_DE = ("en", "de")
KINDS = ("female", "male", "surname", "city")
# No word of these is a name that is held out.
PATTERNS = [
    ("Tom has {n} books in Boston.", "Tom hat {n} Bücher in Boston."),
    ("Mary's brother likes John.", "Marys Bruder mag John."),
    ("She was born in {n}.", "Sie wurde {n} geboren."),
    ("This question is easy, you know.", "Diese Frage ist leicht, weißt du."),
    ("Who is Mr. Jackson?", "Wer ist Herr Jackson?"),
]
PAIRS = [
    (english.format(n=number), german.format(n=number))
    for number in range(2, 402)
    for english, german in PATTERNS
]
FEW = PAIRS[:500]
NUMBER, EMAIL = re.compile(r"\d+(?::\d+)?"), re.compile(r"[\w.-]+@[\w.-]+\w")


def of_kind(pattern: re.Pattern[str], pair: tuple[str, str]) -> list[list[str]]:
    """What the pattern finds on each side, sorted."""
    return [sorted(pattern.findall(side)) for side in pair]


@pytest.fixture(scope="module")
def varied() -> list[tuple[str, str]]:
    """Three copies of 2,000 pairs, before the slips."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(augmentation, "SLIPS", ())
        return list(augmented(PAIRS, EN_DE, 3))


def test_numbers_and_addresses_are_the_same_on_both_sides(varied):
    for pattern in (NUMBER, EMAIL):
        both = [of_kind(pattern, pair) for pair in varied]
        assert [one for one, two in both if one != two] == []
        assert sum(map(bool, (one for one, _ in both))) > 10


def test_frames_and_joined_pairs_come_as_often_as_they_say(varied):
    """A pair is followed by a frame, or joined with one pair or two, now and then."""
    assert 0.92 < len(varied) / len(3 * PAIRS) < 1.02
    given = re.compile(r"Bücher in|Bruder mag|geboren|Frage ist|Wer ist")
    frames_alone = [german for _, german in varied if not given.search(german)]
    assert 0.1 < len(frames_alone) / len(varied) < 0.2


def test_names_are_exchanged_for_the_same_on_both_sides():
    new = Names(Random(1))
    pair = ("Tom's sister met Tom in London.", "Toms Schwester hat Tom in London.")
    for _ in range(200):
        english, german = exchange_names(pair, new)
        first = re.match(r"(.+)'s sister met \1 in (.+)\.$", english)
        then = re.match(r"(.+?)['s] Schwester hat (.+) in (.+)\.$", german)
        assert then[1].removesuffix("s") == then[2].removesuffix("s") and first
        assert first[1] == then[2] != "Tom"
        known = dict(new.known["city"])
        assert known.get(first[2], first[2]) == then[3]


@pytest.mark.parametrize(
    "pair",
    [("Tom is here.", "Maria ist hier."), ("He is here.", "Tom ist hier.")],
)
def test_a_pair_whose_sides_name_others_is_left_alone(pair):
    new = Names(Random(1))
    assert {exchange_names(pair, new) for _ in range(20)} == {pair}


@pytest.mark.parametrize(
    ("pair", "left_alone"),
    [
        (("It is 25 miles.", "Es sind 25 Meilen."), False),
        (("It is 25 miles.", "Es sind 40 Kilometer."), True),
        (("It is May 25.", "Es ist der 25. Mai."), True),
        (("The 5 of 5 came.", "Die 5 von 5 kamen."), True),
        (("It is 2:30.", "Es ist 2.30 Uhr."), True),
    ],
)
def test_numbers_are_exchanged_where_both_sides_have_them(pair, left_alone):
    found = {exchange_numbers(pair, Random(seed)) for seed in range(20)}
    assert (found == {pair}) is left_alone
    both = [of_kind(NUMBER, each) for each in found]
    assert left_alone or all(one == two for one, two in both)


def test_held_out_names_never_occur(varied):
    text = " ".join(side for pair in varied for side in pair)
    in_text = set(re.findall(r"\w+", text))
    longer = {name for kind in KINDS for name, _ in names(kind) if " " in name}
    words = {word for name in longer for word in name.split()}  # Ho Chi Minh City's
    words |= set(augmentation.KINDS)  # the corpus' own

    def seen(kind, held_out):
        known = [name for name, _ in names(kind, held_out) if name not in words]
        plain = re.compile(r"\w+").fullmatch
        found = [
            name
            for name in known
            if (name in in_text if plain(name) else re.search(rf"\b{name}\b", text))
        ]
        return found, len(known)

    for kind in KINDS:
        (held, out), (trained, known) = (
            seen(kind, held_out) for held_out in (True, False)
        )
        assert held == [] and 0.05 < out / (out + known) < 0.2
        assert len(trained) > 50


def test_a_seed_gives_the_same_pairs_and_another_gives_others():
    def sources(copies, seed=0):
        return [pair[0] for pair in augmented(iter(FEW), EN_DE, copies, seed)]

    first, both = sources(1), sources(2)
    assert both[: len(first)] == first == sources(1)
    assert sources(1, seed=1) != first != both[len(first) :]


def test_from_german_the_pairs_are_exchanged(monkeypatch):
    monkeypatch.setattr(augmentation, "SLIPS", ())
    found = augmented([(german, english) for english, german in FEW], ("de", "en"), 1)
    assert [(b, a) for a, b in found] == list(augmented(FEW, EN_DE, 1))


@pytest.mark.parametrize("langs", [EN_DE, ("de", "en")])
def test_slips_touch_the_source_alone(langs, monkeypatch):
    pairs = FEW if langs == EN_DE else [(b, a) for a, b in FEW]
    loud = [(probability and 1.0, slip) for probability, slip in SLIPS]
    monkeypatch.setattr(augmentation, "SLIPS", loud)
    slipped = list(augmented(pairs, langs, 1))
    assert not any(re.search(r"[.?]$|,", source) for source, _ in slipped)
    assert not {source for source, _ in slipped} & {source for source, _ in pairs}
    assert all(re.search(r"[.?]$", target) for _, target in slipped)
    assert {target for _, target in slipped} & {target for _, target in pairs}


def test_each_slip_comes_as_often_as_it_says(monkeypatch):
    """Capitals at the beginning are lost to lower case alone."""
    monkeypatch.setattr(augmentation, "SLIPS", SLIPS[:1])
    pairs = [("This is easy.", "Das ist leicht.")] * 4000
    found = [source.islower() for source, _ in augmented(pairs, EN_DE, 1)]
    assert 0.08 < sum(found) / len(found) < 0.12


def test_a_typo_is_one_slip_in_a_long_word():
    text = "This sentence has several words."
    found = {typo(text, Random(seed)) for seed in range(200)} - {text}
    assert len(found) > 30
    for each in found:
        more, less = Counter(each) - Counter(text), Counter(text) - Counter(each)
        assert more.total() + less.total() <= 1
        assert each[:4] == "This" and each[-1] == "."
    assert typo("It is so.", Random(0)) == "It is so."
    assert title_case("how are you?") == "How Are You?"


def test_names_are_known_spliced_or_invented():
    new = Names(Random(1))
    known = {name for name, _ in new.known["surname"]}
    drawn = [new.draw("surname")[0] for _ in range(3_000)]
    assert 0.28 < sum(name in known for name in drawn) / len(drawn) < 0.4
    ends = {name[len(name) // 2 :] for name in known}
    parts = {name[: len(name) // 2 + 1] for name in known}
    spliced = [new.spliced("surname") for _ in range(100)]
    assert all(
        any(name[:i] in parts and name[i:] in ends for i in range(len(name)))
        for name in spliced
    )


def test_frames_have_the_same_slots_on_both_sides():
    rows = read_table("frames.tsv")
    slots = [
        [sorted(re.findall(r"{\w+}", row[lang])) for lang in EN_DE] for row in rows
    ]
    assert len(rows) > 50 and all(one == two and one for one, two in slots)
    filled = frames(Names(Random(1)))
    pairs = [next(filled) for _ in range(4_000)]
    assert not any("{" in side for pair in pairs for side in pair)
    assert len(set(pairs)) > 3_800
    people, found = {name for name, _ in names("female")}, 0
    for city, german in (each for each in names("city") if each[0] not in people):
        named = [b for a, b in pairs if re.search(rf"\b{city}\b", a)]
        assert all(german in b for b in named)
        found += len(named) if city != german else 0
    assert found > 10


@pytest.mark.parametrize("count", [2, 3])
def test_sentences_are_joined(count):
    pairs = [
        ("It is late.", "Es ist spät."),
        ("He is tired.", "Er ist müde."),
        ("Go home!", "Geh heim!"),
    ][:count]
    found = {joined(pairs, Random(seed)) for seed in range(50)}
    english, german = (" ".join(side) for side in zip(*pairs, strict=True))
    assert found == {
        (english, german),
        ("It is late, and he is tired.", "Es ist spät, und er ist müde."),
        ("It is late, but he is tired.", "Es ist spät, aber er ist müde."),
    }


def test_only_whole_sentences_are_joined():
    pairs = [("It is late", "Es ist spät"), ("Go home!", "Geh heim!")]
    assert joined(pairs, Random(0)) == pairs[0]
    clauses = [("He left.", "Er ging."), ("Dogs bark.", "Hunde bellen.")]
    found = {joined(clauses, Random(seed)) for seed in range(20)}
    assert found == {("He left. Dogs bark.", "Er ging. Hunde bellen.")}


SOME = [f"{a}{b}" for a in "bdfgk" for b in "aeiou"]
WORDS = [(f"word{a} is {b}.", f"{b} ist {a}.") for a in SOME for b in SOME]
PHRASES = [("a phrase", "ein Satz"), ("May 5", "5. Mai"), ("at noon", "mittags")] * 60


@pytest.fixture
def toy_corpora(monkeypatch):
    """Tatoeba and the phrasebook in small; some phrases are held-out sentences."""
    held = [p for name in ("val", "test") for p in split_pairs(WORDS, name, EN_DE)]
    assert held, "the toy is too small"

    def load_corpus(name, split, *langs):
        if name == "phrasebook":
            return [*held, *PHRASES]
        return list(split_pairs(WORDS, split, EN_DE))

    monkeypatch.setattr(augmentation, "load_corpus", load_corpus)
    return held


def test_phrases_come_after_every_fourth_pair_and_are_no_copies(toy_corpora):
    mixed, plain = list(everyday_pairs(EN_DE)), list(split_pairs(WORDS, "train", EN_DE))
    assert [pair for pair in mixed if pair in WORDS] == plain
    assert mixed[4::5] == PHRASES[: len(plain) // 4]
    assert not set(toy_corpora) & set(mixed)


def test_the_command_writes_both_splits_line_by_line(toy_corpora, tmp_path):
    augmentation.main([str(tmp_path / "pairs")])
    train, val = (
        [
            (tmp_path / "pairs" / f"{split}.{lang}").read_text("utf-8").splitlines()
            for lang in EN_DE
        ]
        for split in ("train", "val")
    )
    assert len(train[0]) == len(train[1]) > 3 * len(WORDS)
    assert list(zip(*val, strict=True)) == list(split_pairs(WORDS, "val", EN_DE))
    assert len(set(zip(*train, strict=True))) > len(WORDS)
