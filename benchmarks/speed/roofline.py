"""How fast one matrix multiplies few rows and many: the dots under a roofline.

    python -m benchmarks.speed.roofline               a minute

A matrix of 8,192 × 8,192 numbers in float32, 268 MB, which no cache holds, multiplies
1 to 512 rows, on one thread, once as a linear layer keeps it in memory and once as
the search lays it out. The bandwidth is that of one sum over the matrix; the
peak is the best rate of any number of rows. Processor seconds, the least of several
calls, since others may share the memory. Writes results/speed/roofline.json.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F

from annotated_transformer.performance.decoding import search_matrix
from benchmarks.record import command_line, save

SIDE = 8192
ROWS = [2**k for k in range(10)]


def least(action: Callable[[], object], calls: int) -> float:
    """The least processor seconds of some calls, after one that isn't counted."""
    action()
    taken = []
    for _ in range(calls):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return min(taken)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the record."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    weight = torch.randn(SIDE, SIDE)
    layouts = {"layer's": weight, "search's": search_matrix(weight, weight.dtype).data}
    seconds: dict[str, dict[int, float]] = {name: {} for name in layouts}
    for rows in ROWS:
        x = torch.randn(rows, SIDE)
        for name, matrix in layouts.items():
            calls = 5 if rows < 64 else 2
            seconds[name][rows] = least(partial(F.linear, x, matrix), calls)
    numbers, size = weight.numel(), weight.element_size()
    rates = {
        name: {rows: 2 * rows * numbers / took for rows, took in times.items()}
        for name, times in seconds.items()
    }
    found = {
        "threads": 1,
        "numbers": numbers,
        "bytes_a_number": size,
        "bandwidth": numbers * size / least(weight.sum, 7),
        "peak": max(rate for layout in rates.values() for rate in layout.values()),
        "rates": rates,
    }
    save("speed/roofline.json", found)


if __name__ == "__main__":
    main()
