"""Trees of grammar, and the bracketed files of the Penn Treebank that hold them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import UserError


@dataclass(frozen=True)
class Tree:
    """A constituent with children, or a tag over one word."""

    label: str
    children: tuple["Tree", ...] = ()
    word: str = ""

    def __str__(self) -> str:
        inside = self.word or " ".join(map(str, self.children))
        return f"({self.label} {inside})"

    def leaves(self) -> list["Tree"]:
        """The tags over their words, from left to right."""
        if self.word:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves()]


def read_trees(text: str) -> Iterator[Tree]:
    """Trees in the brackets of the Penn Treebank; a bracket without label is TOP.

    Raises: UserError naming the tree whose brackets don't fit.
    """
    opened: list[tuple[str, list[Tree], list[str]]] = []
    count = 1
    for piece in re.findall(r"\(\s*[^\s()]*|\)|[^\s()]+", text):
        if piece[0] == "(":
            opened.append((piece[1:].strip() or "TOP", [], []))
            continue
        if not opened:
            raise UserError(f"tree {count}: {piece!r} has no open bracket before it")
        if piece != ")":
            opened[-1][2].append(piece)
            continue
        label, children, words = opened.pop()
        if len(words) > 1 or (words and children):
            raise UserError(f"tree {count}: {words[0]!r} needs a bracket of its own")
        tree = Tree(label, tuple(children), "".join(words))
        if opened:
            opened[-1][1].append(tree)
        else:
            yield tree
            count += 1
    if opened:
        raise UserError(f"tree {count}: {len(opened)} brackets are never closed")
