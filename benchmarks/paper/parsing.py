"""Parse the Penn Treebank's sample with a PCFG and with the Transformer (§6.3).

    python -m benchmarks.paper.parsing [--trees 3314 1657 828] [--systems grammar]

Needs treebank/ptb-wsj-sample.mrg.gz (3,914 trees) below ANNOTATED_TRANSFORMER_DATA. By
their order, the first 3,314 trees are for training, the next 300 for validation, the
last 300 for the test. Both systems are given the tags and write brackets. For each
number of trees, the first of the training part, a grammar is counted, and a Transformer
trained, with fewer trees for as many fewer updates, until it has made its updates or
spent its minutes. The test is parsed greedily and with the paper's beam of 21, each
time freely, with a repair, and constrained to trees. What an earlier run found for
other numbers of trees stays. One thread; times are processor seconds. Writes
results/paper/parsing.json, which nbs/translation/parsing.ipynb shows.
"""

import gzip
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import torch

from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import fast
from annotated_transformer.performance.update import fast_training
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.schedule import adam, peak_factor
from annotated_transformer.training.trainer import train_translation, validation_loss
from annotated_transformer.translation.model_search import ModelSearch
from annotated_transformer.translation.parsing import (
    PCFG,
    Tree,
    TreeVocabulary,
    WellFormed,
    clean,
    from_tokens,
    is_well_formed,
    parse,
    parse_with_grammar,
    read_trees,
    score_brackets,
)
from annotated_transformer.translation.step_model import StepModel
from benchmarks.record import command_line, load, save

FILE, RECORD = "treebank/ptb-wsj-sample.mrg.gz", "paper/parsing.json"
TRAINING, VALIDATION, SEED, PEAK, WARMUP = 3_314, 300, 1, 0.003, 200
D_MODEL, BEAMS = 128, {"greedy": 1, "beam": 21}
COMMAND = "python -m benchmarks.paper.parsing"  # the parts may be made one by one


def treebank() -> list[Tree]:
    """All trees of the sample, cleaned."""
    path = Path(os.environ["ANNOTATED_TRANSFORMER_DATA"], FILE)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [tree for each in read_trees(file.read()) if (tree := clean(each))]


def by_grammar(
    trees: Sequence[Tree], test: Sequence[Tree], order: int = 1
) -> dict[str, Any]:
    """Count a grammar of some order, parse, and score.

    A sentence that it can't parse goes to a grammar without context, and if that can't
    either, gets a flat tree.
    """
    begun = time.process_time()
    grammar, plain = PCFG(trees, order), PCFG(trees, order=0)
    parsed, without = [], {"no_parse": 0, "flat": 0}
    for leaves in (tree.leaves() for tree in test):
        found = parse_with_grammar(grammar, leaves)
        if not found:
            without["no_parse"] += 1
            found = parse_with_grammar(plain, leaves)
        if not found:
            without["flat"] += 1
            found = from_tokens([], leaves)
        parsed.append(found)
    return without | {
        "symbols": len(grammar.names),
        "rules": len(grammar.rules),
        "test": asdict(score_brackets(test, parsed)),
        "seconds": round(time.process_time() - begun, 1),
    }


def trained(
    trees: Sequence[Tree], valid: Sequence[Tree], settings: TrainingConfig, limit: float
) -> tuple[Transformer, TreeVocabulary, dict[str, Any]]:
    """A Transformer trained on trees, and how."""
    vocabulary, begun, tokens = TreeVocabulary(trees), time.monotonic(), 0
    size, pairs = len(vocabulary.tokens), vocabulary.pairs(trees)
    torch.manual_seed(settings.seed)
    model = Transformer(
        TransformerConfig(
            size, size, N=2, d_model=D_MODEL, d_ff=256, h=4, d_k=32, d_v=32
        )
    )
    objective = fast_training(model, settings.label_smoothing)
    spent = time.process_time()
    for update in train_translation(objective, adam(model), pairs, settings):
        tokens += update.tokens
        if update.step % 100 == 0:
            loss = update.loss.item() / update.tokens
            print(update.step, f"{loss:.3f}", f"{time.monotonic() - begun:.0f} s")
        if time.monotonic() - begun > limit:
            break
    spent = time.process_time() - spent
    return (
        model,
        vocabulary,
        {
            "architecture": model.config.to_dict(),
            "training": settings.to_dict(),
            "parameters": sum(each.numel() for each in model.parameters()),
            "updates": update.step,
            "epochs": round(tokens / int(pairs.tgt_lengths.sum()), 2),
            "seconds": round(spent, 1),
            "validation_loss": validation_loss(
                objective, vocabulary.pairs(valid), settings
            ),
        },
    )


def by_transformer(
    model: StepModel, vocabulary: TreeVocabulary, test: Sequence[Tree], beam: int
) -> dict[str, Any]:
    """Parse with a beam, put back the words, repair, and score."""
    begun = time.process_time()
    engine = ModelSearch(model)
    sentences = [tree.leaves() for tree in test]
    written = parse(engine, vocabulary, sentences, beam)
    both = list(zip(written, sentences, strict=True))
    parsed = [from_tokens(*each) for each in both]
    return asdict(score_brackets(test, parsed)) | {
        "well_formed": 100 * sum(is_well_formed(*each) for each in both) / len(both),
        "seconds": round(time.process_time() - begun, 1),
    }


def keep(number: int, name: str, found: dict[str, Any], split: dict[str, int]) -> None:
    """Put one result into the record, beside all that is there."""
    print(number, name, found, flush=True)
    runs = load(RECORD).get("runs", {})
    runs.setdefault(str(number), {})[name] = found
    seconds = sum(each["seconds"] for run in runs.values() for each in run.values())
    about = {"command": COMMAND, "seed": SEED, "seconds": round(seconds, 1)}
    save(RECORD, about | {"split": split, "runs": runs})


def main(argv: Sequence[str] | None = None) -> None:
    """Count, train, parse, and write the record after each part."""
    parser = command_line(__doc__)
    numbers = [TRAINING, TRAINING // 2, TRAINING // 4]
    systems = ["grammar", "transformer"]
    parser.add_argument("--trees", type=int, nargs="+", default=numbers)
    parser.add_argument("--systems", nargs="+", choices=systems, default=systems)
    parser.add_argument("--steps", type=int, default=6_000, help="with all trees")
    parser.add_argument("--minutes", type=float, default=15, help="for one training")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    trees = treebank()
    valid = trees[TRAINING : TRAINING + VALIDATION]
    test = trees[TRAINING + VALIDATION :]
    split = {"train": TRAINING, "validation": len(valid), "test": len(test)}
    factor = peak_factor(PEAK, D_MODEL, WARMUP)
    for number in options.trees:
        chosen = trees[:number]
        if "grammar" in options.systems:
            keep(number, "grammar", by_grammar(chosen, test), split)
        if "transformer" in options.systems:
            limit = 60 * options.minutes
            settings = TrainingConfig(
                max(1, options.steps * number // TRAINING),
                batch_tokens=1_024,
                warmup=WARMUP,
                lr_factor=factor,
                seed=SEED,
            )
            model, vocabulary, part = trained(chosen, valid, settings, limit)
            free = fast(model.eval())
            ways = {"": free, "constrained ": WellFormed(free, vocabulary)}
            for way, name in product(ways, BEAMS):
                given = ways[way], vocabulary, test, BEAMS[name]
                part[way + name] = by_transformer(*given)
                keep(number, "transformer", part, split)


if __name__ == "__main__":
    main()
