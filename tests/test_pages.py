"""The rendered book: what a reader sees, with no network. Build it first: make book."""

import json
import os
import re
import socket
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browser import BOOK, PREFIX

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted(
    path
    for path in (ROOT / "nbs").rglob("*.ipynb")
    if ".ipynb_checkpoints" not in path.parts
)
PAGES = sorted(
    path
    for path in BOOK.rglob("*.html")
    if "_static" not in path.relative_to(BOOK).parts
)

pytestmark = pytest.mark.skipif(
    not (BOOK / "index.html").exists(), reason="the book is not built: run make book"
)
each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda path: path.relative_to(BOOK).as_posix()
)
each_chapter = pytest.mark.parametrize(
    "chapter", CHAPTERS, ids=lambda path: path.relative_to(ROOT / "nbs").as_posix()
)


class Page(HTMLParser):
    """The parts of a page that the tests look at."""

    def __init__(self, path: Path):
        super().__init__(convert_charrefs=True)
        self.path, self.tags, self.text, self.depth_of_code = path, [], [], 0
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        self.depth_of_code += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.depth_of_code -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self.depth_of_code:
            self.text.append(data)

    def all(self, *tags: str) -> list[dict[str, str]]:
        """The attributes of every tag of some kinds."""
        return [attributes for tag, attributes in self.tags if tag in tags]


@pytest.fixture(scope="module")
def parsed() -> dict[Path, Page]:
    """Every page, parsed once."""
    return {path: Page(path) for path in PAGES}


def private_words() -> set[str]:
    """What only the machine that built the book knows: its places, its name, and the
    paths in its environment. A word that any machine may have doesn't count.
    """
    places = {str(ROOT), str(Path.home()), sys.prefix}
    places |= {value for value in os.environ.values() if value.startswith("/")}
    common = re.compile(r"/|/(root|home|tmp|usr|bin|dev/null)(/\w*)?")
    words = {place for place in places if not common.fullmatch(place)}
    name = socket.gethostname()
    return words | ({name} if re.search(r"\d|\W", name) else set())


# Directives, unread markup, and environments that a cell printed.
LEFT_OVER = re.compile(
    r"#\|\s*(?:default_exp|export|hide|echo|code-fold|eval|slow|label|fig-)"
    r"|nbdev_export\(|\{(?:numref|cite|py:obj|doc|ref)\}`|^:::+"
    r"|environ\(\{|\bPYTHONPATH['\"]?:|/home/\w+/",
    re.M,
)


@each_page
def test_nothing_is_left_over_from_the_making(page, parsed):
    text = "".join(parsed[page].text)
    assert LEFT_OVER.findall(text) == []
    assert [word for word in private_words() if word in text] == []


def test_a_page_that_is_shared_says_whole_sentences(parsed):
    tags = {
        name: {
            page: tag["content"]
            for page in parsed
            for tag in parsed[page].all("meta")
            if tag.get("property") == f"og:{name}"
        }
        for name in ("description", "image")
    }
    said = tags["description"]
    assert all(
        (BOOK / card.split(PREFIX)[1]).exists() for card in tags["image"].values()
    )
    cut = {page.stem for page, text in said.items() if text.endswith("...")}
    api = {page.stem for page in parsed if "api" in page.parts}
    assert cut <= {"figure_1", "references", *api}
    assert said[BOOK / "model" / "attention.html"].endswith(
        "masks that say who sees whom."
    )


@each_page
def test_links_within_the_book_lead_somewhere(page, parsed):
    dead = []
    for link in parsed[page].all("a"):
        parts = urlsplit(link.get("href", ""))
        if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
            continue
        path = unquote(parts.path)
        start = BOOK if path.startswith(PREFIX) else page.parent
        target = (start / path.removeprefix(PREFIX)).resolve() if path else page
        there = parsed[target].ids if target in parsed else None
        if not target.exists() or (
            parts.fragment
            and there is not None
            and not (target.name == "live.html" and parts.fragment.startswith("s="))
            and unquote(parts.fragment) not in there
        ):
            dead.append(link["href"])
    assert not dead


@each_page
def test_every_picture_has_words(page, parsed):
    silent = [
        image.get("src")
        for image in parsed[page].all("img")
        if not image.get("alt", "").strip()
    ]
    assert not silent


@each_page
def test_formulas_need_no_script_and_charts_bring_theirs(page, parsed):
    loaded = {
        Path(urlsplit(tag.get("src", "")).path).name
        for tag in parsed[page].all("script")
    }
    classes = [
        name for _, tag in parsed[page].tags for name in tag.get("class", "").split()
    ]
    assert classes.count("math") == len(parsed[page].all("math"))
    assert ("vega-chart" in classes) == ("charts-near.js" in loaded)


@each_chapter
def test_every_exported_cell_leads_to_its_entry(chapter):
    page = BOOK / chapter.relative_to(ROOT / "nbs").with_suffix(".html")
    code = [
        cell
        for cell in json.loads(chapter.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    directives = [
        set(re.findall(r"^#\|\s*([\w-]+)", "".join(cell["source"]), re.M))
        for cell in code
    ]
    exported = sum("export" in names and "hide" not in names for names in directives)
    marks = re.findall(
        r'<div class="exported.*?</div>', page.read_text(encoding="utf-8"), re.S
    )
    assert len(marks) == exported
    assert all(
        re.search(r'href="[^"]*api/\w+\.html#[\w.-]*annotated_transformer', mark)
        for mark in marks
    )


OUTPUT = re.compile(r'class="output text_plain.*?<pre>(.*?)</pre>', re.S)
RAW = re.compile(r"^[\[{(<]|^(?:tensor|array|dict)\b|\d\.\d{6,}")


@each_page
def test_results_are_tables_and_figures(page):
    """No cell ends in a raw dictionary, list or tensor, or in an unrounded number."""
    shown = OUTPUT.findall(page.read_text(encoding="utf-8"))
    texts = [unescape(re.sub(r"<[^>]*>", "", each)).strip() for each in shown]
    assert not [text for text in texts if RAW.search(text)]
