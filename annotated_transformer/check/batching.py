"""The check of `collate`: sentences of any lengths as three matrices, §3.1 and §5.1."""

import copy
from typing import Any

import torch
from torch import Tensor

from ..model.config import BOS, EOS, PAD
from .verdict import Part, call, check_of, described, require

Rows = list[list[int]]
NAMES = ("src", "tgt_in", "tgt_out")


@check_of("collate")
def collate(part: Part) -> str:
    """`collate(pairs)`: the matrices src, tgt_in and tgt_out, (batch, width) each.

    pairs is a list of (source ids, target ids), each a list that ends in the end token
    2, without a begin token. Shorter rows are filled up with 0 on the right; tgt_in is
    the target behind the begin token 1, without its end token.
    """
    pairs = [([5, 6, 7, EOS], [8, 9, EOS]), ([6, EOS], [9, 8, 7, 5, EOS])]
    for some in (pairs, pairs[::-1], pairs[:1], [([9, EOS], [EOS]), *pairs]):
        given = copy.deepcopy(some)
        found = call("collate", part, given)
        require(
            given == some,
            "collate changes the lists that it is given, and the next epoch reads them "
            "again: make new lists, `[1, *row[:-1]]`.",
        )
        src, tgt_in, tgt_out = _matrices(found)
        _filled(src, [source for source, _ in some], "src", some)
        _filled(tgt_out, [target for _, target in some], "tgt_out", some)
        _shifted(tgt_in, [target for _, target in some], some)
    return "padded on the right, and the decoder reads one position behind"


def _matrices(found: Any) -> list[Tensor]:
    """The three that it returned. Raises: Wrong for anything else."""
    count = f"{len(found)} things" if isinstance(found, tuple | list) else ""
    require(
        isinstance(found, tuple | list) and len(found) == 3,
        "collate should return three matrices, src, tgt_in and tgt_out, and returns "
        f"{count or described(found)}.",
    )
    for name, each in zip(NAMES, found, strict=True):
        require(
            isinstance(each, Tensor) and each.dim() == 2,
            f"{name} should be a tensor of two axes, (batch, width), and is "
            f"{described(each)}.",
        )
        require(
            each.dtype == torch.int64,
            f"{name} should hold int64, as ids do, and holds "
            f"{str(each.dtype).removeprefix('torch.')}.",
        )
    return list(found)


def _padded(rows: Rows, value: int = PAD, width: int = 0, left: bool = False) -> Rows:
    """Rows filled up to the longest, or to a width if that is more."""
    width = max(width, *(len(row) for row in rows), 0)
    filled = []
    for row in rows:
        rest = [value] * (width - len(row))
        filled.append([*rest, *row] if left else [*row, *rest])
    return filled


def _compare(
    name: str, found: Tensor, right: Rows, mistakes: dict[str, Rows], pairs: Any
) -> None:
    """Raises: Wrong with both matrices, and the mistake that gives what was found."""
    rows = found.tolist()
    if rows == right:
        return
    why = [sentence for sentence, wrong in mistakes.items() if rows == wrong]
    words = f": {why[0]}" if why else ""
    require(
        False,
        f"For the pairs {pairs} {name} should be {right} and is {rows}{words}.",
    )


def _filled(found: Tensor, rows: Rows, name: str, pairs: Any) -> None:
    """The matrix that holds each row as it is, then padding."""
    longest = max(len(side) for pair in pairs for side in pair)
    begun = [[BOS, *row] for row in rows]
    right = _padded(rows)
    fill = found[0, -1].item() if found.numel() else PAD
    mistakes = {
        "the padding belongs to the right of a row": _padded(rows, left=True),
        "each side is as wide as its own longest row": _padded(rows, width=longest),
        "the end token is lost, so a model would never learn to stop": _padded(
            [row[:-1] for row in rows]
        ),
        "the begin token belongs into tgt_in alone": _padded(begun),
        "tgt_in and tgt_out are exchanged": _padded([row[:-1] for row in begun]),
        "the rows should keep the order of the pairs": _padded(
            sorted(rows, key=len, reverse=True)
        ),
        "that is the order of the pairs turned round": right[::-1],
        "the rows are the columns here: transpose": [
            list(column) for column in zip(*right, strict=True)
        ],
    }
    for value in sorted({fill, *found[:, -1].tolist()} - {PAD}):
        sentence = f"short rows are filled up with {value}; padding is 0"
        mistakes.setdefault(sentence, _padded(rows, value))
    _compare(name, found, right, mistakes, pairs)


def _shifted(found: Tensor, rows: Rows, pairs: Any) -> None:
    """The matrix that the decoder reads."""
    right = _padded([[BOS, *row[:-1]] for row in rows])
    full = _padded(rows)
    mistakes = {
        "it isn't shifted, so the decoder would read the very token that it should "
        "predict": full,
        "it is one column too wide, since the decoder never reads the end token: "
        "[1, *row[:-1]]": _padded([[BOS, *row] for row in rows]),
        "a shorter row still holds its end token, where tgt_out is padding already; "
        "shift each row before it is padded": [[BOS, *row[:-1]] for row in full],
        "the begin token is missing: the first token is predicted from it": _padded(
            [row[:-1] for row in rows]
        ),
        "it is shifted the other way: position i should read what position i − 1 "
        "should predict": _padded([row[1:] for row in rows], width=len(full[0])),
        "the last column has come round to the front; the first should be the begin "
        "token 1": [[row[-1], *row[:-1]] for row in full],
        "each row's end token has come round to its front; there should be the begin "
        "token 1": _padded([[row[-1], *row[:-1]] for row in rows]),
        "the begin token is 1, and padding 0": _padded(
            [[PAD, *row[:-1]] for row in rows]
        ),
        "the begin token has overwritten the first token instead of pushing it to the "
        "right": [[BOS, *row[1:]] for row in full],
        "the padding belongs to the right of a row": _padded(
            [[BOS, *row[:-1]] for row in rows], left=True
        ),
    }
    _compare("tgt_in", found, right, mistakes, pairs)
