"""Time one training step, ours beside three libraries.

    python -m benchmarks.speed.training_step                     every size
    python -m benchmarks.speed.training_step --sizes tiny small  some
    python -m benchmarks.speed.training_step --only PART         another part, or all

The parts: `steps` in float32 and bfloat16; `float32` alone, for a processor without
AMX; `losses` of 1,000 updates; `memory`, the peak of two updates; `allocator`, steps
with freed memory given back or kept. All libraries have the same weights, batches,
optimizer, smoothing and dropout. One thread; times are processor seconds, so that other
work on the machine doesn't count. Takes minutes to an hour. Multi30k is downloaded
unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Writes its part of
results/speed/training-step.json, which nbs/engine/update.ipynb plots.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from annotated_transformer.data.batching import Batch, TokenizedPairs, batches
from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.engine.update import fused_adam
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.costs import flops
from annotated_transformer.training.schedule import noam, peak_factor
from benchmarks.record import command_line, has_amx, load, save
from benchmarks.speed import peers

PLACE = "speed/training-step.json"
SIZES = {  # d_model, N, h, d_ff, vocabulary, tokens in a batch
    "tiny": (128, 4, 4, 256, 10_000, 4_096),
    "small": (256, 3, 4, 1_024, 10_000, 2_048),
    "base-8k": (512, 6, 8, 2_048, 8_000, 4_096),
    "base-37k": (512, 6, 8, 2_048, 37_000, 4_096),
    "base-8k, small batches": (512, 6, 8, 2_048, 8_000, 1_024),
    "base-37k, small batches": (512, 6, 8, 2_048, 37_000, 1_024),
}
PRODUCTS = (
    "aten::mm",
    "aten::addmm",
    "aten::addmm_",
    "aten::bmm",
    "aten::mkldnn_linear",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
)
PRECISIONS = ["fp32", "bf16"]
# Tokens in a batch and updates of warm-up of the runs that compare losses; the base
# size takes the paper's warm-up.
LOSS_RUNS = {"tiny": (1_024, 400), "small": (256, 400), "base-8k": (128, 4_000)}
ALLOCATORS = {  # what the GNU C library does with freed memory, by variables of its own
    "as it comes": {},
    "keeps all": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)},
}


def architecture(size: str, dropout: float = 0.1) -> TransformerConfig:
    """The architecture of a size, with one shared vocabulary."""
    d_model, N, h, d_ff, vocab, _ = SIZES[size]
    d_k = d_model // h
    return TransformerConfig(
        vocab,
        vocab,
        N=N,
        d_model=d_model,
        d_ff=d_ff,
        h=h,
        d_k=d_k,
        d_v=d_k,
        dropout=dropout,
    )


@lru_cache
def real_pairs() -> TokenizedPairs:
    """Multi30k's text, lower-cased, in 8,000 byte pairs: lengths and frequencies as
    they are.
    """
    pairs = list(load_corpus("multi30k", "train", "en", "de"))
    return TokenizedPairs.build(
        pairs, train_tokenizer(pairs, "en", "de", 8_000, lowercase=True)
    )


def real_batches(tokens: int, count: int) -> list[Batch]:
    """Batches of that text."""
    return [batch for _, batch in islice(batches(real_pairs(), tokens, seed=1), count)]


def full_batches(tokens: int, count: int) -> list[Batch]:
    """The first batches of the real text that are at least 85 % full."""
    return [
        batch for batch in real_batches(tokens, 60) if batch.tokens > 0.85 * tokens
    ][:count]


def step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch, precision: str
) -> float:
    """One update; the loss per real target token."""
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        loss = model(batch.src, batch.tgt_in, batch.tgt_out)
    (loss / batch.tokens).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item() / batch.tokens


def first_losses(size: str, batch: Batch) -> dict[str, float]:
    """The loss of each model before its first update, without dropout."""
    losses = {}
    for name in peers.NAMES:
        with torch.no_grad():
            loss = peers.build(name, architecture(size, dropout=0.0)).train()(
                batch.src, batch.tgt_in, batch.tgt_out
            )
        losses[name] = loss.item() / batch.tokens
    return losses


def step_seconds(
    size: str, plan: list[Batch], repeats: int, precisions: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Median processor seconds of a step by precision and name; the models take turns
    on the same batches.

    Who goes first changes from batch to batch, since the first to meet a new shape has
    kernels prepared for all.
    """
    models = {
        name: peers.build(name, architecture(size)).train() for name in peers.NAMES
    }
    optimizers = {name: fused_adam(model) for name, model in models.items()}
    results = {}
    for precision in precisions:
        times: dict[str, list[float]] = {name: [] for name in models}
        for turn, batch in enumerate(plan[: repeats + 1]):
            for name in peers.NAMES[turn % 4 :] + peers.NAMES[: turn % 4]:
                start = time.process_time()
                step(models[name], optimizers[name], batch, precision)
                times[name].append(time.process_time() - start)
        results[precision] = {
            name: median(values[1:]) for name, values in times.items()
        }
    return results


