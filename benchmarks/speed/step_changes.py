"""What each change to the training update is worth: each taken back by itself.

    python -m benchmarks.speed.step_changes

The variants take turns on the same batches of Multi30k's text, on one thread, once with
freed memory given back to the system as the C library sees fit, and once with all of it
kept; each case runs in a process of its own. Multi30k is downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Takes ten minutes. Writes
results/speed/changes-taken-back.json, for nbs/performance/how_fast.ipynb.
"""

from collections.abc import Callable, Sequence
from itertools import product
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from annotated_transformer.data.batch import Batch
from annotated_transformer.performance import update
from annotated_transformer.performance.update import (
    CPUFunctions,
    FastObjective,
    dropout_mask,
    working_dtype,
)
from annotated_transformer.training.loss import smoothed_cross_entropy
from benchmarks.measure import alone, in_turn, medians
from benchmarks.record import command_line, save
from benchmarks.speed.training_step import ALLOCATORS, Trained, full_batches

PLACE = "speed/changes-taken-back.json"
CASES = (
    ("tiny", "fp32"),
    ("tiny", "bf16"),
    ("small", "bf16"),
    ("base-8k, small batches", "bf16"),
)


class AllScores(FastObjective):
    """The objective with the scores of the whole batch in one table."""

    def forward(self, batch: Batch) -> Tensor:
        """The summed loss."""
        real = batch.tgt_out != self.model.config.pad_id
        with CPUFunctions():
            hidden = self.model.decode(batch.tgt_in, *self.model.encode(batch.src))
        scores = self.model.logits(hidden)[real].float()
        return smoothed_cross_entropy(scores, batch.tgt_out[real], self.smoothing)


def torchs_dropout(x: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout by PyTorch's random numbers, in the type that products run in."""
    return F.dropout(x.to(working_dtype(x)), p, training)


def wide_dropout(x: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout that leaves the vectors between sub-layers in float32."""
    return x * dropout_mask(x, p)


# What has a change taken back: the objective, and what stands in for a function.
CHANGES: dict[str, tuple[type[FastObjective], dict[str, Callable]]] = {
    "as it is": (FastObjective, {}),
    "loss in slices": (AllScores, {}),
    "plain formula in bfloat16": (
        FastObjective,
        {"_attention": F.scaled_dot_product_attention},
    ),
    "vectors in bfloat16": (FastObjective, {"_dropout": wide_dropout}),
    "dropout from 16 bits": (FastObjective, {"_dropout": torchs_dropout}),
}


def updates(
    size: str, precision: str, plan: Sequence[Batch], change: str
) -> Callable[[], None]:
    """A call makes the next update of a model with a change taken back."""
    kind, replaced = CHANGES[change]
    trained, stream = Trained(size, "ours"), iter(plan)
    plain = trained.model
    assert isinstance(plain, FastObjective)
    trained.model = kind(plain.model, plain.smoothing).train()

    def once() -> None:
        with patch.dict(vars(update), replaced):
            trained.step(next(stream), precision)

    return once


def seconds(size: str, precision: str, repeats: int) -> dict[str, float]:
    """Median processor seconds of an update with each change taken back."""
    torch.set_num_threads(1)
    plan = full_batches(size, repeats + 1)
    calls = {name: updates(size, precision, plan, name) for name in CHANGES}
    return medians(in_turn(calls, len(plan) - 1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every case both ways, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args(arguments)
    found: dict[str, dict[str, dict[str, float]]] = {way: {} for way in ALLOCATORS}
    for (size, precision), way in product(CASES, ALLOCATORS):
        here = alone(seconds, size, precision, asked.repeats, **ALLOCATORS[way])
        found[way][f"{size} {precision}"] = here
        print(way, size, precision, here, flush=True)
    save(PLACE, {"threads": 1, "repeats": asked.repeats, "seconds": found})


if __name__ == "__main__":
    main()
