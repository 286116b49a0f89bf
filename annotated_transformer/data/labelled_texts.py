"""Texts with a class each: IMDb's reviews, or a file of your own."""

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError, nearest
from .published_files import data_files, find_file
from .text_files import read_lines


@dataclass(frozen=True)
class Examples:
    """Texts and, for each, the number of its class."""

    texts: list[str]
    labels: list[int]

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, rows: Iterable[int]) -> "Examples":
        """Some of them, in this order."""
        pairs = [(self.texts[i], self.labels[i]) for i in rows]
        return Examples([text for text, _ in pairs], [label for _, label in pairs])

    def divide(self, share: float = 0.1) -> "tuple[Examples, Examples]":
        """(training, validation): a hash of each text decides, so equal texts stay
        together.
        """
        digests = [hashlib.sha256(text.encode()).digest() for text in self.texts]
        held = [int.from_bytes(d[:4], "big") < share * 2**32 for d in digests]
        train = self.part(i for i, out in enumerate(held) if not out)
        return train, self.part(i for i, out in enumerate(held) if out)


def imdb(split: str, root: str | Path | None = None) -> tuple[Examples, list[int]]:
    """IMDb's 25,000 reviews of a split, and each one's stars; class 1 is positive.

    The line breaks of HTML become spaces. Raises: UserError as `find_file`.
    """
    texts, labels, stars = [], [], []
    for label, side in enumerate(("neg", "pos")):
        file = data_files()[f"imdb/{split}.{side}.tsv"]
        for line in read_lines(find_file(file, root)):
            _, rating, text = line.split("\t", 2)
            texts.append(text.replace("<br />", " "))
            labels.append(label)
            stars.append(int(rating))
    return Examples(texts, labels), stars


def read_examples(
    path: str | Path, classes: Sequence[str] | None = None
) -> tuple[Examples, tuple[str, ...]]:
    """Examples of your own, one a line, CLASS<TAB>TEXT, and the names of the classes.

    Raises: UserError for a line without a class or a text, a class that isn't one of
    `classes`, a single class, or as `read_lines`.
    """
    texts, names = [], []
    for number, line in enumerate(read_lines(path), start=1):
        name, _, text = line.partition("\t")
        if not name.strip() or not text.strip():
            raise UserError(
                f"{path}, line {number}: write the class, a tab, and the text"
            )
        if classes and name not in classes:
            raise UserError(f"{path}, line {number}: {nearest(name, classes)}")
        texts.append(text)
        names.append(name)
    known = tuple(classes or sorted(set(names)))
    if len(known) < 2:
        raise UserError(f"{path} has one class, {known[0]!r}: a choice needs two")
    return Examples(texts, [known.index(name) for name in names]), known


def draw_examples(examples: Examples, count: int, seed: int) -> Examples:
    """So many of the examples by chance; of one seed, a few are among the many.

    Raises: UserError for a count out of range.
    """
    if not 1 <= count <= len(examples):
        raise UserError(
            f"{count} labelled texts are asked for, of {len(examples)}: ask for 1 to "
            f"{len(examples)}"
        )
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)
    return examples.part(order[:count])


def check_classes(classes: Sequence[str]) -> None:
    """Raises: UserError unless these are the names of two classes or more."""
    texts = all(isinstance(name, str) and name for name in classes)
    if len(set(classes)) < max(2, len(classes)) or not texts:
        raise UserError(
            f"classes is {classes!r}: name at least two, each once, in words"
        )
