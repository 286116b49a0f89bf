"""`TASK train`, `evaluate`, and `predict`, `generate`, `fill` or `forecast`."""

import csv
import sys
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ..errors import escaped
from .opening import import_torch
from .options import (
    MARKUP,
    SAMPLING,
    TRAINING,
    Device,
    Given,
    Input,
    Root,
    Text,
    Trained,
    app,
    with_groups,
)
from .settings import parse_settings, warn_of_rate
from .streams import echo, given_lines, naming, validate_text
from .tasks import TASKS, TaskRow
from .training import run_folder, train_run, use_threads

DATA = {row.name: f"{row.data}." for row in TASKS}  # what DATA may be, for the help


def open_model(name: str, model: str, device: str | None) -> Any:
    """The model of a task. Raises: UserError if there is none, or another one."""
    import_torch()
    from ..pretrained import MODEL_TYPES, imported

    return imported(MODEL_TYPES[name]).from_pretrained(model, device=device)


def start_and_train(task: Any, peak: float, folder: Path, training: Given) -> int:
    """Train a task whose usual highest rate is `peak`; the command's status."""
    from ..training.distributed import report_failure_once
    from ..training.run import start_run

    warn_of_rate(peak, task.config.peak)
    use_threads(training["threads"], training["device"])
    with report_failure_once():
        run = start_run(
            task, folder, training["device"], overwrite=training["overwrite"]
        )
        return train_run(run, training["logger"])


# -- train and evaluate, for each task -------------------------------------------------


class TrainCommand(TyperCommand):
    """`TASK train`, whose help lists the settings; they take seconds to import."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the settings that the data don't decide."""
        from ..after.from_data import TASK_TYPES
        from ..training.config import setting_owners

        found = TASK_TYPES[ctx.parent.info_name]
        parts = found.config, found.training
        shown = [
            f"{name}={getattr(parts[number], name)}"
            for name, number in setting_owners(parts).items()
            if name not in found.decided
        ]
        self.help = f"{self.help}\n\n**Settings** for --set: {', '.join(shown)}"
        super().format_help(ctx, formatter)


def add_train(group: typer.Typer, row: TaskRow) -> None:
    """Add `TASK train`."""
    Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA[row.name])]
    own, setting = row.own
    name = f"`annotated-transformer {row.name} train"
    words = (
        f"{row.help}\n\n{row.about} Ctrl-C saves the run and ends with status 130; the "
        f"same command goes on.\n\n**Examples**\n\n{name}`\n\n{name} {own}`\n"
        f"`--out runs/own --set {setting}`"
    )

    @group.command(cls=TrainCommand, help=words)
    @with_groups(training=TRAINING)
    def train(data: Data = row.default, *, training: Given) -> int:
        import_torch()
        from ..after.from_data import TASK_TYPES, make_task

        folder, usual = run_folder(training["out"], row.name), TASK_TYPES[row.name]
        parts = usual.config, usual.training
        settings = parse_settings(training["settings"] or [], *parts)
        task = make_task(row.name, data, training["root"], **settings)
        return start_and_train(task, usual.training.peak, folder, training)


def add_evaluate(group: typer.Typer, row: TaskRow) -> None:
    """Add `TASK evaluate`."""
    Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA[row.name])]
    name = f"`annotated-transformer {row.name} evaluate"
    words = (
        f"Measure a model on data that it hasn't seen.\n\n{row.about}\n\n**Examples**"
        f"\n\n{name} runs/{row.name}`\n\n{name} runs/own {row.own[0]}`"
    )

    @group.command(help=words)
    def evaluate(
        model: Trained,
        data: Data = row.default,
        root: Root = None,
        device: Device = None,
    ) -> None:
        for line in row.measure(open_model(row.name, model, device), data, root):
            echo(line)


GROUPS = {}
for each in TASKS:
    GROUPS[each.name] = typer.Typer(help=each.help, **MARKUP)
    app.add_typer(GROUPS[each.name], name=each.name)
    add_train(GROUPS[each.name], each)
    add_evaluate(GROUPS[each.name], each)


# -- what only one task does -----------------------------------------------------------


@GROUPS["classifier"].command("predict")
def predict_classes(
    model: Trained, text: Text = None, input: Input = None, device: Device = None
) -> None:
    """The most probable class of each text and its probability, line by line.

    **Examples**

    `annotated-transformer classifier predict runs/classifier "a waste of time"`

    `annotated-transformer classifier predict runs/classifier -i reviews.txt`
    """
    lines = given_lines(text, input)
    classifier = open_model("classifier", model, device)
    live = text is None and input is None and sys.stdin and sys.stdin.isatty()
    with naming(input):
        while texts := list(islice(lines, 1 if live else 64)):
            for row in classifier.probabilities(texts):
                best = int(row.argmax())
                echo(f"{escaped(classifier.classes[best])}\t{row[best]:.3f}")


