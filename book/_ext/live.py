"""The Transformer in the reader's browser: scripts and styles of the page "Live" and of
the form on the cover, and the shipped model's weights in the built book, as a browser
reads them (see tools/live.py).
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = "tatoeba-en-de"
SCRIPTS = {  # by page; what they load besides, they load when a reader asks
    "index": ["live/translate.js"],
    "live": [
        "live/attention.js",
        "touch/figure-one.js",
        "live/translate.js",
        "live/saved-run.js",
        "live/folder.js",
        "live/live.js",
        "live/figure.js",
        "live/panels.js",
        "live/first-run.js",
        "live/edit.js",
    ],
}


def write_weights(app) -> None:
    """Sphinx event: the shipped model, its recorded run and the package's picture of
    attention, into the built book.
    """
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from annotated_transformer.files import write_file
    from annotated_transformer.model_names import MODELS
    from tools.live import write

    if app.builder.format == "html":
        out = Path(app.outdir, "_static", "live")
        write(MODELS / MODEL, out)
        view = ROOT / "annotated_transformer" / "attention.js"
        write_file(out / view.name, view.read_bytes())
        run = (ROOT / "results" / "model" / "first-run.json").read_bytes()
        write_file(out / "first-run.js", b"Live.first = " + run.rstrip() + b";\n")


def load_scripts(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: these pages load their scripts and styles; no other page does."""
    if pagename in SCRIPTS:
        app.add_css_file("live/live.css")
    for name in SCRIPTS.get(pagename, []):
        app.add_js_file(name, loading_method="defer")


def setup(app):
    app.connect("builder-inited", write_weights)
    app.connect("html-page-context", load_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
