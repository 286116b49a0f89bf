"""How a command ends: its status, an error as one line, and Ctrl-C."""

import os
import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Any

from ..errors import UserError
from .streams import echo, escape_line

UNFORESEEN = 70  # EX_SOFTWARE of sysexits.h: a fault of the program
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it
NOBODY_READS = 141  # 128 and the number of SIGPIPE
ISSUES = "https://github.com/annotated-transformer/annotated-transformer/issues"
NO_MEMORY = ("out of memory", "not enough memory", "allocate memory")


def status_of(error: BaseException, show_all: bool) -> int:
    """The status that a command ends with after an error, of which one line is shown.

    2 if the user can mend it, else 70, with the way to report it.
    """
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return NOBODY_READS
    if isinstance(error, SystemExit):  # with 1 by typer and rich, for a closed pipe
        return NOBODY_READS if error.code == 1 else int(error.code or 0)
    if show_all:
        traceback.print_exception(error)
    words = advice(error)
    line = fault_report(error) if words is None else words
    if line:
        echo(f"error: {escape_line(line)}", err=True)
    return UNFORESEEN if words is None else 2


def fault_report(error: BaseException) -> str:
    """One line about an error that nobody foresaw, and what to do with it."""
    words = " ".join(str(error).split())[:200]
    what = f"{type(error).__name__}: {words}" if words else type(error).__name__
    *_, last = traceback.extract_tb(error.__traceback__)
    position = f"{os.path.basename(last.filename)}, line {last.lineno}"
    return (
        f"unforeseen {what} ({position}): please report it, with the command and what "
        f"annotated-transformer --traceback COMMAND shows, at {ISSUES}"
    )


def advice(error: BaseException) -> str | None:
    """What to tell a user about an error; None for a fault of the package."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, UnicodeEncodeError) and error.encoding != "utf-8":
        character = f"{error.object[error.start]!a} ({error.encoding})"
        return f"standard output can't hold {character}: set PYTHONIOENCODING=utf-8"
    if "No space left on device" in str(error):  # also of libraries in C++ and Rust
        return "no space is left on the device: make room, or write elsewhere"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'a file'} can't be used: {error.strerror}"
    package = f"{__package__.split('.')[0]}."
    if isinstance(error, ModuleNotFoundError) and not f"{error.name}.".startswith(
        package
    ):
        return f"{error}: pip install it"
    short = any(each in str(error) for each in NO_MEMORY)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and short):
        return "out of memory: take a smaller beam, batch or model, or another --device"
    return misuse(error)


def misuse(error: Any) -> str | None:
    """What to tell of a wrong option or argument; None if the error is another.

    The error of a bare command, which has shown its help, has no words.
    """
    if not hasattr(error, "format_message"):
        return None  # the mark of typer's own, whose class has moved between versions
    words = " ".join(error.format_message().split()).rstrip(".")
    context, option = (getattr(error, name, None) for name in ("ctx", "param"))
    if context and option:
        source = context.get_parameter_source(option.name)
        if source and source.name == "DEFAULT_MAP":  # it stands in a settings file
            words = f"{context.params['config']}: {words}"
    command = getattr(context, "command_path", None)
    hint = f"see {command or 'annotated-transformer'} --help"
    if "unexpected extra argument" in words:
        hint = "put a text of several words in quotes"
    elif "No such option: -" in words and "--" not in words:
        hint = "write -- before a text that begins with -"
    return words and f"{words}; {hint}"


# -- Ctrl-C ----------------------------------------------------------------------------

# Where a module is imported: PyTorch, for one, takes an exception there for a sign that
# NumPy is missing, and goes on.
IMPORTING = "<frozen importlib._bootstrap>"


def end_at_second_interrupt() -> None:
    """Let the first Ctrl-C unwind the command, and a second one end it at once."""

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
        stack = traceback.walk_stack(frame)
        if any(each.f_code.co_filename == IMPORTING for each, _ in stack):
            os._exit(INTERRUPTED)
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    if main and callable(signal.getsignal(signal.SIGINT)):  # not where it is ignored
        signal.signal(signal.SIGINT, first)


def end_at_lost_interrupt(lost: "sys.UnraisableHookArgs") -> None:
    """End at a Ctrl-C where no exception can be raised, such as in a destructor."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(lost)
