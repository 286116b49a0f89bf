"""The training step of two checkouts of this package, side by side.

    git worktree add ../before COMMIT
    python -m benchmarks.speed.two_checkouts ../before .

Each checkout trains the same architecture, size "small", on the same random ids in a
process of its own, one thread; the processes take turns. Seconds are processor seconds,
medians over the rounds. A processor without units for bfloat16 spends nearly all of a
step in such products, so for bfloat16 the time of all other operations is recorded as
well, as PyTorch's profiler sees it. Writes results/speed/house-training.json, which the
chapter nbs/engine/update.ipynb cites.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile

SMALL = {"N": 3, "d_model": 256, "d_ff": 1_024, "h": 4, "d_k": 64, "d_v": 64}
VOCABULARY = 10_000
CASES = {"fp32": (1_024, 40), "bf16": (128, 10)}  # tokens in a batch, rounds
PRODUCTS = ("mm", "addmm", "addmm_", "bmm", "baddbmm", "mkldnn_linear")
KERNEL = "aten::_scaled_dot_product_flash_attention"


def random_batch(tokens: int, turn: int) -> list[torch.Tensor]:
    """Source, target in and target out of captions' lengths, a tenth is padding."""
    generator, length = torch.Generator().manual_seed(turn), 14 + turn % 4
    shape = (3, tokens // length, length)
    ids = torch.randint(4, VOCABULARY, shape, generator=generator)
    ids[:, ::2, -3:] = 0
    return list(ids)


def serve(precision: str, tokens: int) -> None:
    """For each turn that is read, make an update and write what it took, in JSON."""
    from annotated_transformer.model.config import TransformerConfig
    from annotated_transformer.model.transformer import Transformer

    try:
        from annotated_transformer.engine.update import FastObjective as Objective
        from annotated_transformer.engine.update import fused_adam as adam
    except ImportError:  # a checkout from before the engine room
        from annotated_transformer.training.loss import Objective
        from annotated_transformer.training.schedule import adam

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Transformer(TransformerConfig(VOCABULARY, VOCABULARY, **SMALL))
    objective, optimizer = Objective(model, 0.1).train(), adam(model)

    def update(turn: int) -> float:
        batch, start = random_batch(tokens, turn), time.process_time()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = objective(*batch)
        (loss / tokens).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return time.process_time() - start

    products = [f"aten::{name}" for name in PRODUCTS]
    for line in sys.stdin:
        taken = {}
        if precision == "fp32":
            taken["seconds"] = update(int(line))
        else:
            with profile(activities=[ProfilerActivity.CPU]) as profiler:
                taken["seconds"] = update(int(line))
            events = [e for e in profiler.key_averages() if e.key not in products]
            others = [e for e in events if not e.key.startswith(KERNEL)]
            taken["outside_products"] = sum(e.self_cpu_time_total for e in others) / 1e6
        print(json.dumps(taken), flush=True)


def measure(checkouts: dict[str, Path], precision: str) -> dict:
    """Medians of both checkouts, their processes taking turns."""
    tokens, rounds = CASES[precision]
    running = {
        name: subprocess.Popen(
            [sys.executable, __file__, precision, str(tokens)],
            env=os.environ | {"PYTHONPATH": str(path), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, path in checkouts.items()
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in running}
    for turn in range(rounds + 2):
        for name in list(running)[:: 1 if turn % 2 else -1]:
            print(turn, file=running[name].stdin, flush=True)
            found[name].append(json.loads(running[name].stdout.readline()))
    for process in running.values():
        process.communicate()
    result: dict = {"tokens": tokens, "rounds": rounds}
    for what in found["after"][0]:
        rows = {name: [row[what] for row in rows[2:]] for name, rows in found.items()}
        ratios = [after / before for before, after in zip(*rows.values(), strict=True)]
        result[what] = {name: round(median(row), 4) for name, row in rows.items()}
        result[what]["after/before"] = round(median(ratios), 3)
    return result


def main(arguments: list[str] | None = None) -> None:
    """Measure both precisions and write the record."""
    from benchmarks.record import command_line, folder, save

    parser = command_line(__doc__)
    parser.add_argument("before", type=folder)
    parser.add_argument("after", type=folder)
    options = parser.parse_args(arguments)
    checkouts = {name: vars(options)[name].resolve() for name in ("before", "after")}
    cases = {}
    for precision in CASES:
        cases[precision] = measure(checkouts, precision)
        print(precision, cases[precision], flush=True)
    about = {"command": "python -m benchmarks.speed.two_checkouts ../before ."}
    save("speed/house-training.json", about | {"size": "small", "steps": cases})


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] in CASES:
        serve(sys.argv[1], int(sys.argv[2]))
    else:
        main()
