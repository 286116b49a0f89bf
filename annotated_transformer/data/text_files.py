"""Files, plain or gzipped, and their lines; and this package's own tables."""

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from ..errors import UserError

LONGEST_LINE = 2**20  # bytes; whatever has longer lines is no text for people


@contextmanager
def open_text(path: str | Path) -> Iterator[BufferedIOBase]:
    """A file to read bytes from, unpacked when its first two bytes say gzip.

    Raises: UserError if there is no such file, it can't be read, or it is empty.
    """
    try:
        with open(path, "rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            text = gzip.GzipFile(fileobj=file) if packed else file
            if not text.peek(1):
                raise UserError(f"{path} is empty: take another copy")
            yield text
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (EOFError, OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path} can't be read: {reason}; take another copy") from None


def read_lines(path: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or gzipped; only a line feed ends a line.

    Raises: UserError for a file that is missing, empty, damaged or not UTF-8, and for
    a line of more than a megabyte.
    """
    with open_text(path) as file:
        yield from decoded_lines(file, path)


def decoded_lines(file: Any, name: str | Path) -> Iterator[str]:
    """The lines of an open file of bytes, which has this name, as they come.

    Raises: UserError that names the line, as `read_lines`.
    """
    lines = iter(lambda: file.readline(LONGEST_LINE + 1), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE:
            raise UserError(
                f"{name}, line {number} is longer than {LONGEST_LINE:,} bytes: break "
                "it into lines"
            )
        try:
            text = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            packed = number == 1 and line.startswith(b"\x1f\x8b")
            remedy = "it is packed by gzip, unpack it" if packed else "convert it"
            raise UserError(
                f"{name}, line {number}: not UTF-8 ({error.reason}); {remedy}"
            ) from None
        yield text.removeprefix("\ufeff") if number == 1 else text


def read_table(name: str) -> list[dict[str, str]]:
    """The rows of a table that lies beside this module."""
    table = resources.files("annotated_transformer.data").joinpath(name)
    return [*csv.DictReader(table.read_text("utf-8").splitlines(), delimiter="\t")]
