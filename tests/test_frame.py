"""The frame: metadata, pins, the Makefile, the README, and the book's extension."""

import importlib.metadata
import itertools
import json
import re
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import chapters  # noqa: E402
import launch  # noqa: E402
import terms  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if "==" in line
)


def canonical(name: str) -> str:
    """A distribution's name as comparisons want it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def code_cell(source: str) -> dict:
    """A notebook's code cell."""
    return {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": source,
    }


# -- metadata --------------------------------------------------------------------------


def test_one_version_everywhere():
    settings = ConfigParser()
    settings.read(ROOT / "settings.ini")
    import annotated_transformer

    assert annotated_transformer.__version__ == settings["DEFAULT"]["version"]
    assert f"version: {annotated_transformer.__version__}" in (
        ROOT / "CITATION.cff"
    ).read_text(encoding="utf-8")
    assert f"## {annotated_transformer.__version__}" in (
        ROOT / "CHANGELOG.md"
    ).read_text(encoding="utf-8")


def test_constraints_name_exact_versions_and_no_places():
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if line
    ]
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in pins)


def test_what_was_tested_lies_in_the_stated_ranges():
    pins = {canonical(name): version for name, version in PINS.items()}
    extras = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *itertools.chain(*extras.values())]:
        requirement = Requirement(text)
        if requirement.name != PROJECT["name"]:
            assert requirement.specifier.contains(pins[canonical(requirement.name)]), (
                text
            )


def test_the_command_is_installed():
    scripts = importlib.metadata.entry_points(
        group="console_scripts", name=PROJECT["name"]
    )
    assert [script.load().__name__ for script in scripts] == ["main"]


def test_every_target_of_the_makefile_is_in_its_help():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split()
    help_text = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert {"book", "test"} <= set(phony)
    assert set(re.findall(r"make ([a-z-]+)", help_text)) == set(phony)


def test_the_readme_shows_the_recorded_results():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "readme.py"), "--check"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr


# -- the book's extension: directives --------------------------------------------------


@pytest.mark.parametrize(
    ("directive", "tag"),
    [
        ("#| hide", "remove-cell"),
        ("#| echo: false", "remove-input"),
        ("#| code-fold: true", "hide-input"),
        ("#| eval: false", "skip-execution"),
        ("#| slow", "skip-execution"),
    ],
)
def test_a_directive_becomes_a_tag_and_disappears(directive, tag):
    book = chapters.chapter(
        {"cells": [code_cell(f"{directive}\nx = 1\nx")]}, "a chapter"
    )
    shown = book["cells"][-1]
    assert shown["metadata"]["tags"] == [tag]
    assert shown["source"] == "x = 1\nx"


def test_a_figure_gets_its_label_caption_and_alternative_text():
    source = (
        "#| label: fig-codes\n#| fig-cap: The codes: all of them.\n#| fig-alt: "
        "Stripes.\nplot()"
    )
    settings = chapters.chapter({"cells": [code_cell(source)]}, "a chapter")["cells"][
        -1
    ]["metadata"]["mystnb"]
    assert settings["figure"] == {
        "name": "fig-codes",
        "caption": "The codes: all of them.",
    }
    assert settings["image"] == {"alt": "Stripes."}


def test_an_exported_cell_says_where_it_went():
    cells = [
        code_cell("#| default_exp model.attention"),
        code_cell("#| export\ndef attention(): ..."),
    ]
    cells.append(code_cell("#| hide\nimport nbdev; nbdev.nbdev_export()"))
    book = chapters.chapter({"cells": cells}, "a chapter")
    assert [cell["cell_type"] for cell in book["cells"]] == ["code", "markdown", "code"]
    assert (
        "{py:obj}`annotated_transformer.model.attention.attention`"
        in book["cells"][1]["source"]
    )
    assert not [
        cell
        for cell in book["cells"]
        if "#|" in cell["source"] or "nbdev" in cell["source"]
    ]


