"""A split in which no test sentence has a near copy in the training text."""

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

_NAMES = """tom mary maria marie john johannes alice bob bill ken jim jack jane mike
george emi susan lucy nancy paul peter fred betty linda kate tony judy jackson hans
jones smith mark meg ann anne anna dick david sam taro""".split()


@cache
def _sketched(word: str, inside: bool) -> str:
    low = word.lower()
    if word.isdigit():
        return "0"
    name = low in _NAMES or low.removesuffix("s") in _NAMES
    return "@" if name or inside and word[0].isupper() and word != "I" else low[:5]


def sketch(text: str, lang: str) -> frozenset[str]:
    """The words of a sentence without their endings, names and numbers masked."""
    words = re.findall(r"\d+|[^\W\d_]+", text)
    return frozenset(
        _sketched(word, lang == "en" and index > 0) for index, word in enumerate(words)
    )


class NearCopies:
    """Knows the near copies of some sentences by their sketches."""

    def __init__(self, sketches: Iterable[frozenset[str]]) -> None:
        self.numbers: dict[frozenset[str], list[int]] = defaultdict(list)
        for number, words in enumerate(sketches):
            self.numbers[words].append(number)
        self.counts = Counter(word for words in self.numbers for word in words)
        self.by_word: dict[str, list[frozenset[str]]] = defaultdict(list)
        for words in self.numbers:
            for word in self.rarest(words):
                self.by_word[word].append(words)

    def rarest(self, words: frozenset[str]) -> list[str]:
        """As many of the rarest words as a near copy can't do without."""
        order = sorted(words, key=lambda word: (self.counts[word], word))
        return order[: len(words) // 4 + 1]

    def of(self, words: frozenset[str]) -> Iterator[frozenset[str]]:
        """The sketches that are near copies of this one; some more than once."""
        others = (o for word in self.rarest(words) for o in self.by_word.get(word, ()))
        return (o for o in others if 4 * len(words & o) >= 3 * len(words | o))

    def __contains__(self, words: frozenset[str]) -> bool:
        return any(True for _ in self.of(words))


Pair = tuple[str, str]


def sketches(pair: Pair, langs: Pair) -> list[frozenset[str]]:
    """The sketches of both sides."""
    return [sketch(text, lang) for text, lang in zip(pair, langs, strict=True)]


def held_out(pair: Pair, langs: Pair) -> str:
    """The split that holds a pair out, by a checksum of its English side's sketch: 1 %
    val, 1 % test; "" for training.
    """
    english = sketch(pair[langs.index("en")], "en")
    bucket = zlib.crc32(" ".join(sorted(english)).encode()) % 100
    return {0: "val", 1: "test"}.get(bucket, "")


def without_copies(
    pairs: Iterable[Pair], held: Iterable[Pair], langs: Pair
) -> Iterator[Pair]:
    """The pairs of which neither side is a near copy of a held-out one."""
    sides = zip(*(sketches(pair, langs) for pair in held), strict=True)
    copies = [NearCopies(side) for side in sides]
    for pair in pairs:
        both = zip(sketches(pair, langs), copies, strict=False)
        if not any(words in known for words, known in both):
            yield pair


def split_pairs(pairs: Iterable[Pair], split: str, langs: Pair) -> Iterator[Pair]:
    """The pairs of one split, by `held_out`; `pairs` are read twice.

    For training, near copies of a held-out sentence are left out.
    """
    if split != "train":
        return (pair for pair in pairs if held_out(pair, langs) == split)
    held = [pair for pair in pairs if held_out(pair, langs)]
    return without_copies(pairs, held, langs)
