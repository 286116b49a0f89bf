"""Compare our Moses tokens of Multi30k with those behind the published scores.

    git clone https://github.com/LividWo/Revisit-MMT
    python -m benchmarks.paper.multi30k_text Revisit-MMT/data/multi30k-en-de

That text is in byte pairs, joined by "@@ " and with a few entities; both are undone
first, and lines are compared one by one. Multi30k is downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Takes a minute and writes
results/paper/multi30k-text.json, which nbs/translation/multi30k.ipynb shows.
"""

import html
from collections.abc import Sequence
from pathlib import Path

from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import moses_tokenize
from benchmarks.record import command_line, folder, save

NAMES = {
    "train": "train",
    "val": "valid",
    "test_2016_flickr": "test.2016",
    "test_2017_flickr": "test.2017",
    "test_2017_mscoco": "test.coco",
}


def words(path: Path) -> list[str]:
    """Their lines without the cuts of byte-pair encoding."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [html.unescape(line.replace("@@ ", "")) for line in lines]


def compare(ours: list[str], theirs: list[str]) -> dict[str, int]:
    """How many lines differ, and how many of those only in the order of characters."""
    differ = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    same = [sorted("".join(a.split())) == sorted("".join(b.split())) for a, b in differ]
    return {
        "lines": len(ours),
        "differ": len(differ),
        "same_characters": sum(same),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Compare both sides of each split and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=folder, help="the published text")
    place, found = parser.parse_args(argv).folder, {}
    for split, name in NAMES.items():
        sides = zip(*load_corpus("multi30k", split, "en", "de"), strict=True)
        for lang, lines in zip(("en", "de"), sides, strict=True):
            ours = moses_tokenize(lines, lang, lowercase=True)
            row = compare(ours, words(place / f"{name}.{lang}"))
            found.setdefault(split, {})[lang] = row
            print(split, lang, row)
    save("paper/multi30k-text.json", {"splits": found})


if __name__ == "__main__":
    main()
