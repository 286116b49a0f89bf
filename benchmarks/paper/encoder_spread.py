"""How different the encoder's outputs at the positions of one sentence still are.

    python -m benchmarks.paper.encoder_spread runs/multi30k-en-de-tiny runs/collapsed

Measured at the checkpoints of two runs. The second was started from commit e0f1eaa,
where queries, keys and values were drawn each with the full Glorot variance; the first
from aec8725, which draws them as one matrix. Nothing else differs in their training,
but the draw of nearly all weights changes with it. Multi30k is downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Takes some minutes and writes
results/paper/encoder-spread.json, which nbs/translation/multi30k.ipynb cites.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from annotated_transformer.data.batching import TokenizedPairs, collate
from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.training.checkpoint import checkpoints, load_model
from benchmarks.record import command_line, folder, save


@torch.inference_mode()
def spread(checkpoint: Path, sentences: int = 100) -> float:
    """Share of the encoder output's squared length that is not common to all positions
    of its sentence.
    """
    model, tokenizer = load_model(checkpoint)
    pairs = list(load_corpus("multi30k", "val", "en", "de"))[:sentences]
    batch = collate(TokenizedPairs.build(pairs, tokenizer), list(range(sentences)))
    memory, mask = model.encode(batch.src)
    real = mask[:, 0, 0, :, None]
    common = (memory * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
    return (
        (((memory - common) * real) ** 2).sum() / ((memory * real) ** 2).sum()
    ).item()


def describe(run: Path) -> dict:
    """The validation losses of a run, and the spread at each checkpoint that is left of
    it.
    """
    log = [
        json.loads(line)
        for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    losses = {row["step"]: row["loss"] for row in log if row["event"] == "validation"}
    left = {
        int(place.name.removeprefix("step-")): spread(place)
        for place in checkpoints(run)
    }
    return {"validation_loss": losses, "spread": left}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure both runs and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("run", type=folder, help="drawn as one matrix")
    parser.add_argument("collapsed", type=folder, help="drawn with full variance")
    given = parser.parse_args(argv)
    runs = {"one matrix": given.run, "full variance": given.collapsed}
    found = {name: describe(run) for name, run in runs.items()}
    save("paper/encoder-spread.json", found)


if __name__ == "__main__":
    main()
