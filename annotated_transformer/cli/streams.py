"""What the commands read and write: lines, and files inspected before any work."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..data.text_files import decoded_lines, read_lines
from ..errors import UserError, escaped


def echo(text: str, err: bool = False) -> None:
    """Print a text to standard output, or to standard error.

    A terminal gets control characters but line breaks and tabs written out; a file or a
    pipe gets the text as it is.
    """
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = re.sub(r"[^\n\t]+", lambda part: escaped(part[0]), text)
    print(text, file=stream, flush=True)


def echo_on(text: str) -> None:
    """Print a line, and go on in silence when nobody reads: a run's log has it all."""
    try:
        echo(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def escape_line(text: str) -> str:
    """A message with what would split or colour its line escaped, as in a name, and
    its longest words cut.
    """
    text = re.sub(r"\S{300,}", lambda word: f"{word[0][:100]}…", text)
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


# -- reading ---------------------------------------------------------------------------


def validate_text(text: str | None, remedy: str) -> None:
    """Raises: UserError when the name of a file stands where a sentence should."""
    if text is not None and os.path.isfile(text):
        raise UserError(f"{text} is a file: {remedy}")


@contextmanager
def naming(path: Path | None) -> Iterator[None]:
    """An error that names a line names its file too."""
    try:
        yield
    except UserError as error:
        if path is None or not str(error).startswith("line "):
            raise
        raise UserError(f"{path}, {error}") from None


def input_lines(text: str | None, path: Path | None) -> Iterator[str]:
    """The lines of a text, of a file, or of standard input, which "-" stands for too.

    Raises: UserError for both a text and a file.
    """
    if text is None or text == "-":
        file = path if path != Path("-") else None
        return read_lines(file) if file else standard_input()
    if path is not None:
        raise UserError("give a text or --input, not both")
    validate_text(text, "--input reads its lines")
    return iter(text.removesuffix("\n").split("\n"))


def standard_input() -> Iterator[str]:
    """The lines of standard input, as they come. Raises: UserError as `read_lines`."""
    if sys.stdin is None:
        raise UserError("standard input is closed: give a text or --input")
    return decoded_lines(sys.stdin.buffer, "standard input")


# -- writing ---------------------------------------------------------------------------


def files_of(model: str) -> list[Path]:
    """The files of a model's folder, which a command that reads them must not write."""
    return list(Path(model).iterdir()) if Path(model).is_dir() else []


def validate_outputs(*paths: Path | None, reads: Sequence[Path | None] = ()) -> None:
    """Raises: UserError, before any work is done, for a file that can't be written, or
    one that the command reads or writes already, as standard output.
    """
    used = {os.path.realpath(each) for each in (*reads, "/dev/stdout") if each}
    for path in filter(None, paths):
        above = next(folder for folder in path.absolute().parents if folder.exists())
        there = path if path.exists() else above
        allowed = os.access(there, os.W_OK) and there.stat().st_mode & 0o222
        if path.is_dir() or not above.is_dir() or not allowed:
            raise UserError(
                f"{path} can't be written: name a file in a folder that may be written"
            )
        if os.path.realpath(path) in used:
            raise UserError(
                f"{path} is read or written by this command: name another file"
            )
        used.add(os.path.realpath(path))
