"""The rendered book as readers meet it: on a slow line and a telephone, without a mouse
or without sight, in search and in print. Build it first: make book.
"""

import json
import posixpath
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import BOOK, CHROMIUM, Browser

from benchmarks.record import RESULTS


def leads_on(path: Path) -> bool:
    """Whether a page only opens another one."""
    return 'http-equiv="refresh"' in path.read_text(encoding="utf-8")


PAGES = sorted(
    path.relative_to(BOOK).as_posix()
    for path in BOOK.rglob("*.html")
    if "_static" not in path.relative_to(BOOK).parts
    and path != BOOK / "index.html"
    and not leads_on(path)
)
COVER = "index.html"
LARGEST = sorted(PAGES, key=lambda page: -(BOOK / page).stat().st_size)[:6]

pytestmark = [
    pytest.mark.skipif(not PAGES, reason="the book is not built: run make book"),
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed"),
]


@pytest.fixture
def show(browser: Browser, served: str) -> Callable[..., Browser]:
    """Open a page in a window of some width."""

    def open_page(page: str, width: int = 1280) -> Browser:
        browser.resize(width, 800)
        browser.open(f"{served}{page}")
        return browser

    return open_page


# -- what a page does while it loads ---------------------------------------------------

# A page adds up how far things jump.
WATCH = """
window.jumps = 0;
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) jumps += each.value;
}).observe({ type: "layout-shift", buffered: true });
"""
SCROLL = """(async () => {
  for (let y = 0; y < document.body.scrollHeight; y += 3000) {
    scrollTo(0, y);
    await new Promise((done) => setTimeout(done, 60));
  }
  for (const part of document.querySelectorAll(".touch, .vega-chart")) {
    if (!part.checkVisibility()) continue;
    part.scrollIntoView();
    while (!part.querySelector(".part, .vega-embed"))
      await new Promise(requestAnimationFrame);
  }
})()"""  # to the end of the page, and until what a reader can touch is there
# What a question covers is shown; the page then jumps, as it is meant to.
ANSWER = """[...document.querySelectorAll(".predict details")].map((each) => {
  each.open = true;
}).length"""


@pytest.fixture(scope="module")
def watched(browser: Browser) -> Iterator[Browser]:
    """The window, with pages that note what WATCH says and are never cached."""
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    browser.call("Network.setCacheDisabled", cacheDisabled=True)
    yield browser
    browser.call("Network.setCacheDisabled", cacheDisabled=False)
    browser.call("Page.removeScriptToEvaluateOnNewDocument", **script)


def check_load(window: Browser, url: str, width: int) -> None:
    """A page is light, jumps by little, asks for nothing from elsewhere or missing, and
    no script of it fails.
    """
    window.resize(width, 800)
    window.received, window.requests, window.errors = 0, [], []
    window.open(url)
    print(f"{url}: {window.received / 1000:.0f} kB")
    assert window.received < 450_000
    window.run(SCROLL)
    assert window.run("jumps") < 0.05
    if window.run(ANSWER):
        window.run(SCROLL)
    here = (url[: url.index("/", 8) + 1], "data:")
    assert [each for each in window.requests if not each.startswith(here)] == []
    # The theme says so of who comes for the first time.
    assert [it for it in window.errors if "Got invalid theme mode" not in it] == []


# -- layout ----------------------------------------------------------------------------

