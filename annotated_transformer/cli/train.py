"""`train`: a recipe, or files of your own, up to a translation model's folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .doctor import tell_of_pairs
from .dry_run import show, try_recipe
from .options import (
    TRAINING,
    Group,
    Options,
    app,
    console,
    option,
    recipe_names,
    with_groups,
)
from .progress import run_folder, train_run, use_threads
from .recipe import Pairs, distilled_pairs, plan_training, training_pairs

if TYPE_CHECKING:
    from ..training.recipes import Recipe
    from ..training.run import Run
    from ..translation.prepared_data import InitFrom

Source = Annotated[
    str,
    typer.Argument(
        help="A recipe, or the common prefix of your own files: own/train for "
        "own/train.en and own/train.de.",
        autocompletion=recipe_names,
    ),
]
OWN: Group = {
    "src": option(str | None, None, "Source language, as in the file's name."),
    "tgt": option(str | None, None, "Target language, as in the file's name."),
    "valid": option(str | None, None, "Prefix of your own validation files."),
    "recipe": option(
        str | None,
        None,
        "The recipe whose settings your own files are trained with, text as it is; "
        "they follow the number of pairs if none is named.",
        autocompletion=recipe_names,
    ),
}
Start = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="A trained model to fine-tune, with its tokenizer and architecture: any "
        "that translate opens.",
    ),
]
Parts = Annotated[
    str | None,
    typer.Option(
        help="Parts from after 2017, in the place of the paper's, with commas between "
        "them: pre-norm, rms-norm, gelu or swiglu, qk-norm, rotary or alibi, "
        "grouped-queries, no-biases.",
    ),
]
Teacher = Annotated[
    str | None,
    typer.Option(
        "--teacher",
        help="A trained model, larger than the new one, whose translations of the "
        "training text the new one learns from: any that translate opens.",
    ),
]
Choices = Annotated[
    int,
    typer.Option(
        "--teacher-choices",
        min=1,
        help="From so many of the teacher's best translations of a sentence, the one "
        "nearest to the corpus's own is taken.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Three updates on the beginning of the corpus, then all that comes "
        "after them.",
    ),
]


def prepare_run(
    plan: "Recipe",
    folder: Path,
    pairs: tuple[Pairs, Pairs],
    start: "InitFrom | None",
    training: Options,
) -> "Run":
    """The run, on the device that was asked for."""
    from ..translation.task import prepare

    how = {name: training[name] for name in ("device", "overwrite")}
    return prepare(plan, folder, *pairs, init_from=start, **how)


@app.command("train")
@with_groups(own=OWN, training=TRAINING)
def train_translator(
    source: Source,
    start_from: Start = None,
    teacher: Teacher = None,
    choices: Choices = 1,
    parts: Parts = None,
    dry_run: DryRun = False,
    *,
    own: Options,
    training: Options,
) -> int:
    """Train a translation model. The same command goes on from the last checkpoint.

    Ctrl-C, or SIGTERM, saves the run and ends with status 130; a second one, at once.

    **Examples**

    `annotated-transformer train phrasebook --set steps=2000`

    `annotated-transformer train own/train --src en --tgt de --valid own/valid`
    `--from tatoeba-en-de`
    """
    from ..training.distributed import report_failure_once
    from ..translation.task import open_start

    with report_failure_once():
        start = open_start(start_from) if start_from else None
        plan = plan_training(source, own, training["settings"] or [], start, parts)
        use_threads(training["threads"], device := training["device"])
        pairs = training_pairs(plan, own["valid"], training["root"])
        pairs = distilled_pairs(pairs, plan, teacher, choices, device, dry_run)
        folder = run_folder(training["out"], Path(source).name)
        if dry_run:
            return show(try_recipe(plan, folder, *pairs, device, start))
        with console.status("reading the text and cutting it into tokens, once"):
            run = prepare_run(plan, folder, pairs, start, training)
        tell_of_pairs(plan, run, own["valid"] if run.world.first else None)
        return train_run(run, training["logger"], training["context"])
