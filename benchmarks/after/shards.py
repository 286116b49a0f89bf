"""Runs that several processes make at once: a file of lines each, and one record.

A process that is interrupted loses the run it was at, and the next makes what is
missing. Two processes at once must not write to the same file.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import add_run

Run = dict[str, Any]
PROVENANCE = ("command", "commit", "clean", "date", "machine", "versions")


def read(folder: Path) -> list[Run]:
    """The runs of all files, each with how it came about."""
    files = sorted(folder.glob("*.jsonl"))
    lines = [each.read_text(encoding="utf-8").splitlines() for each in files]
    return [json.loads(line) for part in lines for line in part]


def add(folder: Path, name: str, run: Run, *packages: str) -> Run:
    """Add a run to a file; the run itself."""
    add_run(str(folder.resolve() / f"{name}.jsonl"), run, *packages)
    return run


def matching(runs: Sequence[Run], **settings: Any) -> list[Run]:
    """The runs with these settings."""
    return [run for run in runs if settings.items() <= run.items()]


def plain(run: Run, *left_out: str) -> Run:
    """A run without how it came about, and without some of its parts."""
    return {k: v for k, v in run.items() if k not in (*PROVENANCE, *left_out)}


def origins(runs: Sequence[Run]) -> list[Run]:
    """How some runs came about: each way once, without the command."""
    found = [{name: run[name] for name in PROVENANCE[1:]} for run in runs]
    return [each for i, each in enumerate(found) if each not in found[:i]]
