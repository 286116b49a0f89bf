"""Sentence pairs as they lie in Python: lists, tables, data sets, functions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import UserError, check_kind
from .corpora import CorpusPairs

WANTED = (
    "(source, target) pairs of texts, in a list or a corpus; a table or data set with "
    "a column for each language; or a function that returns an iterator"
)


def as_pairs(name: str, pairs: Any, src: str, tgt: str) -> Any:
    """The pairs of a table such as pandas' DataFrame, of a Hugging Face Dataset, whose
    `translation` may hold both languages, or of a function; all else as it is.

    Raises: UserError for a missing column, or a function that can't be called again.
    """
    if hasattr(pairs, "column_names"):
        return _dataset_pairs(name, pairs, src, tgt)
    if hasattr(pairs, "columns"):
        _check_columns(name, pairs.columns, src, tgt)
        return list(zip(pairs[src], pairs[tgt], strict=True))
    if not callable(pairs):
        return pairs
    try:
        first = pairs()
    except TypeError as error:
        remedy = "give a function without arguments"
        raise UserError(f"{name} can't be called ({error}): {remedy}") from error
    check_kind(f"{name}()", first, Iterable, "a new iterator of pairs at each call")
    if isinstance(first, Iterator) and first is pairs():
        raise UserError(f"{name}() is the same iterator again: make one at each call")
    return CorpusPairs(lambda: checked(name, pairs()))


def _dataset_pairs(name: str, rows: Any, src: str, tgt: str) -> Any:
    """The pairs of a Hugging Face Dataset, read again at each iteration."""
    if (first := next(iter(rows), None)) is None:
        return []
    check_kind(f"the first row of {name}", first, Mapping, WANTED)
    inner = first.get("translation")
    nested = src not in first and isinstance(inner, Mapping)
    _check_columns(name, inner if nested else first, src, tgt)

    def pairs() -> Iterator[tuple[str, str]]:
        sides = (row["translation"] if nested else row for row in rows)
        return checked(name, ((side[src], side[tgt]) for side in sides))

    return CorpusPairs(pairs)


def _check_columns(name: str, columns: Any, src: str, tgt: str) -> None:
    for lang in (src, tgt):
        if lang not in columns:
            raise UserError(
                f"{name} has no column {lang!r}, and has {', '.join(map(str, columns))}"
                f": name two after the recipe's languages, {src!r} and {tgt!r}"
            )


def checked(name: str, pairs: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """The pairs as they come. Raises: UserError for what is no pair of texts."""
    for number, pair in enumerate(pairs):
        two = isinstance(pair, tuple | list) and len(pair) == 2
        if not two or not all(isinstance(text, str) for text in pair):
            raise UserError(f"{name}[{number}] is {pair!r:.80}: give {WANTED}")
        yield pair[0], pair[1]