def test_a_slow_cell_says_that_it_did_not_run():
    book = chapters.chapter({"cells": [code_cell("#| slow\ntrain()")]}, "a chapter")
    assert "make test-slow" in book["cells"][1]["source"]


# -- the book's extension: what a chapter depends on -----------------------------------


LAZY = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .room.a import A as A
    from .room.lazy import D as D


def __getattr__(name):
    ...
"""


@pytest.fixture
def small_package(tmp_path, monkeypatch):
    """A package with a lazy face and a lazy room.

    c imports b, b imports a inside a function, e imports a through the face for type
    checkers alone, and d stands by itself.
    """
    folder = tmp_path / "annotated_transformer"
    (folder / "room" / "lazy").mkdir(parents=True)
    (tmp_path / "results").mkdir()
    checked = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
    files = {
        "__init__.py": LAZY,
        "room/__init__.py": "",
        "room/lazy/__init__.py": f"{checked}    from ..d import D as D\n",
        "room/a.py": "A = 1\n",
        "room/d.py": "D = 1\n",
        "room/b.py": "def f():\n    from .a import A\n    return A\n",
        "room/c.py": "from ..room import b\n",
        "room/e.py": f"{checked}    from annotated_transformer import A\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(chapters, "ROOT", tmp_path)
    chapters.direct_dependencies.cache_clear()
    chapters.lazy_names.cache_clear()
    yield tmp_path
    chapters.direct_dependencies.cache_clear()
    chapters.lazy_names.cache_clear()


C_CHAPTER = ["from annotated_transformer.room.c import b"]
CHAPTERS = {
    "face": ["import annotated_transformer"],
    "a": ["from annotated_transformer import A"],
    "a by attribute": ["import annotated_transformer as at", "at.A"],
    "b": ["from annotated_transformer.room import b"],
    "c": C_CHAPTER,
    "d": ["import annotated_transformer.room.d"],
    "d, twice lazy": ["import annotated_transformer", "annotated_transformer.D"],
    "d by room": ["from annotated_transformer.room import lazy", "lazy.D"],
    "e": ["from annotated_transformer.room.e import A"],
}
DEPENDENTS = {
    "a": {"a", "a by attribute", "b", "c", "e"},
    "b": {"b", "c"},
    "c": {"c"},
    "d": {"d", "d, twice lazy", "d by room"},
    "e": {"e"},
}


@pytest.mark.parametrize("module", DEPENDENTS)
def test_a_change_to_a_module_reaches_exactly_its_dependents(small_package, module):
    before = {name: chapters.fingerprint(code) for name, code in CHAPTERS.items()}
    path = small_package / "annotated_transformer" / "room" / f"{module}.py"
    path.write_text(path.read_text() + "NEW = 2\n")
    again = {
        name
        for name in CHAPTERS
        if chapters.fingerprint(CHAPTERS[name]) != before[name]
    }
    assert again == DEPENDENTS[module]


def test_a_lazy_name_leads_to_its_module():
    home = {
        "annotated_transformer": "annotated_transformer",
        "annotated_transformer.load": "annotated_transformer.loading",
        "annotated_transformer.Transformer": "annotated_transformer.model.transformer",
        "annotated_transformer.errors.nearest": "annotated_transformer.errors",
        "torch.nn": None,
    }
    assert {name: chapters.resolve(name) for name in home} == home
    reached = chapters.chapter_modules(
        ["from annotated_transformer import Transformer"]
    )
    rooms = {name.split(".")[1] for name in reached if "." in name}
    assert rooms == {"model", "errors", "lazy"}
    reached = chapters.chapter_modules(["from annotated_transformer import load"])
    assert "annotated_transformer.after.pretrained" in reached
    alone = chapters.chapter_modules(["import annotated_transformer"])
    assert alone == {"annotated_transformer", "annotated_transformer.lazy"}


def test_a_new_paragraph_in_a_chapter_changes_nothing_elsewhere(small_package):
    path = small_package / "annotated_transformer" / "room" / "a.py"
    path.write_text("# %% ../nbs/room/a.ipynb #cell4\nA = 1\n")
    before = chapters.fingerprint(C_CHAPTER)
    path.write_text("# %% ../nbs/room/a.ipynb #cell5\nA = 1\n")
    assert chapters.fingerprint(C_CHAPTER) == before


def test_a_chapter_depends_on_the_recorded_run_that_it_names(small_package):
    run = small_package / "results" / "run.json"
    run.write_text("{}")
    named, other = ["open('results/run.json')"], ["x = 1"]
    before = chapters.fingerprint(named), chapters.fingerprint(other)
    run.write_text('{"loss": 1}')
    assert chapters.fingerprint(named) != before[0]
    assert chapters.fingerprint(other) == before[1]


def test_a_command_counts_as_an_import_of_the_command_line(small_package):
    (small_package / "annotated_transformer" / "cli.py").write_text(
        "from .room import c\n"
    )
    assert "annotated_transformer.room.a" in chapters.chapter_modules(
        ["!annotated-transformer info base"]
    )
    asked = ["run([python, '-m', 'annotated_transformer', 'info'])"]
    assert chapters.chapter_modules(asked) == {"annotated_transformer"}
    assert not chapters.chapter_modules(["place = home / 'annotated-transformer'"])


def test_a_docstring_is_plain_text():
    lines = ["**Note** Length penalty (5 + |Y|)^a of `tokens`, for *all* rows."]
    chapters.plain_docstring(None, "function", "f", None, None, lines)
    assert lines == [
        r"**Note** Length penalty (5 + \|Y\|)^a of ``tokens``, for \*all\* rows."
    ]


# -- promises --------------------------------------------------------------------------


def test_each_promise_names_a_test_that_exists():
    """And none stands there without one, but for what isn't promised."""
    text = (ROOT / "nbs" / "promises.md").read_text(encoding="utf-8")
    promised, _, _ = text.partition("## What isn't promised")
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", promised)
    for file, name in named:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text("utf-8"), name
    items = re.findall(r"^- .*", promised, re.MULTILINE)
    assert len(items) > 10 and all("::" in item for item in items)


