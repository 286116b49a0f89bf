"""Images of any kind as grey bytes of one size."""

import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from ..data.images import read_idx
from ..errors import UserError

LONGEST_SIDE = 2**16  # pixels
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")


def as_images(
    images: Any, height: int, width: int
) -> tuple[UInt8[Tensor, "n height width"], bool]:
    """Images as bytes from 0 for black to 255, and whether it is a single one.

    Raises: UserError for what is no image, or an array of another size.
    """
    if isinstance(images, list | tuple):
        parts = [as_images(each, height, width) for each in images]
        if not parts:
            raise UserError("there is no image in the list: give at least one")
        return torch.cat([batch for batch, _ in parts]), False
    if isinstance(images, str | Path) and holds_idx(images):
        images = read_idx(Path(images))
    elif isinstance(images, str | Path) or hasattr(images, "convert"):
        return grey_picture(images, height, width)[None], True
    values = grey_bytes(images)
    single = values.dim() == 2
    values = values[None] if single else values
    if values.dim() != 3 or tuple(values.shape[1:]) != (height, width):
        size = " × ".join(map(str, images.shape[-2:]))
        raise UserError(
            f"the images have {size} pixels in {len(images.shape)} axes and this "
            f"model reads grey ones of {height} × {width}: scale them, or give PIL "
            "pictures, which are scaled here"
        )
    return values, single


def holds_idx(path: str | Path) -> bool:
    """Whether a file begins as MNIST's format does, or as gzip."""
    try:
        with open(path, "rb") as file:
            return file.read(2) in (b"\0\0", b"\x1f\x8b")
    except OSError:
        return False


def grey_bytes(images: Any) -> UInt8[Tensor, "..."]:
    """Whole numbers to 255, or others to 1, as bytes. Raises: UserError for others."""
    try:
        values = torch.as_tensor(images).reshape(images.shape)
    except (TypeError, ValueError, RuntimeError, AttributeError):
        raise UserError(
            f"expected an image and got {type(images).__name__}: give a PIL picture, a "
            "path, or an array"
        ) from None
    if values.dtype == torch.uint8:
        return values.cpu()
    real = values.is_floating_point() or values.dtype == torch.bool
    most = 1 if real else 255
    if not ((values >= 0) & (values <= most)).all():  # NaN is neither
        raise UserError(
            f"the images have values outside of 0 to {most}: give numbers from 0 for "
            "black to 1 for white, or bytes from 0 to 255"
        )
    return (values.double() * 255 / most).round().to(torch.uint8).cpu()


def grey_picture(
    picture: Any, height: int, width: int
) -> UInt8[Tensor, "height width"]:
    """A picture, or the one in a file, as grey bytes of this size.

    Raises: UserError for a file that is none of `FORMATS`, broken, or far too large.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            named = isinstance(picture, str | Path)
            file = Image.open(picture, formats=FORMATS) if named else None
            with file or nullcontext(picture) as opened:
                if max(opened.size) > LONGEST_SIDE:  # as the file says, not decoded yet
                    raise ValueError(f"a side of more than {LONGEST_SIDE:,} pixels")
                grey = opened.convert("L").resize((width, height))
        return torch.from_numpy(np.array(grey))
    except Exception as error:  # a broken picture fails in a dozen ways
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UserError(
            f"{picture} can't be read as a picture ({reason.splitlines()[0]}): give a "
            f"sound one, {', '.join(FORMATS)}"
        ) from None
