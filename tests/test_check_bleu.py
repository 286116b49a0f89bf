"""The checks of BLEU's parts: right ways pass, each mistake gets its reason."""

from collections import Counter
from math import exp

import pytest

from annotated_transformer import check
from annotated_transformer.check.bleu import PAIRS
from annotated_transformer.translation import bleu

PRECISION = """
def clipped_precision(output, reference, n):
    def runs(tokens):
        return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))

    found, allowed = runs(output), runs(reference)
    shared = sum(min(count, allowed[run]) for run, count in found.items())
    total = sum(found.values())
    return shared / total if total else 0.0
"""
PENALTY = """
def brevity_penalty(c, r):
    if c >= r:
        return 1.0
    return exp(1 - r / c) if c else 0.0
"""
RETURN = "return shared / total if total else 0.0"
SHORT = "return exp(1 - r / c) if c else 0.0"


def verdict(source, old="", new=""):
    """What the check says when a piece of the plain solution is another."""
    assert old in source
    names = {"Counter": Counter, "exp": exp}
    exec(source.replace(old, new, 1), names)
    name = source.split("(")[0].removeprefix("\ndef ")
    return getattr(check, name)(names[name])


@pytest.mark.parametrize("source", [PRECISION, PENALTY])
def test_the_plain_solution_passes(source):
    found = verdict(source)
    assert found and "is right: " in str(found), found


def test_the_packages_parts_pass():
    def clipped_precision(output, reference, n):
        total = bleu.ngrams(output, n).total()
        return bleu.clipped_matches(output, [reference], n) / total if total else 0

    assert check.clipped_precision(clipped_precision)
    assert check.brevity_penalty(bleu.brevity_penalty)


MISTAKES = [
    ("min(count, allowed[run])", "count * (run in allowed)", "it isn't clipped"),
    (
        "min(count, allowed[run])",
        "min(1, allowed[run])",
        "a run that both have counts once",
    ),
    (
        "Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))",
        "Counter({tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)})",
        "each run counts once, however often it occurs",
    ),
    ("sum(found.values())", "len(output)", "divides by the number of tokens"),
    ("sum(found.values())", "sum(allowed.values())", "which is recall"),
    ("sum(found.values())", "len(found)", "left out of the whole"),
    ("len(tokens) - n + 1", "len(tokens) - n", "the last run is left out"),
    ("tuple(tokens[i : i + n])", "frozenset(tokens[i : i + n])", "without their order"),
    ("tuple(tokens[i : i + n])", "tokens[i]", "and is"),
    (RETURN, "return shared", "that is how many match"),
    (RETURN, "return 100 * shared / max(1, total)", "that is per cent"),
    (RETURN, "return shared / total", "raised ZeroDivisionError"),
    (RETURN, "shared / total if total else 0.0", "`return` missing"),
    (RETURN, "return shared, total", "should return one number"),
    ("found, allowed", "output.sort(); found, allowed", "changes the lists"),
]


@pytest.mark.parametrize(("old", "new", "words"), MISTAKES)
def test_each_mistake_in_a_precision_gets_its_reason(old, new, words):
    found = verdict(PRECISION, old, new)
    assert not found and words in str(found), found


SLIPS = [
    ("1 - r / c", "1 - c / r", "r and c are exchanged"),
    ("1 - r / c", "r / c - 1", "the sign is turned"),
    ("1 - r / c", "-r / c", "the 1 is missing"),
    (SHORT, "return c / r", "the ratio of the lengths"),
    (SHORT, "return 1 - r / c", "the exponential is missing"),
    (SHORT, "return 1.0", "isn't punished"),
    (SHORT, "return exp(1 - r / c)", "raised ZeroDivisionError"),
    (SHORT, "return exp(1 - r / c) if c else 1.0", "who writes nothing"),
    ("if c >= r", "if c == r", "rewards an output that is too long"),
    (
        "if c >= r:\n        return 1.0",
        "if c >= r:\n        return exp(1 - c / r)",
        "punishes an output that is too long",
    ),
    ("if c >= r", "if c > r", ""),
]


@pytest.mark.parametrize(("old", "new", "words"), SLIPS)
def test_each_mistake_in_a_penalty_gets_its_reason(old, new, words):
    found = verdict(PENALTY, old, new)
    assert bool(found) == (not words) and words in str(found), found


def test_a_penalty_that_is_no_number_is_refused():
    assert "one number" in str(check.brevity_penalty(lambda c, r: "1"))
    assert "one number" in str(check.brevity_penalty(lambda c, r: float("nan")))


def test_the_pairs_tell_the_traps_apart():
    """On some pair clipping, order and the whole make a difference."""
    shares = [bleu.clipped_matches(a.split(), [b.split()], n) for a, b, n in PAIRS]
    assert len(set(shares)) > 3


def test_what_raises_not_implemented_is_not_yet_written():
    def clipped_precision(output, reference, n):
        raise NotImplementedError

    assert str(check.clipped_precision(clipped_precision)) == "not yet written"
