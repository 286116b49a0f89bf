"""Going on from the everyday model against starting from nothing, on few pairs.

    nice -n 19 python -m benchmarks.paper.fine_tuning

Trains on the first 300 to 20,000 pairs of Multi30k, from the shipped tatoeba-en-de by
the settings of `--from`, and from random weights with the same architecture, pieces and
batches at the rate of that model's own recipe. Each run ends when four validations in a
row, 25 updates apart, bring nothing better, or after 3,000 updates; the last five
checkpoints are averaged. BLEU (13a, as it is written) is of test_2016_flickr, with a
beam of 4 and α = 1, as the model's card has it. About seven hours on one
quiet core. A run that is stopped goes on from its last checkpoint, which lies in
build/fine-tuning, when the command is started again; each is recorded with its commit
when it is done. The corpus is downloaded unless ANNOTATED_TRANSFORMER_DATA names a
folder that holds it.
Writes results/paper/fine-tuning.json, for nbs/translation/own_text.ipynb.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from annotated_transformer import load
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.model_names import SHIPPED
from annotated_transformer.training.recipes import Recipe, recipe
from annotated_transformer.training.run import fit
from annotated_transformer.translation.prepared_data import InitFrom
from annotated_transformer.translation.task import (
    FINE_TUNING,
    PEAK,
    FirstPairs,
    fine_tuning_recipe,
    prepare,
)
from benchmarks import record
from benchmarks.measure import bleu, sides

PLACE = "paper/fine-tuning.json"
SIZES = (300, 1_000, 3_000, 5_000, 10_000, 20_000)
RUNS = Path("build/fine-tuning")
MOST = 3_000  # updates


def plan_for(peak: float, start: InitFrom | None) -> Recipe:
    """The recipe of one run; from nothing if there is no start."""
    everyday = recipe(SHIPPED)
    plan = replace(everyday, corpus="multi30k", lowercase=False)
    warmup = FINE_TUNING.warmup if start else 200
    training = replace(FINE_TUNING, steps=MOST, warmup=warmup, peak=peak)
    return replace(
        fine_tuning_recipe(plan, start) if start else plan, training=training
    )


def trained(pairs: int, peak: float, on: bool) -> dict:
    """Train once, and score."""
    train, valid = (load_corpus("multi30k", s, "en", "de") for s in ("train", "val"))
    shipped = load(SHIPPED, device="cpu", engine="plain")
    start = InitFrom(SHIPPED, shipped.model, shipped.tokenizer) if on else None
    folder = RUNS / f"{pairs}-{SHIPPED if on else 'nothing'}"
    plan = plan_for(peak, start)
    first = FirstPairs(train, pairs)
    run = prepare(plan, folder, first, valid, device="cpu", init_from=start)
    outcome = fit(run)
    if outcome == "interrupted":
        raise SystemExit(130)
    sources, targets = sides("multi30k", "test_2016_flickr")
    options = SearchOptions(beam_size=4, alpha=1.0)
    translator = load(folder, device="cpu", engine="torch")
    score = bleu(translator.translate(sources, options), targets)
    rows = list(run.log.records())
    shutil.rmtree(folder)
    checks = [row for row in rows if row["event"] == "validation"]
    best = min(checks, key=lambda row: row["loss"])
    return {
        "pairs": pairs,
        "start": SHIPPED if on else "nothing",
        "peak": peak,
        "updates": run.progress.step,
        "outcome": outcome,
        "best_loss": round(best["loss"], 4),
        "best_update": best["step"],
        "training_seconds": round(run.progress.seconds, 1),
        **score,
        "commit": record.code()["commit"],
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Make each run that the record lacks."""
    parser = record.command_line(__doc__)
    parser.parse_args(argv)
    torch.set_num_threads(1)
    own_rate = recipe(SHIPPED).training.peak
    both = [(PEAK, True), (own_rate, False)]
    wanted = [(pairs, *how) for pairs in SIZES for how in both]
    found = {"runs": record.load(PLACE).get("runs", [])}
    for pairs, peak, on in wanted:
        key = pairs, peak, SHIPPED if on else "nothing"
        if key in [(row["pairs"], row["peak"], row["start"]) for row in found["runs"]]:
            continue
        row = trained(pairs, peak, on)
        found["runs"].append(row)
        record.save(PLACE, found, "tokenizers", "sacrebleu")
        print({name: row[name] for name in ("pairs", "start", "best_loss", "bleu")})


if __name__ == "__main__":
    main()