def product_rate(dtype: torch.dtype) -> float:
    """Floating-point operations a second of a matrix product of 2,048 rows, columns and
    sums, at its best of ten.
    """
    a, b = (
        torch.randn(2_048, 2_048, dtype=dtype),
        torch.randn(2_048, 2_048, dtype=dtype),
    )
    times = []
    for _ in range(10):
        start = time.process_time()
        a @ b
        times.append(time.process_time() - start)
    return 2 * 2_048**3 / min(times)


def product_rates(precisions: Sequence[str]) -> dict[str, float]:
    """The bound of a step in each precision."""
    return {
        name: product_rate({"fp32": torch.float32, "bf16": torch.bfloat16}[name])
        for name in precisions
    }


def shares_of_time(size: str, batch: Batch, precision: str) -> dict[str, float]:
    """The share of our update's time that PyTorch's profiler finds in each operation,
    the largest first.
    """
    model = peers.build("ours", architecture(size)).train()
    optimizer = fused_adam(model)
    step(model, optimizer, batch, precision)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU]
    ) as profiler:
        step(model, optimizer, batch, precision)
    times = {event.key: event.self_cpu_time_total for event in profiler.key_averages()}
    return {
        name: times[name] / sum(times.values())
        for name in sorted(times, key=lambda name: -times[name])
    }


def between(shares: Mapping[str, float]) -> dict[str, float]:
    """The six largest operations that are no products."""
    others = [name for name in shares if name not in PRODUCTS]
    return {name: round(shares[name], 3) for name in others[:6]}


def work_of(size: str, batch: Batch) -> int:
    """Operations in the matrix products of one update, padding included."""
    return batch.src.size(0) * sum(
        flops(architecture(size), batch.src.size(1), batch.tgt_in.size(1))
    )


def measure_size(
    size: str, repeats: int, precisions: Sequence[str] = PRECISIONS
) -> dict:
    """Losses, seconds, tokens a second and the share of the bound that each reaches."""
    plan = full_batches(SIZES[size][-1], repeats + 1)
    before = product_rates(precisions)
    seconds = step_seconds(size, plan, repeats, precisions)
    after = product_rates(precisions)
    rates = {p: max(before[p], after[p]) for p in precisions}
    shares = {p: shares_of_time(size, plan[1], p) for p in precisions}
    in_products = {
        p: round(sum(row.get(name, 0) for name in PRODUCTS), 3)
        for p, row in shares.items()
    }
    return {
        "target_tokens": median(batch.tokens for batch in plan[1:]),
        "first_losses": first_losses(size, plan[0]),
        "seconds": seconds,
        "product_gflops": {p: round(rate / 1e9) for p, rate in rates.items()},
        "ours_in_products": in_products,
        "ours_between": {p: between(row) for p, row in shares.items()},
        **compared(size, plan, seconds, rates),
    }


