"""Time one training step, ours beside three libraries.

    python -m benchmarks.speed.training_step                     every size
    python -m benchmarks.speed.training_step --sizes tiny small  some
    python -m benchmarks.speed.training_step --only PART         another part

The parts: `sizes`, steps in float32 and bfloat16; `float32` alone, for a processor
without AMX; `losses` of 1,000 updates; `memory`, the peak of two updates; `allocator`,
steps with freed memory given back or kept. All libraries have the same weights,
batches, optimizer, smoothing and dropout. One thread; times are processor seconds, so
that other work on the machine doesn't count. Takes minutes to an hour. Multi30k is
downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Writes its
part of results/speed/training-step.json, which nbs/performance/how_fast.ipynb plots.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import islice, product
from resource import RUSAGE_SELF, getrusage
from statistics import mean, median

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from annotated_transformer.data.batch import Batch
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.stream import batches
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.costs import flops
from annotated_transformer.training.schedule import adam, noam, peak_factor
from benchmarks.measure import alone, forget_peak, in_turn, medians, status
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
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
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
    heads = {"h": h, "d_k": d_model // h, "d_v": d_model // h}
    sizes = {"N": N, "d_model": d_model, "d_ff": d_ff, **heads}
    return TransformerConfig(vocab, vocab, **sizes, dropout=dropout)


@lru_cache
def real_batches(tokens: int, count: int) -> list[Batch]:
    """Batches of Multi30k's text, lower-cased, in 8,000 byte pairs."""
    pairs = list(load_corpus("multi30k", "train", "en", "de"))
    tokenizer = train_tokenizer(pairs, "en", "de", 8_000, lowercase=True)
    stream = batches(TokenizedPairs.build(pairs, tokenizer), tokens, seed=1)
    return [batch for _, batch in islice(stream, count)]


def full_batches(size: str, count: int) -> list[Batch]:
    """The first batches of that text that are at least 85 % full."""
    tokens = SIZES[size][-1]
    found = real_batches(tokens, 60)
    return [batch for batch in found if batch.tokens > 0.85 * tokens][:count]


class Trained:
    """A contender with its optimizer."""

    def __init__(self, size: str, name: str):
        self.model: nn.Module = peers.build(name, architecture(size)).train()
        self.optimizer = adam(self.model, fused=True)

    def step(self, batch: Batch, precision: str) -> float:
        """One update; the loss per real target token."""
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = self.model(batch)
        (loss / batch.tokens).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item() / batch.tokens


# -- steps -----------------------------------------------------------------------------


def first_loss(size: str, name: str, batch: Batch) -> float:
    """The loss of a model before its first update, without dropout."""
    model = peers.build(name, architecture(size, dropout=0.0)).train()
    with torch.no_grad():
        return model(batch).item() / batch.tokens


