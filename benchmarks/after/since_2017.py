"""Exchange one part of the Transformer for a later one at a time, and measure it.

    python -m benchmarks.after.since_2017 parts
    python -m benchmarks.after.since_2017 depth
    python -m benchmarks.after.since_2017 today

`parts` trains the base row of Table 3 in small (`python -m benchmarks.paper.table3`)
for half of its updates, with one part exchanged, and measures the perplexity on
Multi30k's validation split. `depth` trains stacks of 2 to 18 layers for a hundred
updates without a warm-up, with the norm after the sum and with the norm in the branch.
`today` trains the whole base row as it was in 2017 and with the parts that paid, on the
same batches, and translates Multi30k's test split. A run that has its record is left
alone, so the same command finishes what is missing. One thread. Adds a line for each
run to results/after/since_2017.jsonl, which nbs/after/since_2017.ipynb shows. Multi30k
is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
"""

import math
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from annotated_transformer.after.since_2017 import (
    TRAINING_PARTS,
    Since2017Config,
    assemble,
    train_with_parts,
)
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import fast
from annotated_transformer.performance.update import fast_training
from annotated_transformer.training.recipes import Recipe
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.trainer import (
    seed_update,
    train_translation,
    validation_loss,
)
from annotated_transformer.translation.model_search import ModelSearch
from annotated_transformer.translation.options import SearchOptions
from annotated_transformer.translation.prepared_data import prepare_data
from annotated_transformer.translation.table3 import scaled_down_recipe, variation
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import LOWER_13A, bleu, sides
from benchmarks.record import add_run, command_line, read_runs

PLACE = "after/since_2017.jsonl"
DATA = Path("runs/since_2017/data")
SEEDS, SPLITS = (1, 2, 3), ("train", "val")
UPDATES = 1_000
DEPTHS, DEPTH_RATE, DEPTH_UPDATES = (2, 6, 12, 18), 1e-3, 100
WAYS = {"post-norm": (), "pre-norm": ("pre-norm",)}
PAIR_UPDATES, TEST = 2_000, "test_2016_flickr"
RECIPES: dict[str, tuple[str, ...]] = {
    "2017": (),
    "today": ("pre-norm", "swiglu", "rotary", "weight-decay"),
}
ROWS: dict[str, tuple[str, ...]] = {
    "base": (),
    "pre-norm": ("pre-norm",),
    "rms-norm": ("rms-norm",),
    "gelu": ("gelu",),
    "swiglu": ("swiglu",),
    "rotary": ("rotary",),
    "alibi": ("alibi",),
    "grouped-queries": ("grouped-queries",),
    "qk-norm": ("qk-norm",),
    "no-biases": ("no-biases",),
    "weight-decay": ("weight-decay",),
    "cosine": ("cosine",),
    "pre-norm + cosine": ("pre-norm", "cosine"),
}


def base(seed: int) -> Recipe:
    """Table 3's base row in small, with half of its updates."""
    plan = scaled_down_recipe(variation("base"), seed)
    return replace(plan, training=replace(plan.training, steps=UPDATES))


def data_of(plan: Recipe) -> tuple[PairTokenizer, TokenizedPairs, TokenizedPairs]:
    """The vocabulary and the pairs, made once."""
    train, valid = (load_corpus("multi30k", split, "en", "de") for split in SPLITS)
    return prepare_data(plan, DATA, train, valid)[:3]


def untrained(plan: Recipe, tokenizer: PairTokenizer, parts: Sequence[str]) -> Any:
    """The plan's model with these parts, from the plan's seed."""
    sizes = plan.architecture.to_dict() | {
        "src_vocab_size": tokenizer.src_vocab_size,
        "tgt_vocab_size": tokenizer.tgt_vocab_size,
    }
    inside = [name for name in parts if name not in TRAINING_PARTS]
    seed_update(plan.training.seed, 0)
    if not inside:
        return Transformer(replace(plan.architecture, **sizes))
    return assemble(Since2017Config.from_dict(sizes | {"parts": inside}))


