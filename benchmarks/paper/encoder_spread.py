"""How different the encoder's outputs at the positions of one sentence still are, over
the checkpoints of two runs.

    python -m benchmarks.paper.encoder_spread runs/multi30k-en-de-tiny runs/collapsed

The second run was started from commit e0f1eaa, where queries, keys and values were
drawn each with the full Glorot variance; the first from aec8725, which draws them as
one matrix. Nothing else differs in their training, but the draw of nearly all weights
changes with it. Needs ANNOTATED_TRANSFORMER_DATA. Writes results/paper/encoder-spread.json
with both logs; nbs/translation/multi30k.ipynb plots it.
"""

import json
from pathlib import Path

import torch

from annotated_transformer.data.batching import TokenizedPairs, collate
from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.training.checkpoint import checkpoints, load_model
from benchmarks.record import RESULTS, arguments, folder

OUT = RESULTS / "paper" / "encoder-spread.json"


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
        int(folder.name.removeprefix("step-")): spread(folder)
        for folder in checkpoints(run)
    }
    return {"validation_loss": losses, "spread": left}


if __name__ == "__main__":
    runs = dict(
        zip(
            ("one matrix", "full variance"),
            arguments(__doc__, run=folder, collapsed=folder),
            strict=True,
        )
    )
    record = {
        "command": "python -m benchmarks.paper.encoder_spread runs/multi30k-en-de-tiny "
        "runs/collapsed"
    }
    record |= {name: describe(run) for name, run in runs.items()}
    OUT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(record)
