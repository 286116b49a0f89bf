"""Compare our lower-cased Moses tokens of Multi30k with the text that goes with the
published scores, line by line.

    git clone https://github.com/LividWo/Revisit-MMT
    python -m benchmarks.paper.multi30k_text Revisit-MMT/data/multi30k-en-de

That text is in byte pairs, joined by "@@ " and with a few entities; both are undone
first. Needs ANNOTATED_TRANSFORMER_DATA (Multi30k). Writes results/paper/multi30k-text.json,
which nbs/translation/multi30k.ipynb shows.
"""

import html
import json
from pathlib import Path

from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.tokenizer import moses_tokenize
from benchmarks.record import RESULTS, arguments, folder

OUT = RESULTS / "paper" / "multi30k-text.json"
NAMES = {
    "train": "train",
    "val": "valid",
    "test_2016_flickr": "test.2016",
    "test_2017_flickr": "test.2017",
    "test_2017_mscoco": "test.coco",
}


def words(path: Path) -> list[str]:
    """Their lines without the cuts of byte-pair encoding."""
    return [
        html.unescape(line.replace("@@ ", ""))
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]
    ]


def main(folder: Path) -> None:
    """Count the lines that differ, and those of them that have the same characters,
    spaces aside, in another order.
    """
    found: dict = {}
    for split, name in NAMES.items():
        sides = zip(*load_corpus("multi30k", split, "en", "de"), strict=True)
        for lang, lines in zip(("en", "de"), sides, strict=True):
            theirs, ours = (
                words(folder / f"{name}.{lang}"),
                moses_tokenize(lines, lang, lowercase=True),
            )
            differ = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
            same = sum(
                sorted("".join(a.split())) == sorted("".join(b.split()))
                for a, b in differ
            )
            found.setdefault(split, {})[lang] = {
                "lines": len(ours),
                "differ": len(differ),
                "same_characters": same,
            }
    print(found)
    command = "python -m benchmarks.paper.multi30k_text Revisit-MMT/data/multi30k-en-de"
    OUT.write_text(
        json.dumps({"command": command, "splits": found}, indent=1) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(*arguments(__doc__, folder=folder))
