"""`doctor`: what is likely wrong with sentence pairs, a model or a run."""

import json
import os
from typing import Annotated

import typer

from ..model_names import SHIPPED
from .options import Device, app
from .streams import echo

What = Annotated[
    str,
    typer.Argument(
        metavar="RUN|DATA|MODEL",
        help="A run's folder; your own files, by their common prefix or their folder, "
        "with --src and --tgt; or any model that translate opens.",
    ),
]
Src = Annotated[
    str | None, typer.Option(help="Source language, as in the file's name.")
]
Tgt = Annotated[
    str | None, typer.Option(help="Target language, as in the file's name.")
]
Valid = Annotated[str | None, typer.Option(help="Prefix of your validation files.")]
Test = Annotated[str | None, typer.Option(help="Prefix of your test files.")]
On = Annotated[
    str | None,
    typer.Option(help="Prefix of files to measure a model on; else the phrasebook."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print all measures as JSON.")]


@app.command()
def doctor(
    what: What = SHIPPED,
    src: Src = None,
    tgt: Tgt = None,
    valid: Valid = None,
    test: Test = None,
    on: On = None,
    as_json: AsJson = False,
    device: Device = None,
) -> None:
    """Measure a run, sentence pairs or a model, and say what is likely wrong.

    The likeliest cause comes first, each with its number and what is normal; then what
    is well. Status 0 when all is normal, 1 when something isn't.

    **Examples**

    `annotated-transformer doctor own/train --src en --tgt de --valid own/valid`

    `annotated-transformer doctor runs/own`
    """
    from .loading import import_torch

    import_torch()
    from ..translation.doctor import doctor as examine

    found = examine(what, src, tgt, valid=valid, test=test, on=on, device=device)
    echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else str(found))
    if found.findings:
        raise typer.Exit(1)


def tell_of_pairs(prefix: str, src: str, tgt: str, valid: str) -> None:
    """Say on standard error what is suspicious about files to train on, if anything.

    Of several processes the first one does so.
    """
    from ..translation.doctor import doctor as examine

    if os.environ.get("RANK", "0") == "0":
        for each in examine(prefix, src, tgt, valid=valid, quick=True).findings:
            echo(f"doctor: {each.says}; {each}", err=True)
