"""The rendered book as readers meet it: on a slow line and a telephone, without a mouse
or without sight, in search and in print. Build it first: make book.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from browser import BOOK, CHROMIUM, Browser, as_sent

PAGES = sorted(
    path.relative_to(BOOK).as_posix()
    for path in BOOK.rglob("*.html")
    if "_static" not in path.relative_to(BOOK).parts and path != BOOK / "index.html"
)  # the last one only leads on to the cover
WIDTHS = (375, 768, 1280)

pytestmark = [
    pytest.mark.skipif(not PAGES, reason="the book is not built: run make book"),
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed"),
]
each_page = pytest.mark.parametrize("page", PAGES)


@pytest.fixture
def show(browser: Browser, served: str) -> Callable[..., Browser]:
    """Open a page in a window of some width."""

    def open_page(page: str, width: int = 1280, theme: str = "light") -> Browser:
        browser.resize(width, 800)
        browser.open(f"{served}{page}")
        browser.run(f"document.documentElement.dataset.theme = {json.dumps(theme)}")
        return browser

    return open_page


# -- weight ----------------------------------------------------------------------------

# What a page notes of itself while it loads: how far things jump, and when a tap would
# have had to wait.
WATCH = """
window.jumps = 0; window.tasks = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) jumps += each.value;
}).observe({ type: "layout-shift", buffered: true });
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) tasks.push([each.startTime, each.duration]);
}).observe({ type: "longtask", buffered: true });
"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
COVER = "welcome.html"


@pytest.fixture(scope="module")
def watched(browser: Browser) -> Iterator[Browser]:
    """The window, with pages that note what WATCH says and are never cached."""
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    browser.call("Network.setCacheDisabled", cacheDisabled=True)
    yield browser
    browser.call("Network.setCacheDisabled", cacheDisabled=False)
    browser.call("Page.removeScriptToEvaluateOnNewDocument", **script)


@each_page
def test_a_page_is_light(page, watched, served):
    watched.resize(1280, 900)
    watched.received = 0
    watched.open(f"{served}{page}")
    print(f"{page}: {watched.received / 1000:.0f} kB")
    assert watched.received < 450_000


def heaviest(count: int) -> list[str]:
    """The cover and the pages with the largest text."""
    by_size = sorted(PAGES, key=lambda page: -len(as_sent(BOOK / page)))
    return [COVER, *(page for page in by_size if page != COVER)][:count]


@contextmanager
def slow_telephone(window: Browser) -> Iterator[None]:
    """Slow 4G, 1.6 Mbit/s with a round trip of 150 ms, and a quarter of the speed."""
    conditions = {"offline": False, "latency": 150, "uploadThroughput": 93_750}
    window.call(
        "Network.emulateNetworkConditions", downloadThroughput=200_000, **conditions
    )
    window.call("Emulation.setCPUThrottlingRate", rate=4)
    yield
    window.call("Emulation.setCPUThrottlingRate", rate=1)
    window.call(
        "Network.emulateNetworkConditions",
        **{**conditions, "latency": 0, "uploadThroughput": -1},
        downloadThroughput=-1,
    )


def check_speed(window: Browser, url: str) -> None:
    """On a slow telephone a page paints within 3 s, and from 5 s on a tap is answered
    within 200 ms. The best of three tries counts: the machine may do other work, too.
    """
    window.resize(375, 800)
    found = []
    for _ in range(3):
        with slow_telephone(window):
            window.open(url)
            time.sleep(1)
            paint, tasks = window.run(f"[{PAINT}, tasks]")
        ends = [start + length for start, length in tasks if length >= 200]
        found.append((paint, max([paint, *ends])))
        print(f"{url}: paint {found[-1][0]:.0f} ms, interactive {found[-1][1]:.0f} ms")
        if found[-1][0] < 3000 and found[-1][1] < 5000:
            return
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        pytest.skip(f"the machine does other work, too: {found}")
    pytest.fail(f"paint, interactive: {found}")


@pytest.mark.parametrize("page", heaviest(6) if PAGES else [])
def test_a_heavy_page_answers_soon_on_a_slow_telephone(page, watched, served):
    check_speed(watched, f"{served}{page}")


@pytest.mark.slow
@each_page
def test_every_page_answers_soon_on_a_slow_telephone(page, watched, served):
    check_speed(watched, f"{served}{page}")


@each_page
@pytest.mark.parametrize("width", [375, 1280])
def test_a_page_does_not_jump(page, width, watched, served):
    watched.resize(width, 800)
    watched.open(f"{served}{page}")
    watched.run(
        """(async () => {
          for (let y = 0; y < document.body.scrollHeight; y += 3000) {
            scrollTo(0, y);
            await new Promise((done) => setTimeout(done, 60));
          }
        })()"""
    )
    jumps = watched.run("jumps")
    print(f"{page} at {width} px: {jumps:.3f}")
    assert jumps < 0.05


# -- layout ----------------------------------------------------------------------------