@GROUPS["language-model"].command("generate")
@with_groups(sampling=SAMPLING)
def generate(
    model: Trained,
    prompt: Annotated[str, typer.Argument(help="What to go on from.")] = "\n",
    length: Annotated[int, typer.Option(help="Tokens to write.")] = 200,
    device: Device = None,
    *,
    sampling: Given,
) -> None:
    """Write what may follow a text: samples from the model, token by token.

    **Examples**

    `annotated-transformer language-model generate runs/language-model "ROMEO:"`

    `annotated-transformer language-model generate openai-community/gpt2 "Once"`
    `--top-k 40`
    """
    validate_text(prompt, "give the text itself, in quotes")
    found = open_model("language-model", model, device)
    if sampling["temperature"] is None:
        sampling["temperature"] = 1.0
    echo(prompt + found.generate(prompt, length, **sampling))


@GROUPS["masked-language-model"].command("fill")
def fill(
    model: Trained,
    text: Text = None,
    input: Input = None,
    count: Annotated[int, typer.Option(help="How many tokens for each gap.")] = 5,
    device: Device = None,
) -> None:
    """The most probable tokens for each [MASK] of a text: the number of the gap, the
    token, its probability.

    **Examples**

    `annotated-transformer masked-language-model fill runs/masked-language-model`
    `"The film was [MASK]."`

    `annotated-transformer masked-language-model fill google-bert/bert-base-uncased`
    `"I [MASK] you."`
    """
    lines = given_lines(text, input)
    filler = open_model("masked-language-model", model, device)
    with naming(input):
        for line in lines:
            for number, best in enumerate(filler.fill(line, count), start=1):
                for token, chance in best:
                    echo(f"{number}\t{escaped(token)}\t{chance:.1%}")


@GROUPS["masked-language-model"].command("fine-tune")
@with_groups(training=TRAINING)
def fine_tune(
    model: Trained,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help=DATA["classifier"])
    ] = "imdb",
    labels: Annotated[
        int | None,
        typer.Option(help="Train on so many labelled texts alone, drawn at random."),
    ] = None,
    *,
    training: Given,
) -> int:
    """Make a classifier of a pretrained model, for `classifier evaluate` and `predict`.

    A tenth of the texts is held out; --set takes the settings of its training.

    **Examples**

    `annotated-transformer masked-language-model fine-tune`
    `runs/masked-language-model films.tsv --out runs/films --set epochs=10`
    """
    folder = run_folder(training["out"], "classifier")
    filler = open_model("masked-language-model", model, "cpu")
    from ..after.from_data import FINE_TUNING, fine_tuning_task
    from ..training.config import with_settings

    settings = parse_settings(training["settings"] or [], FINE_TUNING)
    (how,) = with_settings(settings, FINE_TUNING)
    task = fine_tuning_task(filler, data, labels, how, training["root"])
    return start_and_train(task, FINE_TUNING.peak, folder, training)


@GROUPS["vision"].command("predict")
def predict_images(
    model: Trained,
    file: Annotated[
        Path,
        typer.Argument(
            help="A picture, which is scaled to the model's size, or a file of images "
            "in MNIST's format."
        ),
    ],
    invert: Annotated[
        bool,
        typer.Option("--invert", help="The picture is dark on light: invert it."),
    ] = False,
    device: Device = None,
) -> None:
    """The most probable class of each image, and its probability.

    **Examples**

    `annotated-transformer vision predict runs/vision digit.png --invert`

    `annotated-transformer vision predict runs/vision t10k-images-idx3-ubyte.gz`
    """
    classifier = open_model("vision", model, device)
    from ..after.pictures import as_images

    images, _ = as_images(file, classifier.config.height, classifier.config.width)
    for row in classifier.probabilities(255 - images if invert else images):
        echo(f"{int(row.argmax())}\t{row.max():.3f}")


@GROUPS["series"].command("forecast")
def forecast(
    model: Trained,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help=DATA["series"])
    ] = "ett-h1",
    root: Root = None,
    device: Device = None,
) -> None:
    """How a series goes on after its last row, as CSV in its own units.

    **Examples**

    `annotated-transformer series forecast runs/series`

    `annotated-transformer series forecast runs/own sales.csv`
    """
    forecaster = open_model("series", model, device)
    from ..after.from_data import load_series

    series = load_series(data, root)
    found = forecaster.forecast(series)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["date", *series.names])
    dates = coming_dates(series.dates, len(found))
    for date, row in zip(dates, found.tolist(), strict=True):
        writer.writerow([date, *(f"{value:.6g}" for value in row)])


def coming_dates(dates: tuple[str, ...], count: int) -> list[str]:
    """The dates that follow the last two; +1, +2, … where they are no dates."""
    try:
        before, last = map(datetime.fromisoformat, dates[-2:])
        return [str(last + (last - before) * step) for step in range(1, count + 1)]
    except (ValueError, OverflowError, TypeError):
        return [f"+{step}" for step in range(1, count + 1)]
