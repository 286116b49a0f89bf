"""What the commands share: the application that they join, and their options."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..loading import ENGINES, PRECISIONS

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown"
)
# What is printed is text, also "[unk]".
console = Console(highlight=False, markup=False, emoji=False)

# Named here, since the room that makes the recipes has to import torch first.
RECIPES = (
    "phrasebook",
    "tatoeba-en-de",
    "multi30k-en-de-tiny",
    "iwslt14-de-en",
    "wmt14-en-de-base",
    "wmt14-en-de-big",
    "wmt14-en-fr-big",
)


def corpus_names() -> list[str]:
    """For the shell to complete."""
    from ..data.corpus import corpora

    return list(corpora())


def preset_names() -> list[str]:
    """For the shell to complete."""
    from ..model.config import table_3

    return list(table_3())


Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="A shipped model's name, a run's or a model's folder, a downloaded "
        "Marian directory, or owner/name on the Hugging Face Hub.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where to compute: cpu, cuda, cuda:1, mps, …; a GPU where there is one "
        "if none is named."
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        help="Of the matrix products: float32, bfloat16 (not with the engine plain), or "
        "int8 (with the engine ctranslate2 only).",
        autocompletion=lambda: list(PRECISIONS["ctranslate2"]),
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="What searches: torch, the package's fast form; plain, the readable "
        "model; or ctranslate2.",
        autocompletion=lambda: list(ENGINES),
    ),
]
Beam = Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")]
Alpha = Annotated[
    float,
    typer.Option(help="Strength of the length penalty, α in ((5 + length) / 6)^α."),
]
MaxLength = Annotated[
    int | None,
    typer.Option(help="The most tokens of a translation; its source's and 50 if none."),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse characters that the model never saw, instead of reading them as "
        "unknown.",
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(
        help="Where corpora are kept; else $ANNOTATED_TRANSFORMER_DATA, else a cache."
    ),
]
