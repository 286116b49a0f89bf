"""Tables of numbers over time: ETTh1, and CSV files."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import UserError
from .published_files import data_files, find_file
from .text_files import read_lines


@dataclass(frozen=True)
class Series:
    """A table of numbers over time, one column for each channel."""

    names: tuple[str, ...]
    dates: tuple[str, ...]
    values: Float[Tensor, "time channel"]

    @property
    def day(self) -> int:
        """Steps in a day, or 7 if a step is a day or more; 24 if no date says it."""
        times = _times(self.dates[:2])
        if len(times) < 2:
            return 24
        gap = (times[1] - times[0]).total_seconds()
        return round(86400 / gap) if 0 < gap < 86400 else 7


def ett(root: str | Path | None = None) -> Series:
    """ETTh1, from where corpora are kept, or fetched. Raises: UserError."""
    return read_series(find_file(data_files()["timeseries/ETTh1.csv"], root))


def read_series(path: str | Path) -> Series:
    """A CSV file: names in the first line, dates in the first column, else numbers.

    It may be gzipped. Raises: UserError that names the line.
    """
    head, *lines = _cells(path)
    names, rows = tuple(name.strip() for name in head[1:]), []
    if not names or len(set(names)) < len(names) or _times(head[:1]):
        raise UserError(
            f"{path}, line 1: it must name a column of dates and at least one of "
            "numbers, each name once"
        )
    for number, cells in enumerate(lines, start=2):
        if len(cells) != len(head):
            raise UserError(
                f"{path}, line {number} has {len(cells)} columns and the first line "
                f"{len(head)}: mend the line"
            )
        rows.append([_number(cell) for cell in cells[1:]])
    if len(rows) < 2:
        raise UserError(f"{path} has no two lines of numbers: take a longer series")
    dates, values = tuple(cells[0] for cells in lines), torch.tensor(rows)
    return _whole(Series(names, dates, values), f"{path}, line", first=2)


def _cells(path: str | Path) -> Iterator[list[str]]:
    """The cells of each line. Raises: UserError for one above csv's own limit."""
    reader = csv.reader(read_lines(path))
    try:
        yield from reader
    except csv.Error as error:
        raise UserError(
            f"{path}, line {reader.line_num} is no line of a table ({error}): mend it"
        ) from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _times(dates: Sequence[str]) -> list[datetime]:
    """When dates in ISO format are, by the clock there; none if one isn't in it."""
    try:
        return [datetime.fromisoformat(date).replace(tzinfo=None) for date in dates]
    except ValueError:
        return []


def _whole(series: Series, row: str, first: int = 0) -> Series:
    """A series whose rows count from `first`.

    Raises: UserError that names a gap, or a date that lies before the one above it.
    """
    for number, (above, time) in enumerate(pairwise(_times(series.dates)), first + 1):
        if above - time > timedelta(hours=1):  # which summer time's end takes back
            raise UserError(
                f"{row} {number} is of {time}, which lies before the date above it: "
                "sort the table by time"
            )
    gaps = (~series.values.isfinite()).nonzero().tolist()
    if gaps:
        number, column = gaps[0]
        name = series.names[column] if series.names else f"column {column}"
        raise UserError(
            f"{row} {number + first} of {name} is no number of 32 bits: fill the gap "
            "or leave the column out"
        )
    return series


def as_series(series: Any, names: tuple[str, ...] = ()) -> Series:
    """A series from a CSV file's path, a table such as pandas' DataFrame, or an array.

    A table's first column holds dates if it isn't numbers; an array's columns have
    these names. Raises: UserError for what is none of them, or a gap.
    """
    if hasattr(series, "dates") and hasattr(series, "values"):
        return series  # a Series
    if isinstance(series, str | Path):
        return read_series(series)
    dates: list[Any] = []
    if hasattr(series, "columns") and hasattr(series, "to_numpy"):
        dates, series, names = _columns(series)
    try:
        copy = series if isinstance(series, torch.Tensor) else np.array(series)
        values = torch.as_tensor(copy, dtype=torch.float32)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(
            f"expected a series and got {type(series).__name__}, which holds more than "
            "numbers: give a CSV file, a table or an array"
        ) from None
    values = values[:, None] if values.dim() == 1 else values
    if values.dim() != 2 or (names and values.size(1) != len(names)):
        raise UserError(
            f"the array has shape {tuple(values.shape)}: give it as (time, channel), "
            f"with the columns {', '.join(names)}"
        )
    return _whole(Series(names, tuple(map(str, dates)), values), "row")


def several_series(series: Any, columns: int) -> bool:
    """Whether this is a list of what `as_series` takes, for a model of so many columns.

    A list of rows, or of the numbers of a single column, is one series.
    """
    if not isinstance(series, list | tuple) or not series:
        return False
    first = series[0]
    if isinstance(first, str | Path | Series) or hasattr(first, "columns"):
        return True
    axes = np.ndim(first)
    return axes == 2 or (axes == 1 and columns == 1 and len(first) > 1)


def _columns(table: Any) -> tuple[list[Any], Any, tuple[str, ...]]:
    """The dates, the numbers and their names in a table such as pandas' DataFrame."""
    names = [*table.columns]
    dates = [*getattr(table, "index", range(len(table)))]
    first = table[names[0]].to_numpy() if names else np.zeros(0)
    if first.dtype.kind not in "biuf":
        dates, names = [*first], names[1:]
    return dates, table[names].to_numpy(), tuple(map(str, names))
