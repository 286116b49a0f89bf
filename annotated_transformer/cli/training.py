"""A run as the commands show it: a bar on a terminal, else lines, and how it ended."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from ..errors import UserError
from .ending import INTERRUPTED
from .options import console
from .streams import echo_on

if TYPE_CHECKING:
    from ..training.run import Run

Record = dict[str, Any]  # a line of a run's log


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


def train_run(run: "Run", logger: str | None = None) -> int:
    """Train to the end, from where the run stopped, and say how it went.

    Returns the command's status: 130 when it was interrupted.
    """
    from ..training.log import open_logger
    from ..training.run import fit

    if not run.world.first:
        return INTERRUPTED if fit(run) == "interrupted" else 0
    write = open_logger(logger, run.folder)
    with shown(run.config.steps) as show:

        def report(record: Record) -> None:
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
def shown(steps: int) -> Iterator[Callable[[Record], None]]:
    """What shows the records of a log: as lines, or on a terminal as a bar with the
    loss, the speed and the time left.
    """
    if not console.is_terminal:
        yield echo_record
        return
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}")
    bar = Progress("step", *columns, TimeRemainingColumn(), console=console)

    def show(record: Record) -> None:
        step = record["step"]
        if not bar.tasks:  # a resumed run begins where it stopped
            bar.add_task("", total=steps, completed=step, note="")
        if record["event"] in ("update", "progress"):
            note = f"loss {record['loss']:.3f}  {speed(record)}"
            bar.update(bar.tasks[0].id, completed=step, note=note)
        else:
            bar.console.print(as_line(record), highlight=False)

    with bar:
        yield show


def echo_record(record: Record) -> None:
    """Print one record of a run's log, but for those that only say how far it is."""
    if record["event"] != "progress":
        echo_on(as_line(record))


def as_line(record: Record) -> str:
    """One record of a run's log as one line of text."""
    if record["event"] == "data":
        train, valid = record["dropped_train"], record["dropped_valid"]
        return (
            f"left out as too long: {train:,} training and {valid:,} validation pairs"
        )
    step = f"step {record['step']:>7,}"
    if record["event"] == "validation":
        others = ("event", "step", "seconds")
        found = (f"{n} {v:.4f}" for n, v in record.items() if n not in others)
        return "  ".join([step, "validation", *found])
    loss, lr = f"loss {record['loss']:.4f}", f"lr {record['lr']:.2e}"
    return f"{step}  {loss}  {lr}  {speed(record):>15}  {record['seconds']:,.0f} s"


def speed(record: Record) -> str:
    """What a record says of the speed, as "1,234 tokens/s"."""
    name = next(name for name in record if name.endswith("_per_second"))
    return f"{record[name]:,.0f} {name.removesuffix('_per_second')}/s"
