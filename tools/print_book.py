"""Make one PDF and one EPUB of the readers' chapters, from the built book.

    make pdf
    make epub

A page of the book becomes a chapter: what a reader touches is its still picture, what
is folded and only draws or checks is left out, and the answers stand at the chapter's
end. Chromium prints the PDF, since it sets the formulas as the pages do.
Writes annotated-transformer.pdf or .epub into book/_build/html.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "book" / "_build" / "html"
STATIC = ROOT / "book" / "_static"
STYLE = ROOT / "book" / "_print" / "print.css"
FONTS = [STATIC / "fonts" / f"{n}.woff2" for n in ("text", "text-italic", "formulas")]
LAST = "Fast and served"  # the last part that is for reading through
ALSO = ("glossary", "references")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
GONE = (
    "script, style, button, .headerlink, .exported, .verdict, .only-dark, "
    "details.hide:not(.answer), .sd-summary-state-marker, [hidden]"
)
# HTML writes these names in small letters, XML as SVG has them.
SVG = {
    "viewbox": "viewBox",
    "preserveaspectratio": "preserveAspectRatio",
    "markerwidth": "markerWidth",
    "markerheight": "markerHeight",
    "refx": "refX",
    "refy": "refY",
    "textlength": "textLength",
    "markerunits": "markerUnits",
}
SPACES = {
    "math": "http://www.w3.org/1998/Math/MathML",
    "svg": "http://www.w3.org/2000/svg",
}


def settings() -> dict:
    """The settings of the book."""
    return yaml.safe_load((ROOT / "book" / "_config.yml").read_text("utf-8"))


def parts() -> Iterator[tuple[str, list[str]]]:
    """The parts of the book that are read through: a caption, and its pages."""
    contents = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))
    for part in contents["parts"]:
        if caption := part.get("caption"):
            yield caption, [each["file"] for each in part["chapters"]]
        if caption == LAST:
            break
    yield "Reference", list(ALSO)


def file_of(page: str) -> str:
    """The name of a page's chapter."""
    return page.replace("/", "-") + ".xhtml"


