"""Copies of the chapters for Colab, to which the rocket on each page leads.

Colab's machine has PyTorch and much else, but not this project: its copies begin with
a cell that fetches and installs it, and end before the cell that exports it. `python
tools/launch.py FOLDER` writes them; the publishing workflow puts them on the branch
"launch".
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/annotated-transformer/annotated-transformer"
SET_UP = """#| hide
# On Colab: fetch the project, install it, and work where the chapter lies.
!git clone --quiet --depth 1 {repository} project
%pip install --quiet './project[{extras}]'
%cd -q project/{folder}"""
# For these a chapter needs other engines' formats; Colab has Altair.
ENGINES = re.compile(r"^import (ctranslate2|transformers)\b", re.M)


def colab_copy(notebook: dict, folder: str) -> dict:
    """A chapter that sets up the machine it runs on."""
    cells = [
        cell
        for cell in notebook["cells"]
        if "nbdev_export()" not in "".join(cell["source"])
    ]
    engines = any(ENGINES.search("".join(cell["source"])) for cell in cells)
    extras = "export,plots" if engines else "plots"
    source = SET_UP.format(repository=REPOSITORY, extras=extras, folder=folder)
    first = {
        "cell_type": "code",
        "execution_count": None,
        "id": "set-up",
        "metadata": {},
        "outputs": [],
    }
    return {**notebook, "cells": [{**first, "source": source}, *cells]}


def write_copies(target: Path) -> list[Path]:
    """Write Colab's copy of every chapter under `target`, in the original's folders."""
    written = []
    for path in sorted(ROOT.glob("nbs/**/*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        place = path.relative_to(ROOT)
        copy = colab_copy(
            json.loads(path.read_text(encoding="utf-8")), place.parent.as_posix()
        )
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        (target / place).write_text(
            json.dumps(copy, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        written.append(target / place)
    return written


if __name__ == "__main__":
    print(len(write_copies(Path(sys.argv[1]))), "chapters written for Colab")