def missing(
    cases: Sequence[dict[str, Any]], seeds: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Each case with each seed, as far as it is not on record."""
    there = read_runs(PLACE)
    for case in ({**case, "seed": seed} for seed in seeds for case in cases):
        if not any(case.items() <= found.items() for found in there):
            print(case, "…", file=sys.stderr, flush=True)
            yield case


def one_part(rows: Sequence[str], seeds: Sequence[int]) -> None:
    """The ablation: base with one part exchanged, as long as base was trained."""
    tokenizer, train, valid = data_of(base(1))
    for case in missing([{"row": row} for row in rows], seeds):
        plan, began, parts = base(case["seed"]), time.process_time(), ROWS[case["row"]]
        model = untrained(plan, tokenizer, parts)
        objective = fast_training(model, plan.training.label_smoothing)
        for update in train_with_parts(objective, train, plan.training, parts):
            last = update
        loss = validation_loss(objective, valid, plan.training)
        found = case | {
            "updates": last.step,
            "parameters": sum(each.numel() for each in model.parameters()),
            "perplexity": round(math.exp(loss), 4),
            "processor_seconds": round(time.process_time() - began),
        }
        add_run(PLACE, found)


def frequency_loss(train: TokenizedPairs, valid: TokenizedPairs) -> float:
    """Of a model that knows how often each token occurs and nothing else, in nats."""
    counts = np.bincount(train.tgt_tokens).astype(float) + 1
    return float(-np.log(counts / counts.sum())[valid.tgt_tokens].mean())


def in_depth(seeds: Sequence[int]) -> None:
    """Stacks of more and more layers at one rate from the first update on."""
    tokenizer, train, valid = data_of(base(1))
    depths = [{"way": way, "N": N} for N in DEPTHS for way in WAYS]
    for case in missing(depths, seeds):
        plan, began = base(case["seed"]), time.process_time()
        training = replace(plan.training, steps=DEPTH_UPDATES)
        plan = replace(plan, architecture=replace(plan.architecture, N=case["N"]))
        model = untrained(plan, tokenizer, WAYS[case["way"]])
        objective = fast_training(model, training.label_smoothing)
        updates = train_translation(
            objective, adam(model), train, training, schedule=lambda step: DEPTH_RATE
        )
        curve = [round(float(each.loss) / each.tokens, 4) for each in updates]
        loss = validation_loss(objective, valid, training)
        found = case | {
            "rate": DEPTH_RATE,
            "updates": DEPTH_UPDATES,
            "loss": round(loss, 4),
            "frequency_loss": round(frequency_loss(train, valid), 4),
            "curve": curve,
            "processor_seconds": round(time.process_time() - began),
        }
        add_run(PLACE, found)


def pair(seeds: Sequence[int]) -> None:
    """The 2017 recipe and today's, with the same batches; BLEU on the test split."""
    tokenizer, train, valid = data_of(base(1))
    sources, targets = sides("multi30k", TEST)
    for case in missing([{"recipe": name} for name in RECIPES], seeds):
        plan, began = base(case["seed"]), time.process_time()
        training = replace(plan.training, steps=PAIR_UPDATES)
        parts = RECIPES[case["recipe"]]
        model = untrained(plan, tokenizer, parts)
        objective = fast_training(model, training.label_smoothing)
        for update in train_with_parts(objective, train, training, parts):
            last = update
        loss = validation_loss(objective, valid, training)
        trained = time.process_time() - began
        search = ModelSearch(fast(model.eval()))
        translator = Translator(model, tokenizer, search)
        with warnings.catch_warnings(action="ignore"):  # of translations that don't end
            options = SearchOptions(beam_size=4, alpha=0.6)
            outputs = translator.translate(sources, options)
        found = case | {
            "parts": parts,
            "updates": last.step,
            "parameters": sum(each.numel() for each in model.parameters()),
            "forward_flops": forward_flops(model),
            "perplexity": round(math.exp(loss), 4),
            "test": TEST,
            **bleu(outputs, targets, LOWER_13A),
            "training_seconds": round(trained),
            "processor_seconds": round(time.process_time() - began),
        }
        add_run(PLACE, found)


def forward_flops(model: Transformer) -> int:
    """Operations of the matrix products for one sentence of 15 tokens on each side."""
    row = torch.full((1, 15), 5)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(row, row)
    return counter.get_total_flops()


def main(argv: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("part", choices=("parts", "depth", "today"))
    parser.add_argument("--row", nargs="+", help="of parts, these rows alone")
    parser.add_argument("--seed", nargs="+", type=int, default=SEEDS)
    asked = parser.parse_args(argv)
    torch.set_num_threads(1)
    if asked.part == "parts":
        one_part(asked.row or list(ROWS), asked.seed)
    elif asked.part == "depth":
        in_depth(asked.seed)
    else:
        pair(asked.seed)


if __name__ == "__main__":
    main()
