"""Files and folders that are there whole or not at all.

Everything this package writes goes through here: written under a name that no reader
looks for, flushed to the disk, and then renamed; never through a link.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from . import __version__
from .errors import UserError

CARD = "card.md"  # of a model: data, licence, scores, limits
MOST_FILE_BYTES = 2**27  # of a file that is read whole


def check_no_links(*paths: Path) -> None:
    """Raises: UserError for a link, which might lead to somebody else's file."""
    for path in paths:
        if path.is_symlink():
            problem = f"{path} is a link, and nothing is written through one"
            raise UserError(f"{problem}: remove it or name the place it leads to")


def write_file(path: Path, data: bytes) -> None:
    """Write a file under a temporary name and rename it: no reader sees half of it.

    Devices and pipes such as /dev/stdout are written in place.
    Raises: UserError for a link, a read-only file, an unwritable folder or a full disk.
    """
    there = os.path.exists(path)  # unlike Path.exists, False for any impossible name
    draft = draft_of(path)
    try:
        if str(path.parent) in ("/dev", "/dev/fd") or (there and not path.is_file()):
            path.write_bytes(data)
            return
        check_no_links(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if there and not path.stat().st_mode & 0o222:  # a rename wouldn't ask
            raise PermissionError(errno.EACCES, "it is read-only")
        draft.write_bytes(data)
        flush(draft)
        if there:
            shutil.copymode(path, draft)
        os.replace(draft, path)
        flush(path.parent)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}") from None
    finally:
        if os.path.isfile(draft):
            draft.unlink()


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write an object as JSON, whole. Raises: UserError as `write_file`."""
    text = json.dumps(values, ensure_ascii=False, indent=2) + "\n"
    write_file(path, text.encode())


def append_line(path: Path, line: str) -> None:
    """Add a line to a file, through to the disk. Raises: UserError as `write_file`."""
    check_no_links(path)
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        problem = f"{path} can't be written ({error})"
        raise UserError(f"{problem}: free some space") from None


def check_inside(path: Path) -> None:
    """Raises: UserError for a link that leads out of the folder that it lies in.

    In the Hugging Face Hub's cache, snapshots/REVISION links to its own ../../blobs.
    """
    if path.is_symlink():
        home, target = (Path(os.path.realpath(each)) for each in (path.parent, path))
        snapshot = home.parent.name == "snapshots"
        homes = (home, home.parent.parent / "blobs") if snapshot else (home,)
        if not any(target.is_relative_to(each) for each in homes):
            problem = f"{path} is a link that leads out of its folder"
            raise UserError(f"{problem}: put the file itself in its place")


def check_regular(path: Path) -> None:
    """Raises: UserError for a folder, a pipe or a device where a file should be, or for
    a link that leads out of its folder.
    """
    check_inside(path)
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no regular file: take another copy of the folder")


def read_bytes(path: Path, most: int = MOST_FILE_BYTES) -> bytes:
    """The bytes of a file that describes something: JSON, a vocabulary, a model card.

    Raises: UserError for one too large, and for a pipe or a device, which might never
    end; OSError if it is missing or can't be read.
    """
    check_regular(path)
    if path.stat().st_size > most:
        raise UserError(f"{path} has over {most:,} bytes: take another copy")
    return path.read_bytes()


def read_card(folder: Path) -> str:
    """What a model's card says, "" without one. Raises: UserError as `read_bytes`."""
    path = folder / CARD
    return read_bytes(path).decode(errors="replace") if path.is_file() else ""


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file's object.

    Raises: UserError for a missing or damaged file, or as `read_bytes`.
    """
    try:
        values = json.loads(read_bytes(path).decode())
    except UserError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        remedy = "take another folder or another copy"
        raise UserError(f"{path} is missing: {remedy}") from None
    except (OSError, ValueError, RecursionError) as error:
        remedy = "take another copy or an earlier checkpoint"
        raise UserError(f"{path} can't be read ({error}): {remedy}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path} holds no JSON object: take another copy of it")
    return values


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """While the block runs, no other process or thread writes a folder: its file .lock
    is locked, and stays there, empty, when the lock ends with the block or the process.

    Raises: UserError when another has it, or for a read-only folder.
    """
    path = Path(os.path.abspath(folder)) / ".lock"
    check_no_links(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, is_singleton=True)  # which the same thread may take again
        lock.acquire(blocking=False)
    except Timeout:
        remedy = "wait until it has ended, or choose another folder"
        raise UserError(f"{folder} is in use by another process: {remedy}") from None
    except OSError as error:
        problem = f"{folder} can't be written ({error})"
        raise UserError(f"{problem}: choose another folder") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def new_folder(final: str | Path, by: str) -> Iterator[Path]:
    """An empty draft that gets the name `final` when the block ends well, else goes.

    Nothing may stand at `final` but an empty folder. The draft gets a manifest, which
    says that it was made by the function `by`.
    Raises: UserError for what is there already, a full disk or an unwritable place.
    """
    final = Path(os.path.abspath(final))  # so that "." has a name
    check_no_links(final)
    if os.path.exists(final) and (not final.is_dir() or any(final.iterdir())):
        raise UserError(f"{final} exists already: choose another folder")
    try:
        draft = draft_of(final)
        draft.mkdir(parents=True)
        try:  # what is deleted in the end is what was made here, and nothing else
            yield draft
            write_manifest(draft, by)
            for path in draft.iterdir():
                path.chmod(draft.stat().st_mode & 0o666)  # readable as the folder is
                flush(path)
            flush(draft)
            give_name(draft, final)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        remedy = "free some space or choose another folder"
        raise UserError(f"{final} can't be written ({error}): {remedy}") from None


def give_name(draft: Path, final: Path) -> None:
    """Rename a folder to a name that is free, or an empty folder's. Raises: OSError."""
    if final.exists():
        final.rmdir()
    draft.rename(final)
    flush(final.parent)


