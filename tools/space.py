"""The page "Live" as a static Space of the Hugging Face Hub, from the built book.

    python -m tools.space FOLDER

Writes index.html, what it needs, and a README.md whose head says to the Hub what the
folder is. Links to other chapters lead to the published book.
"""

import re
import shutil
import sys
from pathlib import Path

from .addresses import wanted

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "book/_build/html"
HEAD = """---
title: A Transformer in your browser
emoji: 🔎
colorFrom: blue
colorTo: yellow
sdk: static
pinned: false
license: mit
---
English to German by a Transformer of 8.8 MB that runs in the page: see each head's
attention, the beam and what happens without a part. A page of {book}.
"""


def write_space(folder: Path) -> None:
    """Raises: SystemExit before the book is built, or for a folder that is there."""
    if not (HTML / "live.html").exists():
        raise SystemExit("the book isn't built: make book")
    if folder.exists():
        raise SystemExit(f"{folder} exists already: choose another name")
    book = wanted(ROOT)[1]
    page = (HTML / "live.html").read_text(encoding="utf-8")
    local = r'href="(?!_static/|#|[a-z]+:)([^"]+)"'
    page = re.sub(local, rf'href="{book}/\1"', page)
    shutil.copytree(HTML / "_static", folder / "_static")
    figure = folder / "_static/live/figure.js"
    script = figure.read_text(encoding="utf-8").replace("`model/", f"`{book}/model/")
    figure.write_text(script, encoding="utf-8")
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / "README.md").write_text(HEAD.format(book=book), encoding="utf-8")


if __name__ == "__main__":
    write_space(Path(sys.argv[1]))
