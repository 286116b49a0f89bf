"""What a chapter's cached outputs depend on: its own code, the modules of the package
that it imports, directly or through others, the files that the package ships, and the
records that it reads.

The cache keys a chapter by its code cells, so a hash of all that, in a hidden first
cell, makes a chapter run again exactly when something that it shows may have changed.
"""

import ast
import hashlib
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "annotated_transformer"
LISTED = f"{PACKAGE}.model_types"


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
                if "*" in found:  # what that module imports to pass it on
                    names = re.findall(r" as (\w+)$", read(start), re.M)
                    found |= dict.fromkeys(names, found.pop("*").removesuffix(".*"))
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
    names |= set(re.findall(rf'"({PACKAGE}(?:\.\w+)+)"', read(name)))  # python -m
    found = own_modules(names) - {name}
    if name == PACKAGE:  # it has the model types registered, for who asks the registry
        found -= {LISTED}
    if name == f"{PACKAGE}.registry":
        found |= {LISTED}
    return frozenset(found)


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


def records(code: str) -> set[Path]:
    """The files in results/ that a chapter's cells may read.

    All of the folder, or the file, that follows "results/" in a string; all of results/
    where nothing follows, or what isn't there as it stands.
    """
    names = re.findall(r"""["'/]results\b(?:/([\w.-]+))?""", code)
    tops = [ROOT / "results" / name for name in names]
    tops = [top if top.exists() else ROOT / "results" for top in tops]
    return {path for top in tops for path in (top, *top.rglob("*")) if path.is_file()}


def shipped() -> set[Path]:
    """The files of the package that aren't Python: models, and tables of its data."""
    files = {path for path in (ROOT / PACKAGE).rglob("*") if path.is_file()}
    return {path for path in files if path.suffix not in {".py", ".pyc"}}


def fingerprint(code: list[str]) -> str:
    """A hash of all that a chapter's outputs depend on besides its own code."""
    # nbdev notes the id of each cell in a comment; a new paragraph of prose must not
    # count as a change.
    modules = {
        name: re.sub(r"^# %%.*\n", "", read(name), flags=re.M)
        for name in sorted(chapter_modules(code))
    }
    digest = hashlib.sha256("\0".join(modules.values()).encode())
    for path in sorted(records("\n".join(code)) | (shipped() if modules else set())):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]
