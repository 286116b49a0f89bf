"""The reference pages, nbs/api: where one says `% modules NAME`, the entries of a
module or of a subpackage's; for `% names NAME` a package's lazy names; for
`% commands NAME` the commands of the command line; for `% settings` a table of what
--set takes.
"""

import ast
import inspect
import json
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from click import Command
from dependencies import PACKAGE, ROOT, lazy_names, module_file, read
from typer.main import get_command

from annotated_transformer.cli.recipe import TOKENIZER
from annotated_transformer.registry import SUMMARIES, model_type
from annotated_transformer.training.config import setting_owners
from annotated_transformer.training.recipes import recipe

HERE = Path(__file__).parent
FILES = "https://github.com/annotated-transformer/annotated-transformer/blob/main"
MODULES = re.compile(r"^% modules (\S+)$", re.M)
COMMANDS = re.compile(r"^% commands (\S+)$", re.M)
NAMES = re.compile(r"^% names (\S+)$", re.M)
SETTINGS = re.compile(r"^% settings$", re.M)
ENTRY = """## {short}

{link}```{{eval-rst}}
.. automodule:: {name}
   :members:
   :member-order: bysource
{data}
```
"""


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
    written = (ROOT / "nbs" / f"{path}.ipynb").is_file()
    link = f"Written and explained in {{doc}}`/{path}`.\n\n" if written else ""
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


def with_options_as_code(text: str) -> str:
    """Help for a page, which would make one dash of an option's two."""
    pieces = text.split("`")
    pieces[::2] = [re.sub(r"--[a-z][\w-]*", r"`\g<0>`", each) for each in pieces[::2]]
    return "`".join(pieces)


def command_entry(name: str, command: Command) -> str:
    """One command of the command line: what it does, with examples, and its options."""
    rows = ["| argument or option | meaning |", "|---|---|"]
    for parameter in command.params:
        meaning = (getattr(parameter, "help", "") or "").replace("|", "\\|")
        shown = type(parameter.default) in (str, int, float)
        if shown and "/" not in str(parameter.default):
            meaning += f" Default: `{parameter.default}`."
        option = ", ".join(parameter.opts)
        if parameter.param_type_name == "argument":
            option = parameter.metavar or parameter.name.upper()
            option = option.replace("|", "\\|")
        rows.append(f"| `{option}` | {with_options_as_code(meaning)} |")
    table = "\n".join(rows) if command.params else ""
    about = with_options_as_code(inspect.cleandoc(command.help or ""))
    return f"## `{name}`\n\n{about}\n\n{table}\n\n{sample_of(name)}\n"


@cache
def samples() -> list[dict[str, Any]]:
    """The commands of results/commands.json, each with what it printed."""
    return json.loads((ROOT / "results" / "commands.json").read_text("utf-8"))[
        "samples"
    ]


def sample_of(name: str) -> str:
    """The first sample of a command, as on a terminal; none of a group's."""
    for sample in samples():
        if sample["command"].startswith(f"{name} ") or sample["command"] == name:
            lines = [f"$ annotated-transformer {sample['command']}", *sample["printed"]]
            return "\n".join(["```text", *lines, "```"])
    return ""


def commands(match: re.Match) -> str:
    """The entries of every command of a module's typer application."""
    return "\n".join(command_entries("", get_command(import_module(match[1]).app)))


def command_entries(name: str, group: Command):
    """The entries of a group's commands, and of those of the groups in it."""
    for each in group.list_commands(None):
        command = group.get_command(None, each)
        yield command_entry(f"{name}{each}", command)
        if hasattr(command, "commands"):
            yield from command_entries(f"{name}{each} ", command)


def defaults() -> dict[str, dict[str, Any]]:
    """The default of each setting, by setting and task."""
    plan = recipe("multi30k-en-de-tiny")
    parts = plan.architecture, plan.training, plan
    tasks = {"train": (parts, setting_owners(parts).keys() - TOKENIZER)}
    for name in SUMMARIES:
        kind = model_type(name)
        parts = kind.model.config_class(), kind.training
        tasks[name] = parts, setting_owners(parts).keys() - kind.decided
    found: dict[str, dict[str, Any]] = {}
    for task, (parts, names) in tasks.items():
        for name, number in setting_owners(parts).items():
            if name in names:
                found.setdefault(name, {})[task] = getattr(parts[number], name)
    return found


def settings(_: re.Match | None = None) -> str:
    """A row for each setting: its meaning, and its default by task."""
    rows = (HERE / "settings.tsv").read_text("utf-8").splitlines()
    tasks, found = ["train", *SUMMARIES], defaults()
    heads = [name.removesuffix("-model").removesuffix("-language") for name in tasks]
    lines = [f"| setting | {' | '.join(heads)} | meaning |", "|---" * 8 + "|"]
    for name, meaning in (row.split("\t") for row in rows):
        cells = [str(found[name].get(task, "")) for task in tasks]
        lines.append(f"| `{name}` | {' | '.join(cells)} | {meaning} |")
    return "\n".join(lines)


def public_api(match: re.Match) -> str:
    """A package's lazy names, each with a link to its entry."""
    rows = [f"| `{n}` | {{py:obj}}`{at}` |" for n, at in lazy_names(match[1]).items()]
    return "\n".join(["| name | its entry |", "|---|---|", *sorted(rows)])


def read_api_page(app, docname: str, source: list[str]) -> None:
    """Sphinx event: fill in the lists of an API page."""
    if not docname.startswith("api/"):
        return
    order = list(app.env.external_site_map)

    def entries(match: re.Match) -> str:
        return "\n".join(map(api_entry, modules_in(match[1], order)))

    filled = COMMANDS.sub(commands, source[0])
    filled = SETTINGS.sub(settings, filled)
    source[0] = MODULES.sub(entries, NAMES.sub(public_api, filled))


def source_of(domain: str, info: dict[str, str]) -> str | None:
    """Where an entry's code stands, for its link: the file and its lines."""
    if domain != "py" or not info["module"]:
        return None
    found: Any = import_module(info["module"])
    for name in info["fullname"].split("."):
        found = getattr(found, name, None)
    try:
        found = inspect.unwrap(getattr(found, "fget", None) or found)
        lines, first = inspect.getsourcelines(found)
        path = Path(inspect.getsourcefile(found)).relative_to(ROOT)
    except (TypeError, OSError, ValueError):  # a constant, a field, another package's
        return None
    return f"{FILES}/{path.as_posix()}#L{first}-L{first + len(lines) - 1}"


def setup(app):
    app.setup_extension("sphinx.ext.linkcode")
    app.config.linkcode_resolve = source_of
    app.connect("source-read", read_api_page)
    # before napoleon
    app.connect("autodoc-process-docstring", plain_docstring, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
