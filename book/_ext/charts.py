"""Charts that a reader can touch: a page shows each as a picture, and loads the library
that brings it to life when the reader comes near. Without scripts, and in print, the
picture stays.
"""

import hashlib
import json
import re
from pathlib import Path

import vl_convert

LIBRARY = "charts.js"
# What chapters.py writes for a chart.
CHART = re.compile(
    r'<div class="vega-chart" role="img" aria-label="([^"]*)">'
    r'(<script type="application/json">(.*?)</script>)</div>',
    re.S,
)
SIZE = re.compile(r'<svg[^>]* width="([\d.]+)" height="([\d.]+)"')

# Runs inside the bundle's own function, where the library is called vegaEmbed. With
# `ast` it interprets a chart's expressions: the page's policy lets none be evaluated.
DRAW = """
for (const place of document.querySelectorAll(".vega-chart")) {
  const spec = JSON.parse(place.querySelector("script").textContent);
  const still = place.querySelector("img");
  const chart = document.createElement("div");
  vegaEmbed(chart, spec, {actions: false, ast: true, renderer: "svg"}).then(() => {
    const touched = chart.querySelector("input, select");
    chart.setAttribute("role", touched ? "group" : "img");
    chart.setAttribute("aria-label", still.alt);
    still.replaceWith(chart);
  });
}
"""


def write_library(app) -> None:
    """Sphinx event: one file for all charts, in the built book."""
    path = Path(app.outdir, "_static", LIBRARY)
    path.parent.mkdir(parents=True, exist_ok=True)
    bundle = f"(() => {{{vl_convert.javascript_bundle(DRAW)}}})();\n"
    path.write_text(bundle, encoding="utf-8")


def picture(app, spec: str) -> tuple[str, int, int]:
    """A chart as it is before anyone touches it: its file's name, width and height."""
    svg = vl_convert.vegalite_to_svg(json.loads(spec))
    width, height = (round(float(n)) for n in SIZE.search(svg).groups())
    name = f"chart-{hashlib.sha256(spec.encode()).hexdigest()[:16]}.svg"
    path = Path(app.outdir, app.builder.imagedir, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(svg, encoding="utf-8")
    return name, width, height


def show_pictures(
    app, pagename: str, templatename: str, context: dict, doctree
) -> None:
    """Sphinx event: a chart is its picture until the library draws it."""

    def still(match: re.Match) -> str:
        name, width, height = picture(app, match[3])
        up = "../" * pagename.count("/")
        image = (
            f'<img alt="{match[1]}" src="{up}{app.builder.imagedir}/{name}" '
            f'width="{width}" height="{height}" style="--width:{width}" />'
        )
        touched = " touched" if '"bind"' in match[3] else ""
        return f'<div class="vega-chart{touched}">{match[2]}{image}</div>'

    body, count = CHART.subn(still, context.get("body", ""))
    if count:
        context["body"] = body
        app.add_js_file("charts-near.js", loading_method="defer")


def setup(app):
    app.connect("builder-inited", write_library)
    app.connect("html-page-context", show_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
