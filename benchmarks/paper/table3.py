"""Train rows of the paper's Table 3 in small, and score them.

    python -m benchmarks.paper.table3 --row base A-1-head
    python -m benchmarks.paper.table3 --seed 1 2 3
    python -m benchmarks.paper.table3 --seed 1 2 3 --long --row base C-2-layers

A long run has five times as many updates of twice as many tokens, so that it reads its
captions as often as the paper's base model its sentences. A run that is on record is
left alone, and one that was interrupted goes on, so the same command finishes what is
missing. Sixty runs, three of each row, took 2.2 hours of one core; a long one of base
takes eleven minutes. Multi30k is downloaded unless ANNOTATED_TRANSFORMER_DATA names a
folder that holds it. Adds a line for each run to results/paper/table3.jsonl, which
nbs/translation/table3.ipynb shows.
"""

import json
import sys
import time
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from annotated_transformer import load
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.files import remove_folder
from annotated_transformer.training.recipes import Recipe
from annotated_transformer.training.run import fit
from annotated_transformer.translation.table3 import scaled_down_recipe, variations
from annotated_transformer.translation.task import prepare
from benchmarks.measure import LOWER_13A, bleu
from benchmarks.record import add_run, command_line, read_runs

PLACE, RUNS = "paper/table3.jsonl", Path("runs/table3")
LONG = {"steps": 10_000, "batch_tokens": 1_024}


def train_and_score(plan: Recipe, folder: Path, device: str | None) -> dict[str, Any]:
    """Perplexity and BLEU on the validation split. SystemExit if interrupted."""
    train, valid = (
        list(load_corpus(plan.corpus, split, plan.src, plan.tgt))
        for split in (plan.train_split, plan.valid_split)
    )
    begun, fresh = time.process_time(), not (folder / "checkpoints").exists()
    run = prepare(plan, folder, train, valid, device=device)
    if fit(run) == "interrupted":
        sys.exit(130)
    sources, targets = (list(side) for side in zip(*valid, strict=True))
    with warnings.catch_warnings(action="ignore"):  # of translations that don't end
        options = SearchOptions(beam_size=4, alpha=0.6)
        outputs = load(folder, device=device, engine="torch").translate(
            sources, options
        )
    return {
        "updates": run.progress.step,
        "epochs": run.progress.epoch,
        "parameters": sum(each.numel() for each in run.model.parameters()),
        "perplexity": perplexities(folder)[-1][1],
        "perplexities": perplexities(folder),
        **bleu(outputs, targets, LOWER_13A),
        "processor_seconds": round(time.process_time() - begun) if fresh else None,
    }


def perplexities(folder: Path) -> list[tuple[int, float]]:
    """The number of updates and the perplexity of each validation in a run's log."""
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    checks = [row for row in map(json.loads, lines) if row["event"] == "validation"]
    return [(row["step"], round(row["perplexity"], 4)) for row in checks]


def main(argv: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    rows, parser = variations(), command_line(__doc__)
    parser.add_argument("--row", nargs="+", choices=rows, default=list(rows))
    parser.add_argument("--seed", nargs="+", type=int, default=[1])
    parser.add_argument("--device", help="cpu, cuda or mps; found if not named")
    parser.add_argument("--long", action="store_true", help="twenty passes, not two")
    asked = parser.parse_args(argv)
    length = LONG if asked.long else {}
    there = {(run["row"], run["seed"], run["updates"]) for run in read_runs(PLACE)}
    for seed, row in product(asked.seed, asked.row):
        plan = scaled_down_recipe(rows[row], seed, **length)
        updates = plan.training.steps
        if (row, seed, updates) in there:
            continue
        print(f"{row}, seed {seed}, {updates:,} updates …", file=sys.stderr, flush=True)
        folder = RUNS / f"{row}-{seed}-{updates}"
        found = train_and_score(plan, folder, asked.device)
        add_run(PLACE, {"row": row, "seed": seed} | found)
        remove_folder(folder)


if __name__ == "__main__":
    main()
