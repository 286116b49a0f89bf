"""Sentence pairs varied as people vary them: names, numbers, case, typos, length.

    python -m benchmarks.paper.augmentation runs/pairs
    python -m benchmarks.paper.augmentation runs/pairs --teacher runs/mean --choices 4

Writes the text of the model for everyday sentences: Tatoeba's training pairs with a
phrase of the phrasebook after every fourth, or a teacher's translations of both, six
times and each time varied, in train.en and train.de; and its validation split. With
`--langs de en` the slips are in German. Minutes of one core, with a teacher hours.

A few names stand for all in a small corpus: one in ten sentences of Tatoeba is about
Tom, so that a model trained on it knows no way to copy a name. Names, numbers and
addresses are therefore exchanged on both sides, for others of their kind; and the
source alone gets what people type without meaning anything by it.

The names are a selection from the lists of Faker 40 (MIT licence, by Daniele Faraglia
and its contributors), in thirty-nine countries' versions; cities whose German name is
another are from CLDR.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from random import Random
from zlib import crc32

from annotated_transformer import load
from annotated_transformer.after.distillation import DistilledPairs
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.near_copies import without_copies
from benchmarks.record import command_line

COPIES = 6  # of each pair, each varied in another way
Pair = tuple[str, str]
Name = tuple[str, str]  # in English and in German

_ONSETS = "b bl br c ch d dr f g gr h j k kl kr l m n p pr r s sch sh st t tr v w y z"
_VOWELS = "a a a e e e i i o o u ai au ea ee ie ou ü ö"
_CODAS = ". . . . . l m n n r r s t ck ng nd rt x"
_ACCENTS = "áàâãåäæçčćďđéèêëěęğíìîïıłñńňóòôõöøőœřśşšßťțúùûüůűýźžżðþ"


def read_table(name: str) -> list[dict[str, str]]:
    """The rows of a table that lies beside this module."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [*csv.DictReader(lines, delimiter="\t")]


def names(kind: str, held_out: bool = False) -> list[Name]:
    """The known names of a kind: female, male, surname or city.

    One in eight, by a checksum, is held out for tests; but no city with a German name
    of its own, which can't be guessed.
    """
    rows = {row["kind"]: row["names"].split(", ") for row in read_table("names.tsv")}
    parts = [name.partition("=") for name in rows[kind]]
    both = [(english, german or english) for english, _, german in parts]
    return [name for name in both if _is_held_out(*name) == held_out]


def _is_held_out(english: str, german: str) -> bool:
    return english == german and crc32(english.encode()) % 8 == 0


def invented_word(rng: Random) -> str:
    """A word of one to three syllables that hardly anybody has heard before."""
    parts = []
    for _ in range(rng.choice((1, 2, 2, 2, 3))):
        for sounds in (_ONSETS, _VOWELS, _CODAS):
            parts.append(rng.choice(sounds.split(" ")).strip("."))
    word = "".join(parts)
    if rng.random() < 0.1:
        at = rng.randrange(len(word))
        word = word[:at] + rng.choice(_ACCENTS) + word[at + 1 :]
    return word.capitalize()


