"""Turn nbdev notebooks into book chapters while Sphinx reads them; the files themselves
stay as they are.

Three things happen to a notebook at `source-read`:

1. nbdev's directives (`#| export`, `#| hide`, …) become the tags and cell metadata that
   myst-nb knows, and disappear.
2. Above each exported cell stands a link to its entry.
3. A hidden first cell sets up figures and charts, and names a hash of all that the
   chapter's outputs depend on (dependencies.py).
"""

import json
import os
import re
from pathlib import Path

from api_pages import public_names
from dependencies import (
    PACKAGE,
    chapter_modules,
    direct_dependencies,
    fingerprint,
    lazy_names,
    read,
)
from nbclient import NotebookClient
from sphinx.util import logging

logger = logging.getLogger(__name__)

DIRECTIVE = re.compile(r"^#\|\s*([\w-]+)\s*:?\s*(.*?)\s*$")
KNOWN = {"default_exp", "export", "exports", "exporti", "hide", "echo", "code-fold"}
KNOWN |= {"eval", "slow", "label", "fig-cap", "fig-alt"}
SLOW_NOTE = (
    "*The next cell takes minutes: `make test-slow` runs it, the building of "
    "this book does not.*"
)

FONT = Path(__file__).resolve().parents[1] / "_static" / "fonts" / "figures.ttf"
QUIET = """
import warnings
warnings.filterwarnings("ignore", message="IProgress not found")
"""
# A figure appears once, whether it is the value of its cell or only left open by it.
FIGURES = f"""
from IPython.core.pylabtools import print_figure
from matplotlib import font_manager, pyplot, rcParams
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats
def _figure_for_the_book(figure):
    pyplot.close(figure)
    return print_figure(figure, "svg")
get_ipython().run_line_magic("matplotlib", "inline")
set_matplotlib_formats("svg")
_formatters = get_ipython().display_formatter.formatters
_formatters["image/svg+xml"].for_type(Figure, _figure_for_the_book)
rcParams["svg.hashsalt"] = "book"
font_manager.fontManager.addfont({str(FONT)!r})
rcParams["font.family"] = ["Inter", "DejaVu Sans"]
rcParams["mathtext.fontset"] = "stix"
"""
CHARTS = """
import html, json
import altair
def _chart_for_the_book(spec, **_):
    text = json.dumps(spec, sort_keys=True).replace("<", "\\\\u003c")
    words = spec.get("description") or spec.get("title") or ""
    label = html.escape(str(words), quote=True)
    data = f'<script type="application/json">{text}</script>'
    start = f'<div class="vega-chart" role="img" aria-label="{label}">'
    return {"text/html": f"{start}{data}</div>"}
altair.renderers.register("book", _chart_for_the_book)
altair.renderers.enable("book")
"""


# -- directives ------------------------------------------------------------------------


def unquoted(value: str) -> str:
    """A directive's value without the quotation marks that YAML allows around it."""
    quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return value[1:-1].replace('\\"', '"') if quoted else value


def split_directives(source: str) -> tuple[dict[str, str], str]:
    """The nbdev directives of a cell by name, and the cell without them."""
    directives, lines = {}, []
    for line in source.splitlines():
        match = DIRECTIVE.match(line)
        if match:
            directives[match[1]] = unquoted(match[2])
        else:
            lines.append(line)
    return directives, "\n".join(lines).strip("\n")


def metadata(directives: dict[str, str], body: str = "") -> dict:
    """The tags and settings by which myst-nb does what the directives ask for.

    A fold is named by the comment that its cell begins with.
    """
    switches = ("echo", "eval")
    off = {name for name in switches if directives.get(name) == "false"}
    wanted = {
        "remove-cell": "hide" in directives,
        "remove-input": "echo" in off,
        "hide-input": directives.get("code-fold") == "true",
        "skip-execution": "eval" in off or "slow" in directives,
    }
    result: dict = {"tags": [tag for tag, yes in wanted.items() if yes]}
    figure = {"name": directives.get("label"), "caption": directives.get("fig-cap")}
    settings = {
        "figure": {key: value for key, value in figure.items() if value},
        "image": {"alt": directives["fig-alt"]} if "fig-alt" in directives else {},
    }
    settings = {key: value for key, value in settings.items() if value}
    if wanted["hide-input"] and (title := re.match(r"# (.+)", body)):
        for way in ("show", "hide"):
            settings[f"code_prompt_{way}"] = title[1]
    return {**result, **({"mystnb": settings} if settings else {})}


def badge(module: str, source: str) -> str:
    """The line above an exported cell: a link to its entry in the API pages."""
    name = next(iter(public_names(source)), "")
    kind, entry = ("py:obj", f"{module}.{name}") if name else ("py:mod", module)
    return f"::::{{container}} exported\n{{{kind}}}`source <{entry}>`\n::::"


# -- the chapter -----------------------------------------------------------------------


def set_up_cell(code: list[str]) -> str:
    """The hidden first cell: what the chapter depends on, and how its figures are
    shown.
    """
    modules = chapter_modules(code)
    text = "\n".join([*code, *(read(name) for name in modules)])
    figures = FIGURES if re.search(r"^\s*(import|from) matplotlib", text, re.M) else ""
    charts = CHARTS if re.search(r"^\s*(import|from) altair", text, re.M) else ""
    return f"# depends on {fingerprint(code)}{QUIET}{figures}{charts}"


def chapter(notebook: dict, where: str) -> dict:
    """The notebook as the book shows and runs it."""
    cells, code, module = [], [], ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            cells.append({**cell, "source": source})
            continue
        directives, body = split_directives(source)
        for name in sorted(set(directives) - KNOWN):
            logger.warning("unknown directive '#| %s'", name, location=where)
        if "default_exp" in directives:
            module = f"{PACKAGE}.{directives['default_exp']}"
        if not body or "nbdev_export()" in body:
            continue
        exported = {"export", "exports", "exporti"} & set(directives)
        if exported and "hide" not in directives:
            cells.append(markdown(badge(module, body)))
        if "slow" in directives and "hide" not in directives:
            cells.append(markdown(SLOW_NOTE))
        cells.append(code_cell(body, metadata(directives, body)))
        code.append(body)
    if code:
        cells.insert(0, code_cell(set_up_cell(code), {"tags": ["remove-cell"]}))
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    return {**notebook, "cells": cells}


def chapter_text(text: str, where: str) -> str:
    """A notebook file's text as the book shows and runs it."""
    direct_dependencies.cache_clear()
    lazy_names.cache_clear()
    return json.dumps(chapter(json.loads(text), where))


def code_cell(source: str, metadata: dict) -> dict:
    """A cell of code that has not run."""
    fresh = {"cell_type": "code", "outputs": [], "execution_count": None}
    return {**fresh, "source": source, "metadata": metadata}


def markdown(source: str) -> dict:
    """A Markdown cell."""
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def own_kernel_profile(app) -> None:
    """Sphinx event: chapters run with a profile of their own, so that a reader's
    start-up files can't change them.
    """
    profile = Path(app.outdir).parent / ".ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    settings = "c.IPKernelApp.log_level = 40\nc.HistoryManager.enabled = False\n"
    (profile / "ipython_kernel_config.py").write_text(settings, encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(profile.parent)
    # seconds; a busy machine is no reason to give up
    NotebookClient.startup_timeout.default_value = 300


def read_chapter(app, docname: str, source: list[str]) -> None:
    """Sphinx event: rewrite a notebook's text before it is parsed."""
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        source[0] = chapter_text(source[0], docname)


def setup(app):
    app.connect("builder-inited", own_kernel_profile)
    app.connect("source-read", read_chapter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
