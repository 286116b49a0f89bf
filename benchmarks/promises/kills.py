"""SIGKILL at random moments of a training, or Ctrl-C twice, again and again: losses and
weights must be those of a run that was left alone, bit for bit.

`python -m benchmarks.promises` and the tests use it.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import forks
from .fuzz import Attack

SETTINGS = "steps=100 save_every=4 keep=2"
AT_A_TIME = 8  # kills of one run before it may end


class Run:
    """A run that is attacked until it may end."""

    def __init__(self, scratch: Path, seed: int):
        self.scratch, self.folder = scratch, scratch / "run"
        self.random = random.Random(seed)
        forks.write_pairs(scratch / "text")
        begun = time.monotonic()
        self.whole, self.error = self.finish()
        self.seconds = time.monotonic() - begun

    def start(self) -> int:
        """The training in a process of its own."""
        command = forks.training(self.scratch / "text", self.folder, SETTINGS)
        return forks.fork(command, self.scratch / "said")

    def finish(self) -> tuple[Any, str]:
        """Let it come to its end: losses and model, and what was wrong."""
        done = forks.wait(self.start(), self.scratch / "said")
        if done.status:
            return None, done.err[-500:]
        left = [name for name in forks.hidden(self.folder) if name != ".lock"]
        result = forks.losses(self.folder), forks.contents(self.folder / "model")
        return result, f"left behind: {left}" if left else ""

    def strike(self, mode: str) -> str:
        """Start the run and attack it somewhere; what it said that it should not."""
        child, end = self.start(), self.random.uniform(0, 0.6 * self.seconds)
        time.sleep(end)
        for _ in range(1 if mode == "kill" else 2):
            if not forks.ended(child):
                os.kill(child, signal.SIGKILL if mode == "kill" else signal.SIGINT)
                time.sleep(self.random.uniform(0, 0.05))
        said = forks.wait(child, self.scratch / "said").err.splitlines(keepends=True)
        return "".join(line for line in said if not line.startswith("doctor: "))


def attacks(count: int, home: Path, seed: int = 0) -> Iterator[Attack]:
    """So many attacks, every fourth of them Ctrl-C twice."""
    run, done = Run(home, seed), 0
    while done < count:
        shutil.rmtree(run.folder, ignore_errors=True)
        batch = [
            "Ctrl-C twice" if number % 4 == 3 else "kill"
            for number in range(done, min(done + AT_A_TIME, count))
        ]
        said = [(mode, run.strike(mode)) for mode in batch]
        result, error = run.finish()
        same = result == run.whole and not error
        for mode, words in said:
            right = same and not words
            yield Attack(mode, "", "the same" if right else "failed", words or error)
        done += len(batch)
