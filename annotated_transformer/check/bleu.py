"""Checks of BLEU's two parts: clipped precision and the penalty for shortness, §6.1."""

from collections import Counter
from functools import partial
from math import exp, isclose

from ..translation.bleu import brevity_penalty as right_penalty
from ..translation.bleu import ngrams
from .assertions import reason, require
from .parts import Part, check_of

Runs = Counter[tuple[str, ...]]
_same = partial(isclose, rel_tol=1e-6, abs_tol=1e-6)

# Output, reference and n; the first pairs are plain, the others hold one trap each.
PAIRS = [
    ("the museum is out of mondays", "the museum is closed on mondays", 1),
    ("the museum is out of mondays", "the museum is closed on mondays", 2),
    ("the cat the cat the sofa", "the cat saw the dog", 1),
    ("a cat saw a cat saw a dog", "a cat saw a dog saw a cat", 2),
    ("was she born on march", "she was born on march", 2),
    ("she was born", "she was born on a day in march", 1),
    ("no yes no", "yes no maybe", 2),
    ("born in march", "she was born in march", 3),
    ("march", "she was born in march", 2),
]


@check_of("clipped_precision")
def clipped_precision(part: Part) -> str:
    """`clipped_precision(output, reference, n)`: a share, from 0 to 1.

    output and reference are lists of tokens. Of the runs of n neighbouring tokens in
    the output, the share that the reference has too; each counts at most as often as
    the reference has it. An output without such a run gets 0.
    """
    for one, other, n in PAIRS:
        output, reference = one.split(), other.split()
        given = list(output), list(reference)
        found = float(part.number(*given, n))
        require(
            given == (output, reference),
            "clipped_precision changes the lists that it is given, and the next n "
            "needs them: count in new ones.",
        )
        right = _precision(ngrams(output, n), ngrams(reference, n))
        require(
            _same(found, right),
            f"Of “{one}” the precision for n = {n} against “{other}” should be "
            f"{right:.4f} and is {found:.4f}{_reason(found, output, reference, n)}.",
        )
    return "each run counts at most as often as the reference has it"


@check_of("brevity_penalty")
def brevity_penalty(part: Part) -> str:
    """`brevity_penalty(c, r)`: a factor, from 0 to 1.

    c counts the tokens of the output and r those of the reference. It is 1 from equal
    length on, below that e^(1 − r/c), and 0 where nothing is written.
    """
    for c, r in ((10, 10), (12, 10), (5, 10), (7, 9), (0, 9)):
        found = float(part.number(c, r))
        right = right_penalty(c, r)
        require(
            _same(found, right),
            f"For {c} tokens where the reference has {r} the penalty should be "
            f"{right:.4f} and is {found:.4f}{_slip(found, c, r)}.",
        )
    return "1 from equal length on, and e^(1 − r/c) below"


def _precision(runs: Runs, others: Runs) -> float:
    """The clipped share of the runs that the others have too."""
    return (runs & others).total() / max(1, runs.total())


def _unordered(runs: Runs) -> Runs:
    return Counter(tuple(sorted(run)) for run in runs.elements())


def _reason(found: float, output: list[str], reference: list[str], n: int) -> str:
    """What gives the number that was found, of the usual mistakes."""
    runs, others = ngrams(output, n), ngrams(reference, n)
    shared, total = (runs & others).total(), max(1, runs.total())
    mistakes = {
        "it isn't clipped; a run counts at most as often as the reference has it": (
            sum(run in others for run in runs.elements()) / total
        ),
        "each run counts once, however often it occurs; count them, a set is too "
        "little": _precision(Counter({*runs}), Counter({*others})),
        "a run that both have counts once, however often both have it": (
            len({*runs} & {*others}) / total
        ),
        "each run of the reference is spent once, and the output's repetitions are "
        "left out of the whole": shared / max(1, len(runs)),
        "it divides by the runs of the reference, which is recall; divide by those of "
        "the output": shared / max(1, others.total()),
        "it divides by the number of tokens; there are fewer runs than tokens": (
            shared / len(output)
        ),
        "the last run is left out: there are len(tokens) − n + 1": (
            _precision(ngrams(output[:-1], n), ngrams(reference[:-1], n))
        ),
        "it compares runs without their order": (
            _precision(_unordered(runs), _unordered(others))
        ),
        "that is how many match; divide by the runs of the output": shared,
        "that is per cent; give a share, from 0 to 1": 100 * shared / total,
        "it counts single tokens, whatever n is": (
            _precision(ngrams(output, 1), ngrams(reference, 1))
        ),
    }
    return reason(found, mistakes, _same)


def _slip(found: float, c: int, r: int) -> str:
    """What gives the penalty that was found, of the usual mistakes."""
    if c == 0:
        return ": who writes nothing gets nothing"
    mistakes = {
        "the exponential is missing: e^(1 − r/c)": 1 - r / c,
        "it rewards an output that is too long; from equal length on it is 1": (
            exp(1 - r / c) if c > r else -1.0
        ),
        "it punishes an output that is too long; the precisions do that already": (
            exp(1 - c / r) if c > r else -1.0
        ),
        "r and c are exchanged: e^(1 − r/c)": exp(1 - c / r),
        "the sign is turned: e^(1 − r/c)": exp(r / c - 1),
        "that is the ratio of the lengths; the penalty is e^(1 − r/c)": c / r,
        "the 1 is missing: e^(1 − r/c)": exp(-r / c),
        "output that is too short isn't punished": 1.0,
    }
    return reason(found, mistakes, _same)
