"""`average`, `export`, `import` and `verify`: what becomes of model folders."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UserError
from ..model_names import SHIPPED
from .options import ModelName, Out, app
from .streams import echo
from .type_groups import MARKUP


@app.command()
def average(
    checkpoints: Annotated[
        list[Path],
        typer.Argument(help="Model or checkpoint folders, or one run's folder."),
    ],
    out: Out,
    last: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Of a run's folder, the last so many checkpoints; 5 if not named.",
        ),
    ] = None,
) -> None:
    """Average the weights of checkpoints, of any model type, into one model.

    **Example**

    `annotated-transformer average runs/multi30k-en-de-tiny --last 5 --out averaged`
    """
    from ..average import average_checkpoints
    from ..training.checkpoint import checkpoints as checkpoints_of

    of_run = checkpoints_of(checkpoints[0]) if len(checkpoints) == 1 else []
    if last is not None and not of_run:
        raise UserError(
            "--last goes with one run's folder that has checkpoints: leave it out for "
            "models"
        )
    folders = of_run[-(last or 5) :] or checkpoints
    average_checkpoints(folders, out)
    echo(f"averaged {len(folders)} checkpoints into {out}")


exports = typer.Typer(
    help="Write a translation model for another program: Hugging Face's MarianMTModel, "
    "CTranslate2, Argos Translate, or any that runs ONNX.",
    **MARKUP,
)
app.add_typer(exports, name="export")


def write_export(form: str, write: Any, model: str, out: Path, **settings: Any) -> None:
    """Write a model in a format. Raises: UserError for one that doesn't fit."""
    from ..decoding.engines import check_transformer
    from ..translation.translator import Translator

    translator = Translator.from_pretrained(model, device="cpu", engine="plain")
    check_transformer(translator.model, f"the format {form}")
    write(translator.model, translator.tokenizer, out, **settings)
    installs = "argostranslate.package.install_from_path installs it"
    shown = installs if form == "argos" else "its README.md says how to use it"
    echo(f"wrote {out}; {shown}")


@exports.command("marian")
def write_marian(out: Out, model: ModelName = SHIPPED) -> None:
    """For Hugging Face's MarianMTModel.

    **Example**

    `annotated-transformer export marian -m phrasebook-en-de -o phrasebook-marian`
    """
    from ..interop.marian_export import export_marian

    write_export("marian", export_marian, model, out)


@exports.command("ctranslate2")
def write_ctranslate2(
    out: Out,
    model: ModelName = SHIPPED,
    quantization: Annotated[
        str,
        typer.Option(help="How weights are stored: float32, int8, int16, bfloat16, …"),
    ] = "float32",
) -> None:
    """For CTranslate2.

    **Example**

    `annotated-transformer export ctranslate2 -o small --quantization int8`
    """
    from ..interop.ctranslate2 import export_ctranslate2

    how = {"quantization": quantization}
    write_export("ctranslate2", export_ctranslate2, model, out, **how)


@exports.command("argos")
def write_argos(
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The .argosmodel file to write."),
    ],
    model: ModelName = SHIPPED,
) -> None:
    """For Argos Translate.

    **Example**

    `annotated-transformer export argos -o en_de.argosmodel`
    """
    from ..interop.argos import export_argos

    write_export("argos", export_argos, model, out)


@exports.command("onnx")
def write_onnx(out: Out, model: ModelName = SHIPPED) -> None:
    """For Hugging Face's optimum, and any program that runs ONNX.

    **Example**

    `annotated-transformer export onnx -o graphs`
    """
    from ..interop.onnx import export_onnx

    write_export("onnx", export_onnx, model, out)


@app.command("import")
def import_(
    directory: Annotated[
        Path,
        typer.Argument(help="A Marian directory: a downloaded OPUS-MT, or an export."),
    ],
    out: Out,
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

    `annotated-transformer import opus-mt-en-de -o runs/opus-mt-en-de`
    """
    from ..interop.marian import import_marian

    import_marian(directory, out, src, tgt)
    echo(f"imported {directory} into {out}")


@app.command("verify")
def verify_files(
    folder: Annotated[
        str,
        typer.Argument(
            help="A folder that this package wrote, also a run's, or a model's name."
        ),
    ],
) -> None:
    """See that each file of a folder is the one that was written: by its size and
    SHA-256, which stand in the folder's manifest.json.

    A file that differs is named.

    **Example**

    `annotated-transformer verify runs/multi30k-en-de-tiny`
    """
    from ..files import verify
    from ..model_names import MODELS, shipped

    target = MODELS / folder if folder in shipped() else Path(folder)
    count = verify(target)
    echo(f"{count} files of {folder}: as they were written")
