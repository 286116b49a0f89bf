"""What every page of the book loads and how it is laid out: its own files, the scripts
that it uses and no others, the icons that it shows and no others, a size for each
picture; and the list of all pages.
"""

import re
from functools import cache
from pathlib import Path

from docutils import nodes
from fontTools import subset
from fontTools.ttLib import TTFont

BOOK = Path(__file__).resolve().parents[1]
STATIC = BOOK / "_static"


def use_own_files(app, config) -> None:
    """Sphinx event: the book's styles, pictures and templates lie beside this folder,
    not among the chapters.
    """
    config.html_static_path = [*config.html_static_path, str(STATIC)]
    config.templates_path = [*config.templates_path, str(BOOK / "_templates")]
    config.html_logo = str(STATIC / "logo.svg")
    config.html_favicon = str(STATIC / "favicon.svg")
    config.html_math_renderer = "mathml"


# -- scripts ---------------------------------------------------------------------------

# Scripts that only some pages use, by a sign of their use.
USES = {
    "clipboard.min.js": '<div class="highlight',
    "copybutton.js": '<div class="highlight',
    "design-tabs.js": "sd-tab-set",
    "predict.js": 'class="predict"',
    "near.js": 'class="touch"',
}
# It is asked for something before other scripts run.
FIRST = "documentation_options.js"


def choose_scripts(
    app, pagename: str, templatename: str, context: dict, doctree
) -> None:
    """Sphinx event: a page loads the scripts that it uses, and paints before it runs
    them.
    """
    body, chosen = context.get("body", ""), []
    for script in context["script_files"]:
        name = Path(str(script.filename or "")).name
        if USES.get(name, "") in body:
            chosen.append(script)
            if name and name != FIRST:
                script.attributes["defer"] = "defer"
    context["script_files"] = chosen


# -- icons -----------------------------------------------------------------------------

ICON = re.compile(r'((?:\.fa-[\w-]+::?before,?)+)\{content:"\\([0-9a-f]+)[^"]*"\}')
SIGN = re.compile(r"\\([ef][0-9a-f]{3})\b|([\ue000-\uf8ff])")


def keep_used_icons(app, error) -> None:
    """Sphinx event: the icons' styles and fonts hold what the pages show."""
    folder = Path(app.outdir, "_static", "vendor", "fontawesome")
    if app.builder.format != "html" or error or not folder.exists():
        return
    pages = "".join(map(text, Path(app.outdir).rglob("*.html")))
    styles = [*Path(app.outdir, "_static").glob("**/*.css")]
    signs = {
        int(code, 16) if code else ord(sign)
        for style in styles
        if folder not in style.parents
        for code, sign in SIGN.findall(text(style))
    }
    names = set(re.findall(r"\bfa-[\w-]+", pages))

    def kept(rule: re.Match) -> str:
        used = names & set(re.findall(r"fa-[\w-]+", rule[1]))
        signs.update({int(rule[2], 16)} if used else ())
        return rule[0] if used else ""

    style = next(folder.rglob("all.min.css"))
    style.write_text(ICON.sub(kept, text(style)), encoding="utf-8")
    for font in folder.rglob("*.woff2"):
        shrink(font, signs)


def text(path: Path) -> str:
    """A file's text."""
    return path.read_text(encoding="utf-8")


def shrink(path: Path, signs: set[int]) -> None:
    """Leave only some characters in a font."""
    options = subset.Options(flavor="woff2", hinting=False, notdef_outline=True)
    font = TTFont(path)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=signs)
    cutter.subset(font)
    font.flavor = "woff2"
    font.save(path)


# -- pictures --------------------------------------------------------------------------

LEAST = 0.75  # of its size: a picture shrinks so far, and then scrolls (book.css)
COLUMN = 728  # pixels: the width of the text in a window of 1280
FIGURE = re.compile(r'<figure([^>]*>\s*<img width="(\d+)")')
DRAWING = re.compile(r'<svg class="drawing\b[^>]*>.*?</svg>', re.S)
IMAGE = re.compile(r'<img (?![^>]*\bwidth=)[^>]*?src="([^"]+\.svg)"[^>]*?/?>')
SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)(pt)?"', re.S)
HEIGHT = re.compile(r'<svg[^>]*? height="([\d.]+)(pt)?"', re.S)


@cache
def size(path: Path) -> tuple[int, int]:
    """Width and height of an SVG file in pixels."""
    start = text(path)[:4000]
    found = (SIZE.search(start), HEIGHT.search(start))
    width, height = (float(m[1]) * (4 / 3 if m[2] else 1) for m in found)
    return round(width), round(height)


def say_sizes(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: every figure says how large it is, so that the page need not jump
    when it comes.
    """

    def sized(match: re.Match) -> str:
        name = Path(match[1]).name
        source = next((k for k, v in app.builder.images.items() if v == name), None)
        if source is None:
            return match[0]
        width, height = size(Path(app.srcdir, source))
        return (
            f'<img width="{width}" height="{height}" style="--width:{width}" '
            f"{match[0][5:]}"
        )

    if "body" in context:
        body = DRAWING.sub(boxed, IMAGE.sub(sized, context["body"]))
        context["body"] = FIGURE.sub(reachable, body)


def reachable(match: re.Match) -> str:
    """A figure that scrolls in the widest window is a stop of the Tab key."""
    wide = int(match[2]) * LEAST > COLUMN
    return f'<figure tabindex="0"{match[1]}' if wide else match[0]


def boxed(match: re.Match) -> str:
    """A drawing in a box in which it can scroll."""
    start, rest = match[0].split(">", 1)
    width = re.search(r'viewBox="0 0 ([\d.]+)', start)
    style = f"--width:{width[1]}" if width else ""
    if ' style="' in start:
        start = start.replace(' style="', f' style="{style};')
    else:
        start += f' style="{style}"'
    return f'<div class="drawing-box">{start}>{rest}</div>'


def list_pages(app, error) -> None:
    """Sphinx event: llms.txt, the titles of all pages and their first lines."""
    if error:
        return
    lines = [f"# {app.config.ogp_site_name}\n"]
    for name in sorted(app.env.found_docs):
        title = app.env.titles[name].astext()
        quote = next(app.env.get_doctree(name).findall(nodes.block_quote), None)
        about = ": " + " ".join(quote.astext().split()) if quote else ""
        url = f"{app.config.ogp_site_url}{name}.html"
        lines.append(f"- [{title}]({url}){about}")
    text = "\n".join(lines) + "\n"
    Path(app.outdir, "llms.txt").write_text(text, encoding="utf-8")


def setup(app):
    # Jupyter Book sets this even where comments are left out.
    app.add_config_value("comments_config", {}, "html")
    app.connect("config-inited", use_own_files)
    app.connect("html-page-context", say_sizes)
    # after every extension has named its scripts
    app.connect("html-page-context", choose_scripts, priority=900)
    app.connect("build-finished", keep_used_icons)
    app.connect("build-finished", list_pages)
    app.add_css_file("book.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
