"""What the commands read and write: lines, and files looked at before any work."""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import UserError


def tell(text: str) -> None:
    """Print a line; when nobody reads any more, go on in silence: the log has it all."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """A line of progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


# -- reading ---------------------------------------------------------------------------


def refuse_file(text: str | None, remedy: str) -> None:
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


def input_lines(path: Path | None) -> Iterator[str]:
    """The lines of a file or of standard input, as they come.

    Raises: UserError for bytes that are not UTF-8.
    """
    if path is not None:
        from ..data.corpus import read_lines

        yield from read_lines(path)
        return
    if sys.stdin is None:
        raise UserError("standard input is closed: give a text or --input")
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if number == 1 and line.startswith(b"\x1f\x8b"):
            raise UserError(
                "standard input is packed by gzip: unpack it first, or name the file "
                "with --input"
            )
        try:
            text = line.decode("utf-8").rstrip("\r\n")
            yield text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError:
            raise UserError(
                f"standard input, line {number}: not UTF-8; convert it, for example "
                "with iconv"
            ) from None


# -- writing ---------------------------------------------------------------------------


def files_of(model: str) -> list[Path]:
    """The files of a model's folder, which a command that reads them must not write."""
    return list(Path(model).iterdir()) if Path(model).is_dir() else []


def refuse_places(*paths: Path | None, reads: Sequence[Path | None] = ()) -> None:
    """Raises: UserError, before any work is done, for a file that can't be written.

    That is a folder, a file in no folder that may be written, a read-only file, one of
    the files that are read, one that is named twice, and standard output, where the
    summary goes, if that is a file or a pipe.
    """
    named = [path for path in paths if path is not None]
    for path in named:
        refuse_place(path, [each for each in reads if each is not None])
    files = [
        os.path.realpath(path) for path in named if path.is_file() or not path.exists()
    ]
    if len(set(files)) < len(files):
        raise UserError(f"{named[-1]} is named twice: name a file for each")


def refuse_place(path: Path, reads: Sequence[Path]) -> None:
    """Raises: UserError for one file that can't be written or should not be."""
    if path.is_dir():
        raise UserError(f"{path} is a folder: name a file")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UserError(
            f"{path} can't be written: {above} is no folder that may be written; name "
            "another file"
        )
    if path.is_file() and not path.stat().st_mode & 0o222:
        raise UserError(f"{path} can't be written: it is read-only; name another file")
    if path.exists() and any(each.exists() and path.samefile(each) for each in reads):
        raise UserError(f"{path} is read by this command: name another file to write")
    if path.exists() and is_standard_output(path):
        raise UserError(
            f"{path} is standard output, where the summary goes: name a file"
        )


def is_standard_output(path: Path) -> bool:
    """Whether a path is the file or the pipe that standard output was sent to."""
    try:
        output = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):  # no real file, as in tests
        return False
    kept = stat.S_ISREG(output.st_mode) or stat.S_ISFIFO(output.st_mode)
    return kept and os.path.samestat(path.stat(), output)


def refuse_folder(folder: Path, kind: str) -> None:
    """Raises: UserError, before any work is done, for a place that no model may take.

    A folder that is empty or holds a model of this kind may be written over.
    """
    from ..files import read_json

    if folder.is_dir() and any(folder.iterdir()):
        about = folder / "config.json"
        found = read_json(about).get("architecture") if about.is_file() else None
        if not isinstance(found, dict) or found.get("kind") != kind:
            raise UserError(f"{folder} holds other files: choose another folder")
    elif folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: name a folder")
    else:
        refuse_place(folder / "config.json", [])