# What sticks out of the window and can't be reached by scrolling its own box.
OUTSIDE = """
[...document.querySelectorAll(".bd-article-container *")].filter((each) => {
  const box = each.getBoundingClientRect();
  if (!box.width || !box.height || !each.checkVisibility()) return false;
  if (box.right <= innerWidth + 1 && box.left >= -1) return false;
  for (let up = each.parentElement; up !== document.body; up = up.parentElement)
    if (getComputedStyle(up).overflowX !== "visible"
        && up.getBoundingClientRect().right <= innerWidth + 1) return false;
  return true;
}).slice(0, 5).map((each) => each.outerHTML.slice(0, 120))
"""
# Lines of cells that are longer than their boxes; 88 characters must fit.
LONG_LINES = """
[...document.querySelectorAll("div.cell_input pre")]
  .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.textContent.split("\\n").sort((a, b) => b.length - a.length)[0])
"""
# Formulas whose left end can't be reached, or whose right end their box doesn't hold.
CUT = """
[...document.querySelectorAll("div.math")].filter((each) => {
  each.scrollLeft = 0;
  const box = each.getBoundingClientRect();
  const formula = each.querySelector("math").getBoundingClientRect();
  return formula.left < box.left - 1 || formula.right > box.left + each.scrollWidth + 1;
}).length
"""
# How much pictures shrink, and how small the letters of drawings become.
SMALL = """[
  ...[...document.querySelectorAll("article img[width]")]
    .filter((each) => each.checkVisibility())
    .map((each) => [each.alt, each.clientWidth / each.getAttribute("width")])
    .filter((each) => each[1] < 0.74),
  ...[...document.querySelectorAll("article svg text")]
    .filter((each) => each.checkVisibility() && each.textContent.trim())
    .map((each) => [each.textContent, parseFloat(getComputedStyle(each).fontSize) / 12
      * Math.hypot(each.getScreenCTM().a, each.getScreenCTM().b)])
    .filter((each) => each[1] < 0.7),
]"""
NO_SIZE = """
[...document.querySelectorAll("article img:not([width])")].map((each) => each.src)
  .filter((each) => !each.includes("/_static/"))
"""


def check_layout(window: Browser) -> None:
    """A page fits each window."""
    for width in (375, 768, 1280):
        window.resize(width, 900)
        window.settle()
        assert window.run("document.documentElement.scrollWidth") <= width, width
        assert window.run(OUTSIDE) == [], width
        assert window.run(CUT) == 0, width
        for _ in range(30):  # a chart draws itself anew after the window has changed
            if window.run(SMALL) == []:
                break
            time.sleep(0.1)
        assert window.run(SMALL) == [], width
    assert window.run(NO_SIZE) == []
    assert window.run(LONG_LINES) == []


# What print would hide: folded answers (folded code stays folded), and what scrolls.
HIDDEN_IN_PRINT = """
[...document.querySelectorAll("article *")].filter((each) => {
  const style = getComputedStyle(each);
  if (each.matches("details:not(.hide)") && !each.open)
    return getComputedStyle(each, "::details-content").contentVisibility === "hidden";
  return each.checkVisibility() && style.overflowX !== "visible"
    && each.clientWidth && each.scrollWidth > each.clientWidth + 1
    && !each.closest("svg, math");
}).slice(0, 5).map((each) => each.outerHTML.slice(0, 120))
"""


def check_print(window: Browser) -> None:
    """Print cuts nothing."""
    window.resize(700, 900)  # the width of a sheet within its margins
    window.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert window.run(HIDDEN_IN_PRINT) == []
        assert window.run(OUTSIDE) == []
    finally:
        window.call("Emulation.setEmulatedMedia", media="")


def test_paper_is_white_whatever_the_screen_is(served):
    with Browser() as browser:
        browser.open(f"{served}model/attention.html")
        browser.run("document.documentElement.dataset.theme = 'dark'")
        browser.run(
            "addEventListener('beforeprint', () => {"
            " window.printed = document.documentElement.dataset.theme; })"
        )
        browser.call("Page.printToPDF")
        assert browser.run("window.printed") == "light"
        assert browser.run("document.documentElement.dataset.theme") == "dark"


# -- access ----------------------------------------------------------------------------

FAULTS = """
axe.run(document, {resultTypes: ["violations"], RULES
  }).then((found) => found.violations.map((each) =>
    [each.id, each.nodes.length, each.nodes[0].html.slice(0, 200),
     each.nodes[0].failureSummary]))
"""
# axe leaves this one out unless it is asked.
NAMES = 'rules: {"label-content-name-mismatch": {enabled: true}}'
COLOURS = 'runOnly: ["color-contrast", "link-in-text-block"]'


STOPS = """
[...document.querySelectorAll("article :is(a[href], button, input, select, textarea, "
  + "summary, [tabindex])")].filter((each, i, all) => each.tabIndex >= 0
  && each.checkVisibility({visibilityProperty: true})
  && !(each.type === "radio" && all[i - 1]?.name === each.name)).length
"""  # a group of radio buttons is one stop
LISTS = ("api/", "genindex", "py-modindex", "glossary", "references")  # of links
# The theme gives boxes that scroll to the Tab key, a moment after a window has changed.
REACHED = """
[...document.querySelectorAll(
  "pre, .cell_output > .output, .pst-scrollable-table-container")].every((each) =>
  each.tabIndex === 0
  || each.scrollWidth <= each.clientWidth && each.scrollHeight <= each.clientHeight)
"""


