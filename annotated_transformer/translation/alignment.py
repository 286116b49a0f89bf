"""Whether line i of one side belongs to line i of the other, by looks alone."""

import math
import re
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any

Marks = frozenset[Hashable]
Lines = Sequence[Any]

WORD = re.compile(r"\d+|[^\W\d_]+|[?!.,:]")
WINDOW, MOST_WINDOWS, OFFSETS = 100, 40, (0, 1, -1, 2, -2)
LEAD = 0.005  # of a shift before the lines as they stand; never seen on sound text


def marks(text: str) -> Marks:
    """What a translation may share with its source: numbers, stems, punctuation."""
    return frozenset(word.lower()[:4] for word in WORD.findall(text))


class Likeness:
    """How alike two lines are: the marks they share, and their lengths.

    A line is a text, or a row of ids, of which `marks_of` gives the marks.
    """

    def __init__(self, src: Lines, tgt: Lines, marks_of: Callable[[Any], Marks]):
        self.src, self.tgt = src, tgt
        self.src_marks = cache(lambda i: marks_of(src[i]))
        self.tgt_marks = cache(lambda i: marks_of(tgt[i]))
        lengths = (sum(map(len, side)) or 1 for side in (tgt, src))
        self.ratio = math.log(next(lengths) / next(lengths))

    def __len__(self) -> int:
        return min(len(self.src), len(self.tgt))

    def __call__(self, i: int, j: int) -> float:
        src, tgt = self.src_marks(i), self.tgt_marks(j)
        shared = len(src & tgt) / (len(src | tgt) or 1)
        lengths = (len(self.tgt[j]) + 3) / (len(self.src[i]) + 3)
        return shared - min(1.0, abs(math.log(lengths) - self.ratio))

    def mean(self, start: int, end: int, offset: int) -> float:
        """That of lines and those `offset` further on the other side."""
        rows = range(max(start, -offset), min(end, len(self) - max(offset, 0)))
        return sum(self(i, i + offset) for i in rows) / max(1, len(rows))


Windows = list[tuple[int, int]]  # start, and the offset that fits best


def best_offsets(like: Likeness) -> Windows:
    """The offset that fits best, in up to 40 windows of 100 lines."""
    count, width = len(like), min(WINDOW, len(like) // 2)
    number = min(MOST_WINDOWS, count // max(width, 1))
    found = []
    for k in range(number):
        start = k * (count - width) // max(1, number - 1)
        fits = {o: like.mean(start, start + width, o) for o in OFFSETS}
        best = max(OFFSETS, key=fits.__getitem__)
        found.append((start, best if fits[best] > fits[0] + LEAD else 0))
    return found


def first_shift(like: Likeness, windows: Windows) -> tuple[int, int] | None:
    """The line, from 0, from which on lines are shifted, and by how many.

    None if they aren't, or if the windows don't agree.
    """
    bad = [k for k, (_, offset) in enumerate(windows) if offset]
    if len({windows[k][1] for k in bad[:4]}) != 1:
        return None
    offset = windows[bad[0]][1]
    start = windows[bad[0] - 1][0] if bad[0] else 0
    end = min(windows[bad[0]][0] + WINDOW, len(like) - 2)
    return change_point(like, start, end, offset), offset


def change_point(like: Likeness, start: int, end: int, offset: int) -> int:
    """The line at which lines as they stand stop being likelier than the shifted."""
    total, best, place = 0.0, 0.0, start
    for i in range(max(start, -offset), end):
        total += like(i, i) - like(i, i + offset)
        if total > best:
            best, place = total, i + 1
    return place
