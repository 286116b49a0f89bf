"""Count the English words per sentence of the named corpora and record them in
results/paper/corpora.json.

Run: ANNOTATED_TRANSFORMER_DATA=... python -m benchmarks.paper.corpora   (without the
variable, the corpora are downloaded)
"""

import json
from collections import Counter
from pathlib import Path

from annotated_transformer.data.corpus import load_corpus
from benchmarks.record import RESULTS, arguments

CORPORA = {
    "Tatoeba": ("tatoeba", "all"),
    "Multi30k": ("multi30k", "train"),
    "newstest2014": ("wmt14", "test"),
    "IWSLT 2017, talks of 2010–2015": (
        "iwslt17",
        "dev2010 tst2010 tst2011 tst2012 tst2013 tst2014 tst2015",
    ),
    "IWSLT 2014, valid": ("iwslt14", "valid"),
}


def count(name: str, splits: str) -> dict:
    """Pairs, mean length, and the number of sentences of each length."""
    lengths = Counter(
        len(en.split())
        for split in splits.split()
        for en, _ in load_corpus(name, split, "en", "de")
    )
    pairs = sum(lengths.values())
    mean = sum(length * number for length, number in lengths.items()) / pairs
    return {
        "pairs": pairs,
        "mean": mean,
        "lengths": [lengths[n] for n in range(max(lengths) + 1)],
    }


if __name__ == "__main__":
    arguments(__doc__)
    found = {label: count(*where) for label, where in CORPORA.items()}
    record = {
        "command": "python -m benchmarks.paper.corpora",
        "counted": "English words between spaces",
        "corpora": found,
    }
    path = RESULTS / "paper" / "corpora.json"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    print(
        {
            label: (corpus["pairs"], round(corpus["mean"], 1))
            for label, corpus in found.items()
        }
    )
