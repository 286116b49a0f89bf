"""Time one training step, ours beside three libraries: the same weights, batches, optimizer, smoothing and dropout.

    python benchmarks/training_step.py [--sizes tiny small base-8k base-37k] [--repeats 5]
    python benchmarks/training_step.py --only losses     # 1,000 updates in float32 and bfloat16
    python benchmarks/training_step.py --only memory     # peak memory of a step, each in a process of its own

Needs ANNOTATED_TRANSFORMER_DATA (Multi30k). One thread; times are processor seconds, so that other work on the machine
does not count. Writes its part of results/training-step.json, which the chapter nbs/training/speed.ipynb plots.
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from statistics import median

import peers
import torch
from torch import nn

from annotated_transformer.data.batching import Batch, TokenizedPairs, batches
from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.costs import flops
from annotated_transformer.training.schedule import adam, noam, peak_factor

OUT = Path(__file__).resolve().parent.parent / "results" / "training-step.json"
SIZES = {  # d_model, N, h, d_ff, vocabulary, tokens in a batch
    "tiny": (128, 4, 4, 256, 10_000, 4_096), "small": (256, 3, 4, 1_024, 10_000, 2_048),
    "base-8k": (512, 6, 8, 2_048, 8_000, 1_024), "base-37k": (512, 6, 8, 2_048, 37_000, 1_024)}
PRECISIONS = ["fp32", "bf16"]


def architecture(size: str, dropout: float = 0.1) -> TransformerConfig:
    """The architecture of a size, with one shared vocabulary."""
    d_model, N, h, d_ff, vocab, _ = SIZES[size]
    d_k = d_model // h
    return TransformerConfig(vocab, vocab, N=N, d_model=d_model, d_ff=d_ff, h=h, d_k=d_k, d_v=d_k, dropout=dropout)


def real_batches(tokens: int, count: int) -> list[Batch]:
    """Batches of Multi30k text, lower-cased, in 8,000 byte pairs: lengths and frequencies as they are."""
    pairs = list(load_corpus("multi30k", "train", "en", "de"))
    tokenizer = train_tokenizer(pairs, "en", "de", 8_000, lowercase=True)
    tokenized = TokenizedPairs.build(pairs, tokenizer)
    return [batch for _, batch in islice(batches(tokenized, tokens, seed=1), count)]


def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch, precision: str) -> float:
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
            loss = peers.build(name, architecture(size, dropout=0.0)).train()(batch.src, batch.tgt_in, batch.tgt_out)
        losses[name] = loss.item() / batch.tokens
    return losses


def step_seconds(size: str, plan: list[Batch], repeats: int) -> dict[str, dict[str, float]]:
    """Median processor seconds of a step by precision and name; the models take turns on the same batches.

    Who goes first changes from batch to batch, since the first to meet a new shape has kernels prepared for all.
    """
    models = {name: peers.build(name, architecture(size)).train() for name in peers.NAMES}
    optimizers = {name: adam(model) for name, model in models.items()}
    results = {}
    for precision in PRECISIONS:
        times: dict[str, list[float]] = {name: [] for name in models}
        for turn, batch in enumerate(plan[: repeats + 1]):
            for name in peers.NAMES[turn % 4 :] + peers.NAMES[: turn % 4]:
                start = time.process_time()
                step(models[name], optimizers[name], batch, precision)
                times[name].append(time.process_time() - start)
        results[precision] = {name: median(values[1:]) for name, values in times.items()}
    return results


def product_rate(dtype: torch.dtype) -> float:
    """Floating-point operations a second of a matrix product of 2,048 rows, columns and sums: the bound of a step."""
    a, b = torch.randn(2_048, 2_048, dtype=dtype), torch.randn(2_048, 2_048, dtype=dtype)
    times = []
    for _ in range(6):
        start = time.process_time()
        a @ b
        times.append(time.process_time() - start)
    return 2 * 2_048**3 / median(times[1:])


def measure_size(size: str, repeats: int) -> dict:
    """Losses, seconds, tokens a second and the share of the bound that each reaches."""
    tokens = SIZES[size][-1]
    plan = [batch for batch in real_batches(tokens, 60) if batch.tokens > 0.85 * tokens][: repeats + 1]
    real = median(batch.tokens for batch in plan[1:])
    seconds = step_seconds(size, plan, repeats)
    rates = {"fp32": product_rate(torch.float32), "bf16": product_rate(torch.bfloat16)}
    src, tgt = plan[0].src.size(1), plan[0].tgt_in.size(1)
    work = sum(flops(architecture(size), src, tgt)) * real / tgt
    best = {precision: min(s for name, s in row.items() if name != "ours") for precision, row in seconds.items()}
    return {
        "target_tokens": real, "first_losses": first_losses(size, plan[0]), "seconds": seconds,
        "tokens_per_second": {p: {name: round(real / s) for name, s in row.items()} for p, row in seconds.items()},
        "product_gflops": {precision: round(rate / 1e9) for precision, rate in rates.items()},
        "share_of_bound": {
            p: {name: round(work / rates[p] / s, 3) for name, s in row.items()} for p, row in seconds.items()},
        "against_best_peer": {p: round(best[p] / seconds[p]["ours"], 2) for p in PRECISIONS},
        "bf16_against_best_fp32_peer": round(best["fp32"] / seconds["bf16"]["ours"], 2)}


def losses_after(updates: int) -> dict:
    """The mean loss of the last 100 of `updates` on Multi30k, tiny size, 1,024 tokens a batch; ours and Marian."""
    plan = real_batches(1_024, updates)
    factor = peak_factor(2e-3, 128, 400)
    runs = [("ours", "fp32"), ("ours", "bf16"), ("Marian", "fp32")]
    models = {run: peers.build(run[0], architecture("tiny")).train() for run in runs}
    optimizers = {run: adam(model) for run, model in models.items()}
    losses: dict[tuple[str, str], list[float]] = {run: [] for run in runs}
    for number, batch in enumerate(plan, 1):
        for run in runs:
            for group in optimizers[run].param_groups:
                group["lr"] = noam(number, 128, 400, factor)
            losses[run].append(step(models[run], optimizers[run], batch, run[1]))
    return {"updates": updates, "last_100": {" ".join(run): sum(v[-100:]) / 100 for run, v in losses.items()}}


def peak_memory(size: str, name: str, precision: str, tokens: int) -> int:
    """Bytes that building the model and one step add to this process's peak."""
    plan = real_batches(tokens, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = peers.build(name, architecture(size)).train()
    step(model, adam(model), plan[0], precision)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def memory(size: str, tokens: int) -> dict:
    """Peak bytes of each model in each precision, each in a process of its own."""
    found: dict[str, dict[str, int]] = {}
    for precision in PRECISIONS:
        for name in peers.NAMES:
            call = f"import training_step as t; print(t.peak_memory({size!r}, {name!r}, {precision!r}, {tokens}))"
            done = subprocess.run(
                [sys.executable, "-c", call], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
            found.setdefault(precision, {})[name] = int(done.stdout.split()[-1])
    return {"tokens": tokens, "peak_bytes": found}


def main() -> None:
    """Measure one part and put it into the record beside the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["steps", "losses", "memory"], default="steps")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.only == "steps":
        found = {}
        for size in options.sizes:
            found[size] = measure_size(size, options.repeats)
            print(size, json.dumps(found[size]["seconds"]), flush=True)
    elif options.only == "losses":
        found = losses_after(1_000)
    else:
        found = {size: memory(size, 4_096) for size in ("tiny", "base-37k")}
    record = json.loads(OUT.read_text()) if OUT.exists() else {}
    part = {"steps": "sizes"}.get(options.only, options.only)
    record[part] = {**record.get(part, {}), **found}
    packages = ["torch", "transformers", "x-transformers"]
    record |= {
        "command": "python benchmarks/training_step.py", "threads": 1, "machine": f"CPU, {platform.machine()}",
        "capability": torch.backends.cpu.get_cpu_capability(), "versions": {name: version(name) for name in packages}}
    OUT.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
