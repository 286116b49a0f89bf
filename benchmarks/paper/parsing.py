"""Parse the Penn Treebank's sample with a PCFG and with the Transformer (§6.3).

    python -m benchmarks.paper.parsing [--workers 2]
    python -m benchmarks.paper.parsing --longer 1 2 3
    python -m benchmarks.paper.parsing --shorter 1 2 3

Needs treebank/ptb-wsj-sample.mrg.gz (3,914 trees) below ANNOTATED_TRANSFORMER_DATA. By
their order, the first 3,314 trees are for training, the next 300 for validation, the
last 300 for the test. All parsers are given the tags and write brackets.

A grammar's order is chosen on the validation part. The Transformer has two sides: the
training trees `as they are`, and `exchanged`: beside each tree nine copies, in which
every tenth constituent gives way to another one of the training trees with the same
label below the same label; copies of more than sixty words are left out. Rates are
tuned as benchmarks/after/studies.py says, by runs of a third of the updates; each of
three seeds parses the test part greedily and with the paper's beam, constrained to
trees or free and repaired. With --longer the second side makes three times the updates,
from these seeds; with --shorter a tenth, and a third. Sentences of our own, tagged by
hand, are parsed by the grammar, and greedily by the shorter runs. Each worker has one
thread; times are processor seconds. Adds a line for each run to
results/paper/parsing.jsonl, which nbs/translation/parsing.ipynb shows. Takes two hours
of one core, with --longer half an hour more for each seed, with --shorter ten minutes.
"""

import gzip
import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import torch

from annotated_transformer.decoding.model_search import ModelSearch
from annotated_transformer.decoding.step_model import StepModel
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import fast
from annotated_transformer.performance.update import fast_training
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.schedule import adam, peak_factor
from annotated_transformer.training.sentence_pairs import validation_loss
from annotated_transformer.translation.parsing import (
    TreeVocabulary,
    linearise,
    parse,
    score_brackets,
)
from annotated_transformer.translation.repair import tree_of
from annotated_transformer.translation.trees import Tree, read_trees
from benchmarks.after.studies import TUNING_SEED, Case, Study, run_missing
from benchmarks.paper.constrained import WellFormed
from benchmarks.paper.grammar import PCFG, parse_with_grammar
from benchmarks.record import add_run, command_line, read_runs
from benchmarks.train import train_translation

