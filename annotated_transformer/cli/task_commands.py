"""`TASK train`, `TASK evaluate` and what else a model type does, from its record."""

import sys
from collections.abc import Callable, Iterator
from inspect import Parameter, cleandoc, signature
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.main import get_command

from ..registry import SUMMARIES, ModelType, model_type
from ..training.config import setting_owners, with_settings
from .options import (
    SAMPLING,
    TRAINING,
    Device,
    Group,
    Input,
    Options,
    Root,
    Text,
    Trained,
    with_groups,
)
from .progress import run_folder, train_run, use_threads
from .settings import parse_settings, warn_of_rate
from .streams import echo, input_lines, naming, validate_text
from .type_groups import MARKUP


def commands_of(name: str) -> dict[str, Any]:
    """The commands of a model type by their names."""
    kind, group = model_type(name), typer.Typer(**MARKUP)
    add_train(group, kind)
    if hasattr(kind.model, "evaluate"):
        add_evaluate(group, kind)
    for command, function in kind.commands.items():
        trains = "training" in signature(function).parameters
        (add_fine_tuning if trains else add_use)(group, kind, command, function)
    commands: dict[str, Any] = vars(get_command(group))["commands"]
    return commands


# -- train -----------------------------------------------------------------------------


def start_and_train(task: Any, peak: float, folder: Path, training: Options) -> int:
    """Train a task whose usual highest rate is `peak`; the command's status."""
    from ..training.distributed import report_failure_once
    from ..training.run import start_run

    warn_of_rate(peak, task.config.peak)
    use_threads(training["threads"], training["device"])
    with report_failure_once():
        run = start_run(
            task, folder, training["device"], overwrite=training["overwrite"]
        )
        return train_run(run, training["logger"], training["context"])


def add_train(group: typer.Typer, kind: ModelType) -> None:
    """Add `TASK train`, whose help lists the settings that the data don't decide."""
    Data = Annotated[str, typer.Argument(metavar="DATA", help=f"{kind.data}.")]
    own, setting = kind.example
    name = f"`annotated-transformer {kind.name} train"
    parts = kind.model.config_class(), kind.training
    shown = [
        f"{each}={getattr(parts[number], each)}"
        for each, number in setting_owners(parts).items()
        if each not in kind.decided
    ]
    words = (
        f"{SUMMARIES[kind.name]}\n\n{kind.about} Ctrl-C saves the run and ends with "
        f"status 130; the same command goes on.\n\n**Examples**\n\n{name}`\n\n"
        f"{name} {own}`\n`--out runs/own --set {setting}`\n\n"
        f"**Settings** for --set: {', '.join(shown)}"
    )

    @group.command(help=words)
    @with_groups(training=TRAINING)
    def train(data: Data = kind.default_data, *, training: Options) -> int:
        from ..model_types import make_task

        folder = run_folder(training["out"], kind.name)
        settings = parse_settings(training["settings"] or [], *parts)
        task = make_task(kind.name, data, training["root"], **settings)
        return start_and_train(task, kind.training.peak, folder, training)


# -- evaluate --------------------------------------------------------------------------


def add_evaluate(group: typer.Typer, kind: ModelType) -> None:
    """Add `TASK evaluate`."""
    name = f"`annotated-transformer {kind.name} evaluate"

    def evaluate(
        model: Any, data: str = kind.default_data, *, root: Any = None
    ) -> Iterator[str]:
        return figures(model.evaluate(data, root))

    evaluate.__doc__ = (
        f"Measure a model on data that it hasn't seen.\n\n{kind.about}\n\n**Examples**"
        f"\n\n{name} runs/{kind.name}`\n\n{name} runs/own {kind.example[0]}`"
    )
    add_use(group, kind, "evaluate", evaluate)


