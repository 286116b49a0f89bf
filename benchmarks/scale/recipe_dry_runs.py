"""Go through every recipe once, on a sample and with small batches.

    python -m benchmarks.scale.recipe_dry_runs            all of them
    python -m benchmarks.scale.recipe_dry_runs NAME …     some; the others stay

Each recipe runs in a process of its own, so that its peak memory is its own, with the
model, the vocabulary and the text settings of the whole run. Needs
ANNOTATED_TRANSFORMER_DATA; where the corpus can't be had without the Hugging Face Hub,
the record names the pairs that stood in for it. Nothing is timed. Takes some minutes
and writes results/scale/recipe-dry-runs.json, for nbs/training/distributed.ipynb.
"""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from annotated_transformer.cli.dry_run import try_recipe
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.parallel_files import parallel_files
from annotated_transformer.data.published_files import data_files, find_file
from annotated_transformer.training.recipes import Recipe, recipe, recipes
from benchmarks.measure import alone
from benchmarks.record import command_line, load, save

PLACE = "scale/recipe-dry-runs.json"
BATCH_TOKENS = 512


def folder_of(path: str) -> Path:
    """Where the corpora lie that are not in files of this name."""
    return find_file(data_files()[path]).parent


def news(plan: Recipe) -> list[tuple[str, str]]:
    """The validation and the test set of WMT 2014."""
    return [
        *load_corpus("wmt14", "val", plan.src, plan.tgt),
        *load_corpus("wmt14", "test", plan.src, plan.tgt),
    ]


def europarl() -> Iterable[tuple[str, str]]:
    """The first 20,000 pairs of Europarl, a part of WMT 2014's training data."""
    prefix = folder_of("wmt/newstest2013.en") / "europarl-v7-first20k.de-en"
    return parallel_files(f"{prefix}.en.gz", f"{prefix}.de.gz")


def sample(name: str, plan: Recipe) -> tuple[str, Iterable[tuple[str, str]]]:
    """Pairs to train on and what they are."""
    if name.startswith("wmt14-en-de"):
        return (
            "the first 20,000 pairs of Europarl v7, for WMT 2014's 4.5 million",
            europarl(),
        )
    if name.startswith("wmt14"):
        return "newstest2013 and newstest2014, for WMT 2014's 36 million pairs", news(
            plan
        )
    if name.startswith("iwslt14"):
        return "IWSLT 2014's validation set, for its training set", load_corpus(
            "iwslt14", "valid", plan.src, plan.tgt
        )
    return "the beginning of its own corpus", load_corpus(
        plan.corpus, plan.train_split, plan.src, plan.tgt
    )


def dry_run(name: str) -> dict:
    """What a recipe's dry run found, with what it was given."""
    torch.set_num_threads(1)
    plan = recipe(name)
    training = replace(plan.training, batch_tokens=BATCH_TOKENS)
    plan = replace(
        plan, training=training, max_tokens=min(plan.max_tokens, BATCH_TOKENS)
    )
    what, pairs = sample(name, plan)
    valid = load_corpus(plan.corpus, plan.valid_split, plan.src, plan.tgt)
    with tempfile.TemporaryDirectory() as scratch:
        found = try_recipe(plan, Path(scratch) / "run", pairs, valid, "cpu")
    return {"trained on": what} | found


def main(argv: Sequence[str] | None = None) -> None:
    """Run the named recipes, or all, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="recipes; or all")
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.names) - set(recipes())):
        parser.error(f"no recipe {unknown[0]!r}: choose from {', '.join(recipes())}")
    runs = load(PLACE).get("runs", {})
    for name in given.names or recipes():
        runs[name] = alone(dry_run, name)
        print(name, runs[name]["outcome"], flush=True)
        save(PLACE, {"batch_tokens": BATCH_TOKENS, "runs": runs})


if __name__ == "__main__":
    main()
