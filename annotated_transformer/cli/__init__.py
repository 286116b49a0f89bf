"""The command line: train, translate, evaluate, score, look inside and export.

One module for each command or two; heavy imports wait inside the commands.
"""

import errno
import os
import signal
import sys
import threading
import traceback
import warnings
from contextvars import ContextVar
from types import FrameType
from typing import Annotated, Any

import typer

from ..errors import UserError
from .options import app

# Each adds its commands to `app`, in this order.
from . import train, translate, evaluate, look, models, reproduce  # noqa: F401
from . import classifier, language_model, masked_language_model  # noqa: F401
from . import fill_mask, vision, series  # noqa: F401

UNFORESEEN = 70  # EX_SOFTWARE of sysexits.h: a fault of the program
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it
NOBODY_READS = 141  # 128 and the number of SIGPIPE
ISSUES = "https://github.com/annotated-transformer/annotated-transformer/issues"
# What the system refuses, of which a program can know nothing better.
MENDABLE = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO),
    *(errno.EMFILE, errno.ENFILE, errno.EFBIG, errno.EBUSY, errno.ESTALE),
)
show_all = ContextVar("show_all", default=False)  # --traceback


def show_version(wanted: bool) -> bool:
    """Print the package's version and end, if that is what was asked for."""
    if wanted:
        from .. import __version__

        print(__version__)
        raise typer.Exit
    return wanted


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback",
            help="Show where in the program an error arose; stands before the command.",
        ),
    ] = False,
) -> None:
    """The Transformer of "Attention Is All You Need": train it, translate with it,
    measure it, look inside.
    """
    show_all.set(traceback)


def main() -> None:
    """Run the command line; what a user can mend ends in one line and status 2."""
    if sys.stderr is None:  # closed; print would write to standard output instead
        sys.stderr = open(os.devnull, "w")
    warnings.showwarning = lambda message, *_: print(
        f"warning: {one_line(str(message))}", file=sys.stderr
    )
    end_at_second_interrupt()
    sys.unraisablehook = end_at_lost_interrupt
    sys.exit(run())


def show_warnings() -> None:
    """Have warnings appear as lines, and those of an input's line not remembered.

    Python keeps each text, so as not to say it twice; a stream has a million lines.
    """
    warnings.showwarning = lambda message, *_: print(
        f"warning: {message}", file=sys.stderr
    )
    warnings.filterwarnings("always", message="line [0-9]+: ")


def run() -> int:
    """Run the command that the arguments name, and return its status.

    An error of any kind ends in one line: with status 2 if the user can mend it, else
    with 70 and the way to report it.
    """
    show_all.set(False)
    try:
        if sys.stdout is None:
            raise UserError(
                "standard output is closed: send it to a file, or to /dev/null if it "
                "isn't wanted"
            )
        status = app(standalone_mode=False) or 0
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return NOBODY_READS
    except SystemExit as end:  # with 1 by typer and rich, when a pipe was closed
        return NOBODY_READS if end.code == 1 else int(end.code or 0)
    except BaseException as error:  # a panic of a library in Rust is no Exception
        if show_all.get():
            traceback.print_exception(error)
        said = advice(error)
        if said is None:
            print(f"error: {one_line(report(error))}", file=sys.stderr)
            return UNFORESEEN
        if said:
            print(f"error: {one_line(said)}", file=sys.stderr)
        return 2


def report(error: BaseException) -> str:
    """One line about an error that nobody foresaw, and what to do with it."""
    words = " ".join(str(error).split())[:200]
    what = f"{type(error).__name__}: {words}" if words else type(error).__name__
    *_, last = traceback.extract_tb(error.__traceback__)
    place = f"{os.path.basename(last.filename)}, line {last.lineno}"
    return (
        f"unforeseen {what} ({place}): please report it, with the command and what "
        f"annotated-transformer --traceback COMMAND shows, at {ISSUES}"
    )


def end_at_second_interrupt() -> None:
    """Let the first Ctrl-C unwind the command, and a second one end it at once."""

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, first)


def end_at_lost_interrupt(lost: "sys.UnraisableHookArgs") -> None:
    """End at a Ctrl-C that came where no exception can: in a destructor, or after all."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(lost)


def one_line(text: str) -> str:
    """A message with what would split or colour its line, as in a name, escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def advice(error: BaseException) -> str | None:
    """What to tell a user about an error; None for a fault of the package."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, UnicodeEncodeError) and error.encoding != "utf-8":
        place = f"{error.object[error.start]!a} ({error.encoding})"
        return f"standard output can't hold {place}: set PYTHONIOENCODING=utf-8"
    if isinstance(error, OSError) and error.errno in MENDABLE:
        if error.errno == errno.ENOSPC and error.filename is None:
            return (
                "standard output can't be written: no space is left; send it elsewhere"
            )
        return f"{error.filename or 'a file'} can't be used: {error.strerror}"
    if isinstance(error, ModuleNotFoundError):
        return missing_package(error)
    words = ("out of memory", "not enough memory", "allocate memory")
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(each in str(error) for each in words)
    ):
        return "out of memory: take a smaller beam, batch or model, or another --device"
    return misuse(error)


def missing_package(error: ModuleNotFoundError) -> str | None:
    """What to tell of a library that isn't installed; None if it is a part of ours."""
    if (error.name or "").split(".")[0] == __package__.split(".")[0]:
        return None
    bare = str(error) == f"No module named {error.name!r}"
    return f"{error.name} is not installed: pip install it" if bare else str(error)


def misuse(error: Any) -> str | None:
    """What to tell of a wrong option or argument; None if the error is another.

    The error of a bare command, which has shown its help, has no words.
    """
    if not hasattr(error, "format_message"):
        return None  # the mark of typer's own, whose class has moved between versions
    words = " ".join(error.format_message().split()).rstrip(".")
    command = getattr(getattr(error, "ctx", None), "command_path", None)
    hint = f"see {command or 'annotated-transformer'} --help"
    if "unexpected extra argument" in words:
        hint = "put a text of several words in quotes"
    elif "No such option: -" in words and "--" not in words:
        hint = "write -- before a text that begins with -"
    return words and f"{words}; {hint}"