def figures(metrics: dict[str, Any]) -> Iterator[str]:
    """What `evaluate` returns as lines: numbers first, then tables."""
    tables = [each for each in metrics.values() if isinstance(each, list)]
    for name, value in metrics.items():
        if not isinstance(value, list):
            yield f"{name.replace('_', ' '):<22}{as_text(value):>12}"
    for rows in filter(None, tables):
        table = [[*rows[0]], *([*map(as_text, row.values())] for row in rows)]
        first, *widths = (max(map(len, column)) for column in zip(*table, strict=True))
        for head, *cells in table:
            aligned = zip(cells, widths, strict=True)
            yield "  ".join([head.ljust(first), *(c.rjust(w) for c, w in aligned)])


def as_text(value: Any) -> str:
    """A figure, or a word, of a measurement."""
    if isinstance(value, float):
        return f"{value:,.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


# -- what only one type does -----------------------------------------------------------


def options_of(function: Callable[..., Any], kind: ModelType) -> Group:
    """The options of a function's parameters, but for the first, the model's.

    What stands for lines is `texts`; `data`, `root` and the options of sampling have
    the words that they have everywhere, and others have theirs in `Annotated`.
    """
    hints = get_type_hints(function, include_extras=True)
    options: Group = {"model": (Trained, Parameter.empty)}
    for name, each in [*signature(function).parameters.items()][1:]:
        words: tuple[Any, ...] = getattr(hints[name], "__metadata__", ())
        if name == "texts":
            options |= {"text": (Text, None), "input": (Input, None)}
        elif name == "root" or name in SAMPLING:
            options[name] = {"root": (Root, None), **SAMPLING}[name][0], each.default
        elif name == "data":
            help = words[0] if words else f"{kind.data}."
            data = typer.Argument(metavar="DATA", help=help)
            options[name] = Annotated[str, data], each.default
        elif name != "training":
            value, (help,) = hints[name].__origin__, words
            flag = (f"--{name.replace('_', '-')}",) if value is bool else ()
            option: Any = typer.Option(*flag, help=help)
            if each.kind is not Parameter.KEYWORD_ONLY:
                option = typer.Argument(help=help)
            options[name] = Annotated[value, option], each.default
    return options


def add_use(
    group: typer.Typer,
    kind: ModelType,
    command: str,
    function: Callable[..., Iterator[str]],
) -> None:
    """Add a command that prints what a function of a model yields."""
    options = options_of(function, kind) | {"device": (Device, None)}

    @group.command(command, help=cleandoc(str(function.__doc__)))
    @with_groups(values=options)
    def use(*, values: Options) -> None:
        name, device = values.pop("model"), values.pop("device")
        path = values.get("input")
        for value in values.values():
            if isinstance(value, str) and "text" not in values and "data" not in values:
                validate_text(value, "give the text itself, in quotes")
        if "text" in values:
            values["texts"] = chunks(values.pop("text"), values.pop("input"))
        model = kind.model.from_pretrained(name, device=device)
        with naming(path):
            for line in function(model, **values):
                echo(line)


def chunks(text: str | None, path: Path | None) -> Iterator[list[str]]:
    """The lines of a text, a file or standard input; one at a time where one types."""
    lines = input_lines(text, path)
    live = text is None and path is None and sys.stdin and sys.stdin.isatty()
    return iter(lambda: list(islice(lines, 1 if live else 64)), [])


def add_fine_tuning(
    group: typer.Typer, kind: ModelType, command: str, function: Callable[..., Any]
) -> None:
    """Add a command that trains the task which a function makes of a model."""
    usual = signature(function).parameters["training"].default
    own = options_of(function, kind)
    own.pop("root")

    @group.command(command, help=cleandoc(str(function.__doc__)))
    @with_groups(own=own, training=TRAINING)
    def tune(*, own: Options, training: Options) -> int:
        folder = run_folder(training["out"], command)
        settings = parse_settings(training["settings"] or [], usual)
        (how,) = with_settings(settings, usual)
        model = kind.model.from_pretrained(own.pop("model"), device="cpu")
        task = function(model, **own, training=how, root=training["root"])
        return start_and_train(task, usual.peak, folder, training)
