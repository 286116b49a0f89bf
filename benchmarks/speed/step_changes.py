"""What each change to the training step is worth: ours as it is, and with one change
taken back or one more tried.

    python -m benchmarks.speed.step_changes [--repeats 7] [--cases "tiny bf16" …]
    python -m benchmarks.speed.step_changes --compiled    # torch.compile alone
    python -m benchmarks.speed.step_changes --slices      # by the rows of a slice
    python -m benchmarks.speed.step_changes --basics      # fused Adam, buckets

Needs ANNOTATED_TRANSFORMER_DATA (Multi30k). One thread, processor seconds, the variants
take turns on the same batches. Writes results/speed/step-changes.json, which the chapter
nbs/training/speed.ipynb shows.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from annotated_transformer.data.batching import Batch, collate, cut_points
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training import loss as loss_module
from annotated_transformer.training.loss import (
    Objective,
    loss_and_slope,
    smoothed_cross_entropy,
)
from annotated_transformer.training.schedule import adam
from benchmarks.record import RESULTS
from benchmarks.speed import peers
from benchmarks.speed.training_step import (
    SIZES,
    architecture,
    batch_file,
    full_batches,
    in_own_process,
    peak_memory,
    real_pairs,
    step,
)

OUT = RESULTS / "speed" / "step-changes.json"
Variant = tuple[type[Objective], Callable[[Objective], None], list]
FACTORS = (0.5, 1, 2)
CASES = ["tiny fp32", "tiny bf16", "small bf16", "base-8k, small batches bf16"]


class AllLogits(Objective):
    """The objective with every score of the batch in one table."""

    def forward(self, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        real = tgt_out != self.model.config.pad_id
        hidden = self.model.decode(tgt_in, *self.model.encode(src))
        return smoothed_cross_entropy(
            self.model.logits(hidden)[real].float(), tgt_out[real], self.smoothing
        )


class Padded(Objective):
    """The objective with padding sent through the output layer and its loss, as if it
    were text.
    """

    def forward(self, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        return super().forward(src, tgt_in, tgt_out, torch.arange(tgt_out.numel()))


def compiled(objective: Objective) -> None:
    """Encoder and decoder by `torch.compile`, for every length at once."""
    objective.model.encode = torch.compile(objective.model.encode, dynamic=True)
    objective.model.decode = torch.compile(objective.model.decode, dynamic=True)


def rows_times(factor: float, objective: Objective) -> None:
    """Slices of so many times as many tokens."""
    objective.rows = round(factor * objective.rows)


def by_softmax(
    logits: Tensor, target: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Loss and slope by PyTorch's softmax, with fewer passes over a second table."""
    vocab, gold = logits.size(-1), target[:, None]
    share = smoothing / (vocab - 1)
    attained = (1 - smoothing - share) * logits.gather(1, gold) + share * logits.sum(
        -1, keepdim=True
    )
    slope = logits.softmax(-1)
    log_mass = logits.amax(-1, keepdim=True) - slope.amax(-1, keepdim=True).log()
    slope.sub_(share).scatter_add_(
        1, gold, torch.full_like(gold, share + smoothing - 1, dtype=slope.dtype)
    )
    return (log_mass - attained).sum(), slope


