"""A run as the commands show it: a bar on a terminal, else lines, and how it ended."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ..errors import UserError
from .config_file import Context, write_config
from .exit_status import INTERRUPTED
from .options import console
from .streams import echo_on

if TYPE_CHECKING:
    from ..training.log import Record
    from ..training.run import Run


def use_threads(threads: int | None, device: str | None) -> None:
    """Compute with so many threads, and say where other work leaves too few cores."""
    import torch
    from psutil import getloadavg

    from ..devices import find_device

    if threads:
        torch.set_num_threads(threads)
    cores, wanted = os.cpu_count() or 1, torch.get_num_threads()
    idle = cores - getloadavg()[0]
    if 1 < wanted and idle < wanted - 0.5 and find_device(device).type == "cpu":
        echo_on(
            f"other work shares the processor ({cores - idle:.1f} of {cores} cores are "
            f"busy): fewer than {wanted} threads may be faster, such as --threads "
            f"{max(1, round(idle))}"
        )


def run_folder(out: Path | None, name: str) -> Path:
    """The folder of a run, which is not made yet.

    Raises: UserError, before any work is done, for one that can't be made, or that
    holds something else.
    """
    from ..training.run import check_folder

    folder = out or Path("runs") / name
    try:
        if folder.exists():
            folder.mkdir(exist_ok=True)  # fails for a file
        else:  # under a name of its own, since other processes of the run try as well
            folder.parent.mkdir(parents=True, exist_ok=True)
            TemporaryDirectory(prefix=folder.name, dir=folder.parent).cleanup()
    except OSError as error:
        raise UserError(
            f"{folder} can't be made ({error.strerror}): choose another --out"
        ) from None
    check_folder(folder)
    return folder


def train_run(run: "Run", logger: str | None = None, context: Context = None) -> int:
    """Train to the end, from where the run stopped, and say how it went; config.yaml
    repeats the command of a context.

    Returns the command's status: 130 when it was interrupted.
    """
    from ..training.log import open_logger
    from ..training.run import claim_folder, describe, fit, lock_folder

    if not run.world.first:
        return INTERRUPTED if fit(run) == "interrupted" else 0
    if context:
        with lock_folder(run.folder, run.world):
            claim_folder(run.folder, describe(run))
            write_config(context, run.folder / "config.yaml")
    write = open_logger(logger, run.folder)
    with record_display(run.config.steps, run.config.patience) as show:

        def report(record: "Record") -> None:
            show(record)
            write(record)

        run.report = report
        outcome = fit(run)
    where = str(run.folder / "model")
    if outcome == "interrupted":
        where = f"saved in {run.folder}; the same command goes on there"
    step, seconds = run.progress.step, run.progress.seconds
    echo_on(f"{outcome} at step {step:,} after {seconds:,.0f} s: {where}")
    return INTERRUPTED if outcome == "interrupted" else 0


@contextmanager
def record_display(
    steps: int, patience: int = 0
) -> Iterator[Callable[["Record"], None]]:
    """What shows the records of a log: as lines, or on a terminal as a bar with the
    loss, the speed and the time left, which patience may shorten.
    """
    from ..training.log import as_line, speed

    if not console.is_terminal:

        def echo_record(record: "Record") -> None:
            if record["event"] != "progress":
                echo_on(as_line(record))

        yield echo_record
        return
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}")
    left = "at most" if patience else "left"
    bar = Progress("step", *columns, left, TimeRemainingColumn(), console=console)

    def show(record: "Record") -> None:
        step = record["step"]
        if not bar.tasks:  # a resumed run begins where it stopped
            bar.add_task("", total=steps, completed=step, note="")
        if record["event"] in ("update", "progress"):
            note = f"loss {record['loss']:.3f}  {speed(record)}"
            bar.update(bar.tasks[0].id, completed=step, note=note)
        else:
            bar.console.print(Text(as_line(record)))  # "[b]" in a text is no markup

    with bar:
        yield show
