"""Runs that are made once, and the search for the settings of one side."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from annotated_transformer.errors import UserError
from benchmarks.after.studies import Case
from benchmarks.record import add_run, read_runs


def once(place: str, case: Case, make: Callable[[Case], Case], *packages: str) -> Case:
    """The run of a case: the one on record, or one that is made now and added.

    One that diverges is right about nothing.
    """
    for found in read_runs(place):
        if case.items() <= found.items():
            return found
    print(case, "…", file=sys.stderr, flush=True)
    try:
        found = case | make(case)
    except UserError as error:
        found = case | {"valid_accuracy": 0.0, "valid_loss": 700.0}
        found["diverged"] = str(error)
    add_run(place, found, *packages)
    return found


def search(
    first: Case, grid: Mapping[str, Sequence[Any]], trial: Callable[[Case], Case]
) -> Case:
    """The case with the best settings: one setting after the other is tried.

    Each value of a setting is run with those of the others that are best so far, and
    judged by the accuracy on validation; the loss there decides a tie.
    """
    case = first
    for setting, values in grid.items():
        tried = [trial(case | {setting: value}) for value in values]
        best = max(tried, key=lambda e: (e["valid_accuracy"], -e["valid_loss"]))
        case = case | {setting: best[setting]}
    return case
