"""The contents at the side of a page: a part folds, and the one that one is in is open;
what is for developers stands at the end, apart from the way through the book.
"""

import re

PART = re.compile(
    r'<p aria-level="2" class="caption" role="heading">'
    r'<span class="caption-text">(.*?)</span></p>\s*(<ul.*?</ul>)(?=\s*(?:<p aria|$))',
    re.S,
)
# What nobody reads from front to back: no previous and next page lead there.
ASIDE = "Reference", "For developers"


def folded(contents: str) -> str:
    """The contents with each part in a fold, open where the reader is."""

    def fold(match: re.Match) -> str:
        here = " open" if 'class="current' in match[2] else ""
        return f"<details{here}><summary>{match[1]}</summary>{match[2]}</details>"

    return PART.sub(fold, contents)


def fold_parts(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: the theme's contents of a page are folded."""
    if make := context.get("generate_toctree_html"):
        context["generate_toctree_html"] = lambda *args, **kwargs: folded(
            str(make(*args, **kwargs))
        )


def end_way(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: previous and next page lead along the way through the book, which
    ends with the last chapter.
    """
    site = app.env.external_site_map
    parts = [part for part in site.root.subtrees if part.caption not in ASIDE]
    way = {site.root.docname}.union(*(part.files() for part in parts))
    _, *around = app.env.collect_relations().get(pagename, (None, None, None))
    for name, page in zip(("prev", "next"), around, strict=True):
        if not {pagename, page} <= way:
            context[name] = None


def setup(app):
    # after the theme has made its contents
    app.connect("html-page-context", fold_parts, priority=900)
    app.connect("html-page-context", end_way, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
