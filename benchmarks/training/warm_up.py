"""What a warm-up buys: a small Transformer learns to reverse letters, at four peaks of
the learning rate, with a warm-up of 40 updates and without, with three seeds.

    python -m benchmarks.training.warm_up

Without means at the peak from the first update on, and falling alike from update 40.
Takes six minutes of one core and adds a line for each run to
results/training/warm-up.jsonl, which nbs/training/schedule.ipynb shows; runs that the
file has aren't made again.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.schedule import adam, noam, peak_factor
from benchmarks.record import add_run, command_line, read_runs

PLACE = "training/warm-up.jsonl"
PEAKS, WAYS, SEEDS = (
    (0.0003, 0.001, 0.003, 0.01),
    ("with", "without"),
    (0, 1, 2),
)
UPDATES, WARMUP, EVERY = 300, 40, 10
LETTERS, LENGTH, BATCH, BOS = 10, 5, 32, 1
SIZES = {"d_model": 32, "d_ff": 64, "h": 2, "d_k": 16, "d_v": 16, "dropout": 0.0}


def run(peak: float, way: str, seed: int) -> dict[str, list[float]]:
    """The mean loss, and the share of words that are right, of each ten updates.

    A word is right if each letter is the likeliest after the right ones before it, so
    greedy search would write it; no update has seen it, since each draws new words.
    """
    torch.manual_seed(seed)
    model = Transformer(TransformerConfig(4 + LETTERS, 4 + LETTERS, **SIZES))
    optimizer, factor = (
        adam(model, fused=True),
        peak_factor(peak, model.config.d_model, WARMUP),
    )
    first = 1 if way == "with" else WARMUP  # where the schedule begins
    losses, rights = [], []
    for step in range(1, UPDATES + 1):
        src = torch.randint(4, 4 + LETTERS, (BATCH, LENGTH))
        tgt = src.flip(1)
        scores = model(src, F.pad(tgt[:, :-1], (1, 0), value=BOS))
        loss = F.cross_entropy(scores.flatten(0, 1), tgt.flatten())
        rate = noam(max(step, first), model.config.d_model, WARMUP, factor)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        rights.append((scores.argmax(-1) == tgt).all(1).float().mean().item())
    return {"losses": tens(losses), "right": tens(rights)}


def tens(values: Sequence[float]) -> list[float]:
    """The mean of each ten values."""
    starts = range(0, len(values), EVERY)
    return [round(sum(values[i : i + EVERY]) / EVERY, 3) for i in starts]


def main(arguments: Sequence[str] | None = None) -> None:
    """Add the runs that the record lacks."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    made = [(each["peak"], each["way"], each["seed"]) for each in read_runs(PLACE)]
    for seed in SEEDS:
        for peak in PEAKS:
            for way in WAYS:
                if (peak, way, seed) not in made:
                    about: dict[str, Any] = {"peak": peak, "way": way, "seed": seed}
                    about["updates"] = UPDATES
                    add_run(PLACE, about | run(peak, way, seed))


if __name__ == "__main__":
    main()
