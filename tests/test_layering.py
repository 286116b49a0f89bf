"""What may import what; the package and the chapters are the same
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
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import dependencies  # noqa: E402

PACKAGE = "annotated_transformer"
CHAPTERS = sorted(
    path
    for path in (ROOT / "nbs").rglob("*.ipynb")
    if ".ipynb_checkpoints" not in path.parts
)
MODULES = sorted(
    path for path in (ROOT / PACKAGE).rglob("*.py") if path.name != "_modidx.py"
)
# The order of dependence; plain modules stand in the folder of their subject. What is
# imported by a string when it is asked for, `model_types` names.
ORDER = ["errors", "registry", "cache", "devices", "files", "model_names"]
ORDER += ["attention_view", "before", "model", "data", "training", "decoding"]
ORDER += ["pretrained", "average", "translation", "after", "performance", "interop"]
ORDER += ["model_types", "check", "plots", "cli", "", "__main__"]
names = pytest.mark.parametrize(
    "chapter", CHAPTERS, ids=lambda path: path.relative_to(ROOT / "nbs").as_posix()
)


def contents() -> list[str]:
    """The chapters in the order of the book, as `model.attention`."""
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    entries = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    return [file.replace("/", ".") for file in [toc["root"], *entries]]


def exports(chapter: str) -> bool:
    """Whether a chapter builds its module; a plain module may be used anywhere."""
    path = ROOT / "nbs" / f"{chapter.replace('.', '/')}.ipynb"
    return path.exists() and "#| default_exp" in path.read_text(encoding="utf-8")


def name_of(path: Path, top: str) -> str:
    """`model.attention` for either of its two files, `cli` for the package's own."""
    stem = path.relative_to(ROOT / top).with_suffix("").as_posix()
    return stem.removesuffix("__init__").rstrip("/").replace("/", ".")


def place(module: str) -> int:
    """Where the subpackage of a module stands."""
    return ORDER.index(module.partition(".")[0])


def imports(source: str, module: str) -> set[str]:
    """The package's modules that a piece of Python imports anywhere, functions too."""
    inside = (ROOT / PACKAGE).joinpath(*module.split("."))
    full = f"{PACKAGE}.{module}".rstrip(".")
    found = dependencies.imported_names(source, full, inside.is_dir())
    known = {name_of(path, PACKAGE) for path in MODULES}
    ours = {
        name.removeprefix(PACKAGE).lstrip(".")
        for name in found
        if name.split(".")[0] == PACKAGE
    }
    return {name for name in ours & known if name}


def named(source: str) -> set[str]:
    """The package's modules that stand in a piece of Python as a string: "module:NAME",
    ".module", "annotated_transformer.module", or "subpackage.module".
    """
    known = {name_of(path, PACKAGE) for path in MODULES}
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if match := re.fullmatch(r"([\w.]+)(:\w+)?", node.value):
                stem = match[1].removeprefix(PACKAGE)
                if match[2] or not stem.isidentifier():
                    found.add(stem.strip("."))
    return found & known - {""}


def below(source: str, module: str) -> set[str]:
    """The modules that one imports or names, and that come after it."""
    used = imports(source, module) | named(source)
    return {name for name in used if place(name) > place(module)}


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


@pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: name_of(path, PACKAGE) or PACKAGE
)
def test_a_module_uses_only_what_is_above(path):
    module, source = name_of(path, PACKAGE), path.read_text(encoding="utf-8")
    late = below(source, module)
    assert not late, f"{module} uses {', '.join(late)}, which come after it"
    if place(module) != place("cli"):
        drawn = imports(source, module)
        assert "plots" not in drawn, "only chapters and the command line draw"


@pytest.mark.parametrize(
    "source",
    [
        'import_module("annotated_transformer.performance.update")',
        'import_module("annotated_transformer.interop")',
        'import_module(".performance.update", __package__)',
        'import_module(f"{__package__}.{name}") if name == "performance.update" else 0',
        'MAKERS["objective"] = "performance.update:fast_training"',
        'HOME = "pretrained:load"',
        'WITHIN = ("annotated_transformer.interop.",)',
        "from ..performance.update import fast_training",
    ],
)
def test_a_name_in_a_string_counts_as_an_import(source):
    assert below(source, "training.task")
    assert not below(source, "model_types")


@pytest.mark.parametrize("source", ['NAME = "plots"', '"""Of performance.update."""'])
def test_a_word_is_no_name_of_a_module(source):
    assert not below(source, "training.task")


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.parent.name == "before"], ids=str
)
def test_what_came_before_needs_torch_alone(path):
    source = path.read_text(encoding="utf-8")
    found = dependencies.imported_names(source, f"{PACKAGE}.{name_of(path, PACKAGE)}")
    foreign = {name.partition(".")[0] for name in found} - sys.stdlib_module_names
    assert foreign <= {"torch", PACKAGE}


@names
def test_a_chapter_uses_only_what_earlier_chapters_built(chapter):
    name, order = name_of(chapter, "nbs"), contents()
    late = [
        used
        for used in imports(python_of(chapter), name)
        if used in order
        and exports(used)
        and used != "plots"
        and order.index(used) > order.index(name)
    ]
    assert not late, f"{name} uses {', '.join(late)} before the chapter that builds it"


@names
def test_what_a_chapter_exports_is_shown(chapter):
    """No exported cell that defines something is folded or hidden."""
    for source in cells(chapter):
        if re.search(r"^#\| *export", source, re.M):
            covered = r"^#\| *(hide|echo: false|code-fold: true)"
            defines = re.search(r"^(def|class|@)", source, re.M)
            assert not (defines and re.search(covered, source, re.M)), source


# Chapters in which a cell that is shown needs one that is hidden.
UNCOPIED = {
    "after.language_model",
    "decoding.search",
    "performance.decoding",
    "training.loss",
}


def shown(chapter: Path) -> str:
    """What a reader can copy from a chapter, in order."""
    kept = (
        source
        for source in cells(chapter)
        if not re.search(r"^#\| *hide", source, re.M)
    )
    lines = "\n\n".join(kept).splitlines()
    return "\n".join(line for line in lines if not re.match(r"\s*[%!]", line))


@names
def test_cells_copied_in_order_know_all_names(chapter):
    """A reader's clean notebook has no hidden cells."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select=F821",
        "-",
    ]
    found = subprocess.run(
        command, input=shown(chapter), text=True, capture_output=True
    )
    complete = found.returncode == 0
    assert complete == (name_of(chapter, "nbs") not in UNCOPIED), found.stdout


FIRST = [
    path
    for path in CHAPTERS
    if path.parent.name in ("before", "model") or path.stem == "write_it"
]


@pytest.mark.slow
@pytest.mark.parametrize("chapter", FIRST, ids=lambda path: path.stem)
def test_cells_copied_in_order_run(chapter):
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-"],
        input=shown(chapter),
        cwd=chapter.parent,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_chapter_in_the_contents_exists():
    files = [name.replace(".", "/") for name in contents()]
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
    assert not [line for line in lines if len(line) > 88]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: name_of(path, PACKAGE))
def test_no_function_is_long(path):
    """Decorators, signature and docstring included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min(each.lineno for each in [node, *node.decorator_list])
            assert node.end_lineno - first < 40, node.name