def compared(
    size: str,
    plan: list[Batch],
    seconds: dict[str, dict[str, float]],
    rates: dict[str, float],
) -> dict:
    """Tokens a second, the share of the bound, and ours beside the fastest peer."""
    tokens = median(batch.tokens for batch in plan[1:])
    work = median(work_of(size, batch) for batch in plan[1:])
    best = {
        p: min(time for name, time in row.items() if name != "ours")
        for p, row in seconds.items()
    }
    found: dict[str, Any] = {"tokens_per_second": {}, "share_of_bound": {}}
    for p, row in seconds.items():
        speeds = {name: round(tokens / time) for name, time in row.items()}
        shares = {name: round(work / rates[p] / time, 3) for name, time in row.items()}
        found["tokens_per_second"][p], found["share_of_bound"][p] = speeds, shares
    found["against_best_peer"] = {
        p: round(best[p] / seconds[p]["ours"], 2) for p in seconds
    }
    if {"fp32", "bf16"} <= seconds.keys():
        ratio = best["fp32"] / seconds["bf16"]["ours"]
        found["bf16_against_best_fp32_peer"] = round(ratio, 2)
    return found


def losses_of(size: str, name: str, precision: str, updates: int) -> list[float]:
    """The mean loss of each hundred updates on Multi30k, in small batches, by one
    thread.

    The learning rate rises over the warm-up, towards 0.256 / d_model.
    """
    torch.set_num_threads(1)
    torch.manual_seed(1)  # for dropout; the weights have a seed of their own
    d_model, means, losses = SIZES[size][0], [], []
    tokens, warmup = LOSS_RUNS[size]
    factor = peak_factor(0.256 / d_model, d_model, warmup)
    model = peers.build(name, architecture(size)).train()
    optimizer = fused_adam(model)
    for number, batch in enumerate(real_batches(tokens, updates), 1):
        for group in optimizer.param_groups:
            group["lr"] = noam(number, d_model, warmup, factor)
        losses.append(step(model, optimizer, batch, precision))
        if number % 100 == 0:
            means.append(sum(losses[-100:]) / 100)
            print(size, name, precision, number, round(means[-1], 3), flush=True)
    return means


def losses_after(updates: int, size: str) -> dict:
    """Ours in both precisions and Marian, from the same weights on the same batches; as
    many at once as there are CPUs.

    The slowest, bfloat16 on a processor without units for it, begins first.
    """
    runs = [("ours", "bf16"), ("ours", "fp32"), ("Marian", "fp32")]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        futures = {
            " ".join(run): pool.submit(losses_of, size, *run, updates) for run in runs
        }
        means = {run: future.result() for run, future in futures.items()}
    tokens, warmup = LOSS_RUNS[size]
    return {
        "updates": updates,
        "tokens": tokens,
        "warmup": warmup,
        "by_100": means,
        "last_100": {run: rows[-1] for run, rows in means.items()},
    }


def peak_memory(size: str, name: str, precision: str, path: str) -> int:
    """Bytes that building the model and two updates add to this process, at their
    height.

    Adam's moments are made at the end of the first update, so only the second has
    everything.
    """
    torch.set_num_threads(1)
    found = load_file(path)
    batch = Batch(found["src"], found["tgt_in"], found["tgt_out"])
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = status("VmRSS")
    model = peers.build(name, architecture(size)).train()
    optimizer = fused_adam(model)
    for _ in range(2):
        step(model, optimizer, batch, precision)
    return status("VmHWM") - before


