"""The check of `shift_and_pad`: sentences of any lengths as matrices, §3.1, §5.1."""

import copy
from typing import Any

import torch
from torch import Tensor

from ..model.config import BOS, EOS, PAD
from .assertions import Wrong, reason, require
from .parts import Part, check_of, described

Rows = list[list[int]]


@check_of("shift_and_pad")
def shift_and_pad(part: Part) -> str:
    """`shift_and_pad(pairs)`: the matrices src, tgt_in, tgt_out, (batch, width) each.

    pairs is a list of (source ids, target ids), each a list that ends in the end token
    2, without a begin token. Shorter rows are filled up with 0 on the right; tgt_in is
    the target behind the begin token 1, without its end token.
    """
    pairs = [([5, 6, 7, EOS], [8, 9, EOS]), ([6, EOS], [9, 8, 7, 5, EOS])]
    for some in (pairs, pairs[::-1], pairs[:1], [([9, EOS], [EOS]), *pairs]):
        given = copy.deepcopy(some)
        found = part(given)
        require(
            given == some,
            "shift_and_pad changes the lists that it is given, and the next epoch "
            "reads them again: make new lists, `[1, *row[:-1]]`.",
        )
        src, tgt_in, tgt_out = _matrices(found)
        sources, targets = map(list, zip(*some, strict=True))
        _compare("src", src, _padded(sources), _unlike(sources), some)
        _compare("tgt_out", tgt_out, _padded(targets), _unlike(targets), some)
        read = _padded([[BOS, *row[:-1]] for row in targets])
        _compare("tgt_in", tgt_in, read, _unshifted(targets), some)
    return "padded on the right, and the decoder reads one position behind"


def _matrices(found: Any) -> list[Tensor]:
    """The three that it returned. Raises: Wrong for anything else."""
    count = f"{len(found)} things" if isinstance(found, tuple | list) else ""
    require(
        isinstance(found, tuple | list) and len(found) == 3,
        "shift_and_pad should return three matrices, src, tgt_in and tgt_out, and "
        f"returns {count or described(found)}.",
    )
    for name, each in zip(("src", "tgt_in", "tgt_out"), found, strict=True):
        kind = each.dtype if isinstance(each, Tensor) else "no tensor"
        require(
            kind == torch.int64 and each.dim() == 2,
            f"{name} should be a tensor of int64 with two axes, (batch, width), and is "
            f"{described(each)}, {kind}.",
        )
    return list(found)


def _compare(
    name: str, found: Tensor, right: Rows, mistakes: dict[str, Rows], pairs: Any
) -> None:
    """Raises: Wrong with both matrices, and the mistake that gives what was found."""
    rows = found.tolist()
    if rows != right:
        raise Wrong(
            f"For the pairs {pairs} {name} should be {right} and is {rows}"
            f"{reason(rows, mistakes)}."
        )


def _padded(rows: Rows) -> Rows:
    """Rows filled up to the longest."""
    width = max(map(len, rows))
    return [[*row, *[PAD] * (width - len(row))] for row in rows]


def _unlike(rows: Rows) -> dict[str, Rows]:
    """The usual mistakes of the matrix that holds each row as it is, then padding."""
    return {
        "the end token is lost, so a model would never learn to stop": _padded(
            [row[:-1] for row in rows]
        ),
        "tgt_in and tgt_out are exchanged": _padded([[BOS, *row[:-1]] for row in rows]),
    }


def _unshifted(rows: Rows) -> dict[str, Rows]:
    """The usual mistakes of the matrix that the decoder reads."""
    full = _padded(rows)
    return {
        "it isn't shifted, so the decoder would read the very token that it should "
        "predict": full,
        "it is one column too wide, since the decoder never reads the end token: "
        "[1, *row[:-1]]": _padded([[BOS, *row] for row in rows]),
        "a shorter row still holds its end token, where tgt_out is padding already; "
        "shift each row before it is padded": [[BOS, *row[:-1]] for row in full],
        "the begin token is missing: the first token is predicted from it": _padded(
            [row[:-1] for row in rows]
        ),
    }
