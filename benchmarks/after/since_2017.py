"""Exchange one part of the Transformer for a later one at a time, and measure it.

    python -m benchmarks.after.since_2017 [--workers 2] [--study parts today lengths]

Studies, each on Multi30k with the base row of Table 3 in small
(`python -m benchmarks.paper.table3`):

- `parts`: 500 updates with one part exchanged.
- `today`: 1,000 updates as in 2017, and with today's parts on the same batches; both
  translate the test split.
- `lengths`: 500 updates on pairs of at most 16 tokens, with three ways to tell
  positions; the loss is measured on longer sentences, too.
- `depth 2`, `depth 12`: 200 updates of deeper stacks at a constant rate, with the norm
  after the sum and with the norm in the branch.
- `warm-up 12`: 400 updates of twelve layers, with both norms, at a constant rate and
  with the paper's schedule, whose rate rises for half of them.

Rates are tuned as benchmarks/after/studies.py says; then each side is measured on the
test split. Each worker has one thread. Adds a line for each run to
results/after/since_2017.jsonl, which nbs/after/parts.ipynb and long_texts.ipynb show.
Multi30k is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from annotated_transformer.after.parts_by_name import Since2017Config, assemble
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.decoding.model_search import ModelSearch
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import fast
from annotated_transformer.performance.update import fast_training
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.recipes import Recipe
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.sentence_pairs import (
    paper_schedule,
    validation_loss,
)
from annotated_transformer.training.update import seed_update
from annotated_transformer.translation.prepared_data import prepare_data
from annotated_transformer.translation.table3 import scaled_down_recipe, variation
from annotated_transformer.translation.translator import Translator
from benchmarks.after.decay import decaying_adam, falling_cosine
from benchmarks.after.studies import TUNING_SEED, Case, Study, run_missing
from benchmarks.measure import LOWER_13A, bleu, sides
from benchmarks.record import command_line
from benchmarks.train import train_translation

PLACE = "after/since_2017.jsonl"
DATA = Path("runs/since_2017/data")
TEST, SPLITS = "test_2016_flickr", ("train", "val")
DIVERGED = 20.0  # nats; what a loss counts that is larger, or no number


@dataclass(frozen=True)
class PartsStudy(Study):
    """Sides that differ by their parts."""

    layers: int | None = None  # on each side; base's number without it
    longest: int | None = None  # tokens of a sentence that is trained on


TRAINING_PARTS = ("weight-decay", "cosine", "constant rate")
RATES, CONSTANT_RATES = (0.002, 0.006, 0.018), (0.0009, 0.0027, 0.0081)
NAMES = ("pre-norm", "rms-norm", "gelu", "swiglu", "rotary", "alibi")
NAMES += ("grouped-queries", "qk-norm", "no-biases", "weight-decay", "cosine")
PARTS = {"base": (), **{name: (name,) for name in NAMES}}
RECIPES = {"2017": (), "today": ("pre-norm", "swiglu", "rotary", "weight-decay")}
POSITIONS = {"sinusoidal": (), "rotary": ("rotary",), "alibi": ("alibi",)}
NORMS = {"post-norm": (), "pre-norm": ("pre-norm",)}
CONSTANT = {norm: (*parts, "constant rate") for norm, parts in NORMS.items()}
WARMED_UP = {f"{norm}, warm-up": parts for norm, parts in NORMS.items()}
SHORT = 16
BANDS = ((1, SHORT), (17, 20), (21, 24), (25, 28), (29, 99))
STUDIES = {
    "parts": PartsStudy(PARTS, RATES, 500),
    "today": PartsStudy(RECIPES, RATES, 1_000, (1, 2, 3, 4, 5)),
    "lengths": PartsStudy(POSITIONS, RATES, 500, longest=SHORT),
    **{
        f"depth {N}": PartsStudy(CONSTANT, CONSTANT_RATES, 200, layers=N)
        for N in (2, 12)
    },
    "warm-up 12": PartsStudy(CONSTANT | WARMED_UP, CONSTANT_RATES, 400, layers=12),
}


# -- one run ---------------------------------------------------------------------------


def base(seed: int) -> Recipe:
    """Table 3's base row in small."""
    return scaled_down_recipe(variation("base"), seed)


@cache
def data_of(plan: Recipe) -> tuple[PairTokenizer, TokenizedPairs, TokenizedPairs]:
    """The vocabulary and the pairs, made once."""
    train, valid = (load_corpus("multi30k", split, "en", "de") for split in SPLITS)
    return prepare_data(plan, DATA, train, valid)[:3]


def of_lengths(pairs: TokenizedPairs, lowest: int, highest: int) -> TokenizedPairs:
    """The pairs whose longer side has so many tokens."""
    longer = np.maximum(pairs.src_lengths, pairs.tgt_lengths)
    kept = np.flatnonzero((lowest <= longer) & (longer <= highest))
    found: list[np.ndarray] = []
    for rows in zip(*(pairs[i] for i in kept), strict=True):
        found += [np.concatenate(rows), np.cumsum([0, *map(len, rows)])]
    return TokenizedPairs(*found)


