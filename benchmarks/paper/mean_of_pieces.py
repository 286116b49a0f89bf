"""The mean of a model and of one that went on from it with fewer pieces.

    python -m benchmarks.paper.mean_of_pieces runs/mean runs/fourth/model runs/whole

Where the second lacks a piece (see benchmarks/paper/rare_pieces.py), the first's row of
the embedding stays: no source is cut into such a piece any more, and the output may
still write it, so the target's tokenizer keeps its merges. Writes the third folder.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer

from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.translation.translator import Translator
from benchmarks.paper.rare_pieces import MATRIX
from benchmarks.record import command_line, folder


def with_merges_of(whole: Tokenizer, fewer: Tokenizer) -> Tokenizer:
    """A tokenizer with all its ids, and the merges of another."""
    about, other = (json.loads(each.to_str()) for each in (whole, fewer))
    about["model"]["merges"] = other["model"]["merges"]
    return Tokenizer.from_str(json.dumps(about))


def main(argv: Sequence[str] | None = None) -> None:
    """Read both, write their mean."""
    parser = command_line(__doc__)
    parser.add_argument("first", type=folder, help="the folder of a model")
    parser.add_argument("second", type=folder, help="one with fewer pieces")
    parser.add_argument("out", type=Path, help="the folder to write")
    given = parser.parse_args(argv)
    first, second = (
        Translator.from_pretrained(each, device="cpu", engine="plain")
        for each in (given.first, given.second)
    )
    model, tokenizer, fewer = first.model, first.tokenizer, second.tokenizer
    old, new = model.state_dict(), second.model.state_dict()
    ids = fewer.source.get_vocab()
    places = [tokenizer.source.token_to_id(piece) for piece in sorted(ids, key=ids.get)]
    new[MATRIX] = old[MATRIX].index_copy(0, torch.tensor(places), new[MATRIX])
    model.load_state_dict({name: (old[name] + new[name]) / 2 for name in old})
    cut = with_merges_of(tokenizer.source, fewer.source)
    save_model(given.out, model, replace(tokenizer, source=cut))


if __name__ == "__main__":
    main()
