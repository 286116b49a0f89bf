"""`attend`, `info` and `corpora`: what is inside a model, and what there is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from ..errors import UserError
from ..loading import SHIPPED
from .opening import open_translator
from .options import Device, Model, Strict, app, console, preset_names
from .streams import files_of, refuse_file, refuse_places

if TYPE_CHECKING:
    from ..model.config import TransformerConfig


@app.command()
def attend(
    text: Annotated[str, typer.Argument(help="The source sentence.")],
    target: Annotated[
        str | None,
        typer.Argument(help="Its translation; the model's own if none is given."),
    ] = None,
    model: Model = SHIPPED,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "attention.html"
    ),
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Write a self-contained HTML page with the attention of every layer and head.

    **Example**

    `annotated-transformer attend "Sunday, March 21, 2027" --out attention.html`
    """
    from ..files import write_whole
    from ..plots import attention_page

    for side in (text, target):
        refuse_file(side, "attend looks at one sentence, so write it out")
    refuse_places(out, reads=files_of(model))
    translator = open_translator(model, device)
    found = translator.attention(text, target, strict=strict)
    source, outputs = " ".join(found.source), " ".join(found.target)
    page = attention_page(source, outputs, found.panels())
    write_whole(out, page.encode())
    console.print(f"wrote {out}", soft_wrap=True)


@app.command()
def info(
    name: Annotated[
        str,
        typer.Argument(
            help="A preset of Table 3, such as base or big, or any model that "
            "`translate` opens.",
            autocompletion=preset_names,
        ),
    ] = SHIPPED,
    length: Annotated[
        int, typer.Option(help="Tokens on each side for the count of operations.")
    ] = 25,
) -> None:
    """Parameters, floating-point operations and configuration of a preset or a model,
    and the card that lies beside a model's weights.

    **Examples**

    `annotated-transformer info base`

    `annotated-transformer info runs/phrasebook`
    """
    from ..after.pretrained import costs_of
    from ..after.since_2017 import Since2017Config, parameters_of
    from ..loading import model_card

    if not 1 <= length <= 10**6:
        raise UserError(
            f"--length is {length}: count operations for at least one token and at "
            "most a million"
        )
    config = find_config(name)
    console.print(name, soft_wrap=True)
    table = Table(*(Column(title, overflow="fold") for title in ("setting", "value")))
    for setting, value in config.to_dict().items():
        table.add_row(setting, str(value))
    table.add_section()
    if isinstance(config, Since2017Config):
        parameters, work = parameters_of(config), None
    else:
        parameters, work = costs_of(config, length)
    for part, count in parameters.items():
        table.add_row(f"parameters: {part}", f"{count:,}")
    table.add_row("parameters", f"{sum(parameters.values()):,}")
    if work:
        table.add_section()
        words = f"forward FLOPs, {length} → {length} tokens"
        table.add_row(words, f"{work.forward:.3e}")
        table.add_row("forward and backward FLOPs", f"{sum(work):.3e}")
    console.print(table)
    if is_model(name) and (card := model_card(name)):
        console.print(f"\n{card}", end="", soft_wrap=True)


def is_model(name: str) -> bool:
    """Whether a name stands for a model, and for no preset."""
    from ..loading import shipped
    from ..model.config import table_3

    place = name in shipped() or "/" in name or (name and Path(name).exists())
    return bool(place) and name not in table_3()


def find_config(name: str) -> "TransformerConfig":
    """The configuration of a preset or of a model.

    Raises: UserError for a name of neither, naming the nearest preset.
    """
    from ..loading import architecture
    from ..model.config import preset

    return architecture(name) if is_model(name) else preset(name)


@app.command()
def corpora() -> None:
    """List the named corpora: languages, splits with their sizes, licence and source.

    **Example**

    `annotated-transformer corpora`
    """
    from ..data.corpus import corpora as known

    for name, spec in known().items():
        by_hand = dict.fromkeys(file.split for file in spec.files if not file.url)
        sizes = (f"{split} {size:,}" for split, size in spec.sizes().items())
        rows = {
            "pairs": " ".join(spec.pairs),
            "splits": ", ".join(sizes),
            "licence": spec.licence,
            "source": spec.source,
            "prepare yourself": ", ".join(by_hand),
        }
        print(name)
        for heading, words in rows.items():
            if words:
                print(f"  {heading}: {words}")
