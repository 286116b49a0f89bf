"""Files and folders that are there whole or not at all.

Everything this package writes goes through here: written under a name that no reader
looks for, flushed to the disk, and then renamed.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from .errors import UserError


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- one file ----------------------------------------------------------------------------


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under a temporary name and rename it: no reader ever sees half of it.

    Devices such as /dev/stdout are written in place, links stay links.
    Raises: UserError for a read-only file, an unwritable directory or a full disk.
    """
    parent = str(path.parent)
    there = os.path.exists(path)  # unlike Path.exists, False for any impossible name
    if parent in ("/dev", "/dev/fd") or (there and not path.is_file()):
        return _write_in_place(path, data)
    path = Path(os.path.realpath(path))
    draft = path.with_name(f".{path.name[:60]}.{uuid4().hex[:12]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if there and not path.stat().st_mode & 0o222:  # a rename wouldn't ask
            raise PermissionError(errno.EACCES, "it is read-only")
        draft.write_bytes(data)
        if there:
            shutil.copymode(path, draft)
        os.replace(draft, path)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}") from None
    finally:
        if os.path.isfile(draft):
            draft.unlink()


def _write_in_place(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}") from None


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write an object as JSON, whole. Raises: UserError as `write_whole`."""
    text = json.dumps(values, ensure_ascii=False, indent=2) + "\n"
    write_whole(path, text.encode())


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file's object. Raises: UserError for a missing or damaged file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        model = path.parent / "model"
        hint = "take another folder or another copy"
        hint = f"did you mean {model}?" if model.is_dir() else hint
        raise UserError(f"{path} is missing: {hint}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"{path} can't be read ({error}): take another copy or an earlier checkpoint"
        ) from None
    if not isinstance(values, dict):
        raise UserError(f"{path} holds no JSON object: take another copy of it")
    return values


# -- a folder ----------------------------------------------------------------------------


@contextmanager
def whole_folder(final: Path, ours: Callable[[Path], bool]) -> Iterator[Path]:
    """An empty draft that gets the name `final` when the block ends well, else goes.

    What stood at `final` is replaced, if `ours` says that this package wrote it.
    Raises: UserError for a full disk, an unwritable place or a folder that isn't ours.
    """
    final = Path(os.path.realpath(final))  # a link stays a link, and "." has a name
    if not final.name:
        raise UserError(f"{final} can't be replaced: name a folder in it")
    draft = final.with_name(f".draft-{final.name}.{uuid4().hex[:8]}")
    try:
        if final.exists() and any(final.iterdir()) and not ours(final):
            raise UserError(f"{final} holds other files: choose another folder")
        draft.mkdir(parents=True)
        yield draft
        for path in draft.iterdir():
            path.chmod(draft.stat().st_mode & 0o666)  # readable by who reads the folder
        _flush(draft)
        _publish(draft, final)
    except OSError as error:
        raise UserError(
            f"{final} can't be written ({error}): free some space or choose another folder"
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """A draft that becomes `folder`, which must be empty or not be there yet.

    Raises: UserError if something lies there, or as `whole_folder`.
    """
    final = Path(folder).absolute()
    if final.exists() and (not final.is_dir() or any(final.iterdir())):
        raise UserError(
            f"{folder} is not an empty folder: choose another name or remove what lies "
            "there"
        )
    with whole_folder(final, ours=lambda _: False) as draft:
        yield draft


def remove_folder(folder: Path) -> None:
    """Delete a folder that readers may be looking at: it loses its name first."""
    shutil.rmtree(_step_aside(folder), ignore_errors=True)


def _publish(draft: Path, final: Path) -> None:
    """Give a draft its name; a file that the draft has nothing in place of stops it."""
    there = {path.name for path in final.iterdir()} if final.exists() else set()
    if lost := there - {path.name for path in draft.iterdir()}:
        raise UserError(
            f"{final} also holds {', '.join(sorted(lost))}: move that away or choose "
            "another folder"
        )
    old = _step_aside(final) if final.exists() else None
    try:
        os.replace(draft, final)
    except OSError:
        if old:
            old.rename(final)
        raise
    _flush_names(final.parent)
    if old:
        shutil.rmtree(old, ignore_errors=True)


def _step_aside(folder: Path) -> Path:
    """Rename a folder so that no reader finds it any more; returns its new place."""
    aside = folder.with_name(f".old-{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    return folder.rename(aside)


def _flush(folder: Path) -> None:
    """Have the system write a folder's files and their names through to the disk."""
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    _flush_names(folder)


def _flush_names(folder: Path) -> None:
    """The folder's list of names alone, where the system lets one ask (not Windows)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
