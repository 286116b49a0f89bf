"""Old addresses: a page that is gone leads to where its subject stands now."""

from html import escape
from pathlib import Path

MEAN = "a-mean-of-checkpoints-is-usually-better"
FAST = "performance/how_fast.html"
MOVED = {
    "data/phrasebook": "data/pairs.html#meanings-cannot-leak",
    "training/averaging": f"training/trainer.html#{MEAN}",
    "translation/translator": "api/translation.html",
    "after/since_2017": "after/parts.html#eleven-changes-each-alone",
    "after/vision": "after/patches.html#anything-cut-up-is-a-sentence",
    "after/series": "after/patches.html#a-line-of-1970-beats-it",
    "performance/update": f"{FAST}#products-set-the-floor",
    "performance/growth": f"{FAST}#the-square-is-memory-first",
    "performance/decoding": f"{FAST}#reading-the-weights-sets-a-floor",
    "after/gpt2_bert": "after/other_weights.html",
    "interop/ctranslate2": "interop/serve.html#equal-means-token-by-token",
    "interop/onnx": "interop/serve.html#the-loop-stays-outside-the-graph",
}
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="robots" content="noindex"/>
<meta http-equiv="refresh" content="0; url={address}"/>
<title>This page has moved</title>
</head>
<body><p><a href="{address}">This page has moved.</a></p></body>
</html>
"""


def write_redirects(app, error) -> None:
    """Sphinx event: a page at each old address that opens the new one."""
    if error or app.builder.format != "html":
        return
    for old, new in MOVED.items():
        path = Path(app.outdir, f"{old}.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        address = escape("../" * old.count("/") + new)
        path.write_text(PAGE.format(address=address), encoding="utf-8")


def setup(app):
    app.connect("build-finished", write_redirects)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
