"""Train parsers on the treebank's sample under the gate, and parse in two ways.

    python -m benchmarks.paper.parsing_study [--workers 2]
    python -m benchmarks.paper.parsing_study --longer 1 2 3

Two sides: the training trees `as they are`, and `exchanged`: beside each tree nine
copies, in which every tenth constituent gives way to another one of the training trees
with the same label below the same label. That teaches what a context-free grammar
assumes. A grammar stands beside them, its order chosen on the validation part among as
many. Rates are tuned as benchmarks/after/studies.py says, by runs of a third of the
updates; each of three seeds parses the test part greedily and with the paper's beam,
constrained to trees or free and repaired. With --longer the second side makes three
times the updates, from these seeds. Trees, split, sizes and batches are those of
benchmarks/paper/parsing.py. Each worker has one thread. Adds a line for each run to
results/paper/parsing.jsonl, which nbs/translation/parsing.ipynb shows. Takes two hours
of one core, and with --longer half an hour more for each seed.
"""

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch

from annotated_transformer.performance.decoding import fast
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.schedule import peak_factor
from annotated_transformer.translation.parsing import (
    Tree,
    WellFormed,
    from_tokens,
    score_brackets,
)
from benchmarks.after.studies import TUNING_SEED, Case, Study, run_missing
from benchmarks.paper.parsing import (
    D_MODEL,
    TRAINING,
    VALIDATION,
    WARMUP,
    by_grammar,
    by_transformer,
    trained,
    treebank,
)
from benchmarks.record import add_run, command_line, read_runs

PLACE = "paper/parsing.jsonl"
UPDATES, OF_TRIALS, RATES = 9_000, 3_000, (1.5e-3, 3e-3, 6e-3)
ORDERS = (0, 1, 2)  # of the grammar
COPIES, SHARE, LONGEST = 9, 0.1, 60
LONGER = 3 * UPDATES
SIDES: dict[str, tuple[str, ...]] = {"as they are": (), "exchanged": ("exchanged",)}
STUDIES = {"parsing": Study(SIDES, RATES, UPDATES)}
BEAMS = {"greedy": 1, "beam": 21}
Phrases = dict[tuple[str, str], list[Tree]]


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
    model, vocabulary, found = trained(trees, valid, settings, math.inf)
    ways: dict[str, Any] = {
        "repaired": fast(model.eval()),
        "constrained": WellFormed(fast(model.eval()), vocabulary),
    }
    for way in () if trial else ways:
        for name, beam in BEAMS.items():
            parsed = by_transformer(ways[way], vocabulary, test, beam)
            found[f"{way}, {name}"] = parsed
            found[f"f1, {way}, {name}"] = parsed["f1"]
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
    flat = [from_tokens(["(S"], tree.leaves()) for tree in test]
    found = by_grammar(train, test, best) | {"trivial": score_brackets(test, flat).f1}
    validated = {str(order): each["test"]["f1"] for order, each in tried.items()}
    about = {"study": "grammar", "side": "grammar", "order": best, "tried": validated}
    add_run(PLACE, about | found)


def run_longer(seeds: Sequence[int]) -> None:
    """Runs of the exchanged trees with more updates, at the rate that won."""
    torch.set_num_threads(1)
    runs = [each for each in read_runs(PLACE) if each["side"] == "exchanged"]
    (rate,) = {each["rate"] for each in runs if each["seed"] != TUNING_SEED}
    there = {each["seed"] for each in runs if each["study"] == "longer"}
    for seed in (seed for seed in seeds if seed not in there):
        case = {"study": "longer", "side": "exchanged", "rate": rate, "seed": seed}
        add_run(PLACE, case | run(case, LONGER))


def main(argv: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--longer", type=int, nargs="+", metavar="SEED", default=[])
    asked = parser.parse_args(argv)
    if asked.longer:
        run_longer(asked.longer)
    else:
        count_grammars()
        run_missing(PLACE, STUDIES, run, asked.workers)


if __name__ == "__main__":
    main()
