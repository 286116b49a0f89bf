"""Turn nbdev notebooks into book chapters while Sphinx reads them; the files themselves
stay as they are.

Three things happen to a notebook at `source-read`:

1. nbdev's directives (`#| export`, `#| hide`, …) become the tags and cell metadata that
   myst-nb knows, and disappear.
2. Above each exported cell stands a link to its entry.
3. A hidden first cell sets up figures and charts. It also names a hash of all that the
   chapter depends on: the cached outputs of a chapter are keyed by its code cells, so a
   chapter runs again exactly when its own code changes, or a module that it imports,
   directly or through others, or a recorded run that it reads.
"""

import ast
import hashlib
import inspect
import json
import os
import re
from functools import cache
from importlib import import_module
from pathlib import Path

from click import Command
from docutils import nodes
from nbclient import NotebookClient
from sphinx.util import logging
from typer.main import get_command

logger = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "annotated_transformer"
DIRECTIVE = re.compile(r"^#\|\s*([\w-]+)\s*:?\s*(.*?)\s*$")
KNOWN = {
    "default_exp",
    "export",
    "exports",
    "exporti",
    "hide",
    "echo",
    "code-fold",
    "eval",
    "slow",
    "label",
    "fig-cap",
    "fig-alt",
}
SLOW_NOTE = (
    "*The next cell takes minutes: `make test-slow` runs it, the building of "
    "this book does not.*"
)

QUIET = """
import warnings
warnings.filterwarnings("ignore", message="IProgress not found")
"""
# A figure appears once, whether it is the value of its cell or only left open by it.
FIGURES = """
from IPython.core.pylabtools import print_figure
from matplotlib import pyplot, rcParams
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats
def _figure_for_the_book(figure):
    pyplot.close(figure)
    return print_figure(figure, "svg")
get_ipython().run_line_magic("matplotlib", "inline")
set_matplotlib_formats("svg")
_formatters = get_ipython().display_formatter.formatters
_formatters["image/svg+xml"].for_type(Figure, _figure_for_the_book)
rcParams["svg.hashsalt"] = "book"
"""
CHARTS = """
import html, json
import altair
def _chart_for_the_book(spec, **_):
    text = json.dumps(spec, sort_keys=True).replace("<", "\\\\u003c")
    words = spec.get("description") or spec.get("title") or ""
    label = html.escape(str(words), quote=True)
    data = f'<script type="application/json">{text}</script>'
    start = f'<div class="vega-chart" role="img" aria-label="{label}">'
    return {"text/html": f"{start}{data}</div>"}
altair.renderers.register("book", _chart_for_the_book)
altair.renderers.enable("book")
"""


# -- directives ------------------------------------------------------------------------


def unquoted(value: str) -> str:
    """A directive's value without the quotation marks that YAML allows around it."""
    quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return value[1:-1].replace('\\"', '"') if quoted else value


def split_directives(source: str) -> tuple[dict[str, str], str]:
    """The nbdev directives of a cell by name, and the cell without them."""
    directives, lines = {}, []
    for line in source.splitlines():
        match = DIRECTIVE.match(line)
        if match:
            directives[match[1]] = unquoted(match[2])
        else:
            lines.append(line)
    return directives, "\n".join(lines).strip("\n")


def metadata(directives: dict[str, str], body: str = "") -> dict:
    """The tags and settings by which myst-nb does what the directives ask for.

    A fold is named by the comment that its cell begins with.
    """
    off = {
        name
        for name in ("echo", "eval")
        if directives.get(name, "true").lower() == "false"
    }
    wanted = {
        "remove-cell": "hide" in directives,
        "remove-input": "echo" in off,
        "hide-input": directives.get("code-fold", "false").lower() == "true",
        "skip-execution": "eval" in off or "slow" in directives,
    }
    result: dict = {"tags": [tag for tag, yes in wanted.items() if yes]}
    figure = {"name": directives.get("label"), "caption": directives.get("fig-cap")}
    settings = {
        "figure": {key: value for key, value in figure.items() if value},
        "image": {"alt": directives["fig-alt"]} if "fig-alt" in directives else {},
    }
    settings = {key: value for key, value in settings.items() if value}
    if wanted["hide-input"] and (title := re.match(r"# (.+)", body)):
        for way in ("show", "hide"):
            settings[f"code_prompt_{way}"] = title[1]
    return {**result, **({"mystnb": settings} if settings else {})}


