"""The book's questions: a reader chooses by mouse, by keyboard or by number, and the
rest of the section comes after.
"""

from collections.abc import Callable

import pytest
from browser import CHROMIUM, Browser
from small_page import small_page

PAGE = """
# Questions

:::{predict} How many *sides*?
:right: 2
- two
- three
- four

A triangle has **three**.
:::

What a triangle is.

```{raw} html
<div class="cell"><div class="cell_output"><p id="out">3</p></div></div>
```

:::{predict} Is a *square* one?
:right: 2
- yes
- no

It has a fourth side.
:::

The end of the section.

### A part

Nothing covers the next part.

## A number

:::{predict} The root of two?
:number: 1.414
:within: 0.05
Between 1.4 and 1.5.
:::
"""
SEEN = "document.querySelector('#out').checkVisibility()"
PARAGRAPHS = """[...document.querySelectorAll('section > p')]
    .filter((each) => each.checkVisibility()).map((each) => each.textContent)"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with two questions."""
    return small_page(tmp_path_factory.mktemp("predict"), PAGE, "predict")


@pytest.fixture
def window(browser: Browser, page: str) -> Browser:
    """The page, opened for the first time."""
    browser.open(page)
    browser.run("localStorage.clear()")
    browser.open("about:blank")
    browser.open(page)
    return browser


@pytest.fixture
def about(window: Browser) -> Callable[[str], object]:
    """Ask something of a part of the first question."""
    return lambda part: window.run(f"document.querySelector('.predict {part}")


pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")


def test_choosing_by_keyboard(window, about):
    """The arrow keys choose; Enter, and not the choice alone, tells."""
    assert not window.run(SEEN)
    about("input').focus()")
    window.press("ArrowRight")
    assert about("input:checked').value") == "2"
    assert not about("details').open")
    window.press("Enter")
    assert (
        about("details').open") and about("[role=status]').textContent") == "✓ Right."
    )
    window.wait(SEEN)


def test_a_wrong_choice(window, about):
    """What is missing is said until it is there; then the verdict says the answer."""
    about("button').click()")
    assert about("[role=status]').textContent") == "Choose an answer first."
    about('input[value="3"]\').click()')
    assert about("[role=status]').textContent") == ""
    about("button').click()")
    assert about("[role=status]').textContent") == "✗ Not quite: three"
    window.wait(SEEN)


def test_all_up_to_the_sections_end_waits(window, about):
    """A second question waits with it; the next part doesn't."""
    part = "Nothing covers the next part."
    assert window.run(PARAGRAPHS) == [part]
    about('input[value="2"]\').click()')
    about("button').click()")
    assert window.run(PARAGRAPHS) == ["What a triangle is.", part]
    window.run("document.querySelectorAll('.predict details')[1].open = true")
    end = "The end of the section."
    assert window.run(PARAGRAPHS) == ["What a triangle is.", end, part]


def test_an_answer_is_remembered(window, about, page):
    """Over a reload, until it is folded again."""
    about('input[value="3"]\').click()')
    about("button').click()")
    window.wait("localStorage.length === 1")
    for _ in range(2):
        window.open("about:blank")
        window.open(page)
        assert about("input:checked').value") == "3"
        assert about("[role=status]').textContent") == "✗ Not quite: three"
        assert window.run(SEEN)
    about("summary').click()")
    window.wait("localStorage.length === 0")
    assert not window.run(SEEN) and about("[role=status]').textContent") == ""


def test_opening_the_answer_shows_the_output(window, about):
    about("summary').click()")
    window.wait(SEEN)


def test_a_link_to_something_covered_shows_it(window, page):
    window.open(f"{page}#a-part")
    assert not window.run(SEEN)
    window.open(f"{page}#out")
    window.wait(SEEN)
    window.run("localStorage.clear()")
    window.open("about:blank")
    window.open(f"{page}#out")
    assert window.run(SEEN)


@pytest.mark.parametrize(
    ("typed", "verdict"), [("1.4", "right"), ("1.5", "wrong"), ("-1.41", "wrong")]
)
def test_a_number(window, typed, verdict):
    window.run("document.querySelector('[type=number]').focus()")
    window.call("Input.insertText", text=typed)
    window.press("Enter")
    found = window.run("document.querySelectorAll('.predict')[2].dataset.verdict")
    assert found == verdict


def test_names_for_a_screen_reader(window):
    """Each choice and the number have a name, and the group has the question."""
    tree = window.call("Accessibility.getFullAXTree")["nodes"]
    named = {
        (each["role"]["value"], each.get("name", {}).get("value", ""))
        for each in tree
        if not each["ignored"]
    }
    assert ("group", "How many sides?") in named
    assert {("radio", words) for words in ("two", "three", "four")} <= named
    assert ("spinbutton", "The root of two?") in named


def test_without_script(browser, page):
    """The answer and what follows are folded, and no dead button stands there."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open("about:blank")
        browser.call("Page.navigate", url=page)
        browser.wait(
            "document.readyState === 'complete' && !!document.querySelector('.predict')"
        )
        assert not browser.run(SEEN)
        browser.run("document.querySelector('.predict summary').click()")
        assert browser.run(SEEN)
        assert not browser.run(
            "document.querySelector('.predict button').checkVisibility()"
        )
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_in_print(window):
    """The answer is open and the output is there."""
    window.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert window.run(SEEN)
        why = "document.querySelector('.predict details p + p').checkVisibility"
        assert window.run(f"{why}({{ contentVisibilityAuto: true }})")
    finally:
        window.call("Emulation.setEmulatedMedia", media="")
