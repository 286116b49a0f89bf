"""Where to compute: the CPU, or a GPU by its name."""

from typing import TYPE_CHECKING

from .errors import UserError

if TYPE_CHECKING:
    import torch


def find_device(name: "str | torch.device | None" = None) -> "torch.device":
    """The device of this name, which is tried; None: a GPU if there is one, or the CPU.

    Apple's MPS counts as a GPU. Raises: UserError when the device is not there.
    """
    import torch

    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    gpus += ["mps"] * torch.backends.mps.is_available()
    if name is None:
        return torch.device(gpus[0] if gpus else "cpu")
    try:
        device = torch.device(name)
        if device.type != "meta":
            torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, ImportError):
        there = ", ".join(["cpu", *gpus])
        raise UserError(
            f"device {str(name)!r} is not there: choose one of {there}"
        ) from None
    return device
