"""What the commands share: the application that they join, and their options."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..decoding.engines import DTYPES, ENGINES
from ..decoding.options import SearchOptions
from .config_file import naming_file, read_config, with_file
from .type_groups import MARKUP, RootGroup

app = typer.Typer(cls=RootGroup, pretty_exceptions_enable=False, **MARKUP)
# What is printed is text, also "[unk]".
console = Console(highlight=False, markup=False, emoji=False)


def recipe_names() -> list[str]:
    """For the shell to complete."""
    from ..training.recipes import recipes

    return list(recipes())


def corpus_names() -> list[str]:
    """For the shell to complete."""
    from ..data.corpora import named_corpora

    return list(named_corpora())


def preset_names() -> list[str]:
    """For the shell to complete."""
    from ..model.config import table_3

    return list(table_3())


# -- what is opened, read and written --------------------------------------------------

ModelName = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="A shipped model's name, a run's or a model's folder, a downloaded "
        "Marian directory, or hf:owner/name on the Hugging Face Hub.",
    ),
]
Trained = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A run's or a model's folder, or hf:owner/name on the Hugging Face Hub.",
    ),
]
Input = Annotated[
    Path | None,
    typer.Option("--input", "-i", help="A text file, plain or .gz, read line by line."),
]
Text = Annotated[
    str | None,
    typer.Argument(
        help="The text; without it, lines are read from --input or standard input."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")]
Page = Annotated[Path, typer.Option("--out", "-o", help="The page to write.")]
Picture = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The picture to write; RUN/curves.png if none."),
]
Corpus = Annotated[
    str | None,
    typer.Option(
        help="A named corpus to translate; `corpora` lists them.",
        autocompletion=corpus_names,
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(
        help="Where corpora are kept; else $ANNOTATED_TRANSFORMER_DATA, else a cache."
    ),
]

Device = Annotated[
    str | None,
    typer.Option(
        help="Where to compute: cpu, cuda, cuda:1, mps, …; a GPU where there is one "
        "if none is named."
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse characters that the model never saw, instead of reading them as "
        "unknown.",
    ),
]
Split = Annotated[
    bool,
    typer.Option(
        "--split",
        help="Cut input that is too long at the ends of sentences instead of "
        "refusing it.",
    ),
]

# -- groups of options -----------------------------------------------------------------

Group = dict[str, tuple[Any, Any]]  # by name: the annotation, and the default
Options = dict[str, Any]  # the values of a group


def option(kind: Any, default: Any, help: str, *names: str, **more: Any) -> Any:
    """An option of a group."""
    return Annotated[kind, typer.Option(*names, help=help, **more)], default


COMPUTE: Group = {
    "device": (Device, None),
    "threads": option(
        int | None,
        None,
        "Threads to compute with on a CPU; as many as PyTorch takes if none is named.",
        min=1,
    ),
    "engine": option(
        str,
        "auto",
        "What searches: auto, CTranslate2 where it is installed and takes the model, "
        "else torch; torch, the package's fast form; plain, the readable model; or "
        "ctranslate2.",
        autocompletion=lambda: list(ENGINES),
    ),
    "dtype": option(
        str,
        "float32",
        "Of the matrix products: float32, bfloat16 (not with the engine plain), or "
        "int8 (with CTranslate2 only).",
        autocompletion=lambda: list(DTYPES["ctranslate2"]),
    ),
}
BEAM: Group = {
    "beam_size": option(
        int, SearchOptions.beam_size, "Hypotheses kept at each step; 1 is greedy."
    ),
    "alpha": option(
        float,
        SearchOptions.alpha,
        "Strength of the length penalty, α in ((5 + length) / 6)^α.",
    ),
    "max_length": option(
        int | None,
        None,
        "The most tokens of a translation; its source's and 50 if none.",
    ),
}
SAMPLING: Group = {
    "temperature": option(
        float | None,
        None,
        "Sample: 1 from the model's own distribution, less from a sharper one.",
    ),
    "top_k": option(int | None, None, "Sample from the k most probable tokens alone."),
    "top_p": option(
        float,
        SearchOptions.top_p,
        "Sample from the fewest tokens that reach this probability.",
    ),
    "seed": option(int | None, None, "For the same samples each time."),
}
TRAINING: Group = {
    "context": (typer.Context, Parameter.empty),
    "config": option(
        str | None,
        None,
        "A YAML file with any of these by their names, and the settings under set; "
        "what is typed wins. Each run writes one, config.yaml, that repeats it.",
        callback=read_config,
        is_eager=True,
    ),
    "out": option(
        Path | None,
        None,
        "The run's folder; runs/NAME if none is named.",
        "--out",
        "-o",
    ),
    "settings": option(
        list[str] | None,
        None,
        "NAME=VALUE for any size of the model or setting of its training; may be "
        "repeated.",
        "--set",
        callback=with_file,
    ),
    "overwrite": option(
        bool, False, "Delete the run that the folder holds.", "--overwrite"
    ),
    "logger": option(
        str | None,
        None,
        "tensorboard: the log's numbers for it too, in the run's folder.",
    ),
    "root": (Root, None),
    "device": (Device, None),
    "threads": COMPUTE["threads"],
}


def with_groups(**groups: Group) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command groups of options; it takes the values of each as one dict."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**options: Any) -> Any:
            for name, group in groups.items():
                options[name] = {each: options.pop(each) for each in group}
            context = options.get("training", {}).get("context")
            with naming_file(context) if context else nullcontext():
                return command(**options)

        own = signature(command)
        shown = [each for name, each in own.parameters.items() if name not in groups]
        for group in groups.values():
            for name, (annotation, default) in group.items():
                how: Options = {"default": default, "annotation": annotation}
                shown.append(Parameter(name, Parameter.KEYWORD_ONLY, **how))
        vars(call)["__signature__"] = own.replace(parameters=shown)
        return call

    return decorate
