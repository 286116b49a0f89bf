"""The rocket's two links: Binder opens the repository itself, Colab copies of the
chapters that install the project.

Colab starts from a bare machine, so its copies begin with a cell that fetches and
installs the project, and end before the cell that exports it. `python
book/_ext/launch.py FOLDER` writes them; the publishing workflow puts them on the branch
`launch`.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/annotated-transformer/annotated-transformer"
BRANCH = "launch"
SET_UP = """#| hide
# On Colab: fetch the project, install it, and work where the chapter lies.
!git clone --quiet --depth 1 {repository} project
%pip install --quiet './project[export]' fastcore
%cd -q project/{folder}"""


def colab_copy(notebook: dict, folder: str) -> dict:
    """A chapter that sets up the machine it runs on."""
    cells = [
        cell
        for cell in notebook["cells"]
        if "nbdev_export()" not in "".join(cell["source"])
    ]
    source = SET_UP.format(repository=REPOSITORY, folder=folder)
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


def use_copies(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: the theme's Colab button leads to the copy, not to the original."""
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []) if group.get("type") == "group" else []:
            if "colab" in button.get("url", ""):
                button["url"] = button["url"].replace("/blob/main/", f"/blob/{BRANCH}/")


def setup(app):
    app.connect(
        "html-page-context", use_copies, priority=900
    )  # after the theme has made its buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    print(len(write_copies(Path(sys.argv[1]))), "chapters written for Colab")