# What decides whether a text stands out, and a link in it: the letters, those around
# them, and all that is painted behind. Most looks are on every page, and the two rules
# take half of axe's time, so they are asked about each look once.
LOOKS = """(() => {
  const above = (it) => it.parentElement ?? it.getRootNode().host, behind = new Map();
  const back = (it) => {
    if (it && !behind.has(it)) {
      const style = getComputedStyle(it);
      const apart = /absolute|fixed|sticky/.test(style.position);
      const layer = [style.backgroundColor, style.backgroundImage, style.opacity,
        style.filter, apart && it.getAttribute("class")].join();
      const plain = layer === "rgba(0, 0, 0, 0),none,1,none,false";
      behind.set(it, back(above(it)) + (plain ? "" : `|${layer}`));
    }
    return it ? behind.get(it) : "";
  };
  const block = (it) => getComputedStyle(it).display === "inline" && it.parentElement
    ? block(it.parentElement) : it;
  const among = (it) => block(above(it)).textContent.trim() !== it.textContent.trim();
  window.looks = {};
  const walk = (root) => root.querySelectorAll("*").forEach((it) => {
    it.removeAttribute("data-look");
    if (it.shadowRoot) walk(it.shadowRoot);
    const link = it.matches("a[href]"), letters = it.matches("input, select, textarea")
      || [...it.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    if (!link && !letters || !it.checkVisibility()) return;
    const style = getComputedStyle(it), around = getComputedStyle(above(it)).color;
    const large = parseFloat(style.fontSize) >= (style.fontWeight >= 700 ? 18.6 : 24);
    const look = [it.matches(":disabled"), style.color, large, style.textShadow,
      link && [around, style.fontWeight, style.textDecorationLine, style.borderBottom,
        among(it)], back(it)];
    (looks[look.join()] ??= []).push(it);
  });
  walk(document.body);
  return Object.keys(looks);
})()"""
# Three of each: axe passes over what another element hides.
MARK = """NEW.forEach((look) => looks[look].forEach((it, i, all) => {
  if (i % Math.ceil(all.length / 3) === 0) it.setAttribute("data-look", "");
}))"""
MARKED = """axe.configure({rules: [
  {id: "color-contrast", selector: "[data-look]"},
  {id: "link-in-text-block", selector: "a[href][data-look]"}]}); 0"""


def check_access(window: Browser, axe: str, seen: set[tuple[str, str]]) -> None:
    """axe finds nothing; `seen` holds the looks of earlier pages, by theme."""
    window.resize(1280, 800)
    window.wait(REACHED, 20)
    window.run(f"{axe};{MARKED}")
    for theme, rules in {"light": NAMES, "dark": COLOURS}.items():
        window.run(f"document.documentElement.dataset.theme = '{theme}'")
        window.settle()
        new = [look for look in window.run(LOOKS) if (theme, look) not in seen]
        window.run(MARK.replace("NEW", json.dumps(new)))
        if new or theme == "light":
            assert window.run(FAULTS.replace("RULES", rules)) == [], theme
        seen.update((theme, look) for look in new)


# -- every page, opened once -----------------------------------------------------------


@pytest.fixture(scope="module")
def looks() -> set[tuple[str, str]]:
    """What axe has been asked about already."""
    return set()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_serves_every_reader(page, watched, served, looks, request):
    """On a telephone or a wide screen, on paper, with a keyboard and without sight."""
    check_load(watched, f"{served}{page}", 375)
    check_layout(watched)
    check_print(watched)
    check_access(watched, request.getfixturevalue("axe"), looks)
    assert page.startswith(LISTS) or watched.run(STOPS) < 60


@pytest.mark.parametrize("page", sorted({COVER, *LARGEST}))
def test_a_large_page_keeps_still_in_a_wide_window(page, watched, served):
    check_load(watched, f"{served}{page}", 1280)


# -- icons and keyboard ----------------------------------------------------------------


