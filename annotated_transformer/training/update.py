"""What one update of the weights leaves behind, and the random draws before it."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Update:
    """What one update of the weights did.

    `loss` is the summed loss, `position` that in the data from which to go on.
    """

    step: int
    position: tuple[int, int]
    lr: float
    loss: Tensor
    tokens: int


def seed_update(seed: int, step: int) -> None:
    """Seed torch for one update, so that a resumed run draws the same dropout.

    No two updates of one run share a seed, nor do runs of neighbouring seeds.
    """
    torch.manual_seed((seed * 1_000_003 + step) * 1_009)
