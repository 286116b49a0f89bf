"""Ways to damage a file: at random places, and where it hurts.

No measurement of its own: `python -m benchmarks.promises` and the tests use it.
"""

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

Damage = Callable[[random.Random, bytes], bytes]

# What takes the place of a value in a JSON file.
ODD: list[Any] = [None, True, False, -1, 0, 1, 2, 7, 2**31 - 1, 2**31, 10**30, 1e308]
ODD += [float("nan"), float("-inf"), 0.5, "", "x" * 1000, "a\nb\x1b[31m", "ä\ud800"]
ODD += [{"Regex": "(?<n>a+)\\g<n>+b"}, {"String": ""}, 2**40, -3, "y" * 2**20]
ODD += [[], {}, [None], {"x": 1}, ["a", "a"], 10**400, "relu", "marian", "../../x"]


def flip(rng: random.Random, data: bytes) -> bytes:
    """One bit is another one."""
    if not data:
        return data
    place, found = rng.randrange(len(data)), bytearray(data)
    found[place] ^= 1 << rng.randrange(8)
    return bytes(found)


def cut(rng: random.Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data) + 1)]


def empty(rng: random.Random, data: bytes) -> bytes:
    """Nothing is left."""
    return b""


def blank(rng: random.Random, data: bytes) -> bytes:
    """A block of zeros, as a crash leaves it."""
    start = rng.randrange(len(data) + 1)
    length = min(rng.choice([1, 16, 512, 4096]), len(data) - start)
    return data[:start] + bytes(length) + data[start + length :]


def drop(rng: random.Random, data: bytes) -> bytes:
    """A piece is missing inside."""
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.randint(1, 64) :]


def insert(rng: random.Random, data: bytes) -> bytes:
    """Some bytes came in between."""
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.randbytes(rng.randint(1, 64)) + data[start:]


def start_over(rng: random.Random, data: bytes) -> bytes:
    """The beginning, where headers are, has a byte of any value."""
    if not data:
        return data
    found = bytearray(data)
    found[rng.randrange(min(len(data), 128))] = rng.randrange(256)
    return bytes(found)


def nest(rng: random.Random, data: bytes) -> bytes:
    """Brackets without end."""
    return rng.choice([b"[", b'{"a":']) * 100_000


def edit_json(rng: random.Random, data: bytes) -> bytes:
    """Any value of a JSON file becomes an odd one, goes, or gets another name."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return flip(rng, data)
    parents: list[tuple[Any, Any]] = []
    level = [tree]
    while level:
        node = level.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if len(keys) > 60:  # a vocabulary: a few of its entries are enough
            keys = rng.sample(list(keys), 20)
        parents += [(node, key) for key in keys]
        level += [node[key] for key in keys if isinstance(node[key], dict | list)]
    if not parents:
        return b"null"
    node, key = rng.choice(parents)
    kind = rng.choice(["odd", "odd", "odd", "gone", "renamed"])
    if kind == "odd":
        node[key] = rng.choice(ODD)
    else:
        value = node.pop(key)
        if kind == "renamed" and isinstance(node, dict):
            node[f"{key}_"] = value
    return json.dumps(tree).encode(errors="surrogatepass")


def edit_header(rng: random.Random, data: bytes) -> bytes:
    """The header of a safetensors file says something else."""
    if len(data) < 8:
        return data
    (length,) = struct.unpack("<Q", data[:8])
    header = edit_json(rng, data[8 : 8 + length])
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


def damages(path: Path) -> list[Damage]:
    """The ways that suit a file; what hurts most comes more than once."""
    found = [flip, cut, empty, blank, drop, insert, start_over]
    if path.suffix == ".json":
        return [*found, nest, *[edit_json] * 12]
    return [*found, *[edit_header] * 6] if path.suffix == ".safetensors" else found


def odd_file(rng: random.Random, path: Path) -> str:
    """A pipe, a link to a device or a file of eight gigabytes is there instead."""
    kind = rng.choice(["a pipe", "a link to a device", "huge"])
    if kind == "huge":
        os.truncate(path, 2**33)  # of which the disk holds nothing
        return kind
    path.unlink()
    os.mkfifo(path) if kind == "a pipe" else path.symlink_to("/dev/zero")
    return kind


def damage(rng: random.Random, folder: Path) -> str:
    """Damage one file of a folder, wherever it lies; returns what was done."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(paths)
    name = path.relative_to(folder).as_posix()
    kind = rng.random()
    if kind < 0.03:
        path.unlink()
        return f"{name} is gone"
    if kind < 0.05:
        path.unlink()
        path.mkdir()
        return f"{name} is a folder"
    if kind < 0.08:
        return f"{name} is {odd_file(rng, path)}"
    if kind < 0.11:
        other = rng.choice(paths)
        if other != path:
            shutil.copy(other, path)
        return f"{name} is {other.name}"
    way = rng.choice(damages(path))
    path.write_bytes(way(rng, path.read_bytes()))
    return f"{name}: {way.__name__}"
