"""What the theme and Sphinx leave in a page that a reader without sight, or with only a
keyboard, would stumble over.
"""

import re
from pathlib import Path

MENDS = [
    # "Skip to main content" leads past the buttons above the article, too.
    (
        r'<a href="#main-content">Skip(?=.*<article class="bd-article")',
        '<a href="#article">Skip',
    ),
    (
        r'<article class="bd-article">',
        '<article class="bd-article" id="article" tabindex="-1">',
    ),
    # All of the left sidebar is one landmark.
    (
        r'<div class="bd-sidebar-primary bd-sidebar([^"]*)">',
        r'<div class="bd-sidebar-primary bd-sidebar\1" role="region" '
        'aria-label="Book">',
    ),
    # A button is called what is written on it.
    (r'(search-button__button" )title="Search" aria-label="Search" ', r"\1"),
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
    # Roles that are out of use, and a list without items.
    (r' role="list" class="citation-list"', ' class="citation-list"'),
    (r' role="doc-biblioentry"', ""),
    # The Tab key passes over the links above exported cells, of which a chapter may
    # have dozens; the reference in the sidebar leads to the same entries.
    (
        r'(<div class="exported[^>]*>\s*<p><a) ',
        r'\1 tabindex="-1" ',
    ),
    # A corner of a table that says nothing heads no column.
    (r"<th([^>]*)>\s*(?:<p>\s*</p>)?\s*</th>", r"<td\1></td>"),
    # What has this class the theme's script gives to the Tab key, where it scrolls.
    (
        r'<div class="pst-scrollable-table-container">',
        '<div class="pst-scrollable-table-container jp-RenderedHTMLCommon">',
    ),
    # The lines of a signature are no list of definitions.
    (
        r"<dl>(\s*<dd>(?:(?!</dl>).)*?)</dl>",
        lambda lines: (
            '<span class="sig-lines">'
            + lines[1].replace("<dd>", "<span>").replace("</dd>", "</span>")
            + "</span>"
        ),
    ),
]
MENDS = [(re.compile(pattern, re.S), by) for pattern, by in MENDS]


def mend_pages(app, error) -> None:
    """Sphinx event: mend each page when all are written."""
    if app.builder.format != "html" or error:
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for pattern, by in MENDS:
            text = pattern.sub(by, text)
        page.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("build-finished", mend_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
