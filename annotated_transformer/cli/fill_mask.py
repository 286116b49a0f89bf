"""`fill-mask`: what a masked language model would write where a text says [MASK]."""

from typing import Annotated

import typer
from rich.table import Table

from .opening import import_torch, open_kind
from .options import Device, app, console


@app.command("fill-mask")
def fill_mask(
    model: Annotated[
        str,
        typer.Argument(
            help="A folder that masked-language-model train has written, a BERT's "
            "folder, or its name on the Hub."
        ),
    ],
    text: Annotated[str, typer.Argument(help="A text with one [MASK] or more.")],
    count: Annotated[int, typer.Option(help="How many tokens for each gap.")] = 5,
    device: Device = None,
) -> None:
    """Fill the gaps of a text: the likeliest tokens for each [MASK].

    **Examples**

    `annotated-transformer fill-mask reviews "The film was [MASK]."`

    `annotated-transformer fill-mask google-bert/bert-base-uncased "I [MASK] you."`
    """
    import_torch()
    from ..after.masked_language_model import Filler

    filler = open_kind(
        model, device, Filler, "masked language model: train one, or name a BERT"
    )
    table = Table("gap", "token", "probability")
    for number, best in enumerate(filler.fill(text, count), start=1):
        for token, chance in best:
            table.add_row(str(number), token, f"{chance:.1%}")
    console.print(table)
