"""`average`, `export`, `import` and `verify`: model folders and what becomes of them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UserError, nearest
from ..loading import SHIPPED
from .options import Model, app, console

FORMATS = ("marian", "ctranslate2", "onnx")


@app.command()
def average(
    checkpoints: Annotated[
        list[Path],
        typer.Argument(help="Model or checkpoint folders, or one run's folder."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The model folder to write.")
    ],
    last: Annotated[
        int | None,
        typer.Option(
            help="Of a run's folder, the last so many checkpoints; 5 if not named."
        ),
    ] = None,
) -> None:
    """Average the weights of checkpoints into one model.

    **Example**

    `annotated-transformer average runs/multi30k-en-de-tiny --last 5 --out averaged`
    """
    from ..after.pretrained import is_marian
    from ..training import checkpoint

    if last is not None and last < 1:
        raise UserError(f"--last is {last}: average at least one checkpoint")
    of_run = checkpoint.checkpoints(checkpoints[0]) if len(checkpoints) == 1 else []
    if last is not None and not of_run:
        raise UserError(
            "--last goes with one run's folder that has checkpoints: leave it out for "
            "models"
        )
    folders = of_run[-(last or 5) :] or checkpoints
    for folder in folders:
        if is_marian(folder):
            raise UserError(
                f"{folder} was imported, and imported models can't be averaged"
            )
    checkpoint.average_checkpoints(folders, out)
    console.print(f"averaged {len(folders)} checkpoints into {out}", soft_wrap=True)


@app.command()
def export(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="marian, ctranslate2 or onnx.",
            autocompletion=lambda: FORMATS,
        ),
    ],
    out: Annotated[
        Path, typer.Argument(help="The folder to write; it must be new or empty.")
    ],
    model: Model = SHIPPED,
    quantization: Annotated[
        str | None,
        typer.Option(
            help="For ctranslate2, how weights are stored: float32 if not named, int8, "
            "int16, bfloat16, …"
        ),
    ] = None,
    attention: Annotated[
        bool,
        typer.Option(
            "--attention", help="For onnx: have the graphs return every head's weights."
        ),
    ] = False,
) -> None:
    """Write a model for another program: Hugging Face's MarianMTModel, CTranslate2, or
    any that runs ONNX.

    **Examples**

    `annotated-transformer export marian phrasebook-marian`

    `annotated-transformer export ctranslate2 small --quantization int8`

    `annotated-transformer export onnx graphs --attention`
    """
    from ..after.pretrained import export_marian
    from ..engine.ctranslate2 import export_ctranslate2
    from ..engine.onnx import export_onnx
    from ..loading import check_transformer, find_device, open_model

    if form not in FORMATS:
        raise UserError(f"unknown format {form!r}: {nearest(form, FORMATS)}")
    settings = settings_of(form, quantization, attention)
    trained, tokenizer = open_model(model, find_device("cpu"))
    check_transformer(trained, f"the format {form}")
    write: Any = {
        "marian": export_marian,
        "ctranslate2": export_ctranslate2,
        "onnx": export_onnx,
    }
    write[form](trained, tokenizer, out, **settings)
    console.print(f"wrote {out}; its README.md says how to use it", soft_wrap=True)


def settings_of(form: str, quantization: str | None, attention: bool) -> dict[str, Any]:
    """The settings that are given. Raises: UserError for one of another format."""
    given = {
        "quantization": ("ctranslate2", quantization),
        "attention": ("onnx", attention),
    }
    for name, (owner, value) in given.items():
        if value and form != owner:
            raise UserError(
                f"--{name} is a setting of {owner}: leave it out for {form}"
            )
    return {name: value for name, (_, value) in given.items() if value}


@app.command("import")
def import_(
    directory: Annotated[
        Path,
        typer.Argument(help="A Marian directory, such as a downloaded OPUS-MT model."),
    ],
    out: Annotated[Path, typer.Argument(help="The model folder to write.")],
    src: Annotated[
        str | None,
        typer.Option(help="Source language, if the directory doesn't name it."),
    ] = None,
    tgt: Annotated[
        str | None,
        typer.Option(help="Target language, if the directory doesn't name it."),
    ] = None,
) -> None:
    """Import a Marian model in Hugging Face's format, such as OPUS-MT's, as a model
    folder for the other commands.

    **Example**

    `annotated-transformer import opus-mt-en-de runs/opus-mt-en-de`
    """
    from ..after.pretrained import import_marian

    import_marian(directory, out, src, tgt)
    console.print(f"imported {directory} into {out}", soft_wrap=True)


@app.command()
def verify(
    folder: Annotated[
        str,
        typer.Argument(
            help="A folder that this package wrote, a run's included, or a model's name."
        ),
    ],
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Take the files as they are now, and write their manifest anew.",
        ),
    ] = False,
) -> None:
    """See that each file of a folder is the one that was written: by its size and
    SHA-256, which stand in the folder's manifest.json.

    A file that differs is named. If you changed it yourself, `--accept` says so.

    **Example**

    `annotated-transformer verify runs/multi30k-en-de-tiny`
    """
    from ..files import verify as verify_folder
    from ..loading import PRETRAINED, shipped

    place = PRETRAINED / folder if folder in shipped() else Path(folder)
    count = verify_folder(place, accept)
    done = "accepted as they are" if accept else "as they were written"
    console.print(f"{count} files of {folder}: {done}", soft_wrap=True)
