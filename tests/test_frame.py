"""The frame: metadata, pins, the Makefile, the README, and the book's extension."""

import itertools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command

import annotated_transformer
from annotated_transformer.cli import app

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "tools")]
import api_pages  # noqa: E402
import chapters  # noqa: E402
import dependencies  # noqa: E402
import launch  # noqa: E402
import moved  # noqa: E402
import terms  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
HTML = SimpleNamespace(format="html")
LINES = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
PINS = [line for line in LINES if line and not line.startswith("#")]


def rendered(*sources: str) -> list[dict]:
    """The cells of the chapter that code cells become in the book."""
    code = {"cell_type": "code", "outputs": [], "execution_count": None}
    cells = [code | {"metadata": {}, "source": source} for source in sources]
    return chapters.chapter({"cells": cells}, "a chapter")["cells"]


# -- metadata --------------------------------------------------------------------------


def test_one_version_everywhere():
    settings, version = ConfigParser(), annotated_transformer.__version__
    settings.read(ROOT / "settings.ini")
    assert version == settings["DEFAULT"]["version"]
    for name, line in {"CITATION.cff": "version:", "CHANGELOG.md": "##"}.items():
        assert f"{line} {version}" in (ROOT / name).read_text(encoding="utf-8")


def test_what_was_tested_is_exact_and_lies_in_the_stated_ranges():
    exact = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+")
    assert [line for line in PINS if not exact.fullmatch(line)] == []
    pins = dict(line.split("==") for line in PINS)
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    extras = itertools.chain(*PROJECT["optional-dependencies"].values())
    for text in [*PROJECT["dependencies"], *extras]:
        wanted = Requirement(text)
        if wanted.name != PROJECT["name"]:
            assert wanted.specifier.contains(pins[canonicalize_name(wanted.name)]), text


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
    cells = rendered(f"{directive}\nx = 1\nx")
    assert cells[-1]["metadata"]["tags"] == [tag]
    assert cells[-1]["source"] == "x = 1\nx"
    assert ("make test-slow" in str(cells)) == ("slow" in directive)


def test_a_figure_gets_its_label_caption_and_alternative_text():
    words = [
        "label: fig-codes",
        "fig-cap: The codes: all of them.",
        "fig-alt: Stripes.",
    ]
    *_, shown = rendered("\n".join([*(f"#| {each}" for each in words), "plot()"]))
    assert shown["metadata"]["mystnb"] == {
        "figure": {"name": "fig-codes", "caption": "The codes: all of them."},
        "image": {"alt": "Stripes."},
    }


def test_a_fold_is_named_by_what_is_in_it():
    *_, shown = rendered("#| code-fold: true\n# Imports, and clocks\nimport math")
    assert shown["metadata"]["mystnb"]["code_prompt_show"] == "Imports, and clocks"


def test_an_exported_cell_says_where_it_went():
    cells = rendered(
        "#| default_exp model.attention",
        "#| export\ndef attention(): ...",
        "#| hide\nimport nbdev; nbdev.nbdev_export()",
    )
    assert [cell["cell_type"] for cell in cells] == ["code", "markdown", "code"]
    entry = "{py:obj}`source <annotated_transformer.model.attention.attention>`"
    assert entry in cells[1]["source"]
    sources = "".join(cell["source"] for cell in cells)
    assert "#|" not in sources and "nbdev" not in sources


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
    monkeypatch.setattr(dependencies, "ROOT", tmp_path)
    dependencies.direct_dependencies.cache_clear()
    dependencies.lazy_names.cache_clear()
    yield tmp_path
    dependencies.direct_dependencies.cache_clear()
    dependencies.lazy_names.cache_clear()


C_CHAPTER = ["from annotated_transformer.room.c import b"]
CHAPTERS = {
    "a": ["from annotated_transformer import A"],
    "a by attribute": ["import annotated_transformer as at", "at.A"],
    "b": ["from annotated_transformer.room import b"],
    "c": C_CHAPTER,
    "d, twice lazy": ["import annotated_transformer", "annotated_transformer.D"],
    "e": ["from annotated_transformer.room.e import A"],
}
DEPENDENTS = {
    "a": {"a", "a by attribute", "b", "c", "e"},
    "b": {"b", "c"},
    "c": {"c"},
    "d": {"d, twice lazy"},
    "e": {"e"},
}


@pytest.mark.parametrize("module", DEPENDENTS)
def test_a_change_to_a_module_reaches_exactly_its_dependents(small_package, module):
    before = {name: dependencies.fingerprint(code) for name, code in CHAPTERS.items()}
    path = small_package / "annotated_transformer" / "room" / f"{module}.py"
    path.write_text(path.read_text() + "NEW = 2\n")
    after = {name: dependencies.fingerprint(code) for name, code in CHAPTERS.items()}
    assert {name for name in CHAPTERS if after[name] != before[name]} == (
        DEPENDENTS[module]
    )


