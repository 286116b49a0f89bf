"""A page of the built book as a chapter of one that is carried.

What a reader touches is its still picture, what is folded and only draws or checks is
left out, and the answers stand at the chapter's end.
"""

import re
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
LAST = "Fast and served"  # the last part that is for reading through
ALSO = ("glossary", "references")
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


Book = list[tuple[str, list[Chapter]]]  # the parts, each with its chapters


def chapters(online: str) -> Book:
    """All parts with their chapters."""
    plan = list(parts())
    included = {page for _, pages in plan for page in pages}
    return [
        (caption, [Chapter(page, included, online) for page in pages])
        for caption, pages in plan
    ]


def contents(book: Book, before: str = "") -> str:
    """The list of all chapters by parts, each a link, with what stands before it."""
    items = []
    for caption, group in book:
        inner = "".join(
            f'<li><a href="{before}{file_of(each.page)}">{escape(each.title)}</a></li>'
            for each in group
        )
        items.append(f"<li><span>{escape(caption)}</span><ol>{inner}</ol></li>")
    return f"<ol>{''.join(items)}</ol>"


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
