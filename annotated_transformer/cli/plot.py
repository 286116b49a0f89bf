"""`plot`: a run's log as a picture."""

from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from .options import Picture, app
from .streams import echo, validate_outputs


@app.command()
def plot(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Picture = None,
) -> None:
    """Draw a run's losses, its learning rate and, if there is any, its BLEU.

    **Example**

    `annotated-transformer plot runs/phrasebook --out phrasebook.svg`
    """
    from ..files import write_file
    from ..training.log import Log

    if not (run / "run.json").exists():
        raise UserError(f"{run} holds no run: name the folder that train wrote to")
    records = list(Log(run / "log.jsonl").records())
    if not any(record["event"] == "update" for record in records):
        raise UserError(
            f"{run} has no logged update to draw: train it past its first log_every "
            "updates, or anew with a lower one, --set log_every=1 --overwrite"
        )
    from ..plots import training_curves

    picture = out or run / "curves.png"
    validate_outputs(picture, reads=[run / "log.jsonl", run / "run.json"])
    drawn = BytesIO()
    try:
        training_curves(records).savefig(drawn, format=picture.suffix[1:] or "png")
    except (OSError, ValueError) as error:
        raise UserError(f"{picture} can't be written ({error})") from None
    write_file(picture, drawn.getvalue())
    echo(f"wrote {picture}")