def step_seconds(
    size: str, plan: list[Batch], precisions: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Median processor seconds of a step by precision and name, on the same batches."""
    models = {name: Trained(size, name) for name in peers.NAMES}

    def over_the_plan(model: Trained, precision: str) -> Callable[[], float]:
        stream = iter(plan)
        return lambda: model.step(next(stream), precision)

    return {
        precision: medians(
            in_turn(
                {name: over_the_plan(m, precision) for name, m in models.items()},
                len(plan) - 1,
            )
        )
        for precision in precisions
    }


def product_rate(precision: str, n: int = 2_048) -> float:
    """Floating-point operations a second of a product of square matrices, at its best
    of ten.
    """
    a, b = torch.randn(2, n, n, dtype=TYPES[precision])
    return 2 * n**3 / min(in_turn({"": lambda: a @ b}, 10)[""])


def share_in_products(size: str, batch: Batch, precision: str) -> float:
    """The share of our update's time that PyTorch's profiler finds in products."""
    model = Trained(size, "ours")
    model.step(batch, precision)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        model.step(batch, precision)
    times = {event.key: event.self_cpu_time_total for event in profiler.key_averages()}
    return sum(times.get(name, 0) for name in PRODUCTS) / sum(times.values())


def work_of(size: str, batch: Batch) -> int:
    """Operations in the matrix products of one update, padding included."""
    lengths = batch.src.size(1), batch.tgt_in.size(1)
    return batch.src.size(0) * sum(flops(architecture(size), *lengths))


def measure_size(size: str, repeats: int, precisions: Sequence[str]) -> dict:
    """Losses, seconds, tokens a second, the share of the bound that each reaches, and
    ours beside the fastest peer.
    """
    plan = full_batches(size, repeats + 1)
    before = {p: product_rate(p) for p in precisions}
    seconds = step_seconds(size, plan, precisions)
    rates = {p: max(before[p], product_rate(p)) for p in precisions}
    tokens = median(batch.tokens for batch in plan[1:])
    work = median(work_of(size, batch) for batch in plan[1:])
    best = {
        p: min(time for name, time in row.items() if name != "ours")
        for p, row in seconds.items()
    }
    found = {
        "target_tokens": tokens,
        "first_losses": {name: first_loss(size, name, plan[0]) for name in peers.NAMES},
        "seconds": seconds,
        "product_gflops": {p: round(rate / 1e9) for p, rate in rates.items()},
        "ours_in_products": {
            p: round(share_in_products(size, plan[1], p), 3) for p in precisions
        },
        "tokens_per_second": {
            p: {name: round(tokens / time) for name, time in row.items()}
            for p, row in seconds.items()
        },
        "share_of_bound": {
            p: {name: round(work / rates[p] / time, 3) for name, time in row.items()}
            for p, row in seconds.items()
        },
        "against_best_peer": {
            p: round(best[p] / row["ours"], 2) for p, row in seconds.items()
        },
    }
    if set(TYPES) <= seconds.keys():
        ratio = best["fp32"] / seconds["bf16"]["ours"]
        found["bf16_against_best_fp32_peer"] = round(ratio, 2)
    return found


# -- losses, memory, allocator ---------------------------------------------------------


def last_loss(size: str, name: str, precision: str, updates: int) -> float:
    """The mean loss of the last hundred updates on Multi30k, in small batches.

    The learning rate rises over the warm-up, towards 0.256 / d_model.
    """
    torch.manual_seed(1)  # for dropout; the weights have a seed of their own
    d_model, (tokens, warmup), losses = SIZES[size][0], LOSS_RUNS[size], []
    factor = peak_factor(0.256 / d_model, d_model, warmup)
    model = Trained(size, name)
    for number, batch in enumerate(real_batches(tokens, updates), 1):
        for group in model.optimizer.param_groups:
            group["lr"] = noam(number, d_model, warmup, factor)
        losses.append(model.step(batch, precision))
    return mean(losses[-100:])


def losses_after(size: str, updates: int = 1_000) -> dict:
    """Ours in both precisions and Marian, from the same weights on the same batches."""
    runs = [("ours", "bf16"), ("ours", "fp32"), ("Marian", "fp32")]
    last = {" ".join(run): last_loss(size, *run, updates) for run in runs}
    return {"updates": updates, "tokens": LOSS_RUNS[size][0], "last_100": last}


def peak_memory(size: str, name: str, precision: str, batch: dict) -> int:
    """Bytes that building the model and two updates add to this process, at their
    height.

    Adam's moments are made at the end of the first update, so only the second has
    everything.
    """
    torch.set_num_threads(1)
    forget_peak()
    before, model = status("VmRSS"), Trained(size, name)
    for _ in range(2):
        model.step(Batch(**batch), precision)
    return status("VmHWM") - before


def memory(size: str, tokens: int = 4_096) -> dict:
    """Peak bytes of each model in each precision, each in a process of its own."""
    batch = vars(real_batches(tokens, 1)[0])
    found: dict[str, dict[str, int]] = {precision: {} for precision in TYPES}
    for precision, name in product(TYPES, peers.NAMES):
        found[precision][name] = alone(peak_memory, size, name, precision, batch)
    return {"tokens": tokens, "updates": 2, "peak_bytes": found}


def paged(size: str, name: str, repeats: int) -> dict[str, float]:
    """Processor seconds of a step in float32, pages fetched from the system meanwhile,
    and this process's peak.
    """
    torch.set_num_threads(1)
    model, rows = Trained(size, name), []
    for batch in full_batches(size, repeats + 1):
        start, fetched = time.process_time(), getrusage(RUSAGE_SELF).ru_minflt
        model.step(batch, "fp32")
        pages = getrusage(RUSAGE_SELF).ru_minflt - fetched
        rows.append((time.process_time() - start, pages))
    seconds, pages = (median(each) for each in zip(*rows[1:], strict=True))
    return {"seconds": seconds, "pages": pages, "peak_bytes": status("VmHWM")}


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


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one part, size by size, and put it into the record."""
    parser = command_line(__doc__)
    names = ("sizes", "float32", "losses", "memory", "allocator")
    parser.add_argument("--only", choices=names, default="sizes")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args(argv)
    torch.set_num_threads(1)
    measure: dict[str, Callable[[str], dict]] = {
        "sizes": partial(measure_size, repeats=asked.repeats, precisions=list(TYPES)),
        "float32": partial(measure_size, repeats=asked.repeats, precisions=["fp32"]),
        "losses": losses_after,
        "memory": memory,
        "allocator": partial(allocator, repeats=asked.repeats),
    }
    part = asked.only
    for size in asked.sizes if part != "losses" else set(asked.sizes) & set(LOSS_RUNS):
        record = load(PLACE)
        kept = {name: record[name] for name in (*names, "amx") if name in record}
        kept[part] = kept.get(part, {}) | {size: measure[part](size)}
        kept["amx"] = kept.get("amx", {}) | {part: has_amx()}
        print(size, kept[part][size], flush=True)
        save(PLACE, {"threads": 1} | kept, "transformers", "x-transformers")


if __name__ == "__main__":
    main()
