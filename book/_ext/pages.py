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
from sphinx.util import logging

logger = logging.getLogger(__name__)

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
# Paper is white, whatever theme the screen has.
PRINT_LIGHT = """{
  const page = document.documentElement.dataset;
  addEventListener("beforeprint", () => {
    [page.screenTheme, page.theme] = [page.theme, "light"];
  });
  addEventListener("afterprint", () => { page.theme = page.screenTheme; });
}"""
# In another page's frame, with ?embed in its address, a page is its text alone.
EMBED = """if (new URLSearchParams(location.search).has("embed"))
  document.documentElement.classList.add("embed");"""
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


# -- head ------------------------------------------------------------------------------

# docutils says how wide the page is once more than the theme does.
VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1" />'
THEME_COLOURS = """
<meta name="theme-color" media="(prefers-color-scheme: light)" content="#ffffff" />
<meta name="theme-color" media="(prefers-color-scheme: dark)" content="#14181e" />"""


def colour_head(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: the browser's own bars take the page's colour."""
    tags = context.get("metatags", "").replace(VIEWPORT, "")
    context["metatags"] = THEME_COLOURS + tags


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
SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)pt" height="([\d.]+)pt"', re.S)
GROUND = re.compile(r'(<g id="patch_\d+">\s*<path [^>]*style="fill: )#ffffff')


@cache
def size(path: Path) -> tuple[int, int]:
    """Width and height of one of matplotlib's SVG files in pixels."""
    width, height = SIZE.search(text(path)[:4000]).groups()
    return round(float(width) * 4 / 3), round(float(height) * 4 / 3)


def say_sizes(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: every figure says how large it is, so that the page need not jump
    when it comes.
    """

    def sized(match: re.Match) -> str:
        name = Path(match[1]).name
        source = next((k for k, v in app.builder.images.items() if v == name), None)
        if source is None:
            return match[0]
        drawn = Path(app.srcdir, source)
        width, height = size(drawn)
        sizes = f'width="{width}" height="{height}" style="--width:{width}"'
        if "<image" not in text(drawn):
            return f"<img {sizes} {match[0][5:]}"
        out = Path(app.outdir, app.builder.imagedir, f"dark-{name}")
        out.parent.mkdir(exist_ok=True)
        out.write_text(darkened(text(drawn)), encoding="utf-8")
        dark = f'<img class="only-dark" loading="lazy" {sizes} {match[0][5:]}'
        light = f'<img {sizes} class="only-light" {match[0][5:]}'
        return light + dark.replace(match[1], match[1].replace(name, out.name))

    if "body" in context:
        body = DRAWING.sub(boxed, IMAGE.sub(sized, context["body"]))
        context["body"] = FIGURE.sub(reachable, body)


def darkened(svg: str) -> str:
    """A picture with coloured squares for the dark theme: light lines and words, no
    ground; the squares, which a caption may call bright or dark, stay as they are.

    What is black by default turns light, and words on a square say their colour.
    """
    svg = svg.replace("stroke: #000000", "stroke: #ced6dd")
    svg = svg.replace("<svg ", '<svg fill="#ced6dd" ', 1)
    return GROUND.sub(r"\1none", svg)


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
        about = app.env.get_doctree(name).get("summary", "")
        url = f"{app.config.ogp_site_url}{name}.html"
        lines.append(f"- [{title}]({url})" + (about and f": {about}"))
    text = "\n".join(lines) + "\n"
    Path(app.outdir, "llms.txt").write_text(text, encoding="utf-8")


def check_alt_text(app, doctree: nodes.document) -> None:
    """Sphinx event: a picture that says nothing to a reader who can't see it is an
    error.
    """
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            missing = "a figure without alternative text: say '#| fig-alt: …'"
            logger.warning(missing, location=image)


# -- Colab ---------------------------------------------------------------------------


def use_copies(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: the theme's Colab button leads to the copy of a chapter that
    installs the project (tools/launch.py), on the branch "launch".
    """
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []) if group.get("type") == "group" else []:
            if "colab" in button.get("url", ""):
                button["url"] = button["url"].replace("/blob/main/", "/blob/launch/")


def load_filter(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx event: the ledger's rows can be chosen by section and label."""
    if pagename == "ledger":
        app.add_js_file("ledger.js", loading_method="defer")


def setup(app):
    # Jupyter Book sets this even where comments are left out.
    app.add_config_value("comments_config", {}, "html")
    app.connect("config-inited", use_own_files)
    app.connect("html-page-context", say_sizes)
    app.connect("html-page-context", load_filter)
    app.connect("doctree-read", check_alt_text)
    # after the theme has made its buttons, and every extension has named its scripts
    app.connect("html-page-context", use_copies, priority=900)
    app.connect("html-page-context", choose_scripts, priority=900)
    app.connect("html-page-context", colour_head, priority=900)
    app.connect("build-finished", keep_used_icons)
    app.connect("build-finished", list_pages)
    app.add_css_file("book.css")
    for script in (PRINT_LIGHT, EMBED):
        app.add_js_file(None, body=script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