def test_every_icon_is_drawn(show):
    """Each sign of the icons' fonts that a page shows is in the smaller fonts."""
    window = show("model/attention.html")
    drawn = """document.fonts.ready.then(() => [...document.fonts].filter((each) =>
      each.family.includes("Awesome") && each.status === "loaded").length)"""
    assert window.run(drawn) >= 2
    blank = """[...document.querySelectorAll("[class*=fa-]")].map((each) =>
      [each.className, getComputedStyle(each, "::before").content])
      .filter((each) => each[1] === "none")"""
    assert window.run(blank) == []


def test_the_skip_link_leads_to_the_article(show):
    window = show("translation/bleu.html")
    window.press("Tab")
    assert "Skip" in window.run("document.activeElement.textContent")
    window.press("Enter")
    window.press("Tab")
    assert window.run("document.activeElement.closest('article') !== null")


@pytest.mark.parametrize("page", [COVER, "model/attention.html", "live.html"])
def test_the_focus_is_seen(page, show):
    window = show(page)
    seen = """(() => {
      let it = document.activeElement;
      if (it === document.body) return true;
      while (it.shadowRoot?.activeElement) it = it.shadowRoot.activeElement;
      const style = getComputedStyle(it);
      return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
        || it.outerHTML.slice(0, 200);
    })()"""
    found = []
    for _ in range(90):
        window.press("Tab")
        found.append(window.run(seen))
    assert [each for each in found if each is not True] == []


# -- search ----------------------------------------------------------------------------

QUERIES = {
    "positional encoding": "model/position",
    "quantization": "interop/serve",
    "warm-up": "training/schedule",
    "beam search": "decoding/search",
    "label smoothing": "training/loss",
    "multi-head attention": "model/attention",
    "causal mask": "model/attention",
    "self-attention": "before/self_attention",
    "layer normalization": "model/layers",
    "feed-forward": "model/feed_forward",
    "embedding": "model/embedding",
    "bpe": "data/tokenizer",
    "padding": "data/batching",
    "bleu": "translation/bleu",
    "dropout": "model/layers",
    "checkpoint": "training/run",
    "key-value cache": "performance/how_fast",
    "gru": "before/recurrent",
    "parameters": "model/costs",
    "gradient accumulation": "training/trainer",
    "distributed training": "training/distributed",
    "onnx": "interop/serve",
    "hugging face": "after/other_weights",
    "length penalty": "decoding/search",
    "exposure bias": "model/transformer",
    "cross attention": "model/attention",
    "ten checkpoints": "training/trainer",
    "words run out": "data/tokenizer",
}
TYPOS = {
    "attetion": "model/attention",
    "label smothing": "training/loss",
    "tokenzier": "data/tokenizer",
    "perplexty": "training/loss",
}
ANSWERED = "document.querySelector('.search-summary').textContent !== ''"
LISTED = "[...document.querySelectorAll('#search-results li > a')].map((it) => it.href)"


def search(window: Browser, words: str) -> list[str]:
    """Type words where the cursor is, and read the list of pages that comes."""
    assert window.run("document.activeElement.matches('.bd-search input')")
    window.submit(words)
    window.wait(ANSWERED)
    book = window.run("new URL('.', location).href")
    links = window.run(LISTED)
    return [link.split("#")[0].removeprefix(book).split(".html")[0] for link in links]


@pytest.fixture(params=["file", "http"])
def book(request, served: str) -> str:
    """The book's address, on the disk and on a server."""
    return f"file://{BOOK}/" if request.param == "file" else served


@pytest.mark.parametrize("words", ["attention", "attetion"])
def test_who_types_into_the_search_page_finds(words, book, browser):
    browser.open(f"{book}search.html")
    assert search(browser, words)[0] == "model/attention"


def test_who_searches_from_a_chapter_finds(book, browser):
    browser.open(f"{book}training/loss.html")
    browser.run("document.querySelector('.search-button__button').click()")
    assert search(browser, "beam")[0] == "decoding/search"


def test_the_search_shows_the_right_chapter_first_or_second(browser):
    """And no page twice."""
    browser.open(f"file://{BOOK}/search.html")
    for words, page in {**QUERIES, **TYPOS}.items():
        found = search(browser, words)
        assert page in found[:2], words
        assert len(found) == len(set(found)), words


