"""The command line: train, translate, evaluate, score, look inside and export.

One module for each command or two; heavy imports wait inside the commands.
"""

import os
import sys
import warnings
from typing import Annotated

import typer

from ..errors import UserError

# Each adds its commands to `app`, in this order.
# isort: off
from . import split, train, translate, evaluate, inspect, models, plot  # noqa: F401
from . import check, doctor  # noqa: F401

# isort: on
from .exit_status import end_at_lost_interrupt, end_at_second_interrupt, status_of
from .options import app
from .streams import echo, escape_line


def show_version(wanted: bool) -> bool:
    """Print the package's version and end, if that is what was asked for."""
    if wanted:
        from .. import __version__

        echo(__version__)
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

    Five tasks came after it: `TASK train DATA --out RUN --set name=value`, then
    `TASK evaluate RUN DATA`, and `predict`, `generate`, `fill` or `forecast`.

    **Examples**

    `annotated-transformer translate "the twenty-first of March"`

    `annotated-transformer train phrasebook --out runs/phrasebook`

    `annotated-transformer classifier train mails.tsv --out runs/mails`
    """


def main() -> None:
    """Run the command line; what a user can mend ends in one line and status 2."""
    if sys.stderr is None:  # closed; print would write to standard output instead
        sys.stderr = open(os.devnull, "w")
    show_warnings()
    end_at_second_interrupt()
    sys.unraisablehook = end_at_lost_interrupt
    sys.exit(run())


def show_warnings() -> None:
    """Have warnings appear as lines, and those of an input's line not remembered.

    Python keeps each text, so as not to say it twice; a stream has a million lines.
    """
    warnings.showwarning = lambda message, *_: echo(
        f"warning: {escape_line(str(message))}", err=True
    )
    warnings.filterwarnings("always", message="line [0-9]+: ")


def run() -> int:
    """Run the command that the arguments name, and return its status."""
    try:
        if sys.stdout is None:
            raise UserError(
                "standard output is closed: send it to a file, or to /dev/null if it "
                "isn't wanted"
            )
        status = app(standalone_mode=False) or 0
        sys.stdout.flush()
        return status
    except BaseException as error:  # a panic of a library in Rust is no Exception
        return status_of(error, show_all=sys.argv[1:2] == ["--traceback"])