def status(field: str) -> int:
    """A field of Linux's account of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


@contextmanager
def batch_file(tokens: int) -> Iterator[str]:
    """A file with one batch, for a process that should have nothing else to read."""
    batch = real_batches(tokens, 1)[0]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "batch.safetensors")
        save_file(
            {
                name: getattr(batch, name).contiguous()
                for name in ("src", "tgt_in", "tgt_out")
            },
            path,
        )
        yield path


def alone(function: Callable, *arguments: object, **variables: str) -> Any:
    """What a function returns in a process of its own with these variables."""
    with (
        patch.dict(os.environ, variables),
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
    ):
        return pool.submit(function, *arguments).result()


def memory(size: str, tokens: int) -> dict:
    """Peak bytes of each model in each precision, each in a process of its own."""
    found: dict[str, dict[str, int]] = {precision: {} for precision in PRECISIONS}
    with batch_file(tokens) as path:
        for precision, name in product(PRECISIONS, peers.NAMES):
            found[precision][name] = alone(peak_memory, size, name, precision, path)
    return {"tokens": tokens, "updates": 2, "peak_bytes": found}


def paged(size: str, name: str, repeats: int) -> dict[str, float]:
    """Processor seconds of a step in float32, pages fetched from the system meanwhile,
    and this process's peak.
    """
    torch.set_num_threads(1)
    plan = full_batches(SIZES[size][-1], repeats + 1)
    model = peers.build(name, architecture(size)).train()
    optimizer = fused_adam(model)
    seconds, pages = [], []
    for batch in plan:
        start, fetched = time.process_time(), getrusage(RUSAGE_SELF).ru_minflt
        step(model, optimizer, batch, "fp32")
        seconds.append(time.process_time() - start)
        pages.append(getrusage(RUSAGE_SELF).ru_minflt - fetched)
    return {
        "seconds": median(seconds[1:]),
        "pages": median(pages[1:]),
        "peak_bytes": status("VmHWM"),
    }


def allocator(size: str, repeats: int, rounds: int = 2) -> dict:
    """Each model with freed memory given back as the C library sees fit, and kept.

    Medians of rounds of processes.
    """
    runs = {(way, name): [] for way in ALLOCATORS for name in peers.NAMES}
    for _, (way, name) in product(range(rounds), runs):
        runs[way, name].append(alone(paged, size, name, repeats, **ALLOCATORS[way]))
    found: dict[str, dict] = {way: {} for way in ALLOCATORS}
    for (way, name), rows in runs.items():
        found[way][name] = {key: median(row[key] for row in rows) for key in rows[0]}
    return found


def steps(options: argparse.Namespace, precisions: list[str]) -> dict:
    """The timed steps of the chosen sizes."""
    found = {}
    for size in options.sizes:
        found[size] = measure_size(size, options.repeats, precisions)
        print(size, json.dumps(found[size]["seconds"]), flush=True)
    return found


PARTS: dict[str, Callable[[argparse.Namespace], dict]] = {
    "steps": lambda options: steps(options, PRECISIONS),
    "float32": lambda options: steps(options, ["fp32"]),
    "allocator": lambda options: {
        size: allocator(size, options.repeats) for size in options.sizes
    },
    "losses": lambda options: {
        size: losses_after(1_000, size) for size in options.sizes if size in LOSS_RUNS
    },
    "memory": lambda options: {size: memory(size, 4_096) for size in options.sizes},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one part, or each in turn, and put it into the record."""
    parser = command_line(__doc__)
    parser.add_argument("--only", choices=[*PARTS, "all"], default="steps")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    for name in PARTS if given.only == "all" else [given.only]:
        found, record = PARTS[name](given), load(PLACE)
        part = {"steps": "sizes"}.get(name, name)
        kept = {each: record[each] for each in [*PARTS, "sizes"] if each in record}
        kept[part] = record.get(part, {}) | found
        amx = record.get("amx", {}) | {part: has_amx()}
        about = {
            "command": "python -m benchmarks.speed.training_step",
            "threads": 1,
            "amx": amx,
        }
        save(PLACE, about | kept, "transformers", "x-transformers")


if __name__ == "__main__":
    main()