# -- launch ----------------------------------------------------------------------------


def test_colab_gets_a_chapter_that_installs_the_project(tmp_path):
    written = launch.write_copies(tmp_path)
    assert tmp_path / "nbs" / "model" / "attention.ipynb" in written
    for path in written:
        sources = [
            "".join(cell["source"])
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        ]
        assert "pip install" in sources[0]
        assert not [source for source in sources if "nbdev_export()" in source]


# -- the reference ---------------------------------------------------------------------


def test_the_reference_leads_from_the_face_to_its_entries():
    table = chapters.NAMES.sub(chapters.face, "% names annotated_transformer")
    assert "| `load` | {py:obj}`annotated_transformer.loading.load` |" in table


def test_the_reference_lists_every_command_with_its_options():
    text = chapters.COMMANDS.sub(
        chapters.commands, "% commands annotated_transformer.cli"
    )
    for command in (
        "train",
        "translate",
        "evaluate",
        "score",
        "attend",
        "average",
        "info",
        "corpora",
    ):
        assert f"## `annotated-transformer {command}`" in text
    assert "`--beam-size`" in text
    assert "object at 0x" not in text
    assert str(ROOT) not in text


def test_the_first_use_of_a_term_leads_to_the_glossary():
    text = "# Padding\n\nNo `padding`, [padding](x), $padding$; padding, and padding."
    cells = [{"cell_type": "markdown", "source": [text]}]
    terms.link_terms(cells, "data/tokenizer")
    linked = "{term}`padding <padding>`, and padding."
    assert cells[0]["source"].endswith(f"$padding$; {linked}")
    terms.link_terms(
        same := [{"cell_type": "markdown", "source": [text]}], "model/attention"
    )
    assert same[0]["source"] == text
