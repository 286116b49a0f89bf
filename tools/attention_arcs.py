"""Record where each word of a translation looked, for the book's cover: python -m
tools.attention_arcs.
"""

import json
from pathlib import Path
from typing import Any

from annotated_transformer import load

FILE = Path(__file__).resolve().parents[1] / "results" / "model" / "attention-arcs.json"
SOURCE = "I don't know where she lives."
START = "▁wohnt"  # the word that is shown first


def arcs() -> dict[str, Any]:
    """The tokens, and the mean weights of the last decoder layer's heads."""
    look = load("tatoeba-en-de", engine="plain").attention(SOURCE)
    weights = look.cross[-1].mean(0)
    return {
        "source": look.source,
        "target": look.target,
        "weights": [[round(x, 2) for x in row] for row in weights.tolist()],
        "start": look.target.index(START),
    }


def main() -> None:
    """Write the record."""
    FILE.write_text(json.dumps(arcs(), ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
