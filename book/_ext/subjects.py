"""The subjects of book/index.yml, as entries of the index, which the search knows too,
and the book's own part of the search, book/search.js.
"""

from pathlib import Path

import yaml
from docutils import nodes
from sphinx import addnodes

BOOK = Path(__file__).resolve().parents[1]


def mend_search(app, config) -> None:
    """Sphinx event: the search runs this after Sphinx's part of it."""
    config.html_search_scorer = str(BOOK / "search.js")


def add_subjects(app, doctree: nodes.document) -> None:
    """Sphinx event: a chapter's subjects lead to its title."""
    subjects = yaml.safe_load((BOOK / "index.yml").read_text(encoding="utf-8"))
    title = next(doctree.findall(nodes.section), None)
    for subject in subjects.get(app.env.docname, []) if title is not None else []:
        entry = ("single", subject, title["ids"][0], "main", None)
        doctree.insert(0, addnodes.index(entries=[entry]))


def setup(app):
    app.connect("config-inited", mend_search)
    app.connect("doctree-read", add_subjects)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
