"""What it costs that the sliced loss takes its gradient by autograd.

    python -m benchmarks.speed.loss_in_slices

An update with the package's loss, and one whose slices have the gradient written out by
hand, take turns on the same batches of Multi30k's text, on one thread, with freed
memory given back to the system, and with all of it kept, as a run keeps it. Multi30k is
downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Takes some
minutes. Writes results/speed/loss-in-slices.json, for nbs/results.md.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from annotated_transformer.performance.update import FastObjective, working_dtype
from benchmarks.measure import alone, in_turn, medians
from benchmarks.record import command_line, save
from benchmarks.speed.training_step import ALLOCATORS, TYPES, Trained, full_batches

PLACE = "speed/loss-in-slices.json"
SIZES = ("tiny", "small")


class LossByHand(torch.autograd.Function):
    """Output layer and smoothed loss: the gradient is softmax minus target."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float
    ) -> Tensor:
        """The summed loss, in slices of `d_model` tokens, each with its gradients."""
        dtype, rows = working_dtype(hidden), hidden.size(1)
        x, matrix = hidden.to(dtype), weight.to(dtype)
        share = smoothing / (len(weight) - 1)
        total = hidden.new_zeros((), dtype=torch.float32)
        by_hidden, by_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        for start in range(0, len(hidden), rows):
            part = slice(start, start + rows)
            logits, gold = (x[part] @ matrix.T).float(), target[part, None]
            peak, right = logits.amax(-1, keepdim=True), logits.gather(1, gold)
            attained = (1 - smoothing - share) * right
            attained += share * logits.sum(-1, keepdim=True)
            mass = logits.sub_(peak).exp_().sum(-1, keepdim=True)
            total += (peak + mass.log() - attained).sum()
            slope = logits.div_(mass).sub_(share)
            slope.scatter_add_(1, gold, torch.full_like(right, share + smoothing - 1))
            slope = slope.to(dtype)
            by_hidden[part] = slope @ matrix
            if dtype == weight.dtype:
                by_weight.addmm_(slope.T, x[part])
            else:
                by_weight += slope.T @ x[part]
        ctx.save_for_backward(by_hidden, by_weight)
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """The stored gradients."""
        by_hidden, by_weight = ctx.saved_tensors
        return by_hidden * upstream, by_weight * upstream, None, None


class ByHand(FastObjective):
    """The fast objective with the loss above."""

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """The summed loss."""
        weight = self.model.tgt_embedding.weight
        return LossByHand.apply(hidden, weight, target, self.smoothing)


def updates(
    kind: type[FastObjective], size: str, precision: str, plan: list
) -> Callable:
    """A call makes the next update."""
    trained, stream = Trained(size, "ours"), iter(plan)
    trained.model = kind(trained.model.model, trained.model.smoothing).train()
    return lambda: trained.step(next(stream), precision)


def seconds(size: str, precision: str, repeats: int) -> dict[str, float]:
    """Median processor seconds of an update of each kind."""
    torch.set_num_threads(1)
    plan = full_batches(size, repeats + 1)
    kinds = {"by autograd": FastObjective, "by hand": ByHand}
    calls = {name: updates(kind, size, precision, plan) for name, kind in kinds.items()}
    return medians(in_turn(calls, len(plan) - 1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every case both ways, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--precisions", nargs="+", choices=TYPES, default=[*TYPES])
    asked = parser.parse_args(arguments)
    found: dict[str, dict[str, dict[str, float]]] = {way: {} for way in ALLOCATORS}
    for size, precision, way in product(SIZES, asked.precisions, ALLOCATORS):
        here = alone(seconds, size, precision, asked.repeats, **ALLOCATORS[way])
        found[way][f"{size} {precision}"] = here
        print(way, size, precision, here, flush=True)
    save(PLACE, {"threads": 1, "repeats": asked.repeats, "seconds": found})


if __name__ == "__main__":
    main()
