"""How much noisier gradients are when an update's sentences all have one length.

    python -m benchmarks.paper.batch_noise runs/multi30k-en-de-tiny 6840

Takes the checkpoint after that update and the tokenised pairs of a run. Each plan has
updates of the same size, made of one bucket, of several smaller ones drawn apart, or of
sentences in random order. Recorded are the variance of an update's gradient around the
mean of all (dropout included), the squared length of that mean, and the share of
padding. Takes some minutes and writes results/paper/batch-noise.json, which
nbs/data/batching.ipynb shows.
"""

from collections.abc import Sequence

import numpy as np
import torch

from annotated_transformer import load
from annotated_transformer.data.batching import collate, padding_share, token_batches
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.training.loss import Objective
from benchmarks.record import command_line, folder, save

TOKENS, MOST = 8_192, 60


def gradient(
    objective: Objective, pairs: TokenizedPairs, rows: np.ndarray
) -> tuple[torch.Tensor, int]:
    """The gradient of the loss per token of one batch, as one vector, and the batch's
    tokens.
    """
    batch = collate(pairs, rows)
    with torch.autocast("cpu", torch.bfloat16):
        loss = objective(batch)
    parts = torch.autograd.grad(loss / batch.tokens, list(objective.parameters()))
    return torch.cat([part.flatten() for part in parts]), batch.tokens


def spread(
    objective: Objective,
    pairs: TokenizedPairs,
    plan: Sequence[np.ndarray],
    together: int,
) -> dict[str, float]:
    """Variance of the mean of so many independent batches, from the variance of one."""
    found = [gradient(objective, pairs, rows) for rows in plan]
    gradients = torch.stack([each for each, _ in found])
    weights = torch.tensor([tokens for _, tokens in found], dtype=torch.float32)
    mean = weights @ gradients / weights.sum()
    one = (gradients - mean).square().sum(1).mean().item() * len(plan) / (len(plan) - 1)
    return {
        "variance": one / together,
        "squared_mean": mean.square().sum().item(),
        "batches": len(plan),
    }


def plans(pairs: TokenizedPairs) -> dict[str, tuple[Sequence[np.ndarray], int]]:
    """Batches of each plan, and how many of them are an update."""
    lengths = pairs.src_lengths, pairs.tgt_lengths
    found: dict[str, tuple[Sequence[np.ndarray], int]] = {
        f"buckets: {count}": (token_batches(*lengths, TOKENS // count, 1, 0), count)
        for count in (1, 2, 4, 8)
    }
    order = np.random.default_rng(0).permutation(len(pairs))
    found["random order"] = np.array_split(order, len(found["buckets: 1"][0])), 1
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure each plan on at most sixty of its batches, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("run", type=folder, help="the folder of a run")
    parser.add_argument("update", type=int, help="the checkpoint's")
    given = parser.parse_args(argv)
    torch.manual_seed(0)
    pairs = TokenizedPairs.open(given.run / "data" / "train")
    checkpoint = given.run / "checkpoints" / f"step-{given.update:08}"
    model = load(checkpoint, device="cpu", engine="plain").model
    objective, rng = Objective(model, 0.1).train(), np.random.default_rng(0)
    found = {}
    for name, (plan, count) in plans(pairs).items():
        chosen = [plan[i] for i in rng.permutation(len(plan))[:MOST]]
        share = padding_share(pairs.src_lengths, pairs.tgt_lengths, plan)
        found[name] = spread(objective, pairs, chosen, count) | {"padding_share": share}
        print(name, found[name], flush=True)
    save(
        "paper/batch-noise.json",
        {"tokens": TOKENS, "update": given.update, "plans": found},
    )


if __name__ == "__main__":
    main()
