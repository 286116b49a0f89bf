"""Broken output of a parser: what it may have meant, as a tree over its sentence."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice

from .parsing import delinearise
from .trees import Tree


def words_for_tags(written: Sequence[str], tags: Sequence[str]) -> list[int]:
    """How many of a sentence's words each written tag takes, by difflib's alignment.

    One as a rule; none if it is one too many; more if tags before it are missing. The
    last number counts the words that are left at the end.
    """
    takes = [0] * (len(written) + 1)
    matcher = SequenceMatcher(None, written, tags, autojunk=False)
    for _, first, last, start, end in matcher.get_opcodes():
        for position in range(start, end):
            takes[min(first + position - start, max(first, last - 1))] += 1
    return takes


def repair(tokens: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Well-formed tokens over a sentence's tags, from those that a model wrote.

    Tags go to written tags as `words_for_tags` says. A closing bracket closes the
    innermost constituent of its label, and those inside it, or nothing; empty
    constituents vanish. Tags that are left join the outermost one open at the end.
    """
    repaired: list[str] = []
    opened: list[str] = []
    rest: Iterator[str] = iter(tags)
    takes = iter(words_for_tags([each for each in tokens if each[0] not in "()"], tags))

    def close(depth: int) -> None:
        while len(opened) > depth:
            label = opened.pop()
            if repaired[-1][0] == "(":
                repaired.pop()
            else:
                repaired.append(f"){label}")

    for token in tokens:
        if token.startswith("("):
            opened.append(token[1:])
            repaired.append(token)
        elif token.startswith(")"):
            fits = [depth for depth, each in enumerate(opened) if each == token[1:]]
            close(fits[-1] if fits else len(opened))
        else:
            repaired.extend(islice(rest, next(takes)))
    close(1)
    repaired.extend(rest)
    close(0)
    return repaired


def tree_of(tokens: Sequence[str], leaves: Sequence[Tree]) -> Tree:
    """The tree over a sentence's tags and words that tokens describe, repaired."""
    return delinearise(repair(tokens, [leaf.label for leaf in leaves]), leaves)
