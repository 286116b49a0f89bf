"""Leave the pieces out of a model's vocabulary that its training text hardly has.

    python -m benchmarks.paper.rare_pieces runs/mean runs/third/data/train runs/fewer

A piece that was read seven times in a million sentences has an embedding that nobody
trained, and a name with such a piece comes out as another. So merges are left out whose
piece both sides have fewer than 300 times, and which no more frequent piece is made of;
the words are then cut into pieces that are trained (the threshold of Sennrich et al.,
2017, for the vocabulary instead of the text). Their rows leave the embedding, and the
other weights stay. Writes the third folder, and results/paper/rare-pieces.json with the
names of benchmarks/paper/robustness.py that either model copies. Needs the corpus as
that does; two minutes.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import torch
from tokenizers import Tokenizer

from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.data.tokenizer_files import SPECIAL
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import sides
from benchmarks.paper.robustness import SENTENCES, copying, unseen_names
from benchmarks.record import command_line, folder, save

LEAST = 300
EXAMPLE = "zburg"  # as in Günzburg
MATRIX = "tgt_embedding.weight"  # the only one: the vocabulary is shared
Merge = tuple[str, str]


def needed(merges: Sequence[Merge], frequent: set[str]) -> list[Merge]:
    """The merges that make a frequent piece or a part of one."""
    parts = {a + b: (a, b) for a, b in merges}
    found, pending = set(frequent), list(frequent)
    while pending:
        new = set(parts.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return [(a, b) for a, b in merges if a + b in found]


def without_rare(tokenizer: Tokenizer, counts: np.ndarray) -> tuple[Tokenizer, list]:
    """The tokenizer with fewer merges, and the ids of the pieces that stay, in order.

    Single characters and special tokens all stay.
    """
    about = json.loads(tokenizer.to_str())
    ids, merges = about["model"]["vocab"], about["model"]["merges"]
    kept = needed(merges, {piece for piece, i in ids.items() if counts[i] >= LEAST})
    made = {a + b for a, b in kept}
    stays = [
        piece
        for piece in sorted(ids, key=lambda piece: ids[piece])
        if len(piece) == 1 or piece in SPECIAL or piece in made
    ]
    about["model"]["merges"] = kept
    about["model"]["vocab"] = {piece: i for i, piece in enumerate(stays)}
    return Tokenizer.from_str(json.dumps(about)), [ids[piece] for piece in stays]


def names_copied(model: Path, known: str) -> float:
    """The share of unseen names that come out whole."""
    asked = unseen_names(Random("copying"), known, SENTENCES)
    rows = copying(Translator.from_pretrained(model), asked).values()
    whole = sum(row["copied"] * row["sentences"] for row in rows)
    return round(whole / len(asked), 3)


def main(argv: Sequence[str] | None = None) -> None:
    """Read a model and its training text, write the smaller model."""
    parser = command_line(__doc__)
    parser.add_argument("model", type=folder, help="the folder of a model")
    parser.add_argument("text", type=folder, help="its tokenized training pairs")
    parser.add_argument("out", type=Path, help="the folder to write")
    given = parser.parse_args(argv)
    translator = Translator.from_pretrained(given.model, device="cpu", engine="plain")
    model, tokenizer = translator.model, translator.tokenizer
    text, size = TokenizedPairs.open(given.text), tokenizer.src_vocab_size
    both = np.concatenate((text.src_tokens, text.tgt_tokens))
    counts = np.bincount(both, minlength=size)
    fewer, stays = without_rare(tokenizer.source, counts)
    sizes = {"src_vocab_size": len(stays), "tgt_vocab_size": len(stays)}
    smaller = Transformer(replace(model.config, **sizes))
    weights = model.state_dict()
    smaller.load_state_dict(weights | {MATRIX: weights[MATRIX][torch.tensor(stays)]})
    save_model(given.out, smaller, replace(tokenizer, source=fewer, target=fewer))
    known = " ".join(sides("tatoeba", "all")[0])
    found = {
        "pairs": len(text),
        "least": LEAST,
        "pieces": {"before": size, "after": len(stays)},
        "an example": {EXAMPLE: int(counts[tokenizer.source.token_to_id(EXAMPLE)])},
        "names copied": {
            "before": names_copied(given.model, known),
            "after": names_copied(given.out, known),
        },
    }
    print(found)
    save("paper/rare-pieces.json", found, "tokenizers")


if __name__ == "__main__":
    main()
