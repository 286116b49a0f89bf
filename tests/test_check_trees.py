"""The check of a tree's row: right ways pass, each mistake gets its reason."""

import pytest

from annotated_transformer import check
from annotated_transformer.translation import parsing

PLAIN = """
def linearise(tree):
    if tree.word:
        return [tree.label]
    inside = [token for child in tree.children for token in linearise(child)]
    if tree.label == "TOP":
        return inside
    return ["(" + tree.label, *inside, ")" + tree.label]
"""
STACK = """
def linearise(tree):
    row, waiting = [], [tree]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            row.append(each)
        elif each.word:
            row.append(each.label)
        else:
            top = each.label == "TOP"
            row += [] if top else ["(" + each.label]
            waiting += [] if top else [")" + each.label]
            waiting += reversed(each.children)
    return row
"""
TAG = "[tree.label]"
MISTAKES = [
    (TAG, "[tree.word]", "it holds the words"),
    (TAG, "[tree.label, tree.word]", "tag and word both stand in it"),
    (TAG, "['(' + tree.label, ')' + tree.label]", "tags have brackets, too"),
    (TAG, "['(' + tree.label]", "a tag has an opening bracket"),
    (TAG, "tree.label", "fell into its letters"),
    (', ")" + tree.label]', "]", "nothing is closed"),
    ('")" + tree.label', '")"', "lacks its label"),
    ('["(" + tree.label, ', '["(", tree.label, ', "“( NP DT JJ NN )NP”"),
    ('")" + tree.label', '"(" + tree.label', "written as opening ones"),
    ('"TOP"', '"S"', "should be “(S"),
    ('"TOP"', '"ROOT"', "TOP stands in it"),
    ("return inside", "return []", "the bracket of TOP, not what"),
    ('tree.label == "TOP"', "len(inside) == 1", "over a single child"),
    ("in tree.children", "in tree.children[:1]", "only the first child"),
    ("in tree.children", "in tree.children[:-1]", "the last child"),
    ("in tree.children", "in tree.children[::-1]", "from right to left"),
    ("linearise(child)]", "[child.label]]", "inside constituents is missing"),
    ("[token for", "[[token] for", "join the children's lists"),
    ("*inside", "*tree.inside", "raised AttributeError"),
    ('    return ["(', '    ["(', "`return` missing"),
]


def verdict(source, old="", new=""):
    """What the check says when a piece of a solution is another."""
    assert old in source
    names = {}
    exec(source.replace(old, new, 1), names)
    return check.linearise(names["linearise"])


@pytest.mark.parametrize("source", [PLAIN, STACK])
def test_right_ways_pass(source):
    found = verdict(source)
    assert found and "is right: " in str(found), found
    assert check.linearise(parsing.linearise)


@pytest.mark.parametrize("old, new, sentence", MISTAKES)
def test_each_mistake_gets_its_reason(old, new, sentence):
    found = verdict(PLAIN, old, new)
    assert not found and sentence in found.sentence


def test_two_tokens_for_a_bracket_are_named():
    both = PLAIN.replace('"(" + tree.label', '"(", tree.label')
    found = verdict(both, '")" + tree.label', '")", tree.label')
    assert "bracket and label are two tokens" in found.sentence
