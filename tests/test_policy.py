"""The book's content security policy: all that the pages bring works under it, and what
is smuggled into them doesn't run. Build the book first: make book.
"""

import json
from collections.abc import Iterator

import pytest
from browser import BOOK, CHROMIUM, Browser

PAGES = [
    path
    for path in sorted(BOOK.rglob("*.html"))
    if "_static" not in path.relative_to(BOOK).parts
    and "This page has moved" not in path.read_text(encoding="utf-8")
]
pytestmark = pytest.mark.skipif(
    not PAGES, reason="the book is not built: run make book"
)
PART_SWITCHES = [f"model/{name}.html" for name in ("attention", "layers", "position")]
TRANSLATING = {"index.html", "live.html", "decoding/search.html", *PART_SWITCHES}
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")

# Keeps what a page's policy refuses: the rule, and the address or the code.
WATCH = """
window.refused = [];
addEventListener("securitypolicyviolation", (event) => refused.push(
  [event.effectiveDirective, event.blockedURI, event.sample]));
"""


@pytest.fixture(params=["file", "server"])
def book(request, served: str) -> str:
    """The book's address, on the disk and on a server."""
    return f"{BOOK.as_uri()}/" if request.param == "file" else served


@pytest.fixture(scope="module")
def watched() -> Iterator[Browser]:
    """A window whose pages keep what their policies refuse."""
    with Browser() as window:
        window.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        yield window


def refused(window: Browser) -> list[str]:
    """What was refused, by the page's own word and the console's."""
    said = [each for each in window.errors if "Content Security Policy" in each]
    window.errors = []
    return said + [str(each) for each in window.run("refused")]


def rules(page: str) -> dict[str, list[str]]:
    """The sources by rule, of a page that must have exactly one policy."""
    before, policy, after = page.partition("Content-Security-Policy")
    assert policy and "http-equiv" not in after
    assert not {"<script", "<link", "<style"} & {*before.lower().split()}
    words = after.split('content="', 1)[1].split('"', 1)[0]
    return {name: sources for name, *sources in map(str.split, words.split(";"))}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(BOOK)))
def test_each_page_has_a_tight_policy_before_all_that_it_loads(path):
    found = rules(path.read_text(encoding="utf-8"))
    assert found["default-src"] == found["base-uri"] == ["'none'"]
    ours = {"'self'", "file:", "'unsafe-hashes'"}
    # What a server may send, a disk may too, but for what a script fetches.
    for name in ("style-src", "img-src", "font-src", "form-action", "script-src"):
        assert {"'self'", "file:"} <= {*found[name]}, name
    scripts = [each for each in found["script-src"] if each not in ours]
    assert scripts and all(each.startswith("'sha256-") for each in scripts)
    name = path.relative_to(BOOK).as_posix()
    translates = name in TRANSLATING
    assert ("worker-src" in found) == (translates or name == "write_it.html")
    assert ("connect-src" in found) == (translates or name == "search.html")


# -- what works ------------------------------------------------------------------------

# Translations, on the disk and on a server: test_live.py, which allows no error either.


@needs_chromium
def test_a_reader_may_edit_the_worker(book, watched):
    watched.open(f"{book}live.html")
    watched.run("document.getElementById('live-edit').click()")
    watched.wait("document.getElementById('live-code').value !== ''")
    watched.run("document.getElementById('live-code-run').click()")
    status = "document.getElementById('live-code-status').textContent"
    watched.wait(f"!/Running …/.test({status})")
    assert "Running your code" in watched.run(status)
    assert refused(watched) == []


@needs_chromium
def test_a_chart_answers_to_the_hand(book, watched):
    watched.open(f"{book}model/attention.html")
    answers = "document.querySelectorAll('.predict details')"
    watched.run(f"{answers}.forEach((it) => {{ it.open = true; }})")
    watched.run("document.querySelector('.vega-chart').scrollIntoView()")
    watched.wait("document.querySelectorAll('.vega-chart svg path').length > 8")
    drawn = "document.querySelector('.vega-chart svg').innerHTML"
    before = watched.run(drawn)
    watched.run("document.querySelector('.vega-chart [value=\"1024\"]').click()")
    watched.wait(f"{drawn} !== {json.dumps(before)}")
    assert refused(watched) == []


