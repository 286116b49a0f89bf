"""What is wrong with sentence pairs, before anything learns from them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf, nan

from ..data.near_copies import NearCopies, sketch
from .alignment import Likeness, best_offsets, first_shift, marks
from .diagnosis import Measure

Sides = tuple[Sequence[str], Sequence[str]]
SAMPLE = 5_000  # lines of which the words are counted

# The commonest short words of some languages: a tenth of any text and more.
COMMON = {
    "en": "the a to is of and you in it he was that for with are on at",
    "de": "der die das und ist ich nicht ein eine zu sie er mit den auf es im dem",
    "fr": "le la les de et est un une je des il pas que vous dans du à",
    "es": "el la los de que y es un una no en por con se del a las",
    "it": "il la di che e è un una non per in sono con del le i alle",
    "nl": "de het een en van is ik niet dat in zijn op met hij je te voor",
}
# A lost character, and UTF-8 that was read as Latin-1.
BROKEN = re.compile("\ufffd|[ÃÂ][\x80-\xbf]|â€")


def text_measures(
    sides: Sides, langs: tuple[str, str], held: Mapping[str, Sides], near: bool
) -> Iterator[Measure]:
    """Those of training pairs, and of what is held out, by name of the split.

    `near` looks for near copies too, which takes seconds.
    """
    src, tgt = sides
    pairs = [*zip(src, tgt, strict=False)]
    same = share(a == b for a, b in pairs)
    says = "both sides hold the same text: one file was copied in the other's place"
    yield Measure("same text on both sides, share", same, 0, 0.1, says)
    yield from language_measures(sides, langs)
    yield from alignment_measures(Likeness(src, tgt, marks))
    counts = f"the source has {len(src):,} lines and the target {len(tgt):,}"
    says = f"{counts}: a line was lost, and what follows it is shifted"
    yield Measure("lines without a partner", abs(len(src) - len(tgt)), 0, 0, says)
    blank = sum(not text.strip() for side in sides for text in side)
    says = "there are blank lines: remove them from both files"
    yield Measure("blank lines", blank, 0, 0, says)
    says = "too few pairs to learn from alone: go on from a trained model, --from"
    yield Measure("pairs", len(pairs), 1_000, inf, says)
    says = "many pairs stand there more than once: the model will weigh them so"
    yield Measure("repeated pairs, share", 1 - len({*pairs}) / len(pairs), 0, 0.1, says)
    broken = share(bool(BROKEN.search(text)) for side in sides for text in side)
    says = "characters are broken: the text was read in another encoding than its own"
    yield Measure("lines with broken characters, share", broken, 0, 0.005, says)
    yield from held_out_measures(sides, langs[0], held, near)


def share(found: Iterable[bool]) -> float:
    """The share that is true, NaN of nothing."""
    flags = [*found]
    return sum(flags) / len(flags) if flags else nan


def common_words(side: Sequence[str]) -> dict[str, float]:
    """The share of each language's common words in a text; of too little text, none."""
    lines = side[:: len(side) // SAMPLE + 1]
    words = Counter(re.findall(r"[^\W\d_]+", " ".join(lines).lower()))
    if words.total() < 200:
        return {}
    return {
        lang: sum(words[word] for word in text.split()) / words.total()
        for lang, text in COMMON.items()
    }


def language_measures(sides: Sides, langs: tuple[str, str]) -> Iterator[Measure]:
    """Whether each side is in its language, where we know the language's words."""
    found = [common_words(side) for side in sides]
    if not all(found):
        return
    (src, tgt), (of_src, of_tgt) = langs, found
    if {src, tgt} <= {*COMMON}:
        lead = of_src[src] - of_src[tgt] + of_tgt[tgt] - of_tgt[src]
        says = f"{src} and {tgt} are swapped: turn the files' names, or --src and --tgt"
        yield Measure("lead of own common words, both sides", lead, 0, inf, says)
    for lang, words in zip(langs, found, strict=True):
        if lang in COMMON:
            other = max(words.keys() - {lang}, key=words.__getitem__)
            lead = words[lang] - words[other]
            says = f"the {lang} side isn't {lang}: its words are those of {other}"
            yield Measure(f"lead of {lang} words in {lang}", lead, -0.05, inf, says)


def alignment_measures(like: Likeness) -> Iterator[Measure]:
    """Whether lines stand beside their translations, to the end."""
    if len(like) < 50:
        return
    windows = best_offsets(like)
    aligned = share(not offset for _, offset in windows)
    says = "lines and their partners don't belong together, at least in places"
    if shift := first_shift(like, windows):
        line, offset = shift
        lost = "target" if offset < 0 else "source"
        says = f"lines are shifted by {abs(offset)} from about line {line + 1:,} on: "
        says += f"the {lost} lost a line there"
    yield Measure("places where lines fit as they stand, share", aligned, 0.95, 1, says)


def held_out_measures(
    train: Sides, lang: str, held: Mapping[str, Sides], near: bool
) -> Iterator[Measure]:
    """Whether what is held out was seen in training, and what training never shows."""
    known, letters = {*zip(*train, strict=False)}, {*chain(*train[0], *train[1])}
    copies = NearCopies(sketch(text, lang) for text in train[0]) if near else None
    for name, sides in held.items():
        pairs = [*zip(*sides, strict=False)]
        leaked = share(pair in known for pair in pairs)
        says = f"pairs of {name} are in the training text: its score measures memory"
        yield Measure(f"{name} seen before, share", leaked, 0, 0.01, says)
        if copies:
            some = sides[0][:: len(pairs) // 500 + 1]
            alike = share(sketch(text, lang) in copies for text in some)
            says = f"{name} has near copies in training, or both are made from patterns"
            yield Measure(f"{name} nearly seen, share", alike, 0, 0.1, says)
        new = share(not letters.issuperset(a + b) for a, b in pairs)
        says = f"{name} has characters that training never shows: they are unknown"
        yield Measure(f"{name} lines with new characters, share", new, 0, 0.02, says)
