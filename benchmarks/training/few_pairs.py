"""Two sets of settings for 5,000 pairs, from nothing.

    nice -n 19 python -m benchmarks.training.few_pairs

Trains on the first 5,000 pairs of Multi30k, as they are written: with the settings that
29,000 of them were trained with, and with a wider model, fewer pieces and a shorter
warm-up. Each run ends when ten validations in a row bring nothing better, and the last
ten checkpoints are averaged. BLEU (13a) of the validation split and of
test_2016_flickr, with a beam of 4 and α = 1. One seed each, about an hour of one core;
a run that is stopped goes on from its last checkpoint, in build/few, when the command
is started again. The corpus is downloaded unless ANNOTATED_TRANSFORMER_DATA names a
folder that holds it. Writes results/training/few-pairs.json.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from annotated_transformer import load
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.training.recipes import Recipe, recipe
from annotated_transformer.training.run import fit
from annotated_transformer.translation.task import FirstPairs, prepare
from benchmarks import record
from benchmarks.measure import bleu, sides

PLACE = "training/few-pairs.json"
PAIRS = 5_000
WIDER = {"N": 3, "d_model": 256, "d_ff": 1_024, "h": 4, "d_k": 64, "d_v": 64}


def plans() -> dict[str, Recipe]:
    """Both, by the names of their runs' folders."""
    known = recipe("multi30k-en-de-tiny")
    known = replace(known, moses=False, lowercase=False)
    training = replace(
        known.training, peak=0.002, warmup=200, save_every=50, log_every=50
    )
    wider = replace(known.architecture, **WIDER)
    few = replace(known, vocab_size=4_000, architecture=wider, training=training)
    return {"multi30k-en-de-tiny": known, "few-pairs": few}


def trained(name: str, plan: Recipe) -> dict:
    """Train, or go on, and score."""
    train, valid = (load_corpus("multi30k", s, "en", "de") for s in ("train", "val"))
    folder = Path("build/few") / name
    run = prepare(plan, folder, FirstPairs(train, PAIRS), valid, device="cpu")
    if (outcome := fit(run)) == "interrupted":
        raise SystemExit(130)
    translator = load(folder, device="cpu", engine="torch")
    options, scores = SearchOptions(beam_size=4, alpha=1.0), {}
    for split in ("val", "test_2016_flickr"):
        sources, targets = sides("multi30k", split)
        scores[split] = bleu(translator.translate(sources, options), targets)
    checks = [row for row in run.log.records() if row["event"] == "validation"]
    best = min(checks, key=lambda row: row["loss"])
    return {
        "vocab_size": plan.vocab_size,
        "architecture": plan.architecture.to_dict(),
        "training": plan.training.to_dict(),
        "updates": run.progress.step,
        "outcome": outcome,
        "best_update": best["step"],
        "best_loss": round(best["loss"], 4),
        **scores,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Train both, and write the record."""
    record.command_line(__doc__).parse_args(argv)
    torch.set_num_threads(1)
    runs = {name: trained(name, plan) for name, plan in plans().items()}
    record.save(PLACE, {"pairs": PAIRS, "runs": runs}, "tokenizers", "sacrebleu")


if __name__ == "__main__":
    main()
