"""BLEU over the beam and the length penalty, on everyday sentences (§6.1).

    python -m benchmarks.paper.search_grid

Translates every third sentence of Tatoeba's test split with the model in the wheel, by
beams of 1 to 16 and length penalties of 0 to 1. The corpus is downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Each setting is compared with
the paper's, a beam of 4 and α = 0.6, by a paired bootstrap: both are scored on the same
1,000 draws of sentences. Takes about ten minutes of one core. Writes
results/paper/search-grid.json, which nbs/translation/multi30k.ipynb plots.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from annotated_transformer import load
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.translation.bleu import (
    BleuStatistics,
    bleu_of,
    sentence_statistics,
    tokenize_13a,
)
from benchmarks.record import command_line, save

BEAMS, ALPHAS = (1, 2, 4, 8, 16), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
PAPER = (4, 0.6)  # beam and α
STEP, DRAWS = 3, 1_000


def counts(outputs: list[str], references: list[str]) -> np.ndarray:
    """What each sentence adds to BLEU 13a: matches, totals and two lengths."""
    rows = [
        sentence_statistics(tokenize_13a(line), [tokenize_13a(other)])
        for line, other in zip(outputs, references, strict=True)
    ]
    return np.array(
        [
            [*row.matches, *row.totals, row.hypothesis_length, row.reference_length]
            for row in rows
        ]
    )


def bleu(sums: np.ndarray) -> float:
    """BLEU of counts that were added up."""
    numbers = sums.tolist()
    return bleu_of(
        BleuStatistics(tuple(numbers[:4]), tuple(numbers[4:8]), *numbers[8:])
    )


def compared(found: dict[tuple[int, float], np.ndarray]) -> list[dict]:
    """BLEU by setting, and the middle 95 % of its distance from the paper's."""
    size = len(found[PAPER])
    draws = np.random.default_rng(0).multinomial(size, [1 / size] * size, DRAWS)
    drawn = {
        setting: np.array([bleu(sums) for sums in draws @ table])
        for setting, table in found.items()
    }
    rows, base = [], bleu(found[PAPER].sum(0))
    for (beam_size, alpha), table in found.items():
        apart = drawn[beam_size, alpha] - drawn[PAPER]
        value = bleu(table.sum(0))
        rows.append(
            {
                "beam_size": beam_size,
                "alpha": alpha,
                "bleu": round(value, 3),
                "apart": round(value - base, 3),
                "interval": np.percentile(apart, [2.5, 97.5]).round(3).tolist(),
                "length": round(float(table[:, 8].sum() / table[:, 9].sum()), 4),
            }
        )
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """Translate by every setting, and write the record."""
    parser = command_line(__doc__)
    parser.parse_args(argv)
    pairs = list(islice(load_corpus("tatoeba", "test", "en", "de"), 0, None, STEP))
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    translator, found = load(engine="torch"), {}
    for beam_size, alpha in [
        *((size, PAPER[1]) for size in BEAMS),
        *((PAPER[0], alpha) for alpha in ALPHAS if alpha != PAPER[1]),
    ]:
        options = SearchOptions(beam_size=beam_size, alpha=alpha)
        outputs = translator.translate(sources, options, split=True)
        found[beam_size, alpha] = counts(outputs, targets)
    record = {
        "model": "tatoeba-en-de, the model in the wheel",
        "test": "every third sentence of Tatoeba's test split",
        "sentences": len(sources),
        "draws": DRAWS,
        "rows": compared(found),
    }
    save("paper/search-grid.json", record)


if __name__ == "__main__":
    main()