def test_a_new_paragraph_in_a_chapter_changes_nothing_elsewhere(small_package):
    path = small_package / "annotated_transformer" / "room" / "a.py"
    found = set()
    for cell in (4, 5):
        path.write_text(f"# %% ../nbs/room/a.ipynb #cell{cell}\nA = 1\n")
        found.add(dependencies.fingerprint(C_CHAPTER))
    assert len(found) == 1


READERS = {
    "by file": ["open('../results/run.json')"],
    "by folder": ["place = Path(f'../results/runs/{name}/record.json')"],
    "by a part of a name": ["place = f'../results/run{tail}'"],
    "by the folder of all": ['HOME = Path("../results")', "open(HOME / name)"],
    "in a path": ['open(home / "results" / "run.json")'],
    "of another folder": ["open('../results/paper/table.json')"],
    "of none": ["results = [1]", "results[0]"],
}
READ = {
    "run.json": {"by file", "by a part of a name", "by the folder of all", "in a path"},
    "runs/tiny/record.json": {
        *("by folder", "by a part of a name", "by the folder of all", "in a path")
    },
    "paper/table.json": {
        *("of another folder", "by a part of a name", "by the folder of all"),
        "in a path",
    },
}


@pytest.mark.parametrize("changed", READ)
def test_a_chapter_depends_on_the_records_that_it_may_read(small_package, changed):
    for name in READ:
        (small_package / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        (small_package / "results" / name).write_text("{}")
    before = {name: dependencies.fingerprint(code) for name, code in READERS.items()}
    (small_package / "results" / changed).write_text('{"loss": 1}')
    after = {name: dependencies.fingerprint(code) for name, code in READERS.items()}
    assert {name for name in READERS if after[name] != before[name]} == READ[changed]


def test_a_chapter_depends_on_the_models_that_come_with_the_package(small_package):
    model = small_package / "annotated_transformer" / "models" / "a" / "weights"
    model.parent.mkdir(parents=True)
    found = set()
    for weights in (b"1", b"2"):
        model.write_bytes(weights)
        found.add(dependencies.fingerprint(C_CHAPTER))
    assert len(found) == 2


def test_a_chapter_runs_again_when_a_record_changes():
    """The hidden first cell, by which the book's cache knows a chapter, changes."""
    cells = "from pathlib import Path", "Path('../results/ledger.json').read_text()"
    first = rendered(*cells)[0]["source"].splitlines()[0]
    assert first == f"# depends on {dependencies.fingerprint([*cells])}"


def test_a_command_counts_as_an_import_of_the_command_line(small_package):
    cli = small_package / "annotated_transformer" / "cli.py"
    cli.write_text("from .room import c\n")
    asked = ["!annotated-transformer info base"]
    assert "annotated_transformer.room.a" in dependencies.chapter_modules(asked)
    assert not dependencies.chapter_modules(["place = home / 'annotated-transformer'"])


def test_a_docstring_is_plain_text():
    lines = ["**Note** Length penalty (5 + |Y|)^a of `tokens`, for *all* rows."]
    api_pages.plain_docstring(None, "function", "f", None, None, lines)
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


def brought(install: str) -> set[str]:
    """The libraries that a line of pip's installs beside the project, by name."""
    extras = re.search(r"\[([\w,]+)\]'", install)[1].split(",")
    texts = [*PROJECT["dependencies"], *shlex.split(install.partition("]'")[2])]
    for extra in extras:  # which one may add to
        texts += PROJECT["optional-dependencies"][extra]
        ours = [text for text in texts if Requirement(text).name == PROJECT["name"]]
        extras += {e for text in ours for e in Requirement(text).extras} - {*extras}
    return {Requirement(text).name for text in texts}


def imported(path: Path) -> set[str]:
    """The libraries that a chapter's cells import."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    names = set(re.findall(r"^(?:import|from) (\w+)", "\n".join(code), re.M))
    ours = {"annotated_transformer", *(file.stem for file in path.parent.glob("*.py"))}
    return names - sys.stdlib_module_names - ours


def test_colab_and_binder_get_what_a_chapter_imports(tmp_path):
    build = (ROOT / ".binder" / "postBuild").read_text(encoding="utf-8")
    binder = brought(build.partition("pip install")[2])
    written = launch.write_copies(tmp_path)
    assert tmp_path / "nbs" / "model" / "attention.ipynb" in written
    for path in written:
        chapter = ROOT / path.relative_to(tmp_path)
        assert imported(chapter) <= binder, path.name
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells]
        install = re.search(r"^%pip install --quiet (.*)", sources[0], re.M)[1]
        on_colab = brought(install) | {"altair"}
        assert imported(chapter) - {"nbdev"} <= on_colab, path.name
        assert not [source for source in sources if "nbdev_export()" in source]


def test_a_chapter_leaves_colab_its_pytorch():
    """A newer one breaks the torchvision there, which transformers loads."""
    texts = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["export"]]
    wanted = [each for each in map(Requirement, texts) if each.name == "torch"]
    assert all(each.specifier.contains("2.11.0") for each in wanted)


# -- the reference ---------------------------------------------------------------------


def test_the_reference_leads_from_the_public_api_to_its_entries():
    table = api_pages.NAMES.sub(api_pages.public_api, "% names annotated_transformer")
    assert "| `load` | {py:obj}`annotated_transformer.pretrained.load` |" in table


def test_the_reference_lists_every_command_with_its_options():
    asked = "% commands annotated_transformer.cli"
    text = api_pages.COMMANDS.sub(api_pages.commands, asked)
    for command in ("train", "translate", "info", "export onnx", "series forecast"):
        assert f"## `{command}`" in text
    assert "`--beam-size`" in text and "lines are read from `--input` or" in text
    headings = re.findall(r"^## `(.+)`$", text, re.M)
    groups = {
        each
        for each in headings
        for other in headings
        if other[: len(each) + 1] == f"{each} "
    }
    assert [n for n in headings if n not in groups and not api_pages.sample_of(n)] == []
    assert "object at 0x" not in text and str(ROOT) not in text


def test_every_setting_has_its_meaning_and_defaults():
    table = [row.split(" | ") for row in api_pages.settings().splitlines()[2:]]
    names = [row[0].strip("| `") for row in table]
    assert sorted(names) == sorted(api_pages.defaults())
    assert dict(zip(names, table, strict=True))["epochs"][1:3] == ["0", "3"]


def test_todays_command_line_takes_every_sample():
    """By name and options; nothing is run."""
    for sample in api_pages.samples():
        command, words = get_command(app), shlex.split(sample["command"])
        while hasattr(command, "get_command"):
            command = command.get_command(None, words.pop(0))
        assert command.make_context("sample", words)


def test_the_first_use_of_a_term_leads_to_the_glossary():
    touch = ':::{touch} part\n{"why": "padding"}\n:::'
    skipped = f"# Padding\n\n{touch}\n\nNo `padding`, [padding](x), $padding$"
    text = f"{skipped}; padding, and padding."
    cells = [{"cell_type": "markdown", "source": [text]}]
    terms.link_terms(cells, "data/tokenizer")
    linked = "{term}`padding <padding>`, and padding."
    assert cells[0]["source"] == f"{skipped}; {linked}"
    terms.link_terms(
        same := [{"cell_type": "markdown", "source": [text]}], "model/attention"
    )
    assert same[0]["source"] == text


# -- what is published -----------------------------------------------------------------


def jobs(name: str) -> dict:
    workflow = ROOT / ".github" / "workflows" / f"{name}.yml"
    return yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]


def test_an_old_address_opens_the_page_of_its_subject(tmp_path):
    moved.write_redirects(SimpleNamespace(outdir=tmp_path, builder=HTML), None)
    for old in moved.MOVED:
        page = (tmp_path / f"{old}.html").read_text(encoding="utf-8")
        address = re.search(r"url=([^\"]+)", page)[1]
        name, _, heading = address.partition("#")
        chapter = (ROOT / "nbs" / old).parent / name
        sources = [chapter.with_suffix(each) for each in (".ipynb", ".md")]
        (text,) = (p.read_text(encoding="utf-8") for p in sources if p.exists())
        titles = re.findall(r'"## (.*?)(?:\\n)?"', text)
        bare = [re.sub(r"[^\w -]", "", title).lower() for title in titles]
        assert heading in ["", *(title.replace(" ", "-") for title in bare)]
        assert not (ROOT / "nbs" / f"{old}.ipynb").exists()


def test_the_book_is_made_with_the_versions_of_the_constraints():
    text = (ROOT / ".github" / "release" / "book.txt").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^(\S+)==(\S+)", text, flags=re.M))
    pins = dict(line.split("==") for line in PINS)
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    both = pins.keys() & locked.keys()
    assert len(both) > 150 and all(pins[name] == locked[name] for name in both)


@pytest.mark.parametrize(("name", "job"), [("release", "wheel"), ("ci", "book")])
def test_nothing_that_is_published_is_made_by_what_has_no_hash(name, job):
    steps = jobs(name)[job]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    installs = [line for line in lines if "pip install" in line]
    assert installs and not any("dist/" in line for line in lines)
    for line in installs:
        assert "--require-hashes" in line or line.endswith(
            "--no-deps --no-build-isolation -e ."
        )


def test_what_runs_unpinned_at_a_release_has_no_rights():
    for name, job in jobs("release").items():
        rights = job["permissions"]
        runs = any(
            "annotated-transformer" in step.get("run", "") for step in job["steps"]
        )
        assert not (runs and rights), name
