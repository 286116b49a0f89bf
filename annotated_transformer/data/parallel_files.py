"""Your own corpus: two text files whose lines are each other's translations."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from ..errors import UserError
from .text_files import open_text, read_lines


@dataclass(frozen=True)
class ParallelFiles:
    """Two text files, line i of one the translation of line i of the other.

    They are read anew at each iteration.
    """

    src_path: Path
    tgt_path: Path

    def __iter__(self) -> Iterator[tuple[str, str]]:
        paths = (self.src_path, self.tgt_path)
        sides = zip_longest(*map(read_lines, paths))
        for number, pair in enumerate(sides, 1):
            if None in pair:
                longer = number + sum(1 for _ in sides)
                src, tgt = (number - 1 if text is None else longer for text in pair)
                raise UserError(
                    f"{self.src_path} has {src} lines and {self.tgt_path} has {tgt}: "
                    "lines must match"
                )
            for text, path in zip(pair, paths, strict=True):
                if not text.strip():
                    raise UserError(
                        f"{path}, line {number} is blank: remove that line from both "
                        "files"
                    )
            yield " ".join(pair[0].split()), " ".join(pair[1].split())

    def count(self) -> int:
        """The number of lines of the source."""
        return sum(1 for _ in read_lines(self.src_path))


def parallel_files(src_path: str | Path, tgt_path: str | Path) -> ParallelFiles:
    """Your own corpus: two UTF-8 files, plain or gzipped, with as many lines.

    Raises: UserError at once when a file is missing, empty or a pipe; while reading,
    for uneven line counts, a blank line or bytes that are not UTF-8.
    """
    for path in map(Path, (src_path, tgt_path)):
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise UserError(
                f"{path} is a pipe or the like, which can be read only once: write it "
                "to a file first"
            )
        with open_text(path):
            pass
    return ParallelFiles(Path(src_path), Path(tgt_path))


def parallel_prefix(prefix: str | Path, src: str, tgt: str) -> ParallelFiles:
    """Your own corpus by prefix: 'data/train' stands for data/train.en, data/train.de.

    Each may end in .gz.

    Raises: UserError if a side is there neither plain nor packed, or as
    `parallel_files`.
    """
    paths = []
    for lang in (src, tgt):
        plain, packed = Path(f"{prefix}.{lang}"), Path(f"{prefix}.{lang}.gz")
        if not os.path.exists(plain) and not os.path.exists(packed):
            raise UserError(f"{plain}: no such file, nor {packed.name}")
        paths.append(plain if os.path.exists(plain) else packed)
    return parallel_files(*paths)
