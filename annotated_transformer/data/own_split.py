"""Text of one's own cut into train, valid and test, near copies kept together."""

import random
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..files import new_folder, write_file
from .near_copies import NearCopies, Pair, sketches

PARTS = ("train", "valid", "test")


class Families:
    """The near copies of each pair of a text, on either side, by its number."""

    def __init__(self, pairs: Sequence[Pair], langs: Pair) -> None:
        self.sides = list(zip(*(sketches(pair, langs) for pair in pairs), strict=True))
        self.known = [NearCopies(side) for side in self.sides]

    def copies(self, number: int) -> set[int]:
        """The near copies of a pair, itself left out."""
        found: set[int] = set()
        for side, known in zip(self.sides, self.known, strict=True):
            for words in known.of(side[number]):
                found.update(known.numbers[words])
        return found - {number}

    def family(self, number: int, most: int) -> set[int]:
        """A pair, its near copies, theirs and so on; more than `most` are enough."""
        found, todo = {number}, [number]
        while todo and len(found) <= most:
            new = self.copies(todo.pop()) - found
            found |= new
            todo += new
        return found


@dataclass(frozen=True)
class OwnSplit:
    """The pairs of each part, and how a test set drawn at random would have leaked.

    `leaked` of `drawn` random pairs have a near copy among all the others.
    """

    parts: dict[str, list[Pair]]
    leaked: int
    drawn: int


def split_own(pairs: Iterable[Pair], langs: Pair, held_out: int) -> OwnSplit:
    """Hold out about `held_out` pairs each for valid and test, by families.

    A pair goes where its near copies go, so that no part has a near copy of another's
    pair. Which families are held out is decided by checksums of their text: the same
    text is split in the same way. A family of more than a tenth of `held_out` stays in
    training.

    Raises: UserError for fewer than four times `held_out` pairs, or a text that is a
    few large families.
    """
    pairs = list(pairs)
    if len(pairs) < 4 * held_out:
        raise UserError(
            f"{len(pairs):,} pairs are too few to hold out twice {held_out:,}: at "
            f"least {4 * held_out:,} are needed"
        )
    families = Families(pairs, langs)
    held = _held_out(pairs, families, held_out)
    chosen = random.Random(1).sample(range(len(pairs)), held_out)
    leaked = sum(bool(families.copies(each).difference(chosen)) for each in chosen)
    parts: dict[str, list[Pair]] = {part: [] for part in PARTS}
    for number, pair in enumerate(pairs):
        parts[held.get(number, "train")].append(pair)
    return OwnSplit(parts, leaked, held_out)


def _held_out(pairs: list[Pair], families: Families, count: int) -> dict[int, str]:
    """The part of each pair that is held out."""
    order = sorted(
        range(len(pairs)), key=lambda n: zlib.crc32("\n".join(pairs[n]).encode())
    )
    most, waiting = max(10, count // 10), iter(order)
    stay: set[int] = set()
    held: dict[int, str] = {}
    for part in ("test", "valid"):
        missing = count
        while missing > 0:
            number = next(waiting, None)
            if number is None:
                raise UserError(
                    "too many of the pairs are near copies of each other to hold out "
                    f"twice {count:,}: name fewer with --held-out"
                )
            if number in held or number in stay:
                continue
            family = families.family(number, most)
            if len(family) > most or stay & family:
                stay |= family
                continue
            held |= dict.fromkeys(family, part)
            missing -= len(family)
    return held


def write_parts(parts: dict[str, list[Pair]], langs: Pair, folder: Path) -> None:
    """Write each part's two sides, such as train.en and train.de, into a new folder."""
    with new_folder(folder, "split") as draft:
        for part, pairs in parts.items():
            for lang, texts in zip(langs, zip(*pairs, strict=True), strict=True):
                text = "".join(f"{each}\n" for each in texts)
                write_file(draft / f"{part}.{lang}", text.encode())
