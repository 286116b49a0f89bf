"""`check`: how far a Transformer is that you write yourself."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import escaped
from .options import app
from .streams import echo


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="Your Python file. It is run.")],
) -> None:
    """Check a Transformer that you write yourself, part by part.

    One line for each part: done, not yet written, or the first thing that is wrong.
    This runs the file, as `import` does, in a process of its own, which has a minute
    for each part. Status 0 when every part is right, 1 when one isn't.

    **Example**

    `annotated-transformer check my_transformer.py`
    """
    from ..check.file import progress

    verdicts = progress(file)
    for name, verdict in verdicts.items():
        echo(f"{name:24}{'done' if verdict else escaped(str(verdict))}")
    done = sum(map(bool, verdicts.values()))
    echo(f"{done} of {len(verdicts)} parts are right")
    if done < len(verdicts):
        raise typer.Exit(1)
