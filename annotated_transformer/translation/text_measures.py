"""What is wrong with sentence pairs, before anything learns from them."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from statistics import fmean

from ..data.near_copies import without_copies
from .diagnosis import Measure

Pairs = Sequence[tuple[str, str]]
Sides = tuple[Sequence[str], Sequence[str]]

# The commonest short words of some languages: a tenth of any text and more.
COMMON = {
    "en": "the a to is of and you in it he was that for with are on at",
    "de": "der die das und ist ich nicht ein eine zu sie er mit den auf es im dem",
    "fr": "le la les de et est un une je des il pas que vous dans du à",
    "es": "el la los de que y es un una no en por con se del a las",
    "it": "il la di che e è un una non per in sono con del le i alle",
    "nl": "de het een en van is ik niet dat in zijn op met hij je te voor",
}
WORD = re.compile(r"\d+|[^\W\d_]+|[?!.,:]")
BLOCK, MOST, OFFSETS = 100, 4_000, (1, -1, 2, -2)
LEAD = 0.005  # of a shift before the lines as they stand; never seen on sound text


def text_measures(
    sides: Sides, langs: tuple[str, str], held: Mapping[str, Sides]
) -> Iterator[Measure]:
    """Those of training pairs, and of what is held out, by name of the split."""
    src, tgt = sides
    pairs = [*zip(src, tgt, strict=False)]
    same = fmean(a == b for a, b in pairs)
    says = "both sides hold the same text: one file was copied in the other's place"
    yield Measure("same text on both sides, share", same, "≤", 0.1, says)
    for lang, side in zip(langs, sides, strict=True):
        yield from language_measures(side, lang, langs)
    yield from alignment_measures(pairs)
    says = f"the source has {len(src):,} lines and the target {len(tgt):,}"
    yield Measure("lines without a partner", abs(len(src) - len(tgt)), "≤", 0, says)
    says = "too few pairs to learn from alone: go on from a trained model, --from"
    yield Measure("pairs", len(pairs), "≥", 1_000, says)
    yield from held_out_measures(sides, langs, held)


def language_measures(
    side: Sequence[str], lang: str, langs: tuple[str, str]
) -> Iterator[Measure]:
    """Whether a text is in its language, where we know that language's words."""
    sample = " ".join(side[:: len(side) // 5_000 + 1]).lower()
    words = Counter(re.findall(r"[^\W\d_]+", sample))
    if lang not in COMMON or words.total() < 200:
        return
    shares = {
        name: sum(words[word] for word in text.split()) / words.total()
        for name, text in COMMON.items()
    }
    own = shares.pop(lang)
    other = max(shares, key=shares.__getitem__)
    lead = own - shares[other]
    says = f"the {lang} side isn't {lang}, its words are those of {other}"
    says += ": are the sides swapped?" if other in langs else ""
    yield Measure(f"lead of {lang} words in {lang}", lead, "≥", -0.05, says)


def alignment_measures(pairs: Pairs) -> Iterator[Measure]:
    """Whether lines stand beside their translations, to the end; of fifty and more."""
    if len(pairs) < 50:
        return
    rows = range(2, len(pairs) - 2, len(pairs) // MOST + 1)
    like = likeness(pairs, rows)
    leads = {o: [like(i, i) - like(i, i + o) for i in rows] for o in OFFSETS}
    blocks = max(1, len(rows) // BLOCK)
    best = []  # of each block, the offset that fits best
    for start, end in pairwise(k * len(rows) // blocks for k in range(blocks + 1)):
        means = {o: fmean(lead[start:end]) for o, lead in leads.items()}
        offset = min(OFFSETS, key=means.__getitem__)
        best.append(offset if means[offset] < -LEAD else 0)
    says = "lines and their partners don't belong together, at least in parts"
    shifts = [offset for offset in best if offset][:4]
    if len({*shifts}) == 1:
        offset, lost = shifts[0], "target" if shifts[0] < 0 else "source"
        line = rows[start_of_fall(leads[offset])] + 1
        says = f"lines are shifted by {abs(offset)} from about line {line:,} on: "
        says += f"the {lost} lost a line there"
    aligned = fmean(not offset for offset in best)
    yield Measure("lines that fit as they stand, share", aligned, "≥", 0.95, says)


def start_of_fall(steps: Sequence[float]) -> int:
    """Where the stretch begins whose steps have the lowest sum."""
    sums, peak, place, deepest = [*accumulate(steps, initial=0.0)], 0, 0, 0.0
    for here, height in enumerate(sums):
        if height > sums[peak]:
            peak = here
        elif sums[peak] - height > deepest:
            place, deepest = peak, sums[peak] - height
    return place


def likeness(pairs: Pairs, rows: range) -> Callable[[int, int], float]:
    """How alike source i and target j are: shared numbers, stems, signs; lengths."""
    sides = zip(*(pairs[i] for i in rows), strict=True)
    src_size, tgt_size = (sum(map(len, side)) or 1 for side in sides)

    @cache
    def marks(text: str) -> frozenset[str]:
        return frozenset(word.lower()[:4] for word in WORD.findall(text))

    def like(i: int, j: int) -> float:
        src, tgt = pairs[i][0], pairs[j][1]
        shared = len(marks(src) & marks(tgt)) / (len(marks(src) | marks(tgt)) or 1)
        lengths = (len(tgt) + 3) / (len(src) + 3)
        return shared - min(1.0, abs(math.log(lengths * src_size / tgt_size)))

    return like


def held_out_measures(
    train: Sides, langs: tuple[str, str], held: Mapping[str, Sides]
) -> Iterator[Measure]:
    """Whether what is held out was seen in training, or nearly so."""
    known = {*zip(*train, strict=False)}
    for name, sides in held.items():
        pairs = [*zip(*sides, strict=False)]
        leaked = fmean(pair in known for pair in pairs)
        says = f"pairs of {name} are in the training text: its score measures memory"
        yield Measure(f"{name} seen before, share", leaked, "≤", 0.01, says)
        some = pairs[:: len(pairs) // 500 + 1]
        new = sum(1 for _ in without_copies(some, known, langs))
        says = f"{name} has near copies in training, or both are made from patterns"
        yield Measure(f"{name} nearly seen, share", 1 - new / len(some), "≤", 0.1, says)