@needs_chromium
def test_a_prediction_is_answered_and_a_part_touched(book, watched):
    watched.open(f"{book}model/attention.html")
    watched.run("document.querySelector('.predict [value=\"3\"]').click()")
    watched.run("document.querySelector('.predict button').click()")
    verdict = "document.querySelector('.predict .verdict').textContent"
    assert watched.run(verdict).startswith("✓ Right.")
    watched.run("document.querySelector('.touch').scrollIntoView()")
    watched.wait("!!document.querySelector('.touch .told')?.textContent")
    assert refused(watched) == []


@needs_chromium
def test_a_search_is_answered(book, watched):
    watched.open(f"{book}search.html")
    watched.submit("causal mask")
    watched.wait("document.querySelectorAll('#search-results li > a').length > 0")
    if book.startswith("http"):
        watched.wait("!!document.querySelector('#search-results p.context')")
    assert refused(watched) == []


@needs_chromium
def test_the_themes_buttons_work(book, watched):
    watched.open(f"{book}glossary.html")
    watched.run("window.print = () => { window.printed = true; }")
    theme = "document.documentElement.dataset.mode"
    before = watched.run(theme)
    for button in ("[onclick='window.print()']", ".theme-switch-button"):
        watched.run(f'document.querySelector("{button}").click()')
    assert watched.run("window.printed") and watched.run(theme) != before
    assert refused(watched) == []


@needs_chromium
def test_no_page_on_the_disk_brings_what_its_policy_refuses(watched):
    """A page of each set of rules; test_browser_pages.py opens all on a server."""
    known = [path for path in PAGES if path.name != "404.html"]
    sorts = {tuple(rules(path.read_text(encoding="utf-8"))): path for path in known}
    assert len(sorts) > 3
    for path in sorts.values():
        watched.open(path.as_uri())
        watched.run(
            "document.querySelectorAll('.touch, .vega-chart').forEach("
            "(part) => part.scrollIntoView())"
        )
        assert refused(watched) == [], path


# -- what doesn't ----------------------------------------------------------------------

# A way in, and the rule that has to close it.
SMUGGLED = {
    "handler": (
        "script-src-attr",
        "document.body.insertAdjacentHTML('beforeend', '<img src=x: onerror=HIT>')",
    ),
    "script": ("script-src-elem", "put('script', { textContent: 'HIT' })"),
    "address": ("script-src-elem", "put('a', { href: 'javascript:HIT' }).click()"),
    "data": ("script-src-elem", "put('script', { src: 'data:text/javascript,HIT' })"),
    "stranger": ("script-src-elem", "put('script', { src: 'https://example.org/' })"),
    "text": ("script-src", "setTimeout('HIT')"),
    "evaluated": ("script-src", "setTimeout(() => eval('HIT'))"),
    "frame": (
        "frame-src",
        "put('iframe', { src: 'data:text/html,<script>HIT</script>' })",
    ),
    "sent": ("connect-src", "fetch('https://example.org/?secret').catch(() => {})"),
    "picture": ("img-src", "new Image().src = 'https://example.org/?secret'"),
    "form": ("form-action", "put('form', { action: 'https://example.org/' }).submit()"),
}
PUT = """window.put = (name, about) => {
  const made = Object.assign(document.createElement(name), about);
  document.body.append(made);
  return made;
}"""
# What comes late of one way isn't taken for the next.
QUIET = """new Promise((done) => setTimeout(done, 100)).then(
  () => { refused.length = 0; })"""


@needs_chromium
@pytest.mark.parametrize("page", ["live", "references"])
def test_what_is_smuggled_in_is_refused(page, book, watched):
    watched.open("about:blank")
    watched.open(f"{book}{page}.html")
    watched.run(PUT)
    for way, (rule, code) in SMUGGLED.items():
        watched.run(QUIET)
        watched.errors = []
        watched.run(f"{code.replace('HIT', 'window.hit = 1')}; 0")
        closed = f"refused.some(([rule]) => rule === '{rule}')"
        watched.wait(f"{closed} || window.hit === 1", 5)
        assert watched.run("window.hit") is None, way
        assert refused(watched) != [], way
    watched.run(QUIET)
    assert watched.run("window.hit") is None
