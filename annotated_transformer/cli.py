"""The command line: train, translate, evaluate and look inside."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(no_args_is_help=True, add_completion=True)
console = Console()


@app.callback()
def root() -> None:
    """The Transformer of "Attention Is All You Need": train it, translate with it, measure it, look inside."""


@app.command()
def train(
    name: Annotated[str, typer.Argument(help="A recipe.")],
    out: Annotated[Path, typer.Option(help="The run's folder.")],
    root: Annotated[Path | None, typer.Option(help="Where corpora are kept.")] = None,
    steps: Annotated[int | None, typer.Option(help="Updates, instead of the recipe's.")] = None,
) -> None:
    """Train a recipe; started again, it goes on from the last checkpoint."""
    from dataclasses import replace

    from annotated_transformer.data.corpus import load_corpus
    from annotated_transformer.training.progress import line
    from annotated_transformer.training.recipes import prepare, recipe
    from annotated_transformer.training.trainer import fit

    plan = recipe(name)
    if steps is not None:
        plan = replace(plan, training=replace(plan.training, steps=steps))
    pairs = [list(load_corpus(plan.corpus, split, plan.src, plan.tgt, root)) for split in (plan.train_split, plan.valid_split)]
    console.print(fit(prepare(plan, out, *pairs, report=lambda record: console.print(line(record), highlight=False))))


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
