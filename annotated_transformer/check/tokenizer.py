"""The check of byte-pair encoding's learning, §5.1."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from ..data.tokenizer import learn_merges as learned
from ..data.tokenizer import merge
from .verdict import Part, Wrong, call, check_of, described, require

Word: TypeAlias = tuple[str, ...]
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
    found = _merges(call("learn_merges", part, dict(counts), STEPS))
    for left, right in found:
        require(
            any(left + right in text for text in WORDS),
            f"No word holds {left} + {right}: pairs reach from one word into the next; "
            "count neighbours inside each word.",
        )
    for sentence, wrong in mistakes(counts).items():
        require(found[: len(wrong)] != wrong, sentence)
    said = ", ".join(f"{word} ×{count}" for word, count in WORDS.items())
    _compare(found, learned(counts, STEPS), said)
    _whole_symbols(part)
    _stop(part)
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


def _compare(found: Sequence[Pair], right: Sequence[Pair], words: str) -> None:
    """Raises: Wrong that names the first merge that differs."""
    for i, (one, other) in enumerate(zip(found, right, strict=False), 1):
        require(
            one == other,
            f"With {words}, merge {i} should be {' + '.join(other)} and is "
            f"{' + '.join(one)}.",
        )
    require(
        len(found) == len(right),
        f"With {words}, there should be {len(right)} merges and there are "
        f"{len(found)}.",
    )


def mistakes(counts: dict[Word, int]) -> dict[str, list[Pair]]:
    """What typical mistakes learn, by the sentence that each gets."""
    once = dict.fromkeys(counts, 1)
    last = "of pairs that occur equally often, take the alphabetically last"
    return {
        "Each word counts once: a pair in a word that occurs six times occurs six "
        "times, so add the word's count.": learned(once, STEPS),
        f"Ties go to the alphabetically first: {last}.": _learn(
            counts, lambda pairs: min(pairs, key=lambda pair: (-pairs[pair], pair))
        ),
        f"Ties go to the pair that is met first: {last}, so that the order of the "
        "words makes no difference.": _learn(
            counts, lambda pairs: pairs.most_common(1)[0][0]
        ),
        "The words stay as they were, so the same pair wins again: join it in every "
        "word before you count anew.": learned(counts, 1) * STEPS,
    }


def _learn(
    counts: dict[Word, int], best: Callable[[Counter[Pair]], Pair]
) -> list[Pair]:
    """Byte-pair encoding with another way to choose."""
    words, merges = list(counts.items()), []
    for _ in range(STEPS):
        pairs: Counter[Pair] = Counter()
        for word, count in words:
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += count
        merges.append(best(pairs))
        words = [(merge(word, merges[-1]), count) for word, count in words]
    return merges


def _whole_symbols(part: Part) -> None:
    """A pair of symbols isn't a piece of text: e + n isn't in the symbols te, n."""
    counts = {("te", "n"): 5, ("e", "n", "t"): 6, ("t", "e", "n"): 1}
    found = _merges(call("learn_merges", part, dict(counts), 3))
    require(
        ("te", "n") in found,
        "A merge joins two whole symbols: e + n isn't in the word of the two symbols "
        "te and n, though the letters are. Compare symbols, not pieces of a string.",
    )
    _compare(found, learned(counts, 3), "e·n·t ×6, te·n ×5, t·e·n ×1")


def _stop(part: Part) -> None:
    """Fewer merges than asked for, where there is nothing left that pays."""
    ends = "stop when no pair is left that occurs twice"
    counts = {("t", "o"): 2, ("o", "f"): 1}
    found = _merges(call("learn_merges", part, dict(counts), 9, hint=ends))
    require(
        found == [("t", "o")],
        f"With to ×2 and of ×1, it should learn t + o alone and learns {found}: "
        f"{ends}.",
    )
    lone = call("learn_merges", part, {("a",): 7}, 1, hint=ends)
    require(not _merges(lone), "A word of one symbol has no pair to learn.")
