"""One writer at a time: a lock that its process can't leave behind.

A lock is a small hidden file that is locked by `flock` and says who holds it. The system
lets go of it when the process ends, however that ends; a file that a crash has left is
taken over by the next. Processes on one machine always see each other's locks; those on
several machines do on NFS and wherever else the file system passes `flock` on. Where it
knows no locks, and on Windows, there is a warning or nothing, and no lock.
"""

import errno
import json
import os
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from .errors import UserError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

UNKNOWN = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
# What this thread holds, which it may take again.
_held: ContextVar[tuple[str, ...]] = ContextVar("held", default=())


@contextmanager
def in_use(
    folder: Path, lock: Path | None = None, wait: bool = False
) -> Iterator[bool]:
    """While the block runs, this process alone writes a folder; yields whether the block
    is the outermost that does.

    The lock lies beside the folder, which may be replaced, unless `lock` names a place.
    Raises: UserError when another process has it, unless that is to be waited for, or
    when no lock can be made.
    """
    place = lock or folder.with_name(f".lock-{folder.name}")
    name = os.path.realpath(place)
    if name in _held.get() or fcntl is None:
        yield name not in _held.get()
        return
    handle = _take(Path(name), folder, wait)
    token = _held.set((*_held.get(), name))
    try:
        yield True
    finally:
        _held.reset(token)
        with suppress(OSError):  # the file that is left locks nobody out
            if _is(handle, name):
                os.unlink(name)
        os.close(handle)


def _take(place: Path, folder: Path, wait: bool) -> int:
    """An open file of this name, locked and signed."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        while True:
            handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                if not _lock(handle, wait):
                    raise UserError(f"{folder} is in use by {_holder(handle)}")
                if _is(handle, place):  # else its holder deleted it just now
                    _sign(handle)
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
    except OSError as error:
        raise UserError(
            f"{folder} can't be written ({error}): free some space or choose another "
            "folder"
        ) from None


def _lock(handle: int, wait: bool) -> bool:
    """Whether the lock was to be had; True with a warning where there are no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in UNKNOWN:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        warnings.warn(
            "the file system keeps no locks: see to it yourself that no second process "
            "writes to the same folder",
            stacklevel=2,
        )
    return True


def _is(handle: int, place: str | Path) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(place))
    except FileNotFoundError:
        return False


def _sign(handle: int) -> None:
    since = time.strftime("%Y-%m-%d %H:%M")
    about = {"process": os.getpid(), "host": socket.gethostname(), "since": since}
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(about).encode(), 0)


def _holder(handle: int) -> str:
    """Who holds a lock, and what to do about it, as the end of a message."""
    remedy = "wait until it has ended, or choose another folder"
    try:
        about = json.loads(os.pread(handle, 1_000, 0))
        process, host, since = about["process"], about["host"], about["since"]
    except (ValueError, LookupError, TypeError):  # it has only just begun
        return f"another process: {remedy}"
    return f"process {process} (on {host} since {since}): {remedy}"
