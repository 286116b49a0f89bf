"""A page with one of the book's extensions, as Sphinx builds it."""

from pathlib import Path

import pytest
from sphinx.application import Sphinx

BOOK = Path(__file__).resolve().parents[1] / "book"


def small_page(folder: Path, text: str, extension: str) -> str:
    """The address of a page of Markdown, built in a folder."""
    (folder / "index.md").write_text(text)
    settings = {
        "extensions": ["myst_parser", extension],
        "myst_enable_extensions": ["colon_fence"],
        "html_static_path": [str(BOOK / "_static")],
        "html_css_files": ["book.css"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BOOK / "_ext")
        app = Sphinx(
            folder, None, folder / "out", folder / "tree", "html", settings, status=None
        )
        app.build()
    assert app.statuscode == 0
    return (folder / "out" / "index.html").as_uri()
