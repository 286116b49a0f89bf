"""A file operation fails, or the process is killed there, while a model folder is
written: the model must be there whole or not at all, and can be written again.

`python -m benchmarks.promises` and the tests use it.
"""

import errno
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from annotated_transformer.errors import UserError
from annotated_transformer.files import fingerprint, verify
from annotated_transformer.training.checkpoint import save_model

from . import folders
from .fuzz import Attack

EVENTS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod"}
MODES: dict[str, int | None] = {
    "full disk": errno.ENOSPC,
    "device error": errno.EIO,
    "kill": None,
}
OPERATIONS = 30  # of a model folder


def strike(mode: str, number: int) -> None:
    """Have this process's operation of this number fail, or kill the process there."""
    left = [number]

    def hook(event: str, details: tuple[object, ...]) -> None:
        writes = event == "open" and int(str(details[2])) & (os.O_WRONLY | os.O_RDWR)
        if not writes and event not in EVENTS:
            return
        left[0] -= 1
        if left[0] == 0:
            if (code := MODES[mode]) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            else:
                raise OSError(code, os.strerror(code))

    flush = os.fsync
    os.fsync = lambda handle: (hook("os.chmod", ()), flush(handle))[1]
    sys.addaudithook(hook)


def status_of(action: Callable[[], object]) -> int:
    """How a process that does this ends: 2 after a UserError, negative for a signal."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 70
    try:
        action()
        status = 0
    except UserError:
        status = 2
    finally:
        os._exit(status)


def attacks(count: int, home: Path, seed: int = 0) -> Iterator[Attack]:
    """So many attacks, at random operations."""
    rng, folder, model = random.Random(seed), home / "at" / "model", folders.model()
    save_model(home / "whole", model, folders.tokenizer())
    whole = fingerprint(home / "whole" / "model.safetensors")
    for _ in range(count):
        mode, number = rng.choice(list(MODES)), rng.randint(1, OPERATIONS)
        shutil.rmtree(folder.parent, ignore_errors=True)

        def write(mode: str = mode, number: int = number) -> None:
            strike(mode, number)
            save_model(folder, model, folders.tokenizer())

        status = status_of(write)
        sound = status in (0, 2) or (mode == "kill" and status == -signal.SIGKILL)
        outcome = "whole" if folder.exists() else "nothing"
        if outcome == "nothing":
            save_model(folder, model, folders.tokenizer())
        same = verify(folder) and fingerprint(folder / "model.safetensors") == whole
        done = f"{mode} at operation {number}: status {status}"
        outcome = outcome if sound and same else "failed"
        yield Attack(f"fault: {mode}", done, outcome, "")
