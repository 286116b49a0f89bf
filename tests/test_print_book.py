"""The chapters as one EPUB and one PDF, made from the built book."""

import re
import zipfile
from xml.etree import ElementTree

import pytest
from browser import BOOK, CHROMIUM

from tools import print_book, print_chapters

pytestmark = pytest.mark.skipif(
    not (BOOK / "index.html").exists(), reason="the book isn't built (make book)"
)
ONLINE = "https://example.org/book/"


@pytest.fixture(scope="module")
def chapters():
    return print_chapters.chapters(ONLINE)


@pytest.fixture(scope="module")
def epub(chapters, tmp_path_factory):
    """The files of the EPUB by name, in their order."""
    path = tmp_path_factory.mktemp("print") / "book.epub"
    print_book.write_epub("The book", ONLINE, chapters, path)
    assert not path.with_suffix(".part").exists()
    with zipfile.ZipFile(path) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        return {name: archive.read(name) for name in archive.namelist()}


def test_every_file_of_the_epub_is_listed_and_well_formed(epub):
    package = ElementTree.fromstring(epub["book/book.opf"])
    listed = {each.get("href") for each in package.iter() if each.get("href")}
    assert {f"book/{name}" for name in listed} == {
        name for name in epub if name.startswith("book/") and name != "book/book.opf"
    }
    for name, content in epub.items():
        if name.endswith((".xhtml", ".svg")):
            ElementTree.fromstring(content)


def test_every_link_and_picture_of_the_epub_is_there(epub):
    pages = {n: t.decode() for n, t in epub.items() if n.endswith(".xhtml")}
    places = {n: set(re.findall(r' id="([^"]+)"', text)) for n, text in pages.items()}
    lost = []
    for name, text in pages.items():
        for link in re.findall(r'<a [^>]*?href="([^"]+)"', text):
            if link.startswith(("https://", "http://", "mailto:")):
                continue
            page, _, anchor = link.partition("#")
            target = f"book/{page}" if page else name
            if target not in places or anchor and anchor not in places[target]:
                lost.append((name, link))
        for source in re.findall(r'<img [^>]*?src="([^"]+)"', text):
            lost += [] if f"book/{source}" in epub else [(name, source)]
    assert not lost


def test_no_answer_stands_beside_its_question(chapters):
    every = (each for _, group in chapters for each in group)
    attention = next(each for each in every if each.page == "model/attention")
    asked = attention.body.select(".predict")
    assert len(asked) >= 2 and not attention.body.select("details, script, input")
    for question in asked:
        assert len(question.select("ol > li")) >= 2
        number = question.select_one(".to-answer a")["href"].rsplit("answer-")[1]
        answer = attention.body.select_one(f".answers [id$='answer-{number}']")
        assert answer.strong and answer.strong.get_text() not in question.p.get_text()
    assert "def attention(" in attention.body.select_one(".answers").get_text()


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_chapters_are_printed(tmp_path):
    pages = {"what_you_need", "model/feed_forward"}
    some = [("Part", [print_chapters.Chapter(each, pages, ONLINE) for each in pages])]
    path = tmp_path / "book.pdf"
    print_book.write_pdf("The book", some, path)
    printed = path.read_bytes()
    assert printed.startswith(b"%PDF") and len(printed) > 100_000
    assert b"/Outlines" in printed
