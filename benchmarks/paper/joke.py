"""Why a grammar dresses Groucho's elephant: the rules in which two trees differ.

    python -m benchmarks.paper.joke

Counts the grammar of benchmarks.paper.parsing once more, and for both trees of "I shot
an elephant in my pajamas." lists each rule that the other tree hasn't, with how often
it and its left side were counted. Some seconds. Needs the corpora. Writes
results/paper/joke.json, for nbs/translation/parsing.ipynb.
"""

from collections import Counter
from collections.abc import Sequence

from annotated_transformer.translation.trees import read_trees
from benchmarks.paper.grammar import binary_rules
from benchmarks.paper.parsing import TRAINING, treebank
from benchmarks.record import command_line, save

READINGS = {
    "the hunter": """(S (NP (PRP I)) (VP (VBD shot) (NP (DT an) (NN elephant))
        (PP (IN in) (NP (PRP$ my) (NNS pajamas)))) (. .))""",
    "the elephant": """(S (NP (PRP I)) (VP (VBD shot) (NP (NP (DT an) (NN elephant))
        (PP (IN in) (NP (PRP$ my) (NNS pajamas))))) (. .))""",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Count, compare, and write the record."""
    command_line(__doc__).parse_args(arguments)
    counts: Counter[tuple[str, str, str]] = Counter()
    for tree in treebank()[:TRAINING]:
        counts.update(binary_rules(tree)[1])
    totals: Counter[str] = Counter()
    for rule, count in counts.items():
        totals[rule[0]] += count
    trees = {name: next(read_trees(text)) for name, text in READINGS.items()}
    rules = {name: Counter(binary_rules(tree)[1]) for name, tree in trees.items()}
    readings = {
        name: [
            {"rule": rule, "count": counts[rule], "of": totals[rule[0]]}
            for other in rules
            if other != name
            for rule in (own - rules[other]).elements()
        ]
        for name, own in rules.items()
    }
    save("paper/joke.json", {"readings": readings})


if __name__ == "__main__":
    main()