FILE, PLACE = "treebank/ptb-wsj-sample.mrg.gz", "paper/parsing.jsonl"
TRAINING, VALIDATION, WARMUP, D_MODEL = 3_314, 300, 200, 128
UPDATES, OF_TRIALS, RATES = 9_000, 3_000, (1.5e-3, 3e-3, 6e-3)
OTHER_UPDATES = {"longer": (3 * UPDATES,), "shorter": (UPDATES // 10, OF_TRIALS)}
ORDERS = (0, 1, 2)  # of the grammar
COPIES, SHARE, LONGEST = 9, 0.1, 60
SIDES: dict[str, tuple[str, ...]] = {"as they are": (), "exchanged": ("exchanged",)}
STUDIES = {"parsing": Study(SIDES, RATES, UPDATES)}
BEAMS = {"greedy": 1, "beam": 21}
OWN = {
    "the twenty-first of March": "DT JJ IN NNP",
    "I shot an elephant in my pajamas.": "PRP VBD DT NN IN PRP$ NNS .",
    "I see the girl with a telescope.": "PRP VBP DT NN IN DT NN .",
    "The horse raced past the barn fell.": "DT NN VBN IN DT NN VBD .",
    "Time flies like an arrow.": "NN VBZ IN DT NN .",
}
Phrases = dict[tuple[str, str], list[Tree]]


def clean(tree: Tree) -> Tree | None:
    """Without functional tags, traces, and constituents that are then empty.

    None if nothing is left.
    """
    if tree.word:
        return None if tree.label == "-NONE-" else tree
    children = tuple(kept for child in tree.children if (kept := clean(child)))
    return Tree(re.split(r"[-=|]", tree.label)[0], children) if children else None


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
            found = tree_of([], leaves)
        parsed.append(found)
    return without | {
        "symbols": len(grammar.names),
        "rules": len(grammar.rules),
        "test": asdict(score_brackets(test, parsed)),
        "seconds": round(time.process_time() - begun, 1),
    }


def trained(
    trees: Sequence[Tree], valid: Sequence[Tree], settings: TrainingConfig
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


def is_well_formed(tokens: Sequence[str], leaves: Sequence[Tree]) -> bool:
    """Whether tokens are a tree over this sentence, with nothing to repair."""
    return linearise(tree_of(tokens, leaves)) == list(tokens)


def by_transformer(
    model: StepModel, vocabulary: TreeVocabulary, test: Sequence[Tree], beam: int
) -> dict[str, Any]:
    """Parse with a beam, put back the words, repair, and score."""
    begun = time.process_time()
    engine = ModelSearch(model)
    sentences = [tree.leaves() for tree in test]
    written = parse(engine, vocabulary, sentences, beam)
    both = list(zip(written, sentences, strict=True))
    parsed = [tree_of(*each) for each in both]
    return asdict(score_brackets(test, parsed)) | {
        "well_formed": 100 * sum(is_well_formed(*each) for each in both) / len(both),
        "seconds": round(time.process_time() - begun, 1),
    }


def own_leaves() -> list[list[Tree]]:
    """The tags of our own sentences."""
    return [[Tree(tag, word=tag) for tag in tags.split()] for tags in OWN.values()]


def phrases_of(trees: Sequence[Tree]) -> Phrases:
    """All constituents of some trees, by their label and the one above."""
    found: Phrases = defaultdict(list)

    def gather(tree: Tree) -> None:
        for child in tree.children:
            if not child.word:
                found[child.label, tree.label].append(child)
                gather(child)

    for tree in trees:
        gather(tree)
    return found


def exchanged(
    tree: Tree, phrases: Phrases, rng: random.Random, above: str = ""
) -> Tree:
    """A tree in which some constituents have given way to others of their kind."""
    kind = tree.label, above
    if kind in phrases and rng.random() < SHARE:
        return rng.choice(phrases[kind])
    children = tuple(
        exchanged(child, phrases, rng, tree.label) for child in tree.children
    )
    return Tree(tree.label, children, tree.word)


def with_copies(trees: Sequence[Tree], seed: int) -> list[Tree]:
    """Trees, and copies of each with phrases exchanged, if they aren't too long."""
    phrases, rng = phrases_of(trees), random.Random(seed)
    copies = [exchanged(tree, phrases, rng) for tree in trees for _ in range(COPIES)]
    return [*trees, *(copy for copy in copies if len(copy.leaves()) <= LONGEST)]


def run(case: Case, updates: int = UPDATES) -> Case:
    """Train one side at one rate from one seed; all but a trial parse the test."""
    trial, trees = case["seed"] == TUNING_SEED, treebank()
    valid, test = trees[TRAINING:][:VALIDATION], trees[TRAINING + VALIDATION :]
    trees = trees[:TRAINING]
    if SIDES[case["side"]]:
        trees = with_copies(trees, case["seed"])
    settings = TrainingConfig(
        OF_TRIALS if trial else updates,
        batch_tokens=1_024,
        warmup=WARMUP,
        lr_factor=peak_factor(case["rate"], D_MODEL, WARMUP),
        seed=case["seed"],
    )
    model, vocabulary, found = trained(trees, valid, settings)
    ways: dict[str, Any] = {
        "repaired": fast(model.eval()),
        "constrained": WellFormed(fast(model.eval()), vocabulary),
    }
    for way in () if trial else ways:
        for name, beam in BEAMS.items():
            parsed = by_transformer(ways[way], vocabulary, test, beam)
            found[f"{way}, {name}"] = parsed
            found[f"f1, {way}, {name}"] = parsed["f1"]
    if not trial:
        own = parse(ModelSearch(ways["repaired"]), vocabulary, own_leaves(), 1)
        found["own"] = dict(zip(OWN, map(" ".join, own), strict=True))
    return found | {"trees": len(trees)}


def count_grammars() -> None:
    """A grammar of each order on the validation part, and the best on the test part.

    Beside it the trivial parser, which makes each sentence one S.
    """
    if any(each["study"] == "grammar" for each in read_runs(PLACE)):
        return
    trees = treebank()
    train, valid = trees[:TRAINING], trees[TRAINING:][:VALIDATION]
    tried = {order: by_grammar(train, valid, order) for order in ORDERS}
    best = max(ORDERS, key=lambda order: tried[order]["test"]["f1"])
    test = trees[TRAINING + VALIDATION :]
    flat = [tree_of(["(S"], tree.leaves()) for tree in test]
    found = by_grammar(train, test, best) | {"trivial": score_brackets(test, flat).f1}
    validated = {str(order): each["test"]["f1"] for order, each in tried.items()}
    about = {"study": "grammar", "side": "grammar", "order": best, "tried": validated}
    add_run(PLACE, about | found)


def parse_own() -> None:
    """What the grammar makes of our own sentences."""
    if any(each["study"] == "own" for each in read_runs(PLACE)):
        return
    grammar, found = PCFG(treebank()[:TRAINING]), {}
    for text, leaves in zip(OWN, own_leaves(), strict=True):
        tree = parse_with_grammar(grammar, leaves)
        found[text] = " ".join(linearise(tree)) if tree else None
    add_run(PLACE, {"study": "own", "side": "grammar", "own": found})


def run_others(study: str, seeds: Sequence[int]) -> None:
    """Runs of the exchanged trees with more or fewer updates, at the rate that won."""
    torch.set_num_threads(1)
    runs = [each for each in read_runs(PLACE) if each["side"] == "exchanged"]
    (rate,) = {each["rate"] for each in runs if each["seed"] != TUNING_SEED}
    there = {(each["updates"], each["seed"]) for each in runs if each["study"] == study}
    for updates, seed in product(OTHER_UPDATES[study], seeds):
        if (updates, seed) not in there:
            case = {"study": study, "side": "exchanged", "rate": rate, "seed": seed}
            add_run(PLACE, case | run(case, updates))


def main(argv: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    for study in OTHER_UPDATES:
        parser.add_argument(f"--{study}", type=int, nargs="+", metavar="SEED")
    asked = vars(parser.parse_args(argv))
    others = {study: asked[study] for study in OTHER_UPDATES if asked[study]}
    for study, seeds in others.items():
        run_others(study, seeds)
    if not others:
        count_grammars()
        parse_own()
        run_missing(PLACE, STUDIES, run, asked["workers"])


if __name__ == "__main__":
    main()
