"""What a page needs to work from a disk, with no network: the libraries for formulas
and charts lie in the book.
"""

import re
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


# The theme's icons are drawn from its stylesheet and fonts; the script that comes with
# them (1.45 MB, and every page waits for it) draws nothing more.
ICON_SCRIPT = re.compile(r'<script src="[^"]*fontawesome[^"]*"></script>\n?')


def leave_out_icon_script(app, error) -> None:
    """Sphinx event: no page loads the script of the icons."""
    if app.builder.format == "html" and not error:
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            page.write_text(ICON_SCRIPT.sub("", text), encoding="utf-8")


def use_own_files(app, config) -> None:
    """Sphinx event: the book's styles and pictures lie beside this folder, not among
    the chapters.
    """
    config.html_static_path = [*config.html_static_path, str(STATIC)]
    config.html_logo = str(STATIC / "logo.svg")
    config.html_favicon = str(STATIC / "favicon.svg")
    config.mathjax_path = FORMULAS


def setup(app):
    # Jupyter Book sets this even where comments are left out.
    app.add_config_value("comments_config", {}, "html")
    app.connect("config-inited", use_own_files)
    app.connect("builder-inited", write_libraries)
    app.connect("html-page-context", load_charts)
    app.connect("build-finished", leave_out_icon_script)
    app.add_css_file("book.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
