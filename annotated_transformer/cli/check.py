"""`check`: how far a Transformer is that you write yourself."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError, escaped
from .options import app
from .streams import echo


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="Your Python file. It is run.")],
    use: Annotated[
        list[str] | None,
        typer.Option(
            help="PART=NAME or PART=MODULE:NAME: check this as that part, alone, in "
            "whatever way it wants to be called. May be given again."
        ),
    ] = None,
    starter: Annotated[
        bool,
        typer.Option(
            "--starter",
            help="Write the file instead: the parts' signatures, to be filled in.",
        ),
    ] = False,
) -> None:
    """Check a Transformer that you write yourself, part by part.

    Each part is done, not yet written, waits for one that it uses, departs from the
    paper (≈) or has the first thing that is wrong, below what was expected beside what
    was found.
    This runs the file, as `import` does, in a process of its own, which has a minute
    for each part. Status 0 when every part is right, 1 when one isn't.

    **Example**

    `annotated-transformer check my_transformer.py --starter`

    `annotated-transformer check my_transformer.py`

    `annotated-transformer check theirs.py --use Encoder=Stack`
    """
    if not (_started(file, use) if starter else _told(file, use)):
        raise typer.Exit(1)


def _started(file: Path, use: list[str] | None) -> bool:
    """Write the starter, alone."""
    from ..check.starter import write_starter

    if use:
        raise UserError("--starter writes a file, and --use asks one: leave one out")
    write_starter(file)
    echo(f"wrote {file}: write its parts, and check it by the same command")
    return True


def _told(file: Path, use: list[str] | None) -> bool:
    """Print each verdict; whether all parts are right."""
    from ..check import progress

    verdicts = progress(file, _asked(use or []))
    for name, verdict in verdicts.items():
        for line in verdict.numbers.splitlines():
            echo(f"{name:24}{line}")
            name = ""
        sentence = escaped(verdict.sentence) if use or not verdict else "done"
        echo(f"{name:24}{sentence}")
    done = sum(map(bool, verdicts.values()))
    departing = sum(each.departs for each in verdicts.values())
    departs = f", {departing} depart{'s' * (departing == 1)}" * bool(departing)
    echo(f"{done} of {len(verdicts)} parts are right{departs}")
    return done == len(verdicts)


def _asked(use: list[str]) -> dict[str, str]:
    """The name by part. Raises: UserError for a part without one."""
    asked = dict(each.partition("=")[::2] for each in use)
    for part, name in asked.items():
        if not name:
            raise UserError(f"--use {part}: say what to check, --use {part}=NAME")
    return asked
