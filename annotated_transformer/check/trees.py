"""The check of a tree's row of tokens, §6.3."""

from collections.abc import Callable
from typing import Any

from ..translation.parsing import linearise as right_row
from ..translation.trees import Tree, read_trees
from .assertions import Wrong, reason, require
from .parts import Part, check_of, described

TREES = """
(NP (DT the) (JJ red) (NN cat))
(VP (VBZ sleeps))
(NP (NP (DT the) (JJ twenty-first)) (PP (IN of) (NP (NNP March))))
(TOP (S (NP (PRP She)) (VP (VBZ drinks) (NP (JJ cold) (NN tea))) (. .)))
"""


@check_of("linearise")
def linearise(part: Part) -> str:
    """`linearise(tree)`: a list of tokens.

    tree has a label; a tag also has a word, a constituent children instead. A tag gives
    its label, a constituent "(LABEL", its children's tokens and ")LABEL". TOP, the
    bracket around everything, gives its children's tokens alone.
    """
    for tree in read_trees(TREES):
        found = part(tree)
        if odd := _odd(found):
            raise Wrong(
                "linearise should return a list of strings, such as "
                f"['(NP', 'DT', ')NP'], and returns {odd}."
            )
        wanted = right_row(tree)
        mistakes = {text: _row(tree, **other) for text, other in MISTAKES.items()}
        require(
            found == wanted,
            f"Of {tree} the row should be “{' '.join(wanted)}” and is "
            f"“{' '.join(found)}”{reason(found, mistakes)}.",
        )
    return "brackets and tags in the order of the words, no words, no TOP"


def _odd(found: Any) -> str:
    """What was returned instead of a list of strings, if it is none."""
    if not isinstance(found, list):
        return described(found)
    for each in found:
        if isinstance(each, list):
            return "a list that holds list: join the children's lists"
        if not isinstance(each, str):
            return f"a list that holds {described(each)}"
    return ""


def _row(
    tree: Tree,
    tag: Callable[[Tree], list[str]] = lambda leaf: [leaf.label],
    opening: Callable[[str], list[str]] = lambda label: [f"({label}"],
    closing: Callable[[str], list[str]] = lambda label: [f"){label}"],
    without: Callable[[Tree], bool] = lambda tree: tree.label == "TOP",
    children: Callable[[Tree], tuple[Tree, ...]] = lambda tree: tree.children,
) -> list[str]:
    """The row of a tree, with some part of it done in another way."""
    if tree.word:
        return tag(tree)
    inside = [
        token
        for child in children(tree)
        for token in _row(child, tag, opening, closing, without, children)
    ]
    if without(tree):
        return inside
    return [*opening(tree.label), *inside, *closing(tree.label)]


# What is said of each usual mistake, and what `_row` does otherwise to make it.
MISTAKES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "leave out the bracket of TOP, not what is inside": {
        "children": lambda tree: tree.children if tree.label != "TOP" else ()
    },
    "it holds the words; the parser reads and writes tags alone": {
        "tag": lambda leaf: [leaf.word]
    },
    "tag and word both stand in it; the word is put back by counting": {
        "tag": lambda leaf: [leaf.label, leaf.word]
    },
    "tags have brackets, too; a tag is one token, its label": {
        "tag": lambda leaf: [f"({leaf.label}", f"){leaf.label}"]
    },
    "a tag has an opening bracket, too; it is its label alone": {
        "tag": lambda leaf: [f"({leaf.label}"]
    },
    "a label fell into its letters; * spreads a string, so put it into a list": {
        "tag": lambda leaf: [*leaf.label]
    },
    "nothing is closed; each constituent ends with “)” and its label": {
        "closing": lambda label: []
    },
    "a closing bracket lacks its label": {"closing": lambda label: [")"]},
    "closing brackets are written as opening ones": {
        "closing": lambda label: [f"({label}"]
    },
    "bracket and label are two tokens; they are one, such as “(NP”": {
        "opening": lambda label: ["(", label],
        "closing": lambda label: [")", label],
    },
    "TOP stands in it; leave out its bracket, not what is inside": {
        "without": lambda tree: False
    },
    "constituents over a single child are left out; only TOP is": {
        "without": lambda tree: tree.label == "TOP" or len(tree.children) == 1
    },
    "only the first child of each constituent is in it": {
        "children": lambda tree: tree.children[:1]
    },
    "the last child of each constituent is missing": {
        "children": lambda tree: tree.children[:-1]
    },
    "the children stand in it from right to left": {
        "children": lambda tree: tree.children[::-1]
    },
    "what is inside constituents is missing": {
        "children": lambda tree: tuple(Tree(c.label, word="…") for c in tree.children)
    },
}
