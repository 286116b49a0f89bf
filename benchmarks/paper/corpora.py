"""Count the English words in each sentence of the named corpora, and how much of a
random test set of Tatoeba is known from training.

    python -m benchmarks.paper.corpora

Takes two minutes and writes results/paper/corpora.json, which nbs/data/pairs.ipynb
draws. The corpora are downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that
holds them.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.near_copies import NearCopies, sketch
from benchmarks.record import command_line, save

TALKS = "dev2010 tst2010 tst2011 tst2012 tst2013 tst2014 tst2015".split()
CORPORA = {
    "Tatoeba": ("tatoeba", ["all"]),
    "Multi30k": ("multi30k", ["train"]),
    "newstest2014": ("wmt14", ["test"]),
    "IWSLT 2017, talks of 2010–2015": ("iwslt17", TALKS),
    "IWSLT 2014, valid": ("iwslt14", ["valid"]),
}


def count(name: str, splits: list[str]) -> dict:
    """Pairs, mean length, and the number of sentences of each length."""
    lengths = Counter(
        len(en.split())
        for split in splits
        for en, _ in load_corpus(name, split, "en", "de")
    )
    pairs = sum(lengths.values())
    return {
        "pairs": pairs,
        "mean": sum(length * number for length, number in lengths.items()) / pairs,
        "lengths": [lengths[n] for n in range(max(lengths) + 1)],
    }


def leaks(held: int = 1_692) -> dict:
    """Of so many pairs of Tatoeba at random: how many have a side that the rest has,
    letter for letter and as a near copy.
    """
    pairs = list(load_corpus("tatoeba", "all", "en", "de"))
    Random(0).shuffle(pairs)
    test, train = pairs[:held], pairs[held:]
    same, near = set(), set()
    for side, lang in enumerate(("en", "de")):
        texts = {pair[side] for pair in train}
        copies = NearCopies(sketch(text, lang) for text in texts)
        same |= {n for n, pair in enumerate(test) if pair[side] in texts}
        near |= {n for n, pair in enumerate(test) if sketch(pair[side], lang) in copies}
    return {"held out": held, "same text": len(same), "near copy": len(near)}


def main(argv: Sequence[str] | None = None) -> None:
    """Count every corpus and write the record."""
    command_line(__doc__).parse_args(argv)
    found = {label: count(*where) for label, where in CORPORA.items()}
    leaked = leaks()
    save(
        "paper/corpora.json",
        {
            "counted": "English words between spaces",
            "corpora": found,
            "at random": leaked,
        },
    )
    for label, corpus in found.items():
        print(f"{label}: {corpus['pairs']:,} pairs, {corpus['mean']:.1f} words")
    print(f"Tatoeba at random: {leaked}")


if __name__ == "__main__":
    main()
