"""One place that finds, fetches and checks files of data: the table files.tsv."""

import gzip
import hashlib
import html
import io
import os
import re
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import Any

from ..errors import UserError, check_kind
from ..files import write_file
from .text_files import open_text, read_table

MOST_DOWNLOAD_BYTES = 2**30  # of a download, and of what is unpacked from it


@dataclass(frozen=True)
class DataFile:
    """A file of a named corpus: its place below the data directory, the hash of its
    content, and where to get it; of a text, its split, languages and number of lines.
    """

    corpus: str
    split: str
    pair: str
    lang: str
    lines: int
    path: str
    sha256: str = ""
    url: str = ""
    member: str = ""
    column: str = ""


@cache
def data_files() -> dict[str, DataFile]:
    """Every file of every named corpus by its path, from the table files.tsv."""
    rows: list[dict[str, Any]] = [*read_table("files.tsv")]
    return {row["path"]: DataFile(**row | {"lines": int(row["lines"])}) for row in rows}


# -- where files lie -------------------------------------------------------------------


def data_folders(root: str | Path | None = None) -> Iterator[Path]:
    """Where data may lie: below `root` or $ANNOTATED_TRANSFORMER_DATA if one is named,
    and in the cache, which comes last.

    Raises: UserError if the directory isn't there, or no home for the cache.
    """
    folder = root or os.environ.get("ANNOTATED_TRANSFORMER_DATA")
    if folder and not os.path.isdir(folder):
        raise UserError(
            f"{folder} is no directory: name the one that holds the corpora, or none "
            "for a cache"
        )
    if folder:
        yield Path(folder)
    try:
        home = Path.home()
    except RuntimeError:
        raise UserError(
            "this user has no home directory: set HOME, or ANNOTATED_TRANSFORMER_DATA"
        ) from None
    yield home / ".cache" / "annotated-transformer"


def find_file(file: DataFile, root: str | Path | None = None) -> Path:
    """Path of a file, plain or gzipped: below `root` or $ANNOTATED_TRANSFORMER_DATA,
    else in the cache, else downloaded there.

    Raises: UserError if the directory isn't there, the file can't be downloaded, or
    its content is not the published one.
    """
    for folder in data_folders(root):
        for path in (folder / file.path, folder / f"{file.path}.gz"):
            if path.is_file():
                status = path.stat()
                digest = _content_hash(path, status.st_size, status.st_mtime_ns)
                _check(path, digest, file, "remove it")
                return path
    return download_file(file, folder)


@cache
def _content_hash(path: Path, size: int, changed: int) -> str:
    """The SHA-256 of a file's unpacked content, taken once for each state of it."""
    with open_text(path) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _check(name: str | Path, digest: str, file: DataFile, remedy: str) -> None:
    """Raises: UserError if the content has another hash than the known one."""
    if file.sha256 and digest != file.sha256:
        raise UserError(
            f"{name} is not the published file (sha256 {digest[:12]}…, not "
            f"{file.sha256[:12]}…): {remedy}"
        )


# -- where files come from -------------------------------------------------------------


def download_file(file: DataFile, root: Path) -> Path:
    """Fetch a file, check it, and put it, gzipped, below `root`; with it come all other
    known files of the same archive.

    Raises: UserError if it has no source, can't be fetched or unpacked, or is not the
    published one.
    """
    hint = "set ANNOTATED_TRANSFORMER_DATA to a directory that holds it"
    if not file.url:
        raise UserError(
            f"you have to prepare {file.path} yourself, see "
            f"annotated-transformer corpora {file.corpus}; then {hint}"
        )
    together = [each for each in data_files().values() if each.url == file.url]
    try:
        data = fetch(file.url)
        texts = {each: unpack(data, each) for each in {file, *together}}
    except _BROKEN as error:
        reason = str(error).partition("\n")[0]
        raise UserError(
            f"{file.url} could not be fetched ({reason}); try again, or {hint} as "
            f"{file.path}"
        ) from None
    for each, text in texts.items():
        remedy = f"the source has changed; {hint} as {each.path}"
        _check(file.url, hashlib.sha256(text).hexdigest(), each, remedy)
        write_file(root / f"{each.path}.gz", gzip.compress(text, mtime=0))
    return root / f"{file.path}.gz"


_BROKEN = (OSError, EOFError, LookupError, UnicodeDecodeError, HTTPException) + (
    tarfile.TarError,
    zipfile.BadZipFile,
    RuntimeError,  # an encrypted archive
    zlib.error,
)


def fetch(url: str) -> bytes:
    """What an address holds. Raises: an error of `_BROKEN`, also when an address of
    https leads to one without.
    """
    with urllib.request.urlopen(url, timeout=60) as response:
        if url.startswith("https:") and not response.url.startswith("https:"):
            raise OSError(f"it leads to {response.url}, which is not encrypted")
        return _read(response)


def _read(stream: Any) -> bytes:
    """All of a stream, which may not be endless."""
    data: bytes = stream.read(MOST_DOWNLOAD_BYTES + 1) if stream else b""
    if len(data) > MOST_DOWNLOAD_BYTES:
        raise OSError(f"more than {MOST_DOWNLOAD_BYTES:,} bytes")
    return data


def unpack(data: bytes, file: DataFile) -> bytes:
    """A file's content in a download: an archive, gzip, <seg> markup or a table.

    A member that ends in "/" is a folder of an archive. Raises: an error of `_BROKEN`.
    """
    member, stream = file.member, io.BytesIO(data)
    if member and zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as packed, packed.open(member) as content:
            data = _read(content)
    elif member:
        stream.seek(0)
        with tarfile.open(fileobj=stream) as tar:
            folder = member.endswith("/")
            data = _folder(tar, member) if folder else _read(tar.extractfile(member))
    elif data.startswith(b"\x1f\x8b"):
        data = _read(gzip.GzipFile(fileobj=stream))
    lines = []
    if b"<seg" in data:
        segments = re.findall(r"<seg[^>]*>(.*?)</seg>", data.decode("utf-8"), re.DOTALL)
        lines = [" ".join(html.unescape(text).split()) for text in segments]
    if file.column:
        rows = data.decode("utf-8").removesuffix("\n").split("\n")
        lines = [row.removesuffix("\r").split("\t")[int(file.column)] for row in rows]
    return "".join(f"{line}\n" for line in lines).encode() if lines else data


def _folder(tar: tarfile.TarFile, name: str) -> bytes:
    """The texts of a folder by number, as lines NUMBER<TAB>NUMBER<TAB>TEXT; a file is
    named after both numbers, as 17_4.txt.
    """
    rows, size = {}, 0
    for member in tar:
        if member.isfile() and member.name.startswith(name):
            number, second = Path(member.name).stem.split("_")
            text = re.sub(rb"[\t\r\n]", b" ", _read(tar.extractfile(member)))
            rows[int(number)] = f"{number}\t{second}\t".encode() + text + b"\n"
            size += len(text)
        if size > MOST_DOWNLOAD_BYTES:
            raise OSError(f"more than {MOST_DOWNLOAD_BYTES:,} bytes")
    return b"".join(rows[number] for number in sorted(rows))


def own_path(data: str | Path, name: str) -> Path | None:
    """The path of data of one's own; None for the named data set.

    Raises: UserError where there is nothing of that name.
    """
    check_kind("data", data, str | Path, f"{name!r}, or the path of your own")
    if str(data) == name:
        return None
    if not Path(data).exists():
        raise UserError(f"{data}: no such file or folder; or name {name}")
    return Path(data)
