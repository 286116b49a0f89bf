"""Where to compute: the CPU, or a GPU by its name; and in which number format."""

import ctypes
import time
from contextlib import suppress
from statistics import median
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
    except (RuntimeError, AssertionError, TypeError, ImportError):
        there = ", ".join(["cpu", *gpus])
        raise UserError(
            f"device {str(name)!r} is not there: choose one of {there}"
        ) from None
    return device


def keep_freed_memory() -> None:
    """Have the GNU C library keep what is freed, for the next tables of an update.

    Else it gives large tables back to the system, and gets them again page by page.
    Another C library has no such setting, and nothing happens.
    """
    mmap_max, trim_threshold = -4, -1  # the numbers of the settings in malloc.h
    with suppress(AttributeError, OSError):
        setting = ctypes.CDLL(None).mallopt
        setting(mmap_max, 0)
        setting(trim_threshold, -1)


def matmul_seconds(device: "torch.device", repeats: int = 3) -> dict[str, float]:
    """The seconds that a product of matrices takes here, in "fp32" and in "bf16".

    Each is the median of some, after a first one that doesn't count.
    """
    import torch

    side = 384 if device.type == "cpu" else 4_096
    matrix, seconds = torch.ones(side, side, device=device), {}
    for name in ("fp32", "bf16"):
        times = []
        with torch.autocast(device.type, torch.bfloat16, enabled=name == "bf16"):
            for _ in range(1 + repeats):
                begin = time.perf_counter()
                (matrix @ matrix)[0, 0].item()  # which waits for the device
                times.append(time.perf_counter() - begin)
        seconds[name] = median(times[1:])
    return seconds
