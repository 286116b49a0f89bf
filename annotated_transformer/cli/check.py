"""`check`: how far a Transformer is that you write yourself."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError, escaped, nearest
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
) -> None:
    """Check a Transformer that you write yourself, part by part.

    Each part is done, not yet written, waits for one that it uses, or has the first
    thing that is wrong, below what was expected beside what was found.
    This runs the file, as `import` does, in a process of its own, which has a minute
    for each part. Status 0 when every part is right, 1 when one isn't.

    **Example**

    `annotated-transformer check my_transformer.py`

    `annotated-transformer check theirs.py --use Encoder=Stack`
    """
    from ..check.file import CHECKS, progress

    asked = dict(each.partition("=")[::2] for each in use or [])
    for name, where in asked.items():
        if name not in CHECKS or not where:
            raise UserError(f"--use {name}={where}: {nearest(name, CHECKS)}")
    verdicts = progress(file, asked)
    for name, verdict in verdicts.items():
        for line in verdict.numbers.splitlines():
            echo(f"{name:24}{line}")
            name = ""
        sentence = "done" if verdict and not use else escaped(verdict.sentence)
        echo(f"{name:24}{sentence}")
    done = sum(map(bool, verdicts.values()))
    echo(f"{done} of {len(verdicts)} parts are right")
    if done < len(verdicts):
        raise typer.Exit(1)
