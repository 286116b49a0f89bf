"""The Content-Security-Policy in every page's head: the browser runs what the book
brings and nothing that an address, a model's file or a saved run might smuggle in.
Scripts and handlers that stand in a page are let in by their SHA-256, each in its own
page alone; text is never evaluated.
"""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

# Firefox doesn't count a page on a disk among its "self".
OURS = "'self' file:"
# Widths and colours stand in the pages' style attributes, pictures in the theme's
# styles.
EVERYWHERE = {
    "default-src": "'none'",
    "style-src": f"{OURS} 'unsafe-inline'",
    "img-src": f"{OURS} data:",
    "font-src": OURS,
    "form-action": OURS,
    "base-uri": "'none'",
}
# What a page may do besides, by what stands in it: a worker is made of the text of the
# Transformer, or of attention, which a reader may edit; search fetches excerpts.
WORKER = {"connect-src": "'self'", "worker-src": "blob:"}
BY_CONTENT = {
    "_static/live/translate.js": WORKER,
    "<part-switch": WORKER,
    "<beam-steps": WORKER,
    "<attention-check": {"worker-src": "blob:"},
    "_static/searchtools.js": {"connect-src": "'self'"},
}
CHARSET = re.compile(r'<meta charset="[^"]*" ?/?>')
START = '<meta http-equiv="Content-Security-Policy"'


class Code(HTMLParser):
    """The code that stands in a page: scripts without a file, and handlers."""

    def __init__(self, page: str):
        super().__init__()
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self.within = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        runs = "src" not in found and "json" not in (found.get("type") or "")
        self.within = tag == "script" and runs
        if self.within:
            self.scripts.append("")
        self.handlers += [v or "" for k, v in attrs if k.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        self.within = False

    def handle_data(self, data: str) -> None:
        if self.within:
            self.scripts[-1] += data


def hashes(codes: list[str]) -> list[str]:
    """What lets each piece of code in."""
    digests = [hashlib.sha256(code.encode()).digest() for code in dict.fromkeys(codes)]
    return [f"'sha256-{base64.b64encode(each).decode()}'" for each in digests]


def policy(page: str) -> str:
    """The tightest policy that a page works under."""
    code = Code(page)
    handlers = hashes(code.handlers)
    listed = [
        *hashes(code.scripts),
        *(["'unsafe-hashes'"] if handlers else []),
        *handlers,
    ]
    rules = {**EVERYWHERE, "script-src": " ".join([OURS, *listed])}
    for mark, more in BY_CONTENT.items():
        rules |= more if mark in page else {}
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


def write_policies(app, error) -> None:
    """Sphinx event: each page that was written gets its policy, before all else that it
    loads.
    """
    if app.builder.format != "html" or error:
        return
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        if "_static" in path.relative_to(app.outdir).parts or START in page:
            continue
        line = f'{START} content="{policy(page)}" />'
        page = CHARSET.sub(lambda found, line=line: f"{found[0]}\n    {line}", page, 1)
        path.write_text(page, encoding="utf-8")


def setup(app):
    app.connect("build-finished", write_policies)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