# Sidebars have slid to their places.
SETTLED = """
Promise.all(document.getAnimations().filter((each) =>
  each.timeline === document.timeline
    && isFinite(each.effect.getComputedTiming().endTime)
).map((each) => each.finished)).then(() => 0)
"""
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
    .map((each) => [each.textContent,
      each.getScreenCTM().a * parseFloat(getComputedStyle(each).fontSize) / 12])
    .filter((each) => each[1] < 0.7),
]"""
NO_SIZE = """
[...document.querySelectorAll("article img:not([width])")].map((each) => each.src)
  .filter((each) => !each.includes("/_static/"))
"""


@each_page
def test_a_page_fits_each_window(page, show):
    window = show(page)
    assert window.run(NO_SIZE) == []
    assert window.run(LONG_LINES) == []
    for width in WIDTHS:
        window.resize(width, 900)
        window.run(SETTLED)
        assert window.run("document.documentElement.scrollWidth") <= width, width
        assert window.run(OUTSIDE) == [], width
        assert window.run(CUT) == 0, width
        assert window.run(SMALL) == [], width


# What print would hide: folded answers, and what scrolls on a screen.
HIDDEN_IN_PRINT = """
[...document.querySelectorAll("article *")].filter((each) => {
  const style = getComputedStyle(each);
  if (each.tagName === "DETAILS" && !each.open)
    return getComputedStyle(each, "::details-content").contentVisibility === "hidden";
  return each.checkVisibility() && style.overflowX !== "visible"
    && each.clientWidth && each.scrollWidth > each.clientWidth + 1
    && !each.closest("svg, math");
}).slice(0, 5).map((each) => each.outerHTML.slice(0, 120))
"""


@each_page
def test_print_cuts_nothing(page, show):
    window = show(page, 700)  # the width of a sheet within its margins
    window.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert window.run(HIDDEN_IN_PRINT) == []
        assert window.run(OUTSIDE) == []
    finally:
        window.call("Emulation.setEmulatedMedia", media="")


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


@each_page
def test_axe_finds_nothing(page, show, axe):
    window = show(page)
    window.run(f"{axe};0")
    assert window.run(FAULTS.replace("RULES", NAMES)) == []
    window.run("document.documentElement.dataset.theme = 'dark'")
    assert window.run(FAULTS.replace("RULES", COLOURS)) == []


STOPS = """
[...document.querySelectorAll("article :is(a[href], button, input, select, textarea, "
  + "summary, [tabindex])")].filter((each) => each.tabIndex >= 0
  && each.checkVisibility({visibilityProperty: true})).length
"""
LISTS = ("api/", "genindex", "py-modindex", "glossary", "references")  # of links


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith(LISTS)])
def test_an_article_has_few_stops_of_the_tab_key(page, show):
    assert show(page).run(STOPS) < 60


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
      const it = document.activeElement, style = getComputedStyle(it);
      if (it === document.body) return true;
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
    "quantization": "engine/ctranslate2",
    "teacher forcing": "model/transformer",
    "learning rate": "training/schedule",
    "warm-up": "training/schedule",
    "beam": "translation/search",
    "beam search": "translation/search",
    "greedy decoding": "translation/search",
    "label smoothing": "training/loss",
    "cross-entropy": "training/loss",
    "multi-head": "model/attention",
    "multi-head attention": "model/attention",
    "scaled dot-product": "model/attention",
    "causal mask": "model/attention",
    "self-attention": "before/self_attention",
    "layer normalization": "model/layers",
    "residual": "model/layers",
    "feed-forward": "model/feed_forward",
    "embedding": "model/embedding",
    "tokenizer": "data/tokenizer",
    "bpe": "data/tokenizer",
    "padding": "data/batching",
    "bleu": "translation/bleu",
    "adam": "training/schedule",
    "dropout": "model/layers",
    "checkpoint": "training/checkpoint",
    "key-value cache": "engine/decoding",
    "gru": "before/recurrent",
    "parameters": "model/costs",
    "flops": "model/costs",
    "mixed precision": "engine/update",
    "gradient accumulation": "training/trainer",
    "distributed training": "engine/scale",
    "onnx": "engine/onnx",
    "hugging face": "after/pretrained",
    "length penalty": "translation/search",
    "exposure bias": "model/transformer",
    "cross-attention": "model/attention",
    "vocabulary": "data/tokenizer",
}
FOUND = """
Search._performSearch(...Search._parseQuery(WORDS)).reverse().map((found) => found[0])
"""


@pytest.fixture
def ranks(show) -> Callable[[str], list[str]]:
    """The pages that the book's search finds for some words, the best first."""
    window = show("search.html")
    window.wait("typeof Search !== 'undefined' && Search.hasIndex()")
    return lambda words: window.run(FOUND.replace("WORDS", json.dumps(words)))


def test_the_search_shows_the_right_chapter_first_or_second(ranks):
    wrong = {}
    for words, page in QUERIES.items():
        found = ranks(words)[:2]
        if page not in found:
            wrong[words] = found
    assert len(QUERIES) >= 30 and wrong == {}
