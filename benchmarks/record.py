"""What every benchmark shares: its command line, its machine, writing its record."""

import argparse
import os
import platform
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from annotated_transformer.files import read_json, write_json

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"


def command_line(documentation: str | None) -> argparse.ArgumentParser:
    """A parser whose `--help` is the module's documentation."""
    return argparse.ArgumentParser(
        description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def folder(text: str) -> Path:
    """The type of an argument that names a folder, which must be there."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return Path(text)


def has_amx() -> bool:
    """Whether the processor has units for products of matrices in bfloat16."""
    flags = Path("/proc/cpuinfo")
    return flags.exists() and "amx_tile" in flags.read_text(encoding="utf-8")


def machine() -> str:
    """The processor in words: its kind, its cores, its widest units."""
    widest = torch.backends.cpu.get_cpu_capability() + ", AMX" * has_amx()
    return f"CPU, {platform.machine()}, {os.cpu_count()} cores, {widest}"


def versions(*packages: str) -> dict[str, str | None]:
    """The versions of Python, PyTorch and some more packages; None: not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in ("torch", *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def command() -> str:
    """The command that is running, as one would type it."""
    spec = sys.modules["__main__"].__spec__
    words = ["python", "-m", spec.name if spec else sys.argv[0], *sys.argv[1:]]
    return shlex.join(words)


def load(place: str) -> dict[str, Any]:
    """An earlier record, whose parts a benchmark may keep; empty if there is none."""
    path = RESULTS / place
    return read_json(path) if path.exists() else {}


def save(place: str, found: dict[str, Any], *packages: str) -> None:
    """Write results/`place`: how it was measured, and what was found.

    What `found` says about command, machine or versions itself stays as it says.
    """
    about = {
        "command": command(),
        "machine": machine(),
        "versions": versions(*packages),
    }
    path = RESULTS / place
    write_json(path, about | found)
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    print(f"wrote {name}", file=sys.stderr)
