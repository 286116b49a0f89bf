"""Files and folders that are there whole or not at all.

Everything this package writes goes through here: written under a name that no reader
looks for, flushed to the disk, and then renamed. A folder is written by one process at
a time, and what a killed one left behind is put right by the next.
"""

import errno
import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from . import __version__
from .errors import UserError
from .locks import in_use


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
        _write_through(draft, data)
        if there:
            shutil.copymode(path, draft)
        os.replace(draft, path)
        _flush_names(path.parent)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}") from None
    finally:
        if os.path.isfile(draft):
            draft.unlink()


def _write_through(path: Path, data: bytes) -> None:
    """Write a new file through to the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _write_in_place(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}") from None


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write an object as JSON, whole. Raises: UserError as `write_whole`."""
    text = json.dumps(values, ensure_ascii=False, indent=2) + "\n"
    write_whole(path, text.encode())


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that is what its folder's manifest says, if there is one.

    Raises: UserError if it is something else, or no file but a pipe or a device, which
    might never end; OSError if it is missing or can't be read.
    """
    check_regular(path)
    data = path.read_bytes()
    if wanted := _listed(path):
        _compare(path, len(data), lambda: hashlib.sha256(data).hexdigest(), wanted)
    return data


def check_regular(path: Path) -> None:
    """Raises: UserError for a folder, a pipe or a device where a file should be."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no regular file: take another copy of the folder")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file's object. Raises: UserError for a missing or damaged file."""
    restore(path.parent)
    try:
        values = json.loads(read_bytes(path).decode())
    except UserError:
        raise
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


# -- the manifest of a folder ------------------------------------------------------------

MANIFEST = "manifest.json"


def write_manifest(folder: Path, by: str) -> None:
    """Write manifest.json: what made the folder, and each file's size and SHA-256.

    Hidden files and folders inside are left out. Raises: UserError as `write_whole`.
    """
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    files = {
        name: {
            "bytes": (folder / name).stat().st_size,
            "sha256": sha256_of(folder / name),
        }
        for name in names
        if name != MANIFEST and not name.startswith(".")
    }
    made_by = f"annotated_transformer {__version__}, {by}"
    about = {"format": 1, "made_by": made_by, "files": files}
    write_json(folder / MANIFEST, about)


def check_file(path: Path) -> None:
    """See that a file is what its folder's manifest says, if there is one.

    Raises: UserError that names the file and says how to accept it.
    """
    check_regular(path)
    if path.exists() and (wanted := _listed(path)):
        _compare(path, path.stat().st_size, lambda: sha256_of(path), wanted)


def verify(folder: str | Path, accept: bool = False) -> int:
    """See that a folder is as it was written, and all folders below it; counts files.

    Only what a manifest lists is looked at. With `accept` the files are taken as they
    are now, and the manifest is written anew. Raises: UserError that names the first
    file that differs or is missing, or when there is no manifest.
    """
    folder = Path(folder)
    found = [path.parent for path in folder.rglob(MANIFEST)]
    places = {place for place in found if not _hidden(place.relative_to(folder))}
    if accept and any((folder / n).is_file() for n in ("config.json", "pairs.json")):
        places.add(folder)
    if not places:
        raise UserError(
            f"{folder} has no {MANIFEST}: it is no folder of this package, or one of an "
            f"earlier version, for which {_accepting(folder)} writes one"
        )
    for place in sorted(places):
        if accept:
            write_manifest(place, "verify --accept")
        for name in _files(place):
            if not (place / name).exists():
                raise UserError(f"{place / name} is missing: take another copy")
            check_file(place / name)
    return sum(len(_files(place)) for place in places)


def _hidden(path: Path) -> bool:
    """Whether it lies in a draft, or in what a kill left of one."""
    return any(part.startswith(".") for part in path.parts)


def _accepting(folder: Path) -> str:
    return f"annotated-transformer verify {shlex.quote(str(folder))} --accept"


def _files(folder: Path) -> dict[str, Any]:
    """What a manifest says of each file; nothing if there is none."""
    path = folder / MANIFEST
    if not os.path.lexists(path):
        return {}
    check_regular(path)
    try:
        about = json.loads(path.read_bytes())
        files = about["files"]
        if about["format"] != 1:
            raise UserError(
                f"{path} has format {about['format']!r} and this version reads 1: "
                "update annotated_transformer"
            )
        sound = bool(files) and all(
            type(each["bytes"]) is int and isinstance(each["sha256"], str)
            for each in files.values()
        )
    except UserError:
        raise
    except (
        OSError,
        ValueError,
        RecursionError,
        LookupError,
        TypeError,
        AttributeError,
    ):
        sound = False
    if not sound:
        raise UserError(
            f"{path} is damaged: take another copy, or accept the files as they are "
            f"with {_accepting(folder)}"
        )
    return files


def _listed(path: Path) -> dict[str, Any] | None:
    """What the manifest beside a file says of it; None if there is no manifest.

    Raises: UserError if there is one without this file.
    """
    files = _files(path.parent)
    if files and path.name not in files:
        raise UserError(
            f"{path} is not in {MANIFEST}: take another copy of the folder, or accept "
            f"the file with {_accepting(path.parent)}"
        )
    return files.get(path.name)


