"""`reproduce`: a table of the paper in small, row by row, each with its record."""

import json
import os
import platform
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, nearest
from .options import Device, Root, app, console
from .streams import tell

if TYPE_CHECKING:
    from ..translation.variations import Variation

TABLES = ("table3",)
BLEU = "BLEU 13a, lower-cased"


def row_names() -> list[str]:
    """For the shell to complete."""
    from ..translation.variations import variations

    return list(variations())


@app.command()
def reproduce(
    table: Annotated[
        str, typer.Argument(help="Which: table3.", autocompletion=lambda: TABLES)
    ],
    rows: Annotated[
        list[str] | None,
        typer.Argument(
            help="Rows of it, such as base or A-1-head; all if none is named.",
            autocompletion=row_names,
        ),
    ] = None,
    seeds: Annotated[
        list[int] | None,
        typer.Option("--seed", help="May be repeated; 1 if none is named."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The folder of the records, ROW-SEED.json.")
    ] = Path("results/paper/table3"),
    root: Root = None,
    device: Device = None,
) -> None:
    """Train rows of the paper's Table 3 in small, score them, and write a record of each.

    A row that has its record is left alone, and one that was interrupted goes on, so
    the same command finishes what is missing.

    **Examples**

    `annotated-transformer reproduce table3 base A-1-head`

    `annotated-transformer reproduce table3 --seed 1 --seed 2 --seed 3`
    """
    from ..locks import in_use
    from ..translation.variations import variation, variations

    if table not in TABLES:
        raise UserError(f"unknown table {table!r}: {nearest(table, TABLES)}")
    chosen = [variation(name) for name in rows or variations()]
    for seed in seeds or [1]:
        for row in chosen:
            place = out / f"{row.name}-{seed}.json"
            folder = Path("runs/table3") / place.stem
            with in_use(folder, folder / ".lock"):
                if place.exists():
                    tell(f"{place} is there")
                else:
                    reproduce_row(row, seed, place, root, device)


def reproduce_row(
    row: "Variation", seed: int, place: Path, root: Path | None, device: str | None
) -> None:
    """Train one row of Table 3 in small, and write its record.

    The run's folder goes when the record is there. Raises: typer.Exit with 130 when it
    was interrupted.
    """
    from ..data.corpus import load_corpus
    from ..engine.runs import prepare
    from ..files import remove_folder, write_json
    from ..translation.variations import at_home
    from .train import fit_and_report

    plan, folder = at_home(row, seed), Path("runs/table3") / place.stem
    train, valid = (
        load_corpus(plan.corpus, split, plan.src, plan.tgt, root)
        for split in (plan.train_split, plan.valid_split)
    )
    tell(f"{row.name}, seed {seed}: {plan.training.steps:,} updates")
    begun, fresh = time.process_time(), not (folder / "checkpoints").exists()
    run = prepare(plan, folder, train, valid, device=device)
    if fit_and_report(run) == "interrupted":
        raise typer.Exit(130)
    found = {
        "command": f"annotated-transformer reproduce table3 {row.name} --seed {seed}",
        "row": row.name,
        "seed": seed,
        "updates": run.progress.step,
        "epochs": run.progress.epoch,
        "parameters": sum(each.numel() for each in run.model.parameters()),
        "perplexity": round(last_perplexity(folder), 4),
        **bleu_of(folder, list(valid), device),
        "processor_seconds": round(time.process_time() - begun) if fresh else None,
        **surroundings(),
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    write_json(place, found)
    remove_folder(folder)
    console.print(f"{place}: perplexity {found['perplexity']}, BLEU {found['bleu']}")


def last_perplexity(folder: Path) -> float:
    """Of the last validation in a run's log."""
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [each["perplexity"] for each in records if each["event"] == "validation"][-1]


def bleu_of(
    folder: Path, pairs: list[tuple[str, str]], device: str | None
) -> dict[str, Any]:
    """The score of a run's model, with its signature."""
    from ..loading import load
    from ..translation.bleu import scores
    from ..translation.search import SearchOptions

    sources, targets = map(list, zip(*pairs, strict=True))
    translator = load(folder, device=device)
    with warnings.catch_warnings(action="ignore"):  # of translations that don't end
        outputs = translator.translate(sources, SearchOptions(beam_size=4, alpha=0.6))
    language = translator.tokenizer.tgt_lang
    found = {each.name: each for each in scores(outputs, targets, language)}[BLEU]
    return {"bleu": round(found.value, 2), "signature": found.signature}


def surroundings() -> dict[str, Any]:
    """On what machine, and with which versions."""
    import torch

    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {"machine": machine, "versions": versions}
