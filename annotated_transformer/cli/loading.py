"""Models for the commands: opened by name, with PyTorch imported quickly."""

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
    dtype: str = "float32",
    engine: str = "auto",
    threads: int | None = None,
) -> "Translator":
    """The translator of a model. Raises: UserError as its `from_pretrained`."""
    import_torch()
    if threads:
        sys.modules["torch"].set_num_threads(threads)
    from ..translation.translator import Translator

    return Translator.from_pretrained(model, device=device, dtype=dtype, engine=engine)
