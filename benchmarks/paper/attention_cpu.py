"""Time the fused attention kernel beside the plain formula on a CPU, forward and
backward, interleaved.

    python -m benchmarks.paper.attention_cpu

Takes about a minute on one core and writes results/paper/attention-cpu.json. The chapter
nbs/model/attention.ipynb cites it.
"""

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor

from annotated_transformer.model.attention import attention
from benchmarks.record import RESULTS, arguments

OUT = RESULTS / "paper" / "attention-cpu.json"
SHAPES = [(270, 4, 15, 32), (64, 8, 64, 64), (8, 8, 256, 64)]
REPEATS = 7


def formula(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Equation (1) as written."""
    return attention(query, key, value)[0]


def seconds(function: Callable, inputs: list[Tensor]) -> float:
    """Processor seconds of one forward and backward pass."""
    start = time.process_time()
    function(*inputs).sum().backward()
    return time.process_time() - start


def measure(shape: tuple[int, ...], dtype: torch.dtype) -> dict:
    """Median milliseconds of both forms, taken in turn, and their ratio."""
    inputs = [torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3)]
    forms = {"fused": F.scaled_dot_product_attention, "formula": formula}
    times = {name: [] for name in forms}
    for _ in range(REPEATS + 1):
        for name, form in forms.items():
            times[name].append(seconds(form, inputs))
    medians = {
        name: round(1000 * median(values[1:]), 3) for name, values in times.items()
    }
    ratio = round(medians["fused"] / medians["formula"], 3)
    return {
        "shape": shape,
        "dtype": str(dtype).removeprefix("torch."),
        "milliseconds": medians,
        "fused/formula": ratio,
    }


def main() -> None:
    """Measure every shape in both precisions on one thread and write the record."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = [
        measure(shape, dtype)
        for dtype in (torch.float32, torch.bfloat16)
        for shape in SHAPES
    ]
    record = {
        "command": "python -m benchmarks.paper.attention_cpu",
        "seed": 0,
        "threads": 1,
        "repeats": REPEATS,
        "machine": f"CPU, {platform.machine()}, "
        f"{torch.backends.cpu.get_cpu_capability()}",
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "shape": "batch, heads, positions, d_k",
        "rows": rows,
    }
    OUT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        print(row)


if __name__ == "__main__":
    arguments(__doc__)
    main()
