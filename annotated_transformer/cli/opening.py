"""Models for the commands: opened by `load`, with PyTorch imported quickly."""

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..errors import UserError

if TYPE_CHECKING:
    from ..translation.translator import Translator

Machine = TypeVar("Machine")


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
    """The translator of a model of any kind, as `load` knows them.

    Raises: UserError if a model does something else, or as `load`.
    """
    import_torch()
    from ..loading import find_model, load

    kind, _ = find_model(model)
    if kind.open:
        raise UserError(f"{model} holds {kind.title}, which doesn't translate")
    return load(model, device=device, precision=precision, engine=engine)


def open_kind(
    model: str | Path, device: str | None, wanted: type[Machine], words: str
) -> Machine:
    """The machine of a model, which has to be of one class.

    Raises: UserError if it is another, which says what it isn't, or as `load`.
    """
    import_torch()
    from ..loading import load

    found = load(model, device=device)
    if not isinstance(found, wanted):
        raise UserError(f"{model} holds no {words}")
    return found
