"""A vision Transformer: patches of an image through the paper's encoder (§3.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from ..data.images import ImageSet
from ..errors import UserError, check_integer
from ..model.config import StackConfig
from ..model.layers import Encoder
from ..model.position import LearnedPositions
from ..model.transformer import initialise
from ..training.task import TensorBatch


def patches(
    images: UInt8[Tensor, "batch height width"], size: int
) -> Float[Tensor, "batch patch pixel"]:
    """Squares of size × size pixels, row by row, with values from −1 to 1.

    What is lacking to a whole square at the right and at the foot is filled with 0.
    """
    height, width = images.shape[1:]
    padded = F.pad(images, (0, -width % size, 0, -height % size))
    rows = padded.unflatten(2, (-1, size)).unflatten(1, (-1, size))
    return rows.transpose(2, 3).flatten(3).flatten(1, 2).float() / 127.5 - 1


@dataclass(frozen=True)
class VisionConfig(StackConfig):
    """The sizes of a vision Transformer: its stack, its images and its classes."""

    model_type: ClassVar[str] = "vision"
    N: int = 3
    d_model: int = 64
    d_ff: int = 256
    dropout: float = 0.0
    height: int = 28
    width: int = 28
    patch: int = 4
    classes: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("height", "width", "patch", "classes"):
            check_integer(self, name, below=2**16)
        if (count := math.prod(self.grid)) > 4096:
            raise UserError(
                f"images of {self.height} × {self.width} pixels give {count:,} patches "
                f"of {self.patch} × {self.patch}, and more than 4,096 are too many: "
                "take a larger patch"
            )

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return math.ceil(self.height / self.patch), math.ceil(self.width / self.patch)


class VisionTransformer(nn.Module):
    """Patches and a class token through the paper's encoder, to one score a class.

    Source: Dosovitskiy et al. 2021, here with the paper's post-norm.
    """

    def __init__(self, config: VisionConfig):
        super().__init__()
        self.config = config
        rows, columns = config.grid
        self.embed = nn.Linear(config.patch**2, config.d_model)
        self.class_token = nn.Parameter(torch.zeros(config.d_model))
        self.positions = LearnedPositions(1 + rows * columns, config.d_model)
        self.encoder = Encoder(config)
        self.output = nn.Linear(config.d_model, config.classes)
        self.apply(initialise)

    def forward(
        self, images: UInt8[Tensor, "batch height width"]
    ) -> Float[Tensor, "batch classes"]:
        """The scores, read off where the class token stood."""
        x = self.embed(patches(images, self.config.patch))
        first = self.class_token.expand(len(x), 1, -1)
        x = self.positions(torch.cat([first, x], dim=1))
        return self.output(self.encoder(x)[:, 0])


def shifted(
    images: UInt8[Tensor, "batch height width"], most: int, generator: torch.Generator
) -> UInt8[Tensor, "batch height width"]:
    """Each image moved by up to `most` pixels down or up, right or left, at random.

    What comes in from outside is 0.
    """
    batch, height, width = images.shape
    padded = F.pad(images, (most, most, most, most))
    down, right = torch.randint(0, 2 * most + 1, (2, batch), generator=generator)
    rows = down[:, None] + torch.arange(height)
    columns = right[:, None] + torch.arange(width)
    return padded[
        torch.arange(batch)[:, None, None], rows[:, :, None], columns[:, None]
    ]


def cut(images: ImageSet, share: int = 12) -> tuple[ImageSet, ImageSet]:
    """All but one in `share` images, and those, drawn with a seed of its own.

    Raises: UserError when one of the two would be empty.
    """
    few = len(images) // share
    if not few:
        raise UserError(
            f"{len(images)} training images are too few: with one in {share} held out "
            f"for validation it takes at least {share}"
        )
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    return images[order[few:]], images[order[:few]]


def image_batches(
    images: ImageSet, seed: int, shift: int, size: int
) -> Iterator[TensorBatch]:
    """Every image once an epoch, in a new order and place each time, endlessly."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(images), generator=generator).split(size):
            moved = shifted(images.images[rows], shift, generator)
            yield TensorBatch((moved, images.labels[rows]), len(rows))


@torch.no_grad()
def class_probabilities(
    model: nn.Module, images: UInt8[Tensor, "n height width"]
) -> Float[Tensor, "n classes"]:
    """The probability of each class for each image, on the CPU."""
    model.eval()
    device = next(model.parameters()).device
    parts = [model(part.to(device)).softmax(-1).cpu() for part in images.split(500)]
    return torch.cat(parts)
