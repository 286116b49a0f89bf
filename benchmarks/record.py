"""What every benchmark shares: its command line, where and when it ran, its record."""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from annotated_transformer.files import read_json, write_file, write_json

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"


def command_line(documentation: str | None) -> argparse.ArgumentParser:
    """A parser whose `--help` is the module's documentation.

    Every benchmark begins with it, so this is when the code that runs is looked at:
    later, a benchmark may have changed the tree itself.
    """
    code()
    return argparse.ArgumentParser(
        description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def corpora(parser: argparse.ArgumentParser) -> Path:
    """The folder of the corpora; ends the program if none is named."""
    named = os.environ.get("ANNOTATED_TRANSFORMER_DATA")
    if not named:
        parser.error("set ANNOTATED_TRANSFORMER_DATA to the folder of the corpora")
    return Path(named)


def folder(text: str) -> Path:
    """The type of an argument that names a folder, which must be there."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return Path(text)


# -- provenance ------------------------------------------------------------------------


def provenance(*packages: str) -> dict[str, Any]:
    """How a number came about: command, code, day, machine and versions."""
    return {
        "command": command(),
        **code(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions(*packages),
    }


def command() -> str:
    """The command that is running, as one would type it."""
    spec = sys.modules["__main__"].__spec__
    module = ["-m", spec.name.removesuffix(".__main__")] if spec else [sys.argv[0]]
    return shlex.join(["python", *module, *sys.argv[1:]])


@cache
def code() -> dict[str, Any]:
    """The commit, and whether the tree was clean but for results/; None without Git.

    As it was when this process asked first.
    """

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout

    try:
        changed = git("status", "--porcelain", "--", ".", ":!results")
        return {"commit": git("rev-parse", "HEAD").strip(), "clean": not changed}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "clean": None}


def has_amx() -> bool:
    """Whether the processor has units for products of matrices in bfloat16."""
    flags = Path("/proc/cpuinfo")
    return flags.exists() and "amx_tile" in flags.read_text(encoding="utf-8")


def machine() -> str:
    """The class of machine in words: processor, cores, widest units, and the GPU."""
    widest = torch.backends.cpu.get_cpu_capability() + ", AMX" * has_amx()
    cpu = f"CPU, {platform.machine()}, {os.cpu_count()} cores, {widest}"
    gpu = torch.cuda.is_available() and torch.cuda.get_device_name()
    return f"{cpu}; {gpu}" if gpu else cpu


def versions(*packages: str) -> dict[str, str | None]:
    """The versions of Python, PyTorch and some more packages; None: not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in ("torch", *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


# -- records ---------------------------------------------------------------------------


def load(place: str) -> dict[str, Any]:
    """An earlier record, whose parts a benchmark may keep; empty if there is none."""
    path = RESULTS / place
    return read_json(path) if path.exists() else {}


def save(place: str, found: dict[str, Any], *packages: str) -> None:
    """Write results/`place`: how it was measured, and what was found.

    What `found` says about its provenance itself stays as it says.
    """
    write_json(RESULTS / place, provenance(*packages) | found)
    print(f"wrote {RESULTS / place}", file=sys.stderr)


def save_line(place: str, found: dict[str, Any], *packages: str) -> None:
    """`save` in one line, for a page's script that carries all of it to a reader."""
    record, tight = provenance(*packages) | found, (",", ":")
    text = json.dumps(record, ensure_ascii=False, separators=tight)
    write_file(RESULTS / place, text.encode() + b"\n")
    print(f"wrote {RESULTS / place}", file=sys.stderr)


def read_runs(place: str) -> list[dict[str, Any]]:
    """The runs of a study, a line each of results/`place`; none without the file."""
    path = RESULTS / place
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def add_run(place: str, found: dict[str, Any], *packages: str) -> None:
    """Add a run and its provenance to a study, as the last line of results/`place`."""
    path = RESULTS / place
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(found | provenance(*packages), ensure_ascii=False)
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    print(f"results/{place}: {found}", file=sys.stderr)
