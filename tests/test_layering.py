"""The rooms: what may import what, and that the package and the chapters are the same
thing.
"""

import ast
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "annotated_transformer"
CHAPTERS = sorted(
    path
    for path in (ROOT / "nbs").rglob("*.ipynb")
    if ".ipynb_checkpoints" not in path.parts
)
MODULES = sorted(
    path
    for path in (ROOT / PACKAGE).rglob("*.py")
    if path.name not in ("__init__.py", "_modidx.py")
)
# What may draw: the command line, and the chart of a translation's attention, which
# imports the drawing when asked.
DRAWS = {"cli", "translation.translator"}
names = pytest.mark.parametrize(
    "chapter", CHAPTERS, ids=lambda path: path.relative_to(ROOT / "nbs").as_posix()
)


def order() -> list[str]:
    """Modules in the order of the chapters, which is the order of dependence; the
    command line comes last.
    """
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    files = [
        toc["root"],
        *(entry["file"] for part in toc["parts"] for entry in part["chapters"]),
    ]
    return [file.replace("/", ".") for file in files if not file.startswith("api/")] + [
        "cli"
    ]


def name_of(path: Path, top: str) -> str:
    """`model.attention` for either of its two files."""
    return path.relative_to(ROOT / top).with_suffix("").as_posix().replace("/", ".")


def imports(source: str, module: str) -> set[str]:
    """The package's modules that a piece of Python imports anywhere, functions
    included; relative to `module`.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = f"{PACKAGE}.{module}".split(".")[: -node.level] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found |= {stem} | {f"{stem}.{alias.name}" for alias in node.names}
    known = {f"{PACKAGE}.{name_of(path, PACKAGE)}" for path in MODULES}
    return {name.removeprefix(f"{PACKAGE}.") for name in found & known}


def cells(path: Path, kind: str = "code") -> list[str]:
    """The sources of a notebook's cells of one kind."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == kind
    ]


def python_of(path: Path) -> str:
    """A chapter's code without IPython's own lines."""
    lines = "\n".join(cells(path)).splitlines()
    return "\n".join(line for line in lines if not re.match(r"\s*[%!]", line))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: name_of(path, PACKAGE))
def test_a_module_imports_only_from_rooms_above(path):
    module, places = name_of(path, PACKAGE), order()
    assert module in places, f"{module} has no chapter in book/_toc.yml"
    used = imports(path.read_text(encoding="utf-8"), module)
    if module in DRAWS:
        used.discard("plots")
    else:
        assert "plots" not in used, "only chapters and the command line draw"
    below = [name for name in used if places.index(name) >= places.index(module)]
    assert not below, f"{module} imports {', '.join(below)}, which come after it"


@names
def test_a_chapter_uses_only_what_earlier_chapters_built(chapter):
    name, places = name_of(chapter, "nbs"), order()
    assert name in places, f"{name} is missing in book/_toc.yml"
    used = imports(python_of(chapter), name) - {"plots", name}
    late = [
        other
        for other in used
        if other == "cli" or places.index(other) > places.index(name)
    ]
    assert not late, f"{name} uses {', '.join(late)} before the chapter that builds it"


def test_every_chapter_in_the_contents_exists():
    files = [name.replace(".", "/") for name in order()[:-1]]
    lacking = [
        file
        for file in files
        if not any(
            (ROOT / "nbs" / f"{file}{end}").exists() for end in (".ipynb", ".md")
        )
    ]
    assert not lacking


def test_the_package_equals_the_notebooks(tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("nbs", PACKAGE):
        shutil.copytree(
            ROOT / name,
            copy / name,
            ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"),
        )
    for name in ("settings.ini", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, copy)
    nbdev(copy, "nbdev_export")
    changed = differences(
        filecmp.dircmp(ROOT / PACKAGE, copy / PACKAGE, ignore=["__pycache__"])
    )
    assert not changed, f"run nbdev_export and commit: {', '.join(changed)}"
    nbdev(copy, "nbdev_clean")
    changed = differences(
        filecmp.dircmp(ROOT / "nbs", copy / "nbs", ignore=[".ipynb_checkpoints"])
    )
    assert not changed, f"run nbdev_clean and commit: {', '.join(changed)}"


def nbdev(folder: Path, command: str) -> None:
    """Run one of nbdev's commands in a copy of the project."""
    script = Path(sys.executable).with_name(command)
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def differences(both: filecmp.dircmp) -> list[str]:
    """Files that differ or stand on one side only, with all folders below."""
    _, differ, broken = filecmp.cmpfiles(
        both.left, both.right, both.common_files, shallow=False
    )
    below = [name for sub in both.subdirs.values() for name in differences(sub)]
    return [*differ, *broken, *both.left_only, *both.right_only, *below]


@names
def test_a_chapter_is_clean_and_complete(chapter):
    notebook = json.loads(chapter.read_text(encoding="utf-8"))
    code = cells(chapter)
    assert cells(chapter, "markdown")[0].startswith("# "), (
        "the first cell holds the title"
    )
    assert "\n> " in cells(chapter, "markdown")[0], (
        "one sentence under the title names the paper's section"
    )
    assert all(
        not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"
    )
    exported = [source for source in code if re.search(r"^#\| export\b", source, re.M)]
    assert not exported or any("nbdev_export()" in source for source in code[-1:]), (
        "the last cell exports"
    )
    assert not re.search(r"^\s*from \S+ import \*", python_of(chapter), re.M), (
        "explicit imports only"
    )


@names
def test_lines_of_code_fit(chapter):
    lines = [
        line
        for source in cells(chapter)
        for line in source.splitlines()
        if not line.startswith("#|")
    ]
    assert not [line for line in lines if len(line) > 120]


@names
def test_one_public_definition_to_an_exported_cell(chapter):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for source in cells(chapter):
        if re.search(r"^#\| export\b", source, re.M):
            found = [
                node.name for node in ast.parse(source).body if isinstance(node, kinds)
            ]
            assert len([name for name in found if not name.startswith("_")]) <= 1, found


@names
def test_no_cell_is_long(chapter):
    for cell in json.loads(chapter.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            code = [
                line
                for line in "".join(cell["source"]).splitlines()
                if not line.startswith("#|")
            ]
            assert sum(bool(line.strip()) for line in code) <= 40, code[0]


@names
def test_at_most_two_shown_cells_of_code_in_a_row(chapter):
    row = 0
    for cell in json.loads(chapter.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            row = 0
        elif not re.search(r"^#\| (hide|default_exp)\b", source, re.M):
            row += 1
        assert row <= 2, source
