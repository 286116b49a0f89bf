"""What each change to the training step is worth: ours as it is, and with one change
taken back or one more tried.

    python -m benchmarks.speed.step_changes                  # each change
    python -m benchmarks.speed.step_changes --only compiled  # needs a C++ compiler
    python -m benchmarks.speed.step_changes --only slices    # rows of the loss's slices
    python -m benchmarks.speed.step_changes --only basics    # fused Adam, buckets

Needs ANNOTATED_TRANSFORMER_DATA (Multi30k). One thread, processor seconds, the variants
take turns on the same batches. Writes its part of results/speed/step-changes.json, for
the chapter nbs/engine/update.ipynb.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from annotated_transformer.data.batching import Batch, collate, cut_points
from annotated_transformer.engine import update
from annotated_transformer.engine.update import (
    CPUFunctions,
    FastObjective,
    SlicedLoss,
    dropout_mask,
    fused_adam,
    loss_and_slope,
    working_dtype,
)
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.loss import smoothed_cross_entropy
from benchmarks.record import command_line, load, save
from benchmarks.speed import peers
from benchmarks.speed.training_step import (
    SIZES,
    alone,
    architecture,
    batch_file,
    full_batches,
    peak_memory,
    real_pairs,
    step,
)

RECORD = "speed/step-changes.json"
Variant = tuple[type[FastObjective], Callable[[FastObjective], None], list]
FACTORS = (0.5, 1, 2)
CASES = ["tiny fp32", "tiny bf16", "small bf16", "base-8k, small batches bf16"]


class AllLogits(FastObjective):
    """The objective with every score of the batch in one table."""

    def forward(self, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        real = tgt_out != self.model.config.pad_id
        with CPUFunctions():
            hidden = self.model.decode(tgt_in, *self.model.encode(src))
        return smoothed_cross_entropy(
            self.model.logits(hidden)[real].float(), tgt_out[real], self.smoothing
        )


class Padded(FastObjective):
    """The objective with padding sent through the output layer and its loss."""

    def forward(self, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        with CPUFunctions():
            hidden = self.model.decode(tgt_in, *self.model.encode(src)).flatten(0, 1)
        matrix, target = self.model.tgt_embedding.weight, tgt_out.flatten()
        return SlicedLoss.apply(hidden, matrix, target, self.smoothing, self.rows)


def torchs_dropout(x: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """PyTorch's own random numbers."""
    return F.dropout(x.to(working_dtype(x)), p, training)


def wide_dropout(x: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Ours, that leaves the vectors between sub-layers in float32."""
    return x * dropout_mask(x, p)


def kernel(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None
) -> Tensor:
    """PyTorch's attention kernel in every precision."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask)


def compiled(objective: FastObjective) -> None:
    """Encoder and decoder by `torch.compile`, for every length at once."""
    objective.model.encode = torch.compile(objective.model.encode, dynamic=True)
    objective.model.decode = torch.compile(objective.model.decode, dynamic=True)


def rows_times(factor: float, objective: FastObjective) -> None:
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


def same(objective: FastObjective) -> None:
    """As it is."""


def variants() -> dict[str, Variant]:
    """For each variant the objective, what is done to it, and what is replaced."""

    def instead(name: str, other: Callable) -> Variant:
        return FastObjective, same, [patch.object(update, name, other)]

    return {
        "as it is": (FastObjective, same, []),
        "PyTorch's dropout": instead("_dropout", torchs_dropout),
        "vectors between sub-layers in float32": instead("_dropout", wide_dropout),
        "slices in blocks of sixteen rows": instead("loss_and_slope", in_blocks),
        "all logits in one table": (AllLogits, same, []),
        "loss by the softmax kernel": instead("loss_and_slope", by_softmax),
        "the attention kernel in every precision": instead("_attention", kernel),
    }


def peak_with(factor: float, precision: str, path: str) -> int:
    """Bytes of two updates at base size with 37,000 tokens and slices of so many times
    as many rows.
    """
    build = peers.build

    def scaled(name: str, config: TransformerConfig) -> FastObjective:
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
        str(factor): (FastObjective, partial(rows_times, factor), [])
        for factor in FACTORS
    }
    seconds = {}
    for size in ("tiny", "small", "base-37k"):
        times = measure(size, "fp32", repeats, chosen)
        seconds[size] = {name: median(values[1:]) for name, values in times.items()}
        print(size, seconds[size], flush=True)
    peak: dict[str, dict[str, int]] = {"fp32": {}, "bf16": {}}
    with batch_file(4_096) as path:
        for precision, factor in product(peak, FACTORS):
            peak[precision][str(factor)] = alone(peak_with, factor, precision, path)
    return {"seconds": seconds, "peak_bytes": peak, "repeats": repeats}


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
        "as it is": (FastObjective, bucketed),
        "padding through the output layer": (Padded, bucketed),
        "sentences in random order": (FastObjective, loose),
    }
    models = {}
    for name, (kind, _) in chosen.items():
        torch.manual_seed(1)
        model = kind(Transformer(architecture(size)), 0.1).train()
        models[name] = model, fused_adam(model)
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
        "fused": fused_adam(model),
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
    optimizers = {name: fused_adam(model) for name, model in models.items()}
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


def each_change(repeats: int) -> dict[str, dict[str, float]]:
    """Seconds of an update in each case, with each change taken back or tried."""
    found = {}
    for case in CASES:
        times = measure(*case.rsplit(" ", 1), repeats, variants())
        found[case] = {name: median(values[1:]) for name, values in times.items()}
        print(case, found[case], flush=True)
    return found


def by_compiler(repeats: int) -> dict[str, dict[str, float]]:
    """The same for `torch.compile`, and the seconds that its first update waits."""
    both = {
        "as it is": (FastObjective, same, []),
        "torch.compile": (FastObjective, compiled, []),
    }
    found = {}
    for case in ("tiny bf16", "small bf16"):
        times = measure(*case.rsplit(" ", 1), repeats, both)
        found[case] = {name: median(values[1:]) for name, values in times.items()}
        found[case]["first update"] = times["torch.compile"][0]
    return found


def from_the_start(repeats: int) -> dict:
    """Buckets, padding left out of the output layer, and Adam's fused form."""
    updates = {size: basics(size, repeats) for size in ("tiny", "small")}
    sizes = ("tiny", "small", "base-8k")
    steps = {size: optimizer_steps(size, repeats) for size in sizes}
    return {"seconds": updates, "adam": steps, "repeats": repeats}


PARTS: dict[str, Callable[[int], dict]] = {
    "seconds": each_change,
    "compiled": by_compiler,
    "slices": slices,
    "basics": from_the_start,
}


def main(arguments: list[str] | None = None) -> None:
    """Measure one part and put it into the record beside the others."""
    parser = command_line(__doc__)
    parser.add_argument("--only", choices=list(PARTS), default="seconds")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found, record = PARTS[options.only](options.repeats), load(RECORD)
    kept = {part: record[part] for part in PARTS if part in record}
    save(RECORD, kept | {options.only: found})


if __name__ == "__main__":
    main()
