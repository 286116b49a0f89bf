"""What other sites show of a page that is shared: the sentence below its title, whole,
and its first figure.
"""

import io
from html import escape
from pathlib import Path

import vl_convert
from docutils import nodes
from PIL import Image
from sphinx.addnodes import pending_xref
from sphinxext import opengraph

PLACE = (740, 40, 1106, 410)  # of the figure on a card of 1146 by 600 pixels


def summarise(app, doctree: nodes.document) -> None:
    """Sphinx event: a page's summary is the sentence that is quoted below its title."""
    for quote in list(doctree.findall(nodes.block_quote))[:1]:
        said = quote.deepcopy()
        for reference in list(said.findall(pending_xref)):
            if reference.get("refdomain") == "cite":
                reference.parent.remove(reference)
        doctree["summary"] = " ".join(said.astext().split()).replace(" ,", ",")


def first_figure(folder: Path, doctree: nodes.document) -> Path | None:
    """The file of a page's first drawn figure, if it has one."""
    files = (folder / image["uri"] for image in doctree.findall(nodes.image))
    return next((each for each in files if each.suffix == ".svg"), None)


def paste(figure: Path, card: Path) -> None:
    """Put a figure into the upper right corner of a card, on white."""
    drawn = vl_convert.svg_to_png(figure.read_text("utf-8"), scale=2)
    picture = Image.open(io.BytesIO(drawn)).convert("RGBA")
    left, top, right, bottom = PLACE
    picture.thumbnail((right - left, bottom - top))
    with Image.open(card) as before:
        whole = before.convert("RGB")
    whole.paste("white", PLACE)
    place = right - picture.width, (top + bottom - picture.height) // 2
    whole.paste(picture, place, picture)
    whole.save(card)


def replace_defaults() -> None:
    """The extension takes a page's first 200 letters, and the same sign for all."""
    first_letters, plain_card = opengraph.get_description, opengraph.create_social_card

    def described(doctree: nodes.document, *limits) -> str:
        return escape(doctree.get("summary", "")) or first_letters(doctree, *limits)

    def with_figure(*texts, srcdir, outdir, env, **more) -> Path:
        options, site, title, *rest, page = texts
        texts = options, "" if site == title else site, title, *rest, page
        card = plain_card(*texts, srcdir=srcdir, outdir=outdir, env=env, **more)
        if figure := first_figure(Path(srcdir), env.get_doctree(page)):
            paste(figure, Path(outdir, card))
        return card

    opengraph.get_description = described
    opengraph.create_social_card = with_figure


def setup(app):
    replace_defaults()
    app.connect("doctree-read", summarise)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
