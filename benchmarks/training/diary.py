"""What a Transformer says while it learns the phrasebook: three phrases that are not
among its own, and the tokens of a hundred others, after every tenth of 600 updates.

    python -m benchmarks.training.diary

The loop is that of nbs/training/trainer.ipynb, which shows the record, and calls the
`training_step` and `greedy_search` of nbs/my_transformer.py. Takes minutes and writes
results/training/diary.json.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from annotated_transformer import load
from annotated_transformer.check.file import import_file
from annotated_transformer.data.batch import Batch
from annotated_transformer.data.batching import collate
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.stream import batches
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.schedule import adam, noam, peak_factor
from benchmarks.record import ROOT, command_line, save_line

PLACE = "training/diary.json"
UPDATES, EVERY, LONGEST = 600, 10, 24
PHRASES = [
    "the twenty-first of March",
    "Monday, December 13, 1982",
    "The train to Helsinki leaves at 9:12 PM.",
]
written = import_file(ROOT / "nbs" / "my_transformer.py")
learned = load("phrasebook-en-de")
tokenizer = learned.tokenizer


def say(model: nn.Module, english: str) -> str:
    """The model's own translation, by greedy search."""
    src = torch.tensor(tokenizer.encode_source([english]))
    ids = written.greedy_search(model, src, LONGEST)[0].tolist()
    return tokenizer.decode([ids[: (*ids, written.EOS).index(written.EOS)]])[0]


@torch.no_grad()
def shares_right(model: nn.Module, batch: Batch) -> list[float]:
    """The share of right tokens with the right ones before each, and with its own."""
    forced = model(batch.src, batch.tgt_in).argmax(-1)
    alone = written.greedy_search(model, batch.src, batch.tgt_out.size(1))
    alone = F.pad(alone, (0, batch.tgt_out.size(1) - alone.size(1)))
    real = batch.tgt_out != batch.pad_id
    right = [(found == batch.tgt_out)[real] for found in (forced, alone)]
    return [round(each.float().mean().item(), 3) for each in right]


def look(model: nn.Module, batch: Batch) -> dict[str, Any]:
    """What the model says, and how much of it is right."""
    model.eval()
    with_teacher, alone = shares_right(model, batch)
    said = [say(model, phrase) for phrase in PHRASES]
    return {"says": said, "with_teacher": with_teacher, "alone": alone}


def learn(updates: int = UPDATES) -> Iterator[dict[str, Any]]:
    """A look at the start and after every tenth update, with the mean loss of ten."""
    pairs, unseen = (
        TokenizedPairs.build(phrasebook("en", "de", part, count), tokenizer)
        for part, count in (("train", 8_000), ("val", 100))
    )
    held_out = collate(unseen, range(len(unseen)))
    torch.manual_seed(0)
    model = Transformer(learned.model.config)
    optimizer, drawn = adam(model), batches(pairs, max_tokens=1_024, seed=1)
    factor = peak_factor(0.003, d_model=128, warmup=100)
    losses: list[float] = []
    yield {"step": 0, **look(model, held_out)}
    for step in range(1, updates + 1):
        _, batch = next(drawn)
        optimizer.param_groups[0]["lr"] = noam(step, 128, warmup=100, factor=factor)
        target = torch.cat([batch.tgt_in[:, :1], batch.tgt_out], dim=1)
        loss = written.training_step(model.train(), optimizer, batch.src, target)
        losses.append(loss)
        if step % EVERY == 0:
            mean = sum(losses[-EVERY:]) / EVERY
            yield {"step": step, "loss": round(mean, 3), **look(model, held_out)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    save_line(PLACE, {"phrases": PHRASES, "diary": list(learn())})


if __name__ == "__main__":
    main()
