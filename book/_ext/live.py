"""What the page "Live" needs: its scripts and styles on that page alone, and the
shipped model's weights in the built book, as a browser reads them (see tools/live.py).
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE, MODEL = "live", "tatoeba-en-de"


def write_weights(app) -> None:
    """Sphinx event: the shipped model for the page, into the built book."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from annotated_transformer.loading import PRETRAINED
    from tools.live import write

    if app.builder.format == "html":
        write(PRETRAINED / MODEL, Path(app.outdir, "_static", "live"))


def load_scripts(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: the page loads its scripts and styles; no other page does."""
    if pagename == PAGE:
        app.add_css_file("live/live.css")
        for name in ("transformer.js", "live.js"):
            app.add_js_file(f"live/{name}", loading_method="defer")


def setup(app):
    app.connect("builder-inited", write_weights)
    app.connect("html-page-context", load_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
