"""The check of `shift_and_pad`: each mistake gets its own reason, any right style
passes.
"""

import re

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from annotated_transformer import check

RIGHT = """
import torch

def pad(rows):
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])

def shift_and_pad(pairs):
    src, tgt = zip(*pairs)
    tgt_in = [[1, *row[:-1]] for row in tgt]
    return pad(src), pad(tgt_in), pad(tgt)
"""
RETURN, READ = "return pad(src), pad(tgt_in), pad(tgt)", "[1, *row[:-1]] for row in tgt"
AFTER = "torch.cat([torch.ones(len(src), 1).long(), pad(tgt)[:, :-1]], 1)"
# What is said of a mistake that has no reason of its own.
BOTH = r"For the pairs .* should be \[\[.* and is \[\[.*\]\]\.$"
MISTAKES = [
    ("[1, *row[:-1]]", "row", "isn't shifted"),
    (READ, "[1, *row] for row in tgt", "one column too wide"),
    (READ, "row[:-1] for row in tgt", "the begin token is missing"),
    ("[1, *row[:-1]]", "[*row[1:], 0]", BOTH),
    ("[1, *row[:-1]]", "[row[-1], *row[:-1]]", BOTH),
    ("[1, *row[:-1]]", "[0, *row[:-1]]", BOTH),
    ("pad(tgt_in),", f"{AFTER},", "still holds its end token"),
    ("pad(tgt_in),", "pad(tgt).roll(1, 1),", BOTH),
    (
        RETURN,
        "t = pad(tgt).clone(); t[:, 0] = 1; return pad(src), t, pad(tgt)",
        BOTH,
    ),
    ("pad(tgt_in), pad(tgt)", "pad(tgt), pad(tgt_in)", "are exchanged"),
    ("pad(tgt)\n", "pad([row[:-1] for row in tgt])\n", "never learn to stop"),
    ("pad(src)", "pad([row[:-1] for row in src])", "never learn to stop"),
    ("pad(src)", "pad([[1, *row] for row in src])", BOTH),
    ("pad(tgt)\n", "pad([[1, *row] for row in tgt])\n", BOTH),
    ("[*row, *[0] * (width - len(row))]", "[*[0] * (width - len(row)), *row]", BOTH),
    ("[0] *", "[2] *", BOTH),
    ("[0] *", "[-100] *", BOTH),
    ("max(len(row) for row in rows)", "5", BOTH),
    ("max(len(row) for row in rows)", "9", BOTH),
    ("max(len(row) for row in rows)", "min(map(len, rows))", "raised ValueError"),
    (
        "zip(*pairs)",
        "zip(*sorted(pairs, key=lambda p: -len(p[0])))",
        BOTH,
    ),
    ("zip(*pairs)", "zip(*pairs[::-1])", BOTH),
    ("pad(src),", "pad(src).T,", BOTH),
    ("tgt_in = ", "[row.insert(0, 1) for row in tgt]; tgt_in = ", "changes the lists"),
    (RETURN, "return pad(src), pad(tgt)", "three matrices.* returns 2 things"),
    (RETURN, "pad(src), pad(tgt_in), pad(tgt)", "`return` missing"),
    ("pad(src),", "src,", "src should be a tensor of int64 with two axes.* no tensor"),
    ("pad(tgt)\n", "pad(tgt).float()\n", "tgt_out should be .* torch.float32"),
    (RETURN, "raise NotImplementedError", "not yet written"),
]


def built(source: str):
    names = {}
    exec(source, names)
    return names["shift_and_pad"]


@pytest.mark.parametrize(("old", "new", "reason"), MISTAKES)
def test_a_mistake_gets_its_reason(old, new, reason):
    assert RIGHT.count(old), old
    verdict = check.shift_and_pad(built(RIGHT.replace(old, new)))
    assert not verdict and re.search(reason, str(verdict)), verdict


def shift_the_padded(pairs):
    """One row longer, then cut: the end tokens that are left become padding."""
    src, tgt = (
        [torch.tensor(row) for row in side] for side in zip(*pairs, strict=True)
    )
    src, tgt = (pad_sequence(side, batch_first=True) for side in (src, tgt))
    begun = torch.cat([torch.ones_like(tgt[:, :1]), tgt[:, :-1]], dim=1)
    return src, begun.where(tgt != 0, 0), tgt


def write_in_place(pairs):
    sides = [side for side in zip(*pairs, strict=True)]
    sides.insert(1, [[1, *row[:-1]] for row in sides[1]])
    found = []
    for rows in sides:
        ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
        found.append(ids)
    return found


@pytest.mark.parametrize("part", [built(RIGHT), shift_the_padded, write_in_place])
def test_any_right_style_passes(part):
    verdict = check.shift_and_pad(part)
    assert verdict, verdict