def draft_of(path: Path) -> Path:
    """A name for what is not whole yet, or no longer."""
    return path.with_name(f".draft-{path.name[:60]}.{uuid4().hex[:8]}")


def remove_folder(folder: Path) -> None:
    """Delete a folder that readers may be looking at: it loses its name first."""
    shutil.rmtree(folder.rename(draft_of(folder)), ignore_errors=True)


def sweep(folder: Path) -> None:
    """Delete what killed processes left of drafts in a folder that is locked."""
    for path in folder.glob(".draft-*"):
        if re.fullmatch(r"\.draft-.+\.[0-9a-f]{8}", path.name):
            path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)


def flush(path: Path) -> None:
    """Have the system write a file, or a folder's names, through to the disk."""
    if os.name == "posix":  # Windows flushes no folders
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# -- the manifest of a folder ----------------------------------------------------------

MANIFEST = "manifest.json"


def write_manifest(folder: Path, by: str) -> None:
    """Write manifest.json: what made the folder, and each file's size and SHA-256.

    Hidden files and folders inside are left out. Raises: UserError as `write_file`.
    """
    files = {
        path.name: fingerprint(path)
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != MANIFEST and not path.name.startswith(".")
    }
    manifest = {"format": 1, "made_by": f"annotated_transformer {__version__}, {by}"}
    write_json(folder / MANIFEST, manifest | {"files": files})


def fingerprint(path: Path) -> dict[str, Any]:
    """The size and the SHA-256 of a file."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": sha256}


def verify(folder: str | Path) -> int:
    """See that a folder's files have the sizes and SHA-256 that its manifest.json says;
    of a run those of its model, checkpoints and data. Counts them.

    Raises: UserError that names a file that differs or is missing, or no manifest.
    """
    folder = Path(folder)
    folders = [folder]
    if (folder / "run.json").is_file():
        names = "model", "data", "data/train", "data/valid", "checkpoints/step-*"
        folders += [each for name in names for each in sorted(folder.glob(name))]
    folders = [each for each in folders if os.path.lexists(each / MANIFEST)]
    if not folders:
        lack = f"has no {MANIFEST}" if folder.exists() else "is not there"
        raise UserError(f"{folder} {lack}: name a folder of this package")
    listed = {p / n: about for p in folders for n, about in read_manifest(p).items()}
    for path, wanted in listed.items():
        check_regular(path)
        if not path.exists():
            raise UserError(f"{path} is missing: take another copy")
        if fingerprint(path) != wanted:
            remedy = "take another copy, unless you changed it yourself"
            raise UserError(f"{path} is not the file that was written here: {remedy}")
    return len(listed)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a manifest says of each file. Raises: UserError if it is none of ours."""
    manifest = read_json(path := folder / MANIFEST)
    known = manifest.get("format") == 1 and isinstance(manifest.get("files"), dict)
    if not known or any(name != Path(name).name for name in manifest["files"]):
        problem = f"{path} is damaged, another program's or a later version's"
        raise UserError(f"{problem}: take another copy, or update this package")
    return manifest["files"]
