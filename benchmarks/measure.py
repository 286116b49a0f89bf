"""What benchmarks measure with: calls in turn, processes of their own, BLEU."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.translation.bleu import brevity_penalty
from annotated_transformer.translation.scores import scores

BLEU_13A, LOWER_13A = "BLEU 13a", "BLEU 13a, lower-cased"
Clock = Callable[[], float]


def in_turn(
    actions: Mapping[str, Callable[[], object]],
    repeats: int,
    warm_up: int = 1,
    clock: Clock = time.process_time,
) -> dict[str, list[float]]:
    """Seconds of each action, call by call, after so many rounds that aren't counted.

    Who begins changes from round to round, since the first to meet a new shape has
    kernels prepared for all.
    """
    names, taken = list(actions), {name: [] for name in actions}
    for turn in range(warm_up + repeats):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            start = clock()
            actions[name]()
            taken[name].append(clock() - start)
    return {name: seconds[warm_up:] for name, seconds in taken.items()}


def medians(taken: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The median of each name's values."""
    return {name: median(values) for name, values in taken.items()}


def alone(function: Callable, *arguments: object, **variables: str) -> Any:
    """What a function returns in a process of its own with these variables."""
    with (
        patch.dict(os.environ, variables),
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
    ):
        return pool.submit(function, *arguments).result()


def status(field: str) -> int:
    """A field of Linux's account of this process, in bytes; VmHWM is its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def forget_peak() -> None:
    """Let VmHWM begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def sides(corpus: str, split: str, limit: int | None = None) -> list[list[str]]:
    """English sources and German targets of a split, or of its first pairs."""
    pairs = islice(load_corpus(corpus, split, "en", "de"), limit)
    return [list(side) for side in zip(*pairs, strict=True)]


def bleu(
    outputs: list[str], targets: list[str], convention: str = BLEU_13A
) -> dict[str, Any]:
    """BLEU of German by a convention, to two digits, with its signature.

    And the brevity penalty: below 1 for outputs that are shorter than the targets.
    """
    found = {each.name: each for each in scores(outputs, targets, "de")}[convention]
    short = brevity_penalty(found.hypothesis_length, found.reference_length)
    return {
        "bleu": round(found.value, 2),
        "brevity_penalty": round(short, 3),
        "signature": found.signature,
    }