def untrained(plan: Recipe, tokenizer: PairTokenizer, parts: Sequence[str]) -> Any:
    """The plan's model with these parts, from the plan's seed."""
    sizes = {
        "src_vocab_size": tokenizer.src_vocab_size,
        "tgt_vocab_size": tokenizer.tgt_vocab_size,
    }
    seed_update(plan.training.seed, 0)
    inside = [name for name in parts if name not in TRAINING_PARTS]
    if not inside:
        return Transformer(replace(plan.architecture, **sizes))
    plain = plan.architecture.to_dict()
    return assemble(Since2017Config.from_dict(plain | sizes | {"parts": inside}))


def schedule_of(
    case: Case, training: TrainingConfig, d_model: int
) -> Callable[[int], float]:
    """The rate of each update: constant, the paper's, or one that falls to nothing."""
    parts = STUDIES[case["study"]].sides[case["side"]]
    if "constant rate" in parts:
        return lambda step: case["rate"]
    falling = "cosine" in parts
    return (falling_cosine if falling else paper_schedule)(training, d_model)


def run(case: Case) -> Case:
    """Train one side of a study at one rate from one seed, and measure it."""
    study, began = STUDIES[case["study"]], time.process_time()
    plan, parts = base(case["seed"]), study.sides[case["side"]]
    settings = {"steps": study.updates, "peak": case["rate"], "lr_factor": 1.0}
    training = replace(plan.training, **settings)
    layers = study.layers or plan.architecture.N
    plan = replace(plan, architecture=replace(plan.architecture, N=layers))
    tokenizer, train, valid = data_of(base(1))
    if study.longest:
        train, valid = (of_lengths(each, 1, study.longest) for each in (train, valid))
    model = untrained(plan, tokenizer, parts)
    objective = fast_training(model, training.label_smoothing)
    optimizer = decaying_adam(model) if "weight-decay" in parts else adam(model)
    schedule = schedule_of(case, training, model.config.d_model)
    how = objective, optimizer, train, training
    *_, last = train_translation(*how, schedule=schedule)
    found = {
        "parts": parts,
        "updates": last.step,
        "parameters": sum(each.numel() for each in model.parameters()),
        "training_seconds": round(time.process_time() - began),
        "validation_loss": finite(validation_loss(objective, valid, training)),
    }
    if case["seed"] != TUNING_SEED:
        test = TokenizedPairs.build(
            load_corpus("multi30k", TEST, "en", "de"), tokenizer
        )
        found |= {"test": TEST, **tested(objective, test, plan)}
        if study.layers:
            found["frequency_loss"] = frequency_loss(train, test)
        if case["study"] == "today":
            found |= {"forward_flops": forward_flops(model)}
            found |= translated(model, tokenizer)
    return found | {"processor_seconds": round(time.process_time() - began)}


def finite(loss: float) -> float:
    """A loss in nats, with a large one for what has diverged."""
    return round(loss, 5) if loss < DIVERGED else DIVERGED


def tested(objective: nn.Module, test: TokenizedPairs, plan: Recipe) -> Case:
    """The loss on the test split, and by the length of its sentences."""
    bands = {f"{low}-{high}": of_lengths(test, low, high) for low, high in BANDS}
    losses = {
        name: validation_loss(objective, pairs, plan.training)
        for name, pairs in {"": test, **bands}.items()
    }
    return {
        "test_loss": finite(losses.pop("")),
        "test_tokens": {name: len(each.tgt_tokens) for name, each in bands.items()},
        "test_losses": {name: finite(loss) for name, loss in losses.items()},
    }


def frequency_loss(train: TokenizedPairs, test: TokenizedPairs) -> float:
    """Of a model that knows how often each token occurs and nothing else, in nats."""
    counts = np.bincount(train.tgt_tokens).astype(float) + 1
    return round(float(-np.log(counts / counts.sum())[test.tgt_tokens].mean()), 5)


def translated(model: Transformer, tokenizer: PairTokenizer) -> Case:
    """BLEU on the test split."""
    sources, targets = sides("multi30k", TEST)
    translator = Translator(model, tokenizer, ModelSearch(fast(model.eval())))
    with warnings.catch_warnings(action="ignore"):  # of translations that don't end
        options = SearchOptions(beam_size=4, alpha=0.6)
        outputs = translator.translate(sources, options)
    return bleu(outputs, targets, LOWER_13A)


def forward_flops(model: Transformer) -> int:
    """Operations of the matrix products for one sentence of 15 tokens on each side."""
    row = torch.full((1, 15), 5)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(row, row)
    return counter.get_total_flops()


def main(argv: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("--study", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args(argv)
    data_of(base(1))  # made once, before anybody reads it
    studies = {name: STUDIES[name] for name in asked.study}
    run_missing(PLACE, studies, run, asked.workers)


if __name__ == "__main__":
    main()