def test_results_come_while_one_types(browser):
    browser.open(f"file://{BOOK}/search.html")
    for typed, page in {
        "label": "training/loss",
        " smoothing": "training/loss",
    }.items():
        browser.call("Input.insertText", text=typed)
        browser.wait(f"location.search.length > {len(typed)}")
        browser.wait(f"document.querySelector('#search-results li') && {ANSWERED}")
        assert any(page in link for link in browser.run(LISTED)[:3]), typed
    browser.run("document.activeElement.select()")
    browser.call("Input.insertText", text="")
    browser.press("Tab")


def test_who_lost_the_way_searches(browser, served):
    browser.open(f"{served}404.html")
    browser.run("document.querySelector('article input[type=search]').focus()")
    browser.submit("beam search")
    browser.wait(ANSWERED)
    assert "decoding/search" in browser.run(LISTED)[0]


def test_the_ledger_shows_the_rows_of_one_label(show):
    rows = json.loads((RESULTS / "ledger.json").read_text("utf-8"))["rows"]
    window = show("ledger.html")
    window.wait("!!document.querySelector('article form output')")
    told = "document.querySelector('article form output').textContent"
    assert window.run(told) == f"{len(rows)} numbers"
    window.run(
        "const label = document.querySelector('article form [name=label]');"
        "label.value = 'rerun at size';"
        "label.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    few = sum(row["label"] == "rerun at size" for row in rows)
    assert 0 < few < 10 and window.run(told) == f"{few} numbers"
    seen = "[...document.querySelectorAll('section section tr')].filter((row) =>"
    seen += " row.cells.length === 6 && row.offsetParent && row.cells[4].innerText"
    assert window.run(f"{seen} !== 'label').length") == few


# -- the way through the book ----------------------------------------------------------

FOLLOWING = re.compile(r'class="right-next"\s+href="([^"#]+)')


def test_the_part_that_one_reads_is_open_and_the_others_fold(show):
    window = show("model/attention.html")
    parts = "[...document.querySelectorAll('.bd-links details')]"
    assert window.run(f"{parts}.length") > 5
    names = window.run(f"{parts}.filter((it) => it.open).map((it) => it.innerText)")
    assert [name.split("\n")[0] for name in names] == ["The model"]


def test_the_way_through_the_book_ends_with_the_last_chapter():
    """Next, next, next: from the cover to the end, past no page of the reference."""
    page, seen = COVER, []
    while link := FOLLOWING.search((BOOK / page).read_text(encoding="utf-8")):
        page = posixpath.normpath(f"{page}/../{link[1]}")
        seen.append(page)
        assert len(set(seen)) == len(seen), "a circle"
    assert len(seen) > 30
    assert not [page for page in seen if page.startswith("api/")]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_sign_of_the_search_box_covers_no_words(width, show):
    window = show("search.html", width)
    edge = window.run("""(() => {
      const box = document.querySelector(".bd-search-container input");
      return box.getBoundingClientRect().left
        + parseFloat(getComputedStyle(box).paddingLeft);
    })()""")
    sign = "document.querySelector('.bd-search-container i').getBoundingClientRect()"
    assert window.run(f"{sign}.right") <= edge


def test_the_text_has_the_books_own_font(browser, served):
    browser.open(f"{served}model/attention.html")
    fonts = "document.fonts.ready.then(() => [...document.fonts].filter((font) => "
    named = "`${font.family} ${font.style}`"
    loaded = f"{fonts}font.status === 'loaded').map((font) => {named}))"
    wanted = {"Text normal", "Text italic", "Formulas normal"}
    assert wanted <= set(browser.run(loaded))
    style = "getComputedStyle(document.querySelector('article p')).fontFamily"
    assert browser.run(style).startswith("Text")


def test_in_a_frame_a_page_is_its_text_alone(browser, served):
    browser.open(f"{served}figure_1.html?embed")
    seen = "[...document.querySelectorAll('header, nav, footer, .bd-sidebar')]"
    assert browser.run(f"{seen}.filter((each) => each.checkVisibility()).length") == 0
    assert browser.run("document.querySelector('figure-one').checkVisibility()")
    browser.open(f"{served}figure_1.html")
    assert browser.run(f"{seen}.filter((each) => each.checkVisibility()).length") > 2
