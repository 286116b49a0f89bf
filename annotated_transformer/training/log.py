"""A run's log: one JSON record a line, and TensorBoard for who wants it."""

import json
import math
import os
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError, escaped, nearest
from ..files import append_line, read_bytes, write_file

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

Record = dict[str, Any]
Report = Callable[[Record], None]

MOST_LOG_BYTES = 2**29  # some three million records
NO_RECORD = ValueError, LookupError, TypeError, ArithmeticError, RecursionError
NUMBERS = {"update": ("loss", "lr"), "validation": ("loss",)}  # of a record


def as_line(record: Record) -> str:
    """One record of a run's log as one line of text, with its translations below."""
    if record["event"] == "data":
        train, valid = record["dropped_train"], record["dropped_valid"]
        return (
            f"left out as too long: {train:,} training and {valid:,} validation pairs"
        )
    if record["event"] == "precision":
        chosen = {"fp32": "float32", "bf16": "bfloat16"}[record["precision"]]
        return (
            f"a product of matrices takes {record['bf16_over_fp32']:.2g} times as long "
            f"in bfloat16 as in float32 here: training in {chosen}"
        )
    step = f"step {record['step']:>7,}"
    if record["event"] == "validation":
        others = ("event", "step", "seconds", "samples")
        figures = (f"{n} {v:.4f}" for n, v in record.items() if n not in others)
        samples = (pair for each in record.get("samples", ()) for pair in each.items())
        below = (f"\n{name:>14}  {escaped(text)}" for name, text in samples)
        return "  ".join([step, "validation", *figures]) + "".join(below)
    loss, lr = f"loss {record['loss']:.4f}", f"lr {record['lr']:.2e}"
    return f"{step}  {loss}  {lr}  {speed(record):>15}  {record['seconds']:,.0f} s"


def speed(record: Record) -> str:
    """What a record says of the speed, as "1,234 tokens/s"."""
    name = next(name for name in record if name.endswith("_per_second"))
    return f"{record[name]:,.0f} {name.removesuffix('_per_second')}/s"


def print_line(record: Record) -> None:
    """Print a record as one line, unless it only says how far the run is."""
    if record["event"] != "progress":
        print(as_line(record), flush=True)


class Log:
    """The log.jsonl of a run."""

    def __init__(self, path: Path):
        self.path = path

    def append(self, record: Record) -> None:
        """Write one record, through to the disk. Raises: UserError if it can't."""
        append_line(self.path, json.dumps(record))

    def records(self) -> Iterator[Record]:
        """The whole records; a last line that a crash cut short is none.

        Raises: UserError that names a line which is no record, or for a file that is
        too large or none.
        """
        if not os.path.lexists(self.path):
            return
        *lines, _ = read_bytes(self.path, MOST_LOG_BYTES).split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                check_record(record)
            except NO_RECORD:
                where = f"{self.path}, line {number}: no log record"
                raise UserError(f"{where}; remove the line to go on") from None
            yield record

    def cut(self, step: int) -> None:
        """Drop the records after an update, and what a crash cut short."""
        if os.path.lexists(self.path):
            kept = [each for each in self.records() if each["step"] <= step]
            lines = "".join(json.dumps(record) + "\n" for record in kept)
            write_file(self.path, lines.encode())


def check_record(record: Any) -> None:
    """Raises: TypeError, LookupError or ValueError for what is no record of a log."""
    event, step = record["event"], record["step"]
    if type(event) is not str or type(step) is not int or not 0 <= step < 2**53:
        raise ValueError
    if not all(math.isfinite(record[name]) for name in NUMBERS.get(event, ())):
        raise ValueError


class TensorBoard:
    """A report that writes a run's numbers where TensorBoard reads them.

    Raises: UserError when tensorboard isn't installed.
    """

    def __init__(self, folder: Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            install = "pip install 'annotated-transformer[tensorboard]'"
            raise UserError(f"tensorboard is not installed: {install}") from None
        self._open = partial(SummaryWriter, folder)

    @cached_property
    def writer(self) -> "SummaryWriter":
        """Opened at the first record, when the folder is a run's."""
        return self._open()

    def __call__(self, record: Record) -> None:
        """Write each number of a record beside its step."""
        event, step = record["event"], record["step"]
        for name, value in record.items():
            if isinstance(value, int | float) and name != "step":
                self.writer.add_scalar(f"{event}/{name}", value, step)
        self.writer.flush()


LOGGERS: dict[str, Callable[[Path], Report]] = {"tensorboard": TensorBoard}


def open_logger(name: str | None, run: Path) -> Report:
    """A report to a logger of this name, in a run's folder; without a name, to none.

    Raises: UserError for an unknown name, or one that isn't installed.
    """
    if name is None:
        return lambda record: None
    if name not in LOGGERS:
        raise UserError(f"unknown logger {name!r}: {nearest(name, LOGGERS)}")
    return LOGGERS[name](run / name)