def in_blocks(
    logits: Tensor, target: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Loss and slope sixteen rows at a time, so that each block stays in the
    processor's cache.
    """
    blocks = zip(logits.split(16), target.split(16), strict=True)
    return sum(
        loss_and_slope(block, gold, smoothing)[0] for block, gold in blocks
    ), logits


def same(objective: Objective) -> None:
    """As it is."""


def variants() -> dict[str, Variant]:
    """For each variant the objective, what is done to it, and what is replaced while it
    runs.
    """
    return {
        "as it is": (Objective, same, []),
        "slices in blocks of sixteen rows": (
            Objective,
            same,
            [patch.object(loss_module, "loss_and_slope", in_blocks)],
        ),
        "all logits in one table": (AllLogits, same, []),
        "loss by the softmax kernel": (
            Objective,
            same,
            [patch.object(loss_module, "loss_and_slope", by_softmax)],
        ),
    }


def peak_with(factor: float, precision: str, path: str) -> int:
    """Bytes of two updates at base size with 37,000 tokens and slices of so many times
    as many rows.
    """
    build = peers.build

    def scaled(name: str, config: TransformerConfig) -> Objective:
        objective = build(name, config)
        rows_times(factor, objective)
        return objective

    with patch.object(peers, "build", scaled):
        return peak_memory("base-37k", "ours", precision, path)


def slices(repeats: int) -> dict:
    """Seconds of an update in float32, and peak bytes, by how many times d_model rows a
    slice has.
    """
    chosen = {
        str(factor): (Objective, partial(rows_times, factor), []) for factor in FACTORS
    }
    seconds = {}
    for size in ("tiny", "small", "base-37k"):
        times = measure(size, "fp32", repeats, chosen)
        seconds[size] = {name: median(values[1:]) for name, values in times.items()}
        print(size, seconds[size], flush=True)
    peak: dict[str, dict[str, int]] = {"fp32": {}, "bf16": {}}
    with batch_file(4_096) as path:
        for precision, factor in product(peak, FACTORS):
            call = f"print(s.peak_with({factor}, {precision!r}, {path!r}))"
            peak[precision][str(factor)] = in_own_process(
                f"from benchmarks.speed import step_changes as s; {call}"
            )
    return {
        "command": "python -m benchmarks.speed.step_changes --slices",
        "seconds": seconds,
        "peak_bytes": peak,
        "repeats": repeats,
        "torch": torch.__version__,
    }


def random_batches(tokens: int, count: int) -> list[Batch]:
    """Batches of the same text and budget, sentences in random order."""
    tokenized = real_pairs()
    order = np.random.default_rng(1).permutation(len(tokenized))
    longer = np.maximum(tokenized.src_lengths, tokenized.tgt_lengths)[order]
    rows = np.split(order, cut_points(longer, tokens, order))
    return [collate(tokenized, each) for each in rows[:count]]


def basics(size: str, repeats: int) -> dict[str, float]:
    """Processor seconds for each 1,000 target tokens in float32, with one plain form
    put back at a time.
    """
    tokens = SIZES[size][-1]
    bucketed, loose = (
        full_batches(tokens, repeats + 1),
        random_batches(tokens, repeats + 1),
    )
    chosen = {
        "as it is": (Objective, bucketed),
        "padding through the output layer": (Padded, bucketed),
        "sentences in random order": (Objective, loose),
    }
    models = {}
    for name, (kind, _) in chosen.items():
        torch.manual_seed(1)
        model = kind(Transformer(architecture(size)), 0.1).train()
        models[name] = model, adam(model)
    times: dict[str, list[float]] = {name: [] for name in chosen}
    for turn in range(repeats + 1):
        names = list(chosen)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            batch, start = chosen[name][1][turn], process_time()
            step(*models[name], batch, "fp32")
            times[name].append((process_time() - start) * 1_000 / batch.tokens)
    return {name: median(values[1:]) for name, values in times.items()}


def optimizer_steps(size: str, repeats: int) -> dict[str, float]:
    """Processor seconds of Adam's step alone, in PyTorch's three forms."""
    model = Transformer(architecture(size))
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    plain = partial(
        torch.optim.Adam, list(model.parameters()), lr=0.0, betas=(0.9, 0.98), eps=1e-9
    )
    forms = {
        "fused": adam(model),
        "lists of tensors": plain(foreach=True),
        "tensor by tensor": plain(foreach=False),
    }
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(10 * repeats + 1):
        for name, optimizer in forms.items():
            start = process_time()
            optimizer.step()
            times[name].append(process_time() - start)
    return {name: median(values[1:]) for name, values in times.items()}


def measure(
    size: str, precision: str, repeats: int, chosen: dict[str, Variant]
) -> dict[str, list[float]]:
    """Processor seconds of a step of each chosen variant, batch by batch; the first,
    which compiles, by the clock.
    """
    tokens = SIZES[size][-1]
    plan = full_batches(tokens, repeats + 1)
    torch.compiler.reset()
    models = {}
    for name, (kind, prepare, _) in chosen.items():
        torch.manual_seed(1)
        models[name] = kind(Transformer(architecture(size)), 0.1).train()
        prepare(models[name])
    optimizers = {name: adam(model) for name, model in models.items()}
    times: dict[str, list[float]] = {name: [] for name in models}
    for turn, batch in enumerate(plan):
        names = list(models)
        first = turn % len(names)
        for name in (
            names[first:] + names[:first]
        ):  # the first to meet a new shape has kernels prepared for all
            patches = chosen[name][2]
            for each in patches:
                each.start()
            start, clock = process_time(), perf_counter()
            step(models[name], optimizers[name], batch, precision)
            times[name].append(
                (process_time() if turn else perf_counter())
                - (start if turn else clock)
            )
            patch.stopall()
    return times


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=CASES,
        default=CASES,
        help="measure these, leave the others",
    )
    parser.add_argument(
        "--compiled",
        action="store_true",
        help="measure torch.compile, and nothing else",
    )
    parser.add_argument(
        "--basics",
        action="store_true",
        help="measure what was taken from the start, nothing else",
    )
    parser.add_argument(
        "--slices",
        action="store_true",
        help="measure the rows of the loss's slices, and nothing else",
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    record = json.loads(OUT.read_text()) if OUT.exists() else {}
    if options.basics:
        found = {size: basics(size, options.repeats) for size in ("tiny", "small")}
        steps = {
            size: optimizer_steps(size, options.repeats)
            for size in ("tiny", "small", "base-8k")
        }
        about = {
            "command": "python -m benchmarks.speed.step_changes --basics",
            "amx": torch.cpu._is_amx_tile_supported(),
            "repeats": options.repeats,
            "torch": torch.__version__,
        }
        OUT.write_text(
            json.dumps(
                record | {"basics": about | {"seconds": found, "adam": steps}}, indent=1
            )
            + "\n"
        )
        sys.exit()
    if options.slices:
        OUT.write_text(
            json.dumps(record | {"slices": slices(options.repeats)}, indent=1) + "\n"
        )
        sys.exit()
    record |= {
        "command": "python -m benchmarks.speed.step_changes",
        "machine": f"CPU, {platform.machine()}",
        "threads": 1,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "repeats": options.repeats,
    }
    both: dict[str, Variant] = {
        "as it is": (Objective, same, []),
        "torch.compile": (Objective, compiled, []),
    }
    for case in options.cases:
        times = measure(
            *case.rsplit(" ", 1),
            options.repeats,
            both if options.compiled else variants(),
        )
        part = record.setdefault("compiled" if options.compiled else "seconds", {})
        part[case] = {name: median(values[1:]) for name, values in times.items()}
        if options.compiled:
            part[case]["first update"] = times["torch.compile"][0]
        OUT.write_text(json.dumps(record, indent=1) + "\n")
