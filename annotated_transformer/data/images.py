"""Grey images with their classes: MNIST, and files of its format."""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from ..errors import UserError
from .published_files import MOST_DOWNLOAD_BYTES, data_files, find_file
from .text_files import open_text

NAMES = ("images-idx3-ubyte", "labels-idx1-ubyte")


@dataclass(frozen=True)
class ImageSet:
    """Grey images, 0 for black to 255 for white, and the class of each, from 0."""

    images: UInt8[Tensor, "n height width"]
    labels: Int[Tensor, "n"]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: Any) -> "ImageSet":
        return ImageSet(self.images[rows], self.labels[rows])


def mnist(part: str = "train", root: str | Path | None = None) -> ImageSet:
    """One part of MNIST, `train` or `t10k`, from where corpora are kept, or fetched."""
    known = [data_files()[f"images/mnist/{part}-{name}"] for name in NAMES]
    images, labels = (find_file(file, root) for file in known)
    return read_image_set(images, labels)


def read_images(folder: str | Path, part: str = "train") -> ImageSet:
    """One part, `train` or `t10k`, of a folder with the four files of MNIST's names.

    Each may end in .gz. Raises: UserError as `read_idx`, or for files that don't fit
    each other.
    """
    images, labels = (_find(Path(folder), f"{part}-{name}") for name in NAMES)
    return read_image_set(images, labels)


def _find(folder: Path, name: str) -> Path:
    names = [name, name.replace("-idx", ".idx")]
    for path in [folder / f"{each}{end}" for each in names for end in ("", ".gz")]:
        if path.is_file():
            return path
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: name one that holds {name}")
    raise UserError(f"{folder} has neither {name} nor {name}.gz: name another folder")


def read_image_set(images: Path, labels: Path) -> ImageSet:
    """The images of one file with the labels of another.

    Raises: UserError as `read_idx`, or when they don't fit each other.
    """
    pixels, classes = read_idx(images), read_idx(labels)
    for path, tensor, wanted in ((images, pixels, 3), (labels, classes, 1)):
        if tensor.dim() != wanted:
            raise UserError(
                f"{path} has {tensor.dim()} axes where {wanted} are wanted: grey "
                "images take 3 and labels 1"
            )
    if len(pixels) != len(classes):
        raise UserError(
            f"{images} has {len(pixels):,} images and {labels} {len(classes):,} "
            "labels: they don't belong together"
        )
    return ImageSet(pixels, classes.long())


def read_idx(path: Path) -> UInt8[Tensor, "..."]:
    """The array of bytes in a file of MNIST's format, gzipped or not.

    No more of it is read than its head announces. Raises: UserError for a file that is
    missing, damaged, empty, too large or of another format.
    """
    with open_text(path) as stream:
        head = stream.read(4)
        axes = head[3] if len(head) == 4 and head[:3] == b"\0\0\x08" else 0
        sizes = stream.read(4 * axes)
        if not 1 <= axes <= 4 or len(sizes) < 4 * axes:
            raise UserError(
                f"{path} is no file of bytes in MNIST's format, which begins with 0, "
                "0, 8 and the number of axes, at most 4: take another file"
            )
        shape = struct.unpack(f">{axes}I", sizes)
        count = math.prod(shape)
        if count > MOST_DOWNLOAD_BYTES:
            raise UserError(
                f"{path} announces {count:,} bytes, more than {MOST_DOWNLOAD_BYTES:,}: "
                "take a smaller file"
            )
        data = stream.read(count + 1)
    if len(data) != count or not count:
        size = "more" if len(data) > count else f"{len(data):,}"
        raise UserError(
            f"{path} announces {count:,} bytes and holds {size}: take another copy"
        )
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(shape)