@dataclass
class Chapter:
    """A page of the book as a chapter of one that is carried."""

    page: str
    included: set[str]
    online: str  # the address of the book
    images: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text = (HTML / f"{self.page}.html").read_text("utf-8")
        soup = BeautifulSoup(text, "html.parser")
        body = soup.select_one("article > section")
        if body is None:
            raise SystemExit(f"{self.page}.html has no text: run make book first")
        self.soup, self.body = soup, body
        self.answers: list[Tag] = []
        self.keep_answers()
        for each in body.select(GONE):
            each.decompose()
        self.unfold()
        self.still()
        for link in body.select("a[href]"):
            link["href"] = self.address(str(link["href"]))
        self.place_answers()
        self.title = body.h1.get_text()

    def new(self, name: str, text: str = "", **attributes: str) -> Tag:
        """An element; class_ is its class."""
        found = {key.rstrip("_"): value for key, value in attributes.items()}
        made = self.soup.new_tag(name, attrs=found)
        made.string = text
        return made

    def keep_answers(self) -> None:
        """Take the answers out of predictions, exercises and boxes, in their order."""
        for fold in self.body.select("details"):
            summary = fold.select_one("summary")
            name = re.sub(r"\s+", " ", summary.get_text(" ", strip=True))
            guess = fold.find_parent("div", class_="predict")
            if guess or re.match("Answer|Solution", name):
                summary.decompose()
                number = len(self.answers) + 1
                for child in fold.select("details.hide"):
                    child.name, child["class"] = "div", "answer"
                link = self.new("a", f"Answer {number}", href=f"#answer-{number}")
                place = self.new("p", class_="to-answer", id=f"asked-{number}")
                place.append(link)
                fold.replace_with(place)
                fold.name, fold.attrs = "div", {"id": f"answer-{number}"}
                self.answers.append(fold)

    def place_answers(self) -> None:
        """The answers at the chapter's end, each with a way back."""
        if not self.answers:
            return
        section = self.new("section", class_="answers", id="answers")
        section.append(self.new("h2", "Answers"))
        for number, answer in enumerate(self.answers, 1):
            head = self.new("h3")
            head.append(self.new("a", f"Answer {number}", href=f"#asked-{number}"))
            answer.insert(0, head)
            for each in answer.select(GONE):
                each.decompose()
            for link in answer.select("a[href]"):
                if not str(link["href"]).startswith("#asked-"):
                    link["href"] = self.address(str(link["href"]))
            section.append(answer)
        self.body.append(section)

    def unfold(self) -> None:
        """Whatever else is folded lies open; choices are a list."""
        for fold in self.body.select("details"):
            if summary := fold.select_one("summary"):
                summary.name, summary["class"] = "p", "fold-title"
            fold.name = "div"
        for question in self.body.select(".predict"):
            field_set = question.select_one("fieldset")
            field_set.name = "div"
            field_set.legend.attrs = {"class": "legend"}
            field_set.legend.name = "p"
            choices = self.new("ol")
            for label in field_set.select("label"):
                label.input.decompose()
                label.name = "li"
                choices.append(label.extract())
            field_set.append(choices)

    def still(self) -> None:
        """What moves on the page is a picture, with the address where it moves."""
        for each in self.body.select("label, input, select, textarea"):
            each.decompose()
        for touch in self.body.select(".touch"):
            for each in touch.find_all(re.compile("-")):
                each.name = "div"
            place = f"{self.online}{self.page}.html"
            note = self.new("p", class_="online")
            note.append(self.new("a", "to be touched in the online book", href=place))
            touch.append(note)
        for image in self.body.select("img[src]"):
            path = (HTML / self.page).parent / unquote(str(image["src"]))
            self.images[path.name] = path.resolve()
            image["src"] = f"images/{path.name}"

    def address(self, link: str) -> str:
        """Where a link of the page leads: to a chapter, or to the book online."""
        parsed = urlsplit(link)
        if parsed.scheme:
            return link
        anchor = f"#{parsed.fragment}" if parsed.fragment else ""
        if not parsed.path:
            return anchor or "#"
        target = urljoin(f"/{self.page}.html", parsed.path).lstrip("/")
        page = target.removesuffix(".html")
        if page in self.included:
            return file_of(page) + anchor
        return urljoin(self.online, target) + anchor

    def markup(self) -> str:
        """The chapter as XML, by EPUB's rules for formulas."""
        for each in self.body.select("[displaystyle], [scriptlevel]"):
            if each.name != "mstyle":
                del each["displaystyle"], each["scriptlevel"]
        for name, space in SPACES.items():
            for each in self.body.find_all(name):
                each["xmlns"] = space
                for child in [each, *each.find_all(True)]:
                    named = {SVG.get(k, k): v for k, v in child.attrs.items()}
                    child.attrs = named
        return self.body.decode(formatter="minimal")


def chapters(online: str) -> list[tuple[str, list[Chapter]]]:
    """All parts with their chapters."""
    plan = list(parts())
    included = {page for _, pages in plan for page in pages}
    return [
        (caption, [Chapter(page, included, online) for page in pages])
        for caption, pages in plan
    ]


# -- style -----------------------------------------------------------------------------


def style(fonts: str) -> str:
    """The styles of print, and of the book what its drawings need, in light colours."""
    book = (STATIC / "book.css").read_text("utf-8")
    colours = {
        **dict(re.findall(r"(--[\w-]+): (#\w+);", book.split("}")[0])),
        "--pst-color-text-base": "#222832",
        "--pst-color-text-muted": "#48566b",
        "--pst-color-background": "#ffffff",
        "--pst-color-surface": "#f3f4f5",
        "--pst-color-border": "#c9ced6",
    }
    drawn = re.findall(r"^\.(?:touch|drawing|map)\b(?![^{\n]*:is)[^\n]*\}$", book, re.M)
    pygments = (HTML / "_static" / "pygments.css").read_text("utf-8")
    light = re.findall(r'html\[data-theme="light"\] (\.highlight [^\n]*\})', pygments)
    sheet = "\n".join([STYLE.read_text("utf-8"), *drawn, *light])
    sheet = sheet.replace("FONTS/", fonts)
    return re.sub(r"var\((--[\w-]+)\)", lambda v: colours.get(v[1], "inherit"), sheet)


