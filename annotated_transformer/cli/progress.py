"""How a run is shown while it goes on: a bar on a terminal, plain lines elsewhere."""

from datetime import timedelta
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

Record = dict[str, Any]  # a line of a run's log


def line(record: Record) -> str:
    """One log record of a run as one line of text."""
    if record["event"] == "data":
        train, valid = record["dropped_train"], record["dropped_valid"]
        return (
            f"left out as too long: {train:,} training and {valid:,} validation pairs"
        )
    if record["event"] == "validation":
        return (
            f"step {record['step']:>7,}  validation loss {record['loss']:.4f}  "
            f"perplexity {record['perplexity']:.2f}"
        )
    return (
        f"step {record['step']:>7,}  loss {record['loss']:.4f}  lr {record['lr']:.2e}  "
        f"{record['tokens_per_second']:>8,.0f} tokens/s  {record['seconds']:,.0f} s"
    )


def time_left(before: Record, now: Record, steps: int) -> str:
    """The time up to update `steps` at the pace between two records, as h:mm:ss."""
    pace = (now["seconds"] - before["seconds"]) / (now["step"] - before["step"])
    return str(timedelta(seconds=round(pace * (steps - now["step"]))))


class Bar:
    """A report that draws a bar with the loss, tokens per second and the time left.

    Use as a context manager.
    """

    def __init__(self, steps: int, console: Console):
        self.steps = steps
        self.last: Record = {"step": 0, "seconds": 0.0}
        self.bar = Progress(
            TextColumn("step"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            TextColumn("{task.fields[note]}"),
            console=console,
        )
        self.task: TaskID = self.bar.add_task("train", total=steps, note="")

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def __call__(self, record: Record) -> None:
        """Move the bar for an update; print other records above it."""
        if record["event"] == "update":
            left = time_left(self.last, record, self.steps)
            speed = f"{record['tokens_per_second']:,.0f} tokens/s"
            note = f"loss {record['loss']:.3f}  {speed}  {left} left"
            self.bar.update(self.task, completed=record["step"], note=note)
            self.last = record
        else:
            self.bar.console.print(line(record), highlight=False)