def _compare(
    path: Path, size: int, digest: Callable[[], str], wanted: dict[str, Any]
) -> None:
    if size != wanted["bytes"]:
        fault = f"it has {size:,} bytes, not {wanted['bytes']:,}"
    elif digest() != wanted["sha256"]:
        fault = "its SHA-256 differs"
    else:
        return
    raise UserError(
        f"{path} is not the file that was written here ({fault}): take another copy, or "
        f"accept your own change with {_accepting(path.parent)}"
    )


# -- a folder ----------------------------------------------------------------------------


@contextmanager
def whole_folder(final: Path, ours: Callable[[Path], bool], by: str) -> Iterator[Path]:
    """An empty draft that gets the name `final` when the block ends well, else goes.

    What stood at `final` is replaced, if `ours` says that this package wrote it. The
    draft gets a manifest, which says that it was made by the function `by`.
    Raises: UserError for a full disk, an unwritable place, a folder that isn't ours or
    that another process writes.
    """
    final = Path(os.path.realpath(final))  # a link stays a link, and "." has a name
    if not final.name:
        raise UserError(f"{final} can't be replaced: name a folder in it")
    draft = _draft_of(final)
    try:
        with claimed(final):
            if final.exists() and any(final.iterdir()) and not ours(final):
                raise UserError(f"{final} holds other files: choose another folder")
            draft.mkdir(parents=True)
            yield draft
            write_manifest(draft, by)
            for path in draft.iterdir():
                path.chmod(draft.stat().st_mode & 0o666)  # readable as the folder is
            _flush(draft)
            _publish(draft, final)
    except OSError as error:
        raise UserError(
            f"{final} can't be written ({error}): free some space or choose another "
            "folder"
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def claimed(folder: Path, wait: bool = False) -> Iterator[None]:
    """While the block runs, this process alone writes a folder, as `in_use`; what a
    killed one left of it is put right first.
    """
    with in_use(folder, wait=wait) as outermost:
        if outermost:
            _put_right(folder)
        yield


@contextmanager
def new_folder(folder: str | Path, by: str) -> Iterator[Path]:
    """A draft that becomes `folder`, which must be empty or not be there yet.

    Raises: UserError if something lies there, or as `whole_folder`.
    """
    final = Path(folder).absolute()
    if final.exists() and (not final.is_dir() or any(final.iterdir())):
        raise UserError(
            f"{folder} is not an empty folder: choose another name or remove what lies "
            "there"
        )
    with whole_folder(final, lambda _: False, by) as draft:
        yield draft


def remove_folder(folder: Path) -> None:
    """Delete a folder that readers may be looking at: it loses its name first."""
    shutil.rmtree(folder.rename(_draft_of(folder)), ignore_errors=True)


def restore(folder: Path) -> None:
    """Bring back what a process was replacing when it was killed between two renames.

    Raises: UserError when that can't be done.
    """
    if os.path.exists(folder) or "\0" in str(folder):
        return
    folder = Path(os.path.realpath(folder))
    if not (aside := _aside(folder)).is_dir():
        return
    try:
        with claimed(folder, wait=True):
            pass
    except (OSError, UserError) as error:
        raise UserError(
            f"{folder} was not replaced to the end and can't be put right ({error}): "
            f"rename {aside} to {folder}"
        ) from None


def _put_right(folder: Path) -> None:
    """Restore the folder, or else delete what killed processes left of its versions.

    Nobody else may be writing it.
    """
    draft = re.compile(rf"\.draft-{re.escape(folder.name)}\.[0-9a-f]{{8}}")
    if (aside := _aside(folder)).is_dir():
        # an older version keeps this name only while it is whole
        aside.rename(_draft_of(folder) if folder.exists() else folder)
    for path in folder.parent.iterdir():
        if draft.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)


def _aside(folder: Path) -> Path:
    """Where the older version of a folder lies while the newer one gets its name."""
    return folder.with_name(f".old-{folder.name}")


def _draft_of(folder: Path) -> Path:
    """A name for what is not whole yet, or no longer."""
    return folder.with_name(f".draft-{folder.name}.{uuid4().hex[:8]}")


def _publish(draft: Path, final: Path) -> None:
    """Give a draft its name; a file that the draft has nothing in place of stops it."""
    there = {path.name for path in final.iterdir()} if final.exists() else set()
    if lost := there - {path.name for path in draft.iterdir()}:
        raise UserError(
            f"{final} also holds {', '.join(sorted(lost))}: move that away or choose "
            "another folder"
        )
    aside = _aside(final)
    if final.exists():
        final.rename(aside)
    try:
        os.replace(draft, final)
    except BaseException:  # an interruption, too
        if aside.exists() and not final.exists():
            aside.rename(final)
        raise
    _flush_names(final.parent)
    if aside.exists():
        with suppress(OSError):
            shutil.rmtree(aside.rename(_draft_of(final)))


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
