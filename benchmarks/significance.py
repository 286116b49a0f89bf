"""Whether one system is better than another: paired tests over sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest, Result

from annotated_transformer.errors import UserError
from annotated_transformer.translation.bleu import (
    sentence_statistics,
    swap_differences,
    tokenize_13a,
)
from annotated_transformer.translation.references import reference_files


@dataclass(frozen=True)
class Comparison:
    """Two BLEU scores on one test set, half the width of each 95 % interval, and the
    p-value of their difference.
    """

    baseline: float
    baseline_interval: float
    system: float
    system_interval: float
    p_value: float


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    samples: int = 10_000,
) -> Comparison:
    """Two outputs for the same sentences by BLEU 13a: 1,000 draws for the intervals,
    `samples` trials for p.

    The test is approximate randomisation, two-sided (Riezler and Maxwell, 2005).

    Raises:
        UserError: as `reference_files`, or if samples is below 1.
    """
    if samples < 1:
        problem = f"samples is {samples}: draw at least one"
        raise UserError(f"{problem}, and thousands for a p-value worth quoting")
    reference_files(baseline, references)
    files = reference_files(system, references)
    outputs: list[tuple[str, Sequence[str]]] = [
        ("baseline", list(baseline)),
        ("system", list(system)),
    ]
    intervals = PairedTest(
        outputs, {"BLEU": BLEU()}, files, test_type="bs", n_samples=1_000
    )
    results = [each for each in intervals()[1]["BLEU"] if isinstance(each, Result)]
    first, second = ((each.score, float(each.ci or 0)) for each in results)
    difference = second[0] - first[0]
    p_value = _p_value(difference, baseline, system, files, samples)
    return Comparison(*first, *second, p_value)


def _p_value(
    difference: float,
    baseline: Sequence[str],
    system: Sequence[str],
    files: Sequence[Sequence[str]],
    samples: int,
) -> float:
    """The share of trials, the observed one among them, that differ as much or more."""
    cut = [[tokenize_13a(line) for line in file] for file in (baseline, system, *files)]
    first, second = (
        [
            sentence_statistics(line, others)
            for line, *others in zip(side, *cut[2:], strict=True)
        ]
        for side in cut[:2]
    )
    observed = abs(difference) - 1e-6  # a trial that equals it to rounding counts
    trials = swap_differences(first, second, samples)
    return (sum(abs(trial) >= observed for trial in trials) + 1) / (samples + 1)
