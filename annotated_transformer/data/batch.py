"""A batch of sentence pairs: three matrices of ids that move and are cut together."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from ..model.config import PAD


@dataclass(frozen=True, eq=False)
class Batch:
    """Some pairs as padded ids: the source, the decoder's input ([bos] first) and what
    it should say ([eos] last).
    """

    src: Int[Tensor, "batch src_len"]
    tgt_in: Int[Tensor, "batch tgt_len"]
    tgt_out: Int[Tensor, "batch tgt_len"]
    pad_id: int = PAD

    def __len__(self) -> int:
        return len(self.src)

    @property
    def tokens(self) -> int:
        """Target tokens that the loss counts: all but padding."""
        return int((self.tgt_out != self.pad_id).sum())

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device."""
        sides = (self.src, self.tgt_in, self.tgt_out)
        src, tgt_in, tgt_out = (ids.to(device) for ids in sides)
        return Batch(src, tgt_in, tgt_out, self.pad_id)

    def shard(self, rank: int, world: int) -> "Batch":
        """Every `world`-th row from `rank` on.

        If none is left, one row whose target is all padding: its loss and gradients
        are zero.
        """
        left = rank < len(self)
        rows = slice(rank, None, world) if left else slice(1)
        targets = self.tgt_out[rows]
        targets = targets if left else torch.full_like(targets, self.pad_id)
        return Batch(self.src[rows], self.tgt_in[rows], targets, self.pad_id)

    def split(self, n: int) -> list["Batch"]:
        """Exactly `n` parts, whose gradients add up to this batch's."""
        return [self.shard(i, n) for i in range(n)]
