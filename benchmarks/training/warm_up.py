"""What a warm-up buys: a small Transformer learns to reverse letters, at four peaks of
the learning rate, with a warm-up of 40 updates and without, with three seeds.

    python -m benchmarks.training.warm_up

Without means at the peak from the first update on, and falling alike from update 40.
The 24 models are stacked, and learn at the same time. Takes three minutes of one core
and writes results/training/warm-up.json, which nbs/training/schedule.ipynb shows.
"""

import sys
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.schedule import adam, noam, peak_factor
from benchmarks.record import command_line, save

PLACE = "training/warm-up.json"
PEAKS, WAYS, SEEDS = (0.0003, 0.001, 0.003, 0.01), ("with", "without"), (0, 1, 2)
UPDATES, WARMUP, EVERY = 300, 40, 10
LETTERS, LENGTH, BATCH, BOS = 10, 5, 32, 1
SIZES = {"d_model": 32, "d_ff": 64, "h": 2, "d_k": 16, "d_v": 16, "dropout": 0.0}
CONFIG = TransformerConfig(4 + LETTERS, 4 + LETTERS, **SIZES)


def fresh(seed: int) -> Transformer:
    """A model whose weights are drawn."""
    torch.manual_seed(seed)
    return Transformer(CONFIG)


def rate(step: int, peak: float, way: str) -> float:
    """Equation (3), or its fall alone, from the peak on."""
    first = 1 if way == "with" else WARMUP  # where the schedule begins
    factor = peak_factor(peak, CONFIG.d_model, WARMUP)
    return noam(max(step, first), CONFIG.d_model, WARMUP, factor)


def learn(
    runs: Sequence[tuple[float, str, int]], updates: int = UPDATES
) -> tuple[Tensor, Tensor]:
    """The loss, and the share of words that are right, of each update of each run.

    A word is right if each letter is the likeliest after the right ones before it, so
    greedy search would write it; no update has seen it, since each draws new words.
    """
    weights, buffers = stack_module_state([fresh(seed) for *_, seed in runs])
    stacks = dict(zip(weights, nn.ParameterList(weights.values()), strict=True))
    optimizer, empty = adam(nn.ParameterList(stacks.values())), fresh(0).to("meta")
    optimizer.param_groups[0]["lr"] = 1.0
    draws = {seed: torch.Generator().manual_seed(seed) for seed in SEEDS}

    def loss(weights: Any, buffers: Any, src: Tensor) -> tuple[Tensor, Tensor]:
        tgt = src.flip(1)
        tgt_in = F.pad(tgt[:, :-1], (1, 0), value=BOS)
        scores = functional_call(empty, (weights, buffers), (src, tgt_in))
        right = (scores.argmax(-1) == tgt).all(1).float().mean()
        return F.cross_entropy(scores.flatten(0, 1), tgt.flatten()), right

    of_each, found = vmap(grad_and_value(loss, has_aux=True)), []
    for step in range(1, updates + 1):
        words = {
            seed: torch.randint(4, 4 + LETTERS, (BATCH, LENGTH), generator=draw)
            for seed, draw in draws.items()
        }
        src = torch.stack([words[seed] for *_, seed in runs])
        with sdpa_kernel(SDPBackend.MATH):
            plain = {name: stack.detach() for name, stack in stacks.items()}
            gradients, values = of_each(plain, buffers, src)
        rates = torch.tensor([rate(step, peak, way) for peak, way, _ in runs])
        found.append(torch.stack(values))
        move(optimizer, stacks, gradients, rates)
        if step % EVERY == 0:
            print(f"update {step}", file=sys.stderr)
    losses, right = torch.stack(found, dim=-1)
    return losses, right


@torch.no_grad()
def move(
    optimizer: torch.optim.Adam,
    stacks: dict[str, nn.Parameter],
    gradients: dict[str, Tensor],
    rates: Tensor,
) -> None:
    """Adam's step at a rate of 1, of which each run goes its own rate."""
    before = {name: stack.clone() for name, stack in stacks.items()}
    for name, stack in stacks.items():
        stack.grad = gradients[name]
    optimizer.step()
    for name, stack in stacks.items():
        share = rates.view(-1, *[1] * (stack.dim() - 1))
        stack.copy_(before[name] + share * (stack - before[name]))


def tens(values: Tensor) -> list[float]:
    """The mean of each ten updates."""
    return [
        round(each, 3) for each in values.unflatten(0, (-1, EVERY)).mean(1).tolist()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    runs = list(product(PEAKS, WAYS, SEEDS))
    found = [
        {"peak": peak, "way": way, "seed": seed, "losses": tens(a), "right": tens(b)}
        for (peak, way, seed), a, b in zip(runs, *learn(runs), strict=True)
    ]
    save(PLACE, {"updates": UPDATES, "warmup": WARMUP, "every": EVERY, "runs": found})


if __name__ == "__main__":
    main()