def public_names(source: str) -> list[str]:
    """Public names that a cell defines at its top level."""
    names: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [
                target.id for target in node.targets if isinstance(target, ast.Name)
            ]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return [name for name in names if not name.startswith("_")]


def badge(module: str, source: str) -> str:
    """The line above an exported cell: a link to its entry in the API pages."""
    name = next(iter(public_names(source)), "")
    kind, entry = ("py:obj", f"{module}.{name}") if name else ("py:mod", module)
    return f"::::{{container}} exported\n{{{kind}}}`source <{entry}>`\n::::"


# -- dependencies ----------------------------------------------------------------------


def imported_names(source: str, module: str = "", is_package: bool = False) -> set[str]:
    """Full dotted names that a piece of Python imports, and uses of what it imported.

    Relative imports count from `module`. After `import annotated_transformer as at` and
    `at.load()`, `annotated_transformer.load` is used. What a package's `__init__`
    imports for type checkers alone is not: those are its lazy names.
    """
    tree = ast.parse(source)
    if is_package:
        tree.body = [node for node in tree.body if not for_type_checkers(node)]
    base = module.split(".") if is_package else module.split(".")[:-1]
    names: set[str] = set()
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names.add(alias.name)
                top = alias.name.split(".")[0]
                bound[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            start = full_name(node, base)
            names.add(start)
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{start}.{alias.name}"
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    for first, _, rest in (ast.unparse(node).partition(".") for node in attributes):
        if first in bound and re.fullmatch(r"[\w.]+", rest):
            names.add(f"{bound[first]}.{rest}")
    return names | set(bound.values())


def full_name(node: ast.ImportFrom, base: list[str]) -> str:
    """The dotted name of what `from … import` imports from; `base` is the package that
    it stands in.
    """
    stem = base[: len(base) - node.level + 1] if node.level else []
    return ".".join([*stem, *([node.module] if node.module else [])])


def for_type_checkers(node: ast.AST) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def module_file(name: str) -> Path | None:
    """The file of a module of the package, if there is such a module."""
    stem = ROOT.joinpath(*name.split("."))
    paths = (stem / "__init__.py", stem.with_suffix(".py"))
    return next((path for path in paths if path.is_file()), None)


def read(name: str) -> str:
    """The source of a module of the package."""
    return module_file(name).read_text(encoding="utf-8")


@cache
def lazy_names(package: str) -> dict[str, str]:
    """The lazy names of a package, and the full name that each stands for.

    They are what its `__init__` imports under `if TYPE_CHECKING:`.
    """
    if module_file(package).name != "__init__.py":
        return {}
    found = {}
    for block in filter(for_type_checkers, ast.parse(read(package)).body):
        for node in ast.walk(block):
            if isinstance(node, ast.ImportFrom):
                start = full_name(node, package.split("."))
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{start}.{alias.name}"
    return found


def resolve(name: str) -> str | None:
    """The module of the package that a dotted name stands for or lies in, else None.

    `annotated_transformer.load` is a lazy name and lies in
    `annotated_transformer.pretrained`.
    """
    parts = name.split(".") if name.split(".")[0] == PACKAGE else []
    for end in range(len(parts), 0, -1):
        module = ".".join(parts[:end])
        if module_file(module):
            lazy = lazy_names(module).get(parts[end]) if parts[end:] else None
            return resolve(lazy) if lazy else module
    return None


def own_modules(names: set[str]) -> set[str]:
    """The package's modules that some dotted names lead to, with the packages that they
    lie in.
    """
    found = {module for module in map(resolve, names) if module}
    parts = [name.split(".") for name in found]
    return {".".join(each[:end]) for each in parts for end in range(1, len(each) + 1)}


@cache
def direct_dependencies(name: str) -> frozenset[str]:
    """The package's modules that one module imports, or names as "module:name"."""
    names = imported_names(read(name), name, module_file(name).name == "__init__.py")
    later = re.findall(r'"([a-z]\w*(?:\.\w+)*):\w+"', read(name))
    names |= {f"{PACKAGE}.{each}" for each in later}
    return frozenset(own_modules(names) - {name})


def all_dependencies(names: set[str]) -> set[str]:
    """Some modules, and every module of the package that they reach."""
    found, todo = set(), set(names)
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= direct_dependencies(name) - found
    return found


def plain_python(source: str) -> str:
    """A cell without IPython's `%` and `!` lines, which Python can't parse."""
    return "\n".join(
        "" if re.match(r"\s*[%!]", line) else line for line in source.splitlines()
    )


def chapter_modules(code: list[str]) -> set[str]:
    """Every module of the package on which a chapter's cells depend."""
    names = imported_names("\n".join(map(plain_python, code)))
    for source in code:
        names |= set(re.findall(rf"\b{PACKAGE}(?:\.\w+)+", source))
        if re.search(r"""(!\s*|["'])annotated-transformer(\s|["'],)""", source):
            names.add(f"{PACKAGE}.cli")
        if re.search(rf"""-m["',\s]+{PACKAGE}\b""", source):
            names.add(f"{PACKAGE}.__main__")
    return all_dependencies(own_modules(names))


def data_files(text: str) -> list[Path]:
    """Recorded runs, and files that the package ships, which a text names by file or by
    the folder of one run.
    """
    words = set(re.findall(r"[\w.-]+", text))
    files = [
        path
        for top in ("results", PACKAGE)
        for path in (ROOT / top).rglob("*")
        if path.is_file()
    ]
    shared = {
        ROOT / "results",
        *(ROOT / "results").glob("*"),
        *(path.parent for path in files if path.name == "__init__.py"),
    }
    names = {
        path: {path.name} | ({path.parent.name} if path.parent not in shared else set())
        for path in files
    }
    return sorted(
        path
        for path in files
        if path.suffix not in {".py", ".pyc"} and words & names[path]
    )


def fingerprint(code: list[str]) -> str:
    """A hash of all that a chapter's outputs depend on besides its own code."""
    # nbdev notes the id of each cell in a comment; a new paragraph of prose must not
    # count as a change.
    modules = {
        name: re.sub(r"^# %%.*\n", "", read(name), flags=re.M)
        for name in sorted(chapter_modules(code))
    }
    digest = hashlib.sha256("\0".join(modules.values()).encode())
    for path in data_files("\n".join([*code, *modules.values()])):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


# -- the chapter -----------------------------------------------------------------------


def set_up_cell(code: list[str]) -> str:
    """The hidden first cell: what the chapter depends on, and how its figures are
    shown.
    """
    modules = chapter_modules(code)
    text = "\n".join([*code, *(read(name) for name in modules)])
    figures = FIGURES if re.search(r"^\s*(import|from) matplotlib", text, re.M) else ""
    charts = CHARTS if re.search(r"^\s*(import|from) altair", text, re.M) else ""
    return f"# depends on {fingerprint(code)}{QUIET}{figures}{charts}"


def chapter(notebook: dict, where: str) -> dict:
    """The notebook as the book shows and runs it."""
    cells, code, module = [], [], ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            cells.append({**cell, "source": source})
            continue
        directives, body = split_directives(source)
        for name in sorted(set(directives) - KNOWN):
            logger.warning(
                "unknown directive '#| %s' in %s",
                name,
                source.splitlines()[0],
                location=where,
            )
        if "default_exp" in directives:
            module = f"{PACKAGE}.{directives['default_exp']}"
        if not body or "nbdev_export()" in body:
            continue
        exported = {"export", "exports", "exporti"} & set(directives)
        if exported and "hide" not in directives:
            cells.append(markdown(badge(module, body)))
        if "slow" in directives and "hide" not in directives:
            cells.append(markdown(SLOW_NOTE))
        cells.append(
            {
                **cell,
                "source": body,
                "metadata": metadata(directives, body),
                "outputs": [],
                "execution_count": None,
            }
        )
        code.append(body)
    if code:
        hidden = {
            **markdown(""),
            "cell_type": "code",
            "outputs": [],
            "execution_count": None,
        }
        cells.insert(
            0,
            {
                **hidden,
                "source": set_up_cell(code),
                "metadata": {"tags": ["remove-cell"]},
            },
        )
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    return {**notebook, "cells": cells}


def markdown(source: str) -> dict:
    """A Markdown cell."""
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def own_kernel_profile(app) -> None:
    """Sphinx event: chapters run with a profile of their own, so that a reader's
    start-up files can't change them.
    """
    profile = Path(app.outdir).parent / ".ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    settings = "c.IPKernelApp.log_level = 40\nc.HistoryManager.enabled = False\n"
    (profile / "ipython_kernel_config.py").write_text(settings, encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(profile.parent)
    NotebookClient.startup_timeout.default_value = (
        300  # seconds; a busy machine is no reason to give up
    )


def read_chapter(app, docname: str, source: list[str]) -> None:
    """Sphinx event: rewrite a notebook's text before it is parsed."""
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        direct_dependencies.cache_clear()
        lazy_names.cache_clear()
        source[0] = json.dumps(chapter(json.loads(source[0]), docname))


# -- API pages -------------------------------------------------------------------------

MODULES = re.compile(r"^% modules (\S+)$", re.M)
COMMANDS = re.compile(r"^% commands (\S+)$", re.M)
NAMES = re.compile(r"^% names (\S+)$", re.M)
ENTRY = """## {short}

{link}```{{eval-rst}}
.. automodule:: {name}
   :members:
   :member-order: bysource
{data}
```
"""


def constants(source: str) -> dict[str, str]:
    """Public names that a module binds by assignment without a docstring (autodoc
    passes over them), and the values.
    """
    body = [*ast.parse(source).body, None]
    found = {}
    for node, following in zip(body, body[1:], strict=False):
        # An alias is described as its type, which autodoc finds by itself.
        alias = isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node)
        documented = isinstance(following, ast.Expr) and isinstance(
            following.value, ast.Constant
        )
        if (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and node.value
            and not documented
            and not alias
        ):
            found |= {
                name: ast.unparse(node.value)
                for name in public_names(ast.unparse(node))
            }
    return found


def api_entry(name: str) -> str:
    """One module's part of an API page, with the chapter that it comes from."""
    short = name.removeprefix(f"{PACKAGE}.")
    path = short.replace(".", "/")
    link = (
        f"Written and explained in {{doc}}`/{path}`.\n\n"
        if (ROOT / "nbs" / f"{path}.ipynb").is_file()
        else ""
    )
    data = ""
    for constant, value in constants(read(name)).items():
        data += f"\n.. py:data:: {constant}\n" + (
            f"   :value: {value}\n" if len(value) < 80 else ""
        )
    return ENTRY.format(short=short, name=name, link=link, data=data)


def plain_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Sphinx event: a docstring is plain text with `code`; what reStructuredText would
    take for its signs is kept.
    """
    text = re.sub(r" *\{cite\w*(:\w+)?\}`[^`]*`", "", "\n".join(lines))
    text = re.sub(r"(?<![`:\w])`([^`\n]+)`(?!`)", r"``\1``", text)
    pieces = re.split(r"(``.*?``|\*\*\w[^*\n]*\*\*)", text)
    pieces[::2] = [re.sub(r"([|*])", r"\\\1", piece) for piece in pieces[::2]]
    lines[:] = "".join(pieces).split("\n")


def modules_in(name: str, order: list[str]) -> list[str]:
    """A module by itself, or a subpackage's modules in the order of the chapters."""
    path = module_file(name)
    if path is None:
        return []
    if path.name != "__init__.py":
        return [name]
    found = [
        f"{name}.{file.stem}"
        for file in path.parent.glob("*.py")
        if not file.stem.startswith("_")
    ]
    places = {f"{PACKAGE}.{doc.replace('/', '.')}": i for i, doc in enumerate(order)}
    return sorted(found, key=lambda module: (places.get(module, len(places)), module))


def command_entry(name: str, command: Command) -> str:
    """One command of the command line: what it does, with examples, and its options."""
    rows = []
    for parameter in command.params:
        meaning = (getattr(parameter, "help", "") or "").replace("|", "\\|")
        default = parameter.default
        if (
            isinstance(default, str | int | float | Path)
            and not isinstance(default, bool)
            and "/" not in str(default)
        ):
            meaning += f" Default: `{default}`."
        argument = parameter.metavar or parameter.name.upper()
        option = (
            ", ".join(parameter.opts)
            if parameter.param_type_name == "option"
            else argument
        )
        rows.append(f"| `{option}` | {meaning} |")
    table = (
        "\n".join(["| argument or option | meaning |", "|---|---|", *rows])
        if rows
        else ""
    )
    return (
        "## `annotated-transformer "
        f"{name}`\n\n{inspect.cleandoc(command.help or '')}\n\n{table}\n"
    )


def commands(match: re.Match) -> str:
    """The entries of every command of a module's typer application."""
    return "\n".join(command_entries("", get_command(import_module(match[1]).app)))


def command_entries(name: str, group: Command):
    """The entries of a group's commands, and of those of the groups in it."""
    for each, command in group.commands.items():
        yield command_entry(f"{name}{each}", command)
        if hasattr(command, "commands"):
            yield from command_entries(f"{name}{each} ", command)


def face(match: re.Match) -> str:
    """A package's lazy names, each with a link to its entry."""
    rows = [
        f"| `{name}` | {{py:obj}}`{home}` |"
        for name, home in sorted(lazy_names(match[1]).items())
    ]
    return "\n".join(["| name | its entry |", "|---|---|", *rows])


def read_api_page(app, docname: str, source: list[str]) -> None:
    """Sphinx event: fill in the lists of an API page.

    `% modules NAME` stands for the entries of a module or of a room's, `% names NAME`
    for the lazy names of a package, `% commands NAME` for the command line.
    """
    order = (
        list(app.env.external_site_map) if hasattr(app.env, "external_site_map") else []
    )
    if docname.startswith("api/"):
        source[0] = COMMANDS.sub(commands, source[0])
        source[0] = NAMES.sub(face, source[0])
        source[0] = MODULES.sub(
            lambda match: "\n".join(map(api_entry, modules_in(match[1], order))),
            source[0],
        )


# -- figures ---------------------------------------------------------------------------


def check_alt_text(app, doctree: nodes.document) -> None:
    """Sphinx event: a picture that says nothing to a reader who can't see it is an
    error.
    """
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            logger.warning(
                "a figure without alternative text: say '#| fig-alt: …'", location=image
            )


def setup(app):
    app.connect("builder-inited", own_kernel_profile)
    app.connect("source-read", read_chapter)
    app.connect("source-read", read_api_page)
    app.connect("doctree-read", check_alt_text)
    app.connect(
        "autodoc-process-docstring", plain_docstring, priority=400
    )  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
