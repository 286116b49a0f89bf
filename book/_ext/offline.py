"""What a page needs to work from a disk, with no network: the libraries for formulas
and charts lie in the book.
"""

from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile

import vl_convert

STATIC = Path(__file__).resolve().parents[1] / "_static"
FORMULAS = "mathjax.js"
CHARTS = "charts.js"

# Runs inside the bundle's own function, where the library is called vegaEmbed.
DRAW = """
for (const place of document.querySelectorAll(".vega-chart")) {
  const spec = JSON.parse(place.querySelector("script").textContent);
  vegaEmbed(place, spec, {actions: false, renderer: "svg"});
}
"""


def write_libraries(app) -> None:
    """Sphinx event: put one file for all formulas and one for all charts into the built
    book.
    """
    folder = Path(app.outdir, "_static")
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(
        next(iter(find_spec("sphinx-mathjax-offline").submodule_search_locations))
    )
    copyfile(source / "static" / "mathjax" / "tex-svg-full.js", folder / FORMULAS)
    if not (folder / CHARTS).exists():
        (folder / CHARTS).write_text(
            f"(() => {{{vl_convert.javascript_bundle(DRAW)}}})();\n", encoding="utf-8"
        )


def load_charts(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: a page with charts loads the library that draws them; no other page
    does.
    """
    if 'class="vega-chart"' in context.get("body", ""):
        app.add_js_file(CHARTS, loading_method="defer")


def use_own_files(app, config) -> None:
    """Sphinx event: the book's styles and pictures lie beside this folder, not among
    the chapters.
    """
    config.html_static_path = [*config.html_static_path, str(STATIC)]
    config.html_logo = str(STATIC / "logo.svg")
    config.html_favicon = str(STATIC / "favicon.svg")
    config.mathjax_path = FORMULAS


def setup(app):
    app.add_config_value(
        "comments_config", {}, "html"
    )  # Jupyter Book sets it even where comments are left out
    app.connect("config-inited", use_own_files)
    app.connect("builder-inited", write_libraries)
    app.connect("html-page-context", load_charts)
    app.add_css_file("book.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
