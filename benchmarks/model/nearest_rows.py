"""Which rows of the everyday model's embedding lie nearest to each other.

    python -m benchmarks.model.nearest_rows

Takes seconds and writes results/model/nearest-rows.json, for the chapter on embeddings.
"""

import re
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from annotated_transformer import load
from benchmarks.record import command_line, save_line

PLACE = "model/nearest-rows.json"
ASKED, NEAREST = 3000, 4  # the most frequent tokens, and how many rows each finds
LETTERS = re.compile(r"▁?[^\W\d_]+")


def rows() -> dict[str, Any]:
    """The names of tokens; of each that can be asked for, the nearest rows' numbers in
    that list and 100 times their cosines; and what a random vector finds.
    """
    translator = load("tatoeba-en-de", engine="plain")
    vocabulary = translator.tokenizer.target
    table = F.normalize(translator.model.tgt_embedding.weight.detach(), dim=1)
    token = vocabulary.id_to_token
    asked = [i for i in range(ASKED) if LETTERS.fullmatch(token(i))]
    cosines, places = (table[asked] @ table.T).topk(NEAREST + 1)
    others = sorted(set(places.flatten().tolist()) - set(asked))
    number = {i: n for n, i in enumerate([*asked, *others])}
    nearest = [
        [value for i, x in pairs[1:] for value in (number[i], round(100 * x))]
        for pairs in (
            list(zip(*each, strict=True))
            for each in zip(places.tolist(), cosines.tolist(), strict=True)
        )
    ]
    torch.manual_seed(0)
    random = F.normalize(torch.randn(1000, table.size(1)), dim=1)
    chance = (random @ table.T).amax(dim=1).mean().item()
    names = [token(i) for i in number]
    return {"names": names, "nearest": nearest, "chance": round(chance, 2)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    save_line(PLACE, rows())


if __name__ == "__main__":
    main()
