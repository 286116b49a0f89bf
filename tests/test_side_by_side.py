"""Chapters run side by side: what ran is kept, and an error is still the build's."""

import io
import re
from pathlib import Path

import nbformat
import pytest
from sphinx.application import Sphinx

EXTENSIONS = Path(__file__).resolve().parents[1] / "book" / "_ext"


def build(folder: Path) -> tuple[str, str]:
    """Sphinx's messages and warnings for the notebooks in folder/pages."""
    status, warning = io.StringIO(), io.StringIO()
    settings = {"extensions": ["myst_nb", "chapters", "side_by_side"]}
    settings |= {"nb_execution_mode": "cache", "root_doc": "good", "language": "en"}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXTENSIONS)
        app = Sphinx(
            folder / "pages",
            None,
            folder / "out" / "html",
            folder / "out" / "tree",
            "html",
            settings,
            status=status,
            warning=warning,
        )
        app.build()
    return status.getvalue(), warning.getvalue()


def write_notebook(path: Path, code: str) -> None:
    """A notebook with a title and one cell."""
    cells = [nbformat.v4.new_markdown_cell("# Title")]
    cells.append(nbformat.v4.new_code_cell(code))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


def test_a_chapter_runs_once_and_an_error_is_reported(tmp_path):
    (tmp_path / "pages").mkdir()
    write_notebook(tmp_path / "pages" / "good.ipynb", "print(6 * 7)")
    write_notebook(tmp_path / "pages" / "bad.ipynb", "1 / 0")
    messages, warnings = build(tmp_path)
    assert re.findall(r"(\w+)\.ipynb: executed", messages).count("good") == 1
    assert "Using cached notebook" in messages
    assert "Executing notebook failed" in warnings
    assert "42" in (tmp_path / "out" / "html" / "good.html").read_text()

    write_notebook(tmp_path / "pages" / "bad.ipynb", "print(1)")
    messages, warnings = build(tmp_path)
    assert re.findall(r"(\w+)\.ipynb: executed", messages) == ["bad"]
    assert "Executing notebook failed" not in warnings