class Names:
    """Draws names of a kind: known, spliced of two known ones, or invented."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        kinds = ("female", "male", "surname", "city")
        self.known = {kind: names(kind) for kind in kinds}

    def draw(self, kind: str) -> Name:
        """A name of a kind, in both languages."""
        rng = self.rng
        while True:
            made = rng.choice(("", self.spliced(kind), invented_word(rng)))
            name = (made, made) if made else rng.choice(self.known[kind])
            if not _is_held_out(*name):
                return name

    def spliced(self, kind: str) -> str:
        """The beginning of one known name and the end of another."""
        (first, _), (second, _) = (self.rng.choice(self.known[kind]) for _ in "12")
        return first[: len(first) // 2 + 1] + second[len(second) // 2 :]

    def fill(self, slot: str) -> Name:
        """What stands for a slot of frames.tsv, in both languages."""
        rng, kind = self.rng, slot.rstrip("2")
        if kind in self.known:
            return self.draw(kind)
        if kind == "full":
            first, last = self.fill("first"), self.draw("surname")
            return f"{first[0]} {last[0]}", f"{first[1]} {last[1]}"
        if kind == "first":
            return self.draw(rng.choice(("female", "male")))
        value = _VALUES[kind](rng)
        return value, value


def _email(rng: Random) -> str:
    user, host = invented_word(rng).lower(), invented_word(rng).lower()
    joint = rng.choice((".", "_", "-", "", str(rng.randrange(100))))
    ending = rng.choice(("com", "org", "de", "net", "edu", "co.uk", "example"))
    plain = f"{user}{joint}@{host}.{ending}".replace(".@", "@")
    return "".join(letter for letter in plain if letter.isascii())


_VALUES: dict[str, Callable[[Random], str]] = {
    "number": lambda rng: str(rng.randrange(2, 10 ** rng.choice((1, 2, 2, 3, 4)))),
    "age": lambda rng: str(rng.randrange(2, 100)),
    "year": lambda rng: str(rng.randrange(1500, 2050)),
    "time": lambda rng: f"{rng.randrange(1, 24)}:{rng.randrange(60):02}",
    "phone": lambda rng: str(rng.randrange(10**5, 10**9)),
    "email": _email,
    "word": invented_word,
    "small": lambda rng: invented_word(rng).lower(),
}

# The names of Tatoeba that are exchanged for others of their kind, and what its German
# sentences make of them.
_MALE = """Tom John Jim Ken Bill Mike Jack George Paul Peter Fred Tony David Sam Taro
Bob Mark Hiroshi Dick Johannes Hans""".split()
_FEMALE = """Mary Maria Marie Alice Jane Lucy Nancy Ann Anne Anna Betty Linda Kate Judy
Meg Susan Emi Emily""".split()
_CITIES = "Boston London Paris Chicago Osaka Kyoto Tokyo".split()
KINDS = (
    dict.fromkeys(_MALE, "male")
    | dict.fromkeys(_FEMALE, "female")
    | dict.fromkeys(_CITIES, "city")
    | dict.fromkeys(("Jackson", "Smith", "Brown", "Tanaka"), "surname")
)
_SAME = {"Maria": "Mary", "Marie": "Mary", "Anna": "Ann"}
_SAME |= {"Tokio": "Tokyo", "Tōkyō": "Tokyo", "Kyōto": "Kyoto", "Kioto": "Kyoto"}
_OTHER = {
    "Elke": "Alice",
    "Johannes": "John",
    "Johannsen": "Jackson",
    "Schmidt": "Smith",
}
_SAME |= _OTHER
_NAME = re.compile(r"\b(" + "|".join([*KINDS, *_SAME]) + r")('s|s)?\b")
_MONTH = re.compile(
    r"Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
)
_NUMBER = re.compile(r"(?<![\d.,:/$€£-])\b\d{1,4}\b(?![.,:/]?\d|%)")


def exchange_names(pair: Pair, new: Names) -> Pair:
    """The pair with other names of the same kind, the same on both sides.

    A pair whose sides don't name the same people is left alone.
    """
    names = [{_SAME.get(m[1], m[1]) for m in _NAME.finditer(side)} for side in pair]
    if names[0] != names[1] or not names[0]:
        return pair
    chosen = {old: new.draw(KINDS[old]) for old in sorted(names[0])}
    if len(set(chosen.values())) < len(chosen):
        return pair

    def english(m: re.Match[str]) -> str:
        return chosen[_SAME.get(m[1], m[1])][0] + (m[2] or "")

    def german(m: re.Match[str]) -> str:
        name = chosen[_SAME.get(m[1], m[1])][1]
        apostrophe = "'" if name[-1] in "sxzß" else "s"
        return name + (apostrophe if m[2] else "")

    return _NAME.sub(english, pair[0]), _NAME.sub(german, pair[1])


def restore_names(pair: Pair) -> Pair:
    """The pair with the English name where German writes one that nobody would expect.

    Tatoeba's Alice is nearly always Elke in German.
    """
    english, german = pair
    for other, name in _OTHER.items():
        if re.search(rf"\b{name}\b", english):
            german = re.sub(rf"\b{other}(?=s?\b)", name, german)
    return english, german


def exchange_numbers(pair: Pair, rng: Random) -> Pair:
    """The pair with other numbers, where both sides write the same ones in digits.

    A date, and a number that comes twice, are left alone.
    """
    numbers, same = (sorted(_NUMBER.findall(side)) for side in pair)
    repeated = len(set(numbers)) < len(numbers)
    if numbers != same or not numbers or repeated or any(map(_MONTH.search, pair)):
        return pair
    chosen = {}
    for old in numbers:
        year = len(old) == 4 and 1000 < int(old) < 2100
        chosen[old] = _VALUES["year" if year else "number"](rng)
    english, german = (_NUMBER.sub(lambda m: chosen[m[0]], side) for side in pair)
    return english, german


def frames(new: Names) -> Iterator[Pair]:
    """Endless sentences of frames.tsv with names, numbers and addresses."""
    rows = [(row["en"], row["de"]) for row in read_table("frames.tsv")]
    while True:
        english, german = new.rng.choice(rows)
        slots = dict.fromkeys(re.findall(r"{(\w+)}", english))
        filled = {slot: new.fill(slot) for slot in slots}
        first = {slot: name[0] for slot, name in filled.items()}
        second = {slot: name[1] for slot, name in filled.items()}
        yield english.format(**first), german.format(**second)


# Words that begin a clause, and are not capitalised inside one.
_EN_STARTS = """He She It We They You The This That There My His Her Our Your Their
Everyone Everybody Nobody These Those A An""".split()
_DE_STARTS = """Ich Er Es Wir Ihr Du Das Der Die Den Dem Ein Eine Einen Mein Meine Sein
Seine Unser Unsere Dieser Diese Dieses Dies Niemand Jeder Alle Man Da Dort
Hier""".split()


def _as_clause(text: str, starts: list[str], kept: tuple[str, ...]) -> str:
    """A sentence as the second clause of another; empty where that is uncertain."""
    word, _, rest = text.partition(" ")
    if word in kept and rest:
        return text
    return f"{word.lower()} {rest}" if word in starts and rest else ""


def joined(pairs: list[Pair], rng: Random) -> Pair:
    """Two or three sentences in a row, or the first two as one with "and" or "but".

    The first alone, where one of them doesn't end as a sentence does.
    """
    (one, eins), (two, zwei) = pairs[:2]
    stops = all(side.endswith(".") for pair in pairs[:2] for side in pair)
    second = _as_clause(two, _EN_STARTS, ("I", *_MALE, *_FEMALE))
    zweiter = _as_clause(zwei, _DE_STARTS, (*_MALE, *_FEMALE))
    if stops and second and zweiter and rng.random() < 0.7:
        word, wort = rng.choice((("and", "und"), ("but", "aber")))
        return f"{one[:-1]}, {word} {second}", f"{eins[:-1]}, {wort} {zweiter}"
    if all(side[-1:] in ".!?" for pair in pairs for side in pair):
        english, german = (" ".join(side) for side in zip(*pairs, strict=True))
        return english, german
    return pairs[0]


def typo(text: str, rng: Random) -> str:
    """One slip in a word of five letters or more: left out, doubled or swapped.

    Names and addresses are spared, since nobody could tell what they were.
    """
    words = list(re.finditer(r"(?<![\w@.-])[a-z]{5,}(?![\w@.-]*@|\.\w|\w)", text))
    if not words:
        return text
    at = rng.randrange(*rng.choice(words).span())
    kind = rng.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at] + text[at:]
    return text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :] if at else text


def title_case(text: str) -> str:
    """Each Word With a Capital, as in headings; addresses stay as they are."""
    words = text.split(" ")
    return " ".join(w if "@" in w else w[:1].upper() + w[1:] for w in words)


def without_stop(text: str) -> str:
    """Without the stops or question marks at the end."""
    return text.rstrip(".?!") or text


# How often a pair gets new names and new numbers where it has some, is followed by a
# sentence of frames.tsv, and is joined with the next ones.
NEW_NAMES, NEW_NUMBERS, FRAME, JOINED = 0.75, 0.5, 1 / 6, 0.15
# What people do to a source text that changes nothing of its meaning, and how often.
SLIPS: tuple[tuple[float, Callable[[str, Random], str]], ...] = (
    (0.10, lambda text, rng: text.lower()),
    (0.06, lambda text, rng: title_case(text)),
    (0.10, lambda text, rng: without_stop(text)),
    (0.03, lambda text, rng: text.replace(",", "")),
    (0.15, typo),
)


def augmented(
    pairs: Iterable[Pair], langs: Pair, copies: int, seed: int = 0
) -> Iterator[Pair]:
    """English and German pairs, given `copies` times, each time varied in another way.

    How often they get new names and numbers, sentences of frames.tsv between them, are
    joined, and have a slip in the source, is said by the constants above. Joining makes
    the pairs fewer.
    """
    from_english = langs == ("en", "de")
    both = [(src, tgt) if from_english else (tgt, src) for src, tgt in pairs]
    for copy in range(copies):
        rng = Random(f"{seed} {copy}")
        # neighbours in a corpus are often about the same
        for english, german in _varied(rng.sample(both, len(both)), rng):
            if from_english:
                yield _with_slips(english, rng), german
            else:
                yield _with_slips(german, rng), english


def _varied(pairs: list[Pair], rng: Random) -> Iterator[Pair]:
    """One copy of the pairs, in English and German, before the slips."""
    new = Names(rng)
    filled = frames(new)
    waiting: list[Pair] = []
    for pair in map(restore_names, pairs):
        if rng.random() < NEW_NAMES:
            pair = exchange_names(pair, new)
        if rng.random() < NEW_NUMBERS:
            pair = exchange_numbers(pair, rng)
        waiting.append(pair)
        if rng.random() < FRAME:
            waiting.append(next(filled))
        if len(waiting) < 3:
            continue
        if rng.random() < JOINED:
            count = rng.choice((2, 2, 3))
            yield joined(waiting[:count], rng)
        else:
            count = 1
            yield waiting[0]
        del waiting[:count]
    yield from waiting


def _with_slips(text: str, rng: Random) -> str:
    slipped = text
    for probability, slip in SLIPS:
        if rng.random() < probability:
            slipped = slip(slipped, rng)
    return slipped if slipped.strip() else text


# -- the text of the model for everyday sentences --------------------------------------


def everyday_pairs(langs: Pair) -> Iterator[Pair]:
    """Tatoeba's training pairs, with a phrase of the phrasebook after every fourth."""
    splits = (load_corpus("tatoeba", split, *langs) for split in ("val", "test"))
    held = chain.from_iterable(splits)
    phrases = without_copies(load_corpus("phrasebook", "train", *langs), held, langs)
    for number, pair in enumerate(load_corpus("tatoeba", "train", *langs), 1):
        yield pair
        if number % 4 == 0:
            yield from islice(phrases, 1)


def main(argv: Sequence[str] | None = None) -> None:
    """Write both splits, a file for each language."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path, help="a new one for the files")
    parser.add_argument("--langs", nargs=2, default=["en", "de"])
    parser.add_argument("--teacher", help="a model that translates the text anew")
    parser.add_argument("--choices", type=int, default=1, help="of its translations")
    asked = parser.parse_args(argv)
    src, tgt = langs = tuple(asked.langs)
    pairs: Iterable[Pair] = everyday_pairs(langs)
    if asked.teacher:
        teacher = load(asked.teacher)
        pairs = DistilledPairs([*pairs], asked.teacher, teacher, asked.choices)
    asked.folder.mkdir(parents=True)
    splits = {
        "train": augmented(pairs, langs, COPIES),
        "val": load_corpus("tatoeba", "val", src, tgt),
    }
    for split, chosen in splits.items():
        for lang, side in zip(langs, zip(*chosen, strict=True), strict=True):
            text = "".join(f"{line}\n" for line in side)
            (asked.folder / f"{split}.{lang}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
