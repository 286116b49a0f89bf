"""Studies: sides that are compared, the rates each tries, the runs that are missing.

All sides of a study try the same learning rates, on a seed that isn't used again; a
rate is chosen by its cost on the validation split, mostly the loss. While the best rate
of a side is the smallest or the largest that was tried, all sides of its study try one
more. Then each side runs with its best rate and every seed. A run that has its record
is left alone, so the same command finishes what is missing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from operator import itemgetter
from typing import Any

import torch

from benchmarks.record import add_run, read_runs

TUNING_SEED = 0
Case = dict[str, Any]  # study, side, rate and seed


@dataclass(frozen=True)
class Study:
    """What is special about each side, the rates, the updates and the seeds."""

    sides: Mapping[str, tuple[str, ...]]
    rates: tuple[float, ...]
    updates: int
    seeds: tuple[int, ...] = (1, 2, 3)
    cost: Callable[[Case], float] = itemgetter("validation_loss")


def due(name: str, study: Study, runs: Sequence[Case]) -> list[Case]:
    """The runs of a study that can be made now and have no record."""
    here = [each for each in runs if each["study"] == name]
    tried = {(r["side"], r["rate"]): r for r in here if r["seed"] == TUNING_SEED}
    rates = sorted({*study.rates, *(rate for _, rate in tried)})

    def missing(rates: Sequence[float]) -> list[Case]:
        cases = [(side, rate) for rate in rates for side in study.sides]
        return [
            {"study": name, "side": side, "rate": rate, "seed": TUNING_SEED}
            for side, rate in cases
            if (side, rate) not in tried
        ]

    if first := missing(rates):
        return first
    best = {
        side: min(rates, key=lambda rate: study.cost(tried[side, rate]))
        for side in study.sides
    }
    if more := missing(beyond(rates, best.values())):
        return more
    there = {(each["side"], each["seed"]) for each in here}
    return [
        {"study": name, "side": side, "rate": best[side], "seed": seed}
        for seed in study.seeds
        for side in study.sides
        if (side, seed) not in there
    ]


def beyond(rates: Sequence[float], best: Iterable[float]) -> list[float]:
    """A rate below the smallest and one above the largest, if that is among the best.

    The steps stay as they are.
    """
    step, wanted = rates[1] / rates[0], set(best)
    smaller = [rates[0] / step] if rates[0] in wanted else []
    larger = [rates[-1] * step] if rates[-1] in wanted else []
    return [float(f"{rate:.3g}") for rate in smaller + larger]


def run_missing(
    place: str,
    studies: Mapping[str, Study],
    run: Callable[[Case], Case],
    workers: int,
) -> None:
    """Make what is missing, as many runs at a time as there are workers.

    Each worker has one thread. Adds a line for each run to results/`place`.
    """
    running: dict[Future[Case], Case] = {}
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, torch.set_num_threads, (1,)) as pool:
        while True:
            runs = read_runs(place)
            for name, study in studies.items():
                for case in due(name, study, runs):
                    if len(running) < workers and case not in running.values():
                        running[pool.submit(run, case)] = case
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                case = running.pop(future)
                add_run(place, case | future.result())
