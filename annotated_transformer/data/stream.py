"""Batches without end for a run, which may go on from any of them."""

from collections.abc import Iterator

from ..errors import UserError
from .batch import Batch
from .batching import collate, token_batches
from .tokenized_pairs import TokenizedPairs


def batches(
    pairs: TokenizedPairs,
    max_tokens: int,
    seed: int = 0,
    start: tuple[int, int] = (0, 0),
) -> Iterator[tuple[tuple[int, int], Batch]]:
    """Batches without end, each with the position after it, which as `start` continues
    from there.

    A position is (epoch, number of its batches already taken). Raises: UserError for
    one that lies behind the end of its epoch.
    """
    epoch, first = start
    lengths = pairs.src_lengths, pairs.tgt_lengths
    while True:
        plan = token_batches(*lengths, max_tokens, seed, epoch)
        if first >= len(plan):
            end = f"epoch {epoch} has only {len(plan)} batches"
            raise UserError(f"position {start} is not of this data: {end}")
        for taken, rows in enumerate(plan[first:], first + 1):
            position = (epoch, taken) if taken < len(plan) else (epoch + 1, 0)
            yield position, collate(pairs, rows)
        epoch, first = epoch + 1, 0
