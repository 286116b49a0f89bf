"""A reader's file as a module, and what its parts use."""

import dis
import inspect
import sys
import traceback
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from ..errors import UserError


def names_in(part: object) -> set[str]:
    """The global names that a function or a class speaks of, helpers included.

    A helper is what the same module holds: a function, or a class, with its bases.
    """
    found, left, home = set[str](), [part], getattr(part, "__module__", None)
    while left:
        for function in _functions(left.pop()):
            named = _loaded(function.__code__) - found
            found |= named
            helpers = (function.__globals__.get(name) for name in named)
            left += [each for each in helpers if getattr(each, "__module__", 0) == home]
    return found


def _functions(part: object) -> Iterator[FunctionType]:
    """A function itself, or a class's methods and what its attributes name."""
    for owner in part.__mro__ if isinstance(part, type) else ():
        if owner.__module__ == getattr(part, "__module__", None):
            for each in vars(owner).values():
                yield from _functions(each)
    function = inspect.unwrap(part) if callable(part) else part
    if isinstance(function, FunctionType):
        yield function


def _loaded(code: CodeType) -> set[str]:
    """The globals that code reads, in functions inside it, too."""
    steps = dis.get_instructions(code)
    found = {str(step.argval) for step in steps if step.opname == "LOAD_GLOBAL"}
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return found.union(*map(_loaded, inner))


def import_file(path: Path) -> ModuleType:
    """A file as a module, with its folder in the path while it is imported.

    Raises: UserError that names the file and, for an error in it, the line.
    """
    if not path.is_file():
        raise UserError(f"{path} is no file: name the one that you write")
    spec = spec_from_file_location(f"checked_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is no Python file: its name should end in .py")
    module = sys.modules[spec.name] = module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a SystemExit, too
        last = " ".join(traceback.format_exception_only(error)[-1].split())
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(path)
        ]
        lines += [error.lineno] if isinstance(error, SyntaxError) else []
        where = f", line {lines[-1]}" if lines else ""
        raise UserError(f"{path}{where} can't be imported ({last})") from None
    finally:
        sys.path.remove(str(path.parent))
    return module
