"""The check of byte-pair encoding's learning, §5.1."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from ..data.tokenizer import learn_merges as learned
from .assertions import Wrong, require
from .parts import Part, check_of, described

Pair: TypeAlias = tuple[str, str]

# No letter thrice in a row, so that it makes no difference how overlaps are counted.
WORDS = {"six": 6, "at": 9, "sixty": 4, "no": 12, "ninetynine": 5}
STEPS = 7


@check_of("learn_merges")
def learn_merges(part: Part) -> str:
    """`learn_merges(counts, steps)`: the merges as pairs, in the order learned.

    counts gives each word, a tuple of symbols, the number of times that it occurs. Each
    step takes the most frequent pair of neighbours, of several the alphabetically last,
    and joins it in all words. It stops when no pair occurs twice.
    """
    counts = {tuple(text): count for text, count in WORDS.items()}
    found = _merges(part(dict(counts), STEPS))
    for left, right in found:
        require(
            any(left + right in text for text in WORDS),
            f"No word holds {left} + {right}: pairs reach from one word into the next; "
            "count neighbours inside each word.",
        )
    once = dict.fromkeys(counts, 1)
    require(
        found != learned(once, STEPS),
        "Each word counts once: a pair in a word that occurs six times occurs six "
        "times, so add the word's count.",
    )
    require(
        found != learned(counts, 1) * STEPS,
        "The words stay as they were, so the same pair wins again: join it in every "
        "word before you count anew.",
    )
    said = ", ".join(f"{word} ×{count}" for word, count in WORDS.items())
    _compare(part, counts, said)
    _compare(part, {("t", "o"): 2, ("o", "f"): 1}, "to ×2, of ×1")
    _compare(part, {("a",): 7}, "a ×7, a word without a pair")
    symbols = {("te", "n"): 5, ("e", "n", "t"): 6, ("t", "e", "n"): 1}
    _compare(part, symbols, "the symbols e·n·t ×6, te·n ×5, t·e·n ×1")
    return "the most frequent pair each time, ties to the last of the alphabet"


def _merges(found: Any) -> list[Pair]:
    """What the reader's function returned, as a list of tuples.

    Raises: Wrong for anything else than pairs of symbols.
    """
    wanted = "a list of pairs, such as [('s', 'i'), ('si', 'x')]"
    if isinstance(found, str | dict) or not isinstance(found, Iterable):
        raise Wrong(f"learn_merges should return {wanted}, not {described(found)}.")
    merges = list(found)
    for each in merges:
        pair = isinstance(each, tuple | list) and len(each) == 2
        require(
            pair and all(isinstance(symbol, str) for symbol in each),
            f"learn_merges should return {wanted}; one of its merges is {each!r}.",
        )
    return [(left, right) for left, right in merges]


def _compare(part: Part, counts: dict[tuple[str, ...], int], words: str) -> None:
    """Raises: Wrong that names the first merge that differs."""
    found, right = _merges(part(dict(counts), STEPS)), learned(counts, STEPS)
    for i, (one, other) in enumerate(zip(found, right, strict=False), 1):
        require(
            one == other,
            f"With {words}, merge {i} should be {' + '.join(other)} and is "
            f"{' + '.join(one)}: the most frequent pair of neighbours in words as they "
            "are by now, and of several the alphabetically last.",
        )
    require(
        len(found) == len(right),
        f"With {words}, the merges should be {right} and are {found}: symbols are "
        "wholes, and the end is where no pair is left that occurs twice.",
    )
