"""Models for the commands: opened by `load`, with PyTorch imported quickly."""

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..translation.translator import Translator


def import_torch() -> None:
    """Import PyTorch without a garbage collection; later ones pass over what it made.

    That stays until the program ends: looking it through time and again would only
    slow a short command down.
    """
    if "torch" in sys.modules:
        return
    gc.disable()
    try:
        import torch  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


def open_translator(
    model: str | Path,
    device: str | None,
    precision: str = "float32",
    engine: str = "torch",
) -> "Translator":
    """The translator of a model of any kind, as `load` knows them."""
    import_torch()
    from ..loading import load

    return load(model, device=device, precision=precision, engine=engine)
