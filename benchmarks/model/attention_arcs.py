"""Where each word of a translation looked, for the book's cover.

    python -m benchmarks.model.attention_arcs

Takes seconds and writes results/model/attention-arcs.json.
"""

from collections.abc import Sequence
from typing import Any

from annotated_transformer import load
from benchmarks.record import command_line, save_line

PLACE = "model/attention-arcs.json"
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    save_line(PLACE, arcs())


if __name__ == "__main__":
    main()
