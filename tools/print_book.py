"""Make one PDF and one EPUB of the readers' chapters, from the built book.

    make pdf
    make epub

Chromium prints the PDF, since it sets the formulas as the pages do. Writes
annotated-transformer.pdf or .epub into book/_build/html.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from html import escape
from pathlib import Path

import yaml

from .print_chapters import HTML, ROOT, STATIC, Book, chapters, contents, file_of, style

FONTS = [STATIC / "fonts" / f"{n}.woff2" for n in ("text", "text-italic", "formulas")]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


# -- PDF -------------------------------------------------------------------------------

PAPER = """
@page { size: A4; margin: 20mm 22mm;
        @bottom-center { content: counter(page); font: 8pt Text, sans-serif; } }
.predict, .answers, main { break-after: page; }
"""


def one_page(title: str, book: Book) -> str:
    """All chapters as one page, in which each name is its chapter's."""
    cover = f'<header class="cover"><h1>{escape(title)}</h1></header>'
    text = [cover, f"<nav>{contents(book, '#')}</nav>"]
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


def write_pdf(title: str, book: Book, path: Path) -> None:
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


def copy_images(book: Book, folder: Path) -> None:
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


def navigation(title: str, book: Book) -> str:
    """The contents, by parts."""
    listed = f"<h1>{escape(title)}</h1>{contents(book)}"
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


def write_epub(title: str, online: str, book: Book, path: Path) -> None:
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
        raise SystemExit("say which: python -m tools.print_book pdf, or epub")
    known = yaml.safe_load((ROOT / "book" / "_config.yml").read_text("utf-8"))
    title, online = known["title"], known["html"]["baseurl"]
    path = HTML / f"annotated-transformer.{form}"
    book = chapters(online)
    if form == "pdf":
        write_pdf(title, book, path)
    else:
        write_epub(title, online, book, path)
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