# -- PDF -------------------------------------------------------------------------------

PAPER = """
@page { size: A4; margin: 20mm 22mm;
        @bottom-center { content: counter(page); font: 8pt Text, sans-serif; } }
.predict, .answers, main { break-after: page; }
"""


def one_page(title: str, book: list[tuple[str, list[Chapter]]]) -> str:
    """All chapters as one page, in which each name is its chapter's."""
    text = [f'<header class="cover"><h1>{escape(title)}</h1></header><nav><ul>']
    for caption, group in book:
        items = (
            f'<li><a href="#{file_of(each.page)}">{escape(each.title)}</a></li>'
            for each in group
        )
        text.append(f"<li>{escape(caption)}<ul>{''.join(items)}</ul></li>")
    text.append("</ul></nav>")
    for _, group in book:
        for chapter in group:
            here = file_of(chapter.page)
            for each in chapter.body.select("[id]"):
                each["id"] = f"{here}--{each['id']}"
            for link in chapter.body.select("a[href]"):
                target = str(link["href"])
                if target.startswith("#"):
                    link["href"] = f"#{here}--{target[1:]}"
                elif re.match(r"[\w-]+\.xhtml(#|$)", target):
                    link["href"] = "#" + target.replace("#", "--")
            text.append(f'<main id="{here}">{chapter.body.decode()}</main>')
    return "\n".join(text)


def write_pdf(title: str, book: list[tuple[str, list[Chapter]]], path: Path) -> None:
    """Print all chapters. Raises: SystemExit without a browser, or if it fails."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("a PDF needs Chromium or Chrome: install one of them")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_images(book, folder / "images")
        sheet = style(f"{STATIC.as_uri()}/fonts/") + PAPER
        head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
        page = folder / "book.html"
        page.write_text(
            f'<!doctype html><html lang="en"><head>{head}<style>{sheet}</style></head>'
            f"<body>{one_page(title, book)}</body></html>",
            encoding="utf-8",
        )
        made = folder / "book.pdf"
        command = f"{browser} --headless --no-sandbox --disable-gpu --no-first-run"
        quiet = "--disable-background-networking --disable-component-update"
        subprocess.run(
            [
                *f"{command} {quiet} --disable-sync --no-pdf-header-footer".split(),
                "--generate-pdf-document-outline",
                f"--user-data-dir={folder / 'profile'}",
                f"--print-to-pdf={made}",
                page.as_uri(),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        shutil.move(made, path)


def copy_images(book: list[tuple[str, list[Chapter]]], folder: Path) -> None:
    """The pictures of all chapters in one folder."""
    folder.mkdir(parents=True)
    for _, group in book:
        for chapter in group:
            for name, path in chapter.images.items():
                shutil.copyfile(path, folder / name)


# -- EPUB ------------------------------------------------------------------------------

CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" '
    'xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book/book.opf" '
    'media-type="application/oebps-package+xml"/></rootfiles></container>'
)
TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".css": "text/css",
    ".woff2": "font/woff2",
    ".xhtml": "application/xhtml+xml",
}


def plain_drawing(path: Path) -> bytes:
    """A picture's file; one of matplotlib's by EPUB's rules for SVG."""
    if path.suffix != ".svg":
        return path.read_bytes()
    text = path.read_text("utf-8")
    text = re.sub(r"<!DOCTYPE[^>]*>|<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<path (?![^>]*\bd=)", '<path d="" ', text)
    return re.sub(r'(<image [^>]*?) id="\w+"', r"\1", text).encode()


