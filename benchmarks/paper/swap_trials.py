"""How far apart two newstest2017 outputs are when coins swap their sentences.

    python -m benchmarks.paper.swap_trials

Needs ANNOTATED_TRANSFORMER_DATA, as newstest2017_bleu. Takes about half a minute and
writes results/paper/swap-trials.json, which nbs/translation/bleu.ipynb plots.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotated_transformer.translation.bleu import (
    bleu_of,
    bleu_statistics,
    sentence_statistics,
    swap_differences,
    tokenize_13a,
)
from benchmarks.paper.newstest2017_bleu import read_lines
from benchmarks.record import command_line, corpora, save

PAIRS = [("uedin-nmt", "KIT"), ("SYSTRAN", "RWTH-nmt-ensemble")]
TRIALS = 10_000
EDGES = np.linspace(-1.0, 1.0, 41)


def swap_trials(data: Path) -> list[dict]:
    """For each pair the gap, and how many trials fall into each bin."""
    text = (data / "reference/wmt-system-outputs/published-scores.json").read_text()
    entries = {each["system"].split(".")[1]: each for each in json.loads(text)}
    found = []
    for names in PAIRS:
        files = [data / entries[name]["file"] for name in names]
        cut = [
            [tokenize_13a(line) for line in read_lines(file)]
            for file in (*files, data / entries[names[0]]["reference"])
        ]
        first, second = (
            [sentence_statistics(a, [b]) for a, b in zip(side, cut[2], strict=True)]
            for side in cut[:2]
        )
        ahead, behind = (bleu_of(bleu_statistics(side, cut[2])) for side in cut[:2])
        # a difference is the second output minus the first
        trials = np.array(swap_differences(first, second, TRIALS))
        counts, _ = np.histogram(trials, EDGES)
        found.append(
            {
                "systems": names,
                "gap": round(ahead - behind, 4),
                "counts": counts.tolist(),
                "reached": int((abs(trials) >= ahead - behind - 1e-6).sum()),
            }
        )
    return found


FIELDS = {
    "gap": "BLEU 13a of the first system minus that of the second",
    "edges": "the bounds of the bins, BLEU points",
    "counts": "trials whose difference lies in each bin, of `trials`",
    "reached": "trials whose difference is at least as large as the gap, either way",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Toss the coins and write the record."""
    parser = command_line(__doc__)
    parser.parse_args(argv)
    data = corpora(parser)
    what = "approximate randomisation, newstest2017 German to English, 3004 sentences"
    found = {"what": what, "fields": FIELDS, "trials": TRIALS}
    found |= {"edges": EDGES.round(2).tolist(), "pairs": swap_trials(data)}
    save("paper/swap-trials.json", found)


if __name__ == "__main__":
    main()
