"""BPE dropout: at random, a source text is cut into smaller pieces than usual.

A word that always comes as one piece tells a model nothing of its letters, nor of the
pieces that a rarer word, or one with a typo, is cut into. Provilkov et al. (2020) leave
merges out while a word is put together. Here its pieces are taken apart again, each
into the two that it was merged from, which needs nothing but their ids.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random

from ..errors import UserError
from .pair_tokenizer import PairTokenizer


@dataclass(frozen=True, eq=False)
class BPEDropout(PairTokenizer):
    """A tokenizer that takes each source piece apart with probability `rate`, and then
    each part; in the same way whenever the same texts come in the same order.

    Raises: UserError if the pieces weren't merged.
    """

    rate: float = 0.0

    @classmethod
    def of(cls, tokenizer: PairTokenizer, rate: float) -> "BPEDropout":
        """The same tokenizer, with dropout."""
        return cls(**vars(tokenizer), rate=rate)

    @cached_property
    def rng(self) -> Random:
        """What decides, from the first text on."""
        return Random(0)

    @cached_property
    def parts(self) -> dict[int, tuple[int, int]]:
        """The two pieces that each piece was merged from."""
        model = json.loads(self.source.to_str())["model"]
        if model["type"] != "BPE":
            raise UserError(
                f"bpe_dropout needs byte pairs, and the tokenizer is {model['type']}: "
                "leave it out"
            )
        ids = model["vocab"]
        return {ids[a + b]: (ids[a], ids[b]) for a, b in model["merges"]}

    def encode_source(self, texts: list[str]) -> list[list[int]]:
        """Source ids of each text, ending in [eos], smaller pieces here and there."""
        rows = super().encode_source(texts)
        return [[part for i in row for part in self.split_piece(i)] for row in rows]

    def split_piece(self, piece: int) -> Iterator[int]:
        """The piece, or what is left of its parts."""
        if piece in self.parts and self.rng.random() < self.rate:
            for part in self.parts[piece]:
                yield from self.split_piece(part)
        else:
            yield piece