def document(title: str, body: str) -> str:
    """One XHTML file."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" lang="en" xml:lang="en" '
        'xmlns:epub="http://www.idpf.org/2007/ops">'
        f"<head><title>{escape(title)}</title>"
        '<link rel="stylesheet" type="text/css" href="book.css"/></head>'
        f"<body>{body}</body></html>"
    )


def navigation(title: str, book: list[tuple[str, list[Chapter]]]) -> str:
    """The contents, by parts."""
    items = []
    for caption, group in book:
        inner = "".join(
            f'<li><a href="{file_of(each.page)}">{escape(each.title)}</a></li>'
            for each in group
        )
        items.append(f"<li><span>{escape(caption)}</span><ol>{inner}</ol></li>")
    listed = f"<h1>{escape(title)}</h1><ol>{''.join(items)}</ol>"
    return document(title, f'<nav epub:type="toc">{listed}</nav>')


def manifest(
    title: str, online: str, files: dict[str, bytes], spine: list[str], date: str
) -> str:
    """The list of an EPUB's files, and their order."""
    lines = []
    for number, name in enumerate(files):
        text = files[name].decode("utf-8") if name.endswith(".xhtml") else ""
        properties = [
            word
            for word, sign in (("mathml", "<math"), ("svg", "<svg"))
            if sign in text
        ]
        properties += ["nav"] if name == "contents.xhtml" else []
        extra = f' properties="{" ".join(properties)}"' if properties else ""
        lines.append(
            f'<item id="f{number}" href="{name}" '
            f'media-type="{TYPES[Path(name).suffix]}"{extra}/>'
        )
    ids = {name: f"f{number}" for number, name in enumerate(files)}
    order = "".join(f'<itemref idref="{ids[name]}"/>' for name in spine)
    return (
        '<?xml version="1.0" encoding="utf-8"?><package version="3.0" '
        'unique-identifier="id" xmlns="http://www.idpf.org/2007/opf">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="id">{online}</dc:identifier>'
        f"<dc:title>{escape(title)}</dc:title><dc:language>en</dc:language>"
        f'<meta property="dcterms:modified">{date}</meta></metadata>'
        f"<manifest>{''.join(lines)}</manifest><spine>{order}</spine></package>"
    )


def write_epub(
    title: str, online: str, book: list[tuple[str, list[Chapter]]], path: Path
) -> None:
    """Pack all chapters, with the date of the last commit."""
    seen = subprocess.run(
        ["git", "log", "-1", "--format=%cd", "--date=format:%Y-%m-%dT%H:%M:%SZ"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = {"contents.xhtml": navigation(title, book).encode()}
    for _, group in book:
        for chapter in group:
            page = document(chapter.title, chapter.markup())
            files[file_of(chapter.page)] = page.encode()
    spine = list(files)
    files["book.css"] = style("fonts/").encode()
    for font in FONTS:
        files[f"fonts/{font.name}"] = font.read_bytes()
    for _, group in book:
        for chapter in group:
            for name, source in sorted(chapter.images.items()):
                files[f"images/{name}"] = plain_drawing(source)
    listed = manifest(title, online, files, spine, seen.stdout.strip())
    draft = path.with_suffix(".part")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("book/book.opf", listed)
        for name, content in files.items():
            archive.writestr(f"book/{name}", content)
    draft.replace(path)


def main() -> None:
    """Write what was asked for."""
    form = sys.argv[1] if len(sys.argv) == 2 else ""
    if form not in ("pdf", "epub"):
        raise SystemExit("say which: python tools/print_book.py pdf, or epub")
    known = settings()
    title, online = known["title"], known["html"]["baseurl"]
    path = HTML / f"annotated-transformer.{form}"
    book = chapters(online)
    if form == "pdf":
        write_pdf(title, book, path)
    else:
        write_epub(title, online, book, path)
    print(json.dumps({"file": str(path), "bytes": path.stat().st_size}))


if __name__ == "__main__":
    main()
