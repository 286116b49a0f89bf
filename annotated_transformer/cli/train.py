"""`train`: a recipe, or files of your own, up to a model folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from .options import RECIPES, Device, Root, app, console
from .plan import (
    Pairs,
    change,
    goes_on,
    open_start,
    training_pairs,
    training_plan,
    with_parts,
)
from .streams import tell

if TYPE_CHECKING:
    from ..engine.runs import Run, Start
    from ..training.recipes import Recipe


@app.command()
def train(
    source: Annotated[
        str,
        typer.Argument(
            help="A recipe, or the common prefix of your own files: own/train for "
            "own/train.en and own/train.de.",
            autocompletion=lambda: RECIPES,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; runs/NAME if none is named.")
    ] = None,
    src: Annotated[
        str | None, typer.Option(help="Source language, as in the file's name.")
    ] = None,
    tgt: Annotated[
        str | None, typer.Option(help="Target language, as in the file's name.")
    ] = None,
    valid: Annotated[
        str | None, typer.Option(help="Prefix of your own validation files.")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="The recipe whose settings your own files are trained with, text as "
            "it is: multi30k-en-de-tiny if none is named.",
            autocompletion=lambda: RECIPES,
        ),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="A trained model to go on from, with its tokenizer and architecture: "
            "any that translate opens.",
        ),
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(
            help="Parts that came after 2017, in the place of the paper's, with commas "
            "between them: pre-norm, rms-norm, gelu or swiglu, qk-norm, rotary or "
            "alibi, grouped-queries, no-biases.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE for any setting of the recipe, its architecture or its "
            "training; may be repeated, the last counts.",
        ),
    ] = None,
    root: Root = None,
    device: Device = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Three updates on the beginning of the corpus, then all that comes "
            "after them.",
        ),
    ] = False,
) -> None:
    """Train a model. Started again, the same command goes on from the last checkpoint.

    Ctrl-C, or SIGTERM, saves the run and ends with status 130; a second Ctrl-C ends
    at once, and the run goes on from its last checkpoint.

    **Examples**

    `annotated-transformer train phrasebook`

    `annotated-transformer train multi30k-en-de-tiny --set steps=2000`

    `annotated-transformer train phrasebook --parts pre-norm,rotary,swiglu`

    `annotated-transformer train own/train --src en --tgt de --valid own/valid`
    `--from tatoeba-en-de`

    `annotated-transformer train wmt14-en-de-base --dry-run`

    `torchrun --nproc-per-node 8 -m annotated_transformer`
    `train wmt14-en-de-big --set sharded=true`
    """
    from ..engine.runs import check_start
    from ..engine.scale import report_failure_once
    from ..model.costs import check_room
    from .dry_run import rehearse, show

    outcome = "finished"
    with report_failure_once():
        plan = training_plan(source, [src, tgt, valid], recipe)
        start = open_start(start_from) if start_from else None
        if start:
            plan = goes_on(plan, start, recipe, settings or [])
        plan = with_parts(change(plan, settings or []), parts, start)
        folder = out or Path("runs") / Path(source).name
        pairs = training_pairs(plan, valid, root)
        if start:
            check_start(plan, start, pairs[0])
        else:
            check_room(plan.architecture)
        if dry_run:
            make_folder(folder, only_try=True)
            show(rehearse(plan, folder / ".dry-run", *pairs, device, start))
        else:
            make_folder(folder)
            outcome = train_and_tell(plan, folder, *pairs, device, start)
    if outcome == "interrupted":
        raise typer.Exit(130)


def make_folder(folder: Path, only_try: bool = False) -> None:
    """Make the run's folder before the work begins; `only_try` removes it again.

    Raises: UserError when that can't be done.
    """
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if new and only_try:
            folder.rmdir()
    except OSError as error:
        raise UserError(
            f"{folder} can't be made ({error.strerror}): choose another --out"
        ) from None


def train_and_tell(
    plan: "Recipe",
    folder: Path,
    train: Pairs,
    valid: Pairs,
    device: str | None,
    start: "Start | None" = None,
) -> str:
    """Train a recipe to its end or to an interruption, and tell how it went.

    There is a progress bar on a terminal, and lines elsewhere.
    """
    from ..engine.runs import prepare

    run = prepare(plan, folder, train, valid, device=device, start=start)
    outcome = fit_and_report(run)
    if run.accelerator.is_main_process:
        done = f"{outcome} at step {run.progress.step:,}"
        after = f"after {run.progress.seconds:,.0f} s"
        if outcome == "interrupted":
            tell(f"{done} {after}: saved in {folder}; the same command goes on there")
        else:
            tell(f"{done} {after}: {folder / 'model'}")
    return outcome


def fit_and_report(run: "Run") -> str:
    """Train, with a bar on a terminal and lines elsewhere."""
    from ..engine.runs import fit
    from .progress import Bar, line

    if console.is_terminal and run.accelerator.is_main_process:
        with Bar(run.config.steps, console) as bar:
            run.report = bar
            return fit(run)
    run.report = lambda record: tell(line(record))
    return fit(run)
