"""A file to start from: the signatures of all parts, and nothing inside."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from ..errors import UserError
from ..files import write_file
from .checks import CHECKS

HEAD = '''"""A Transformer that I write myself.

annotated-transformer check {name}     says how far it is
"""

import math

import torch
from torch import nn
'''


def starter(name: str) -> str:
    """The file's source. What each part is to do is what its check says of it."""
    return "\n\n".join([HEAD.format(name=name), *map("\n".join, map(_part, CHECKS))])


def _part(name: str) -> Iterator[str]:
    """The lines of a function or a class that isn't written yet."""
    documentation = inspect.getdoc(CHECKS[name]) or ""
    made, *methods = re.findall(r"`(\w+\([^`]*\))`", documentation.split("\n\n")[0])
    end = "\n" if "\n" in documentation else ""
    said = indent(f'"""{documentation}{end}"""', "    ")
    if not name[0].isupper():
        yield from (f"def {made}:", said, "    raise NotImplementedError\n")
        return
    sizes = made.removeprefix(name).replace("(", "(self, ")
    yield from (f"class {name}(nn.Module):", said, "")
    yield from (f"    def __init__{sizes}:", "        super().__init__()")
    yield "        raise NotImplementedError\n"
    for method in methods:
        yield f"    def {method.replace('(', '(self, ')}:"
        yield "        raise NotImplementedError\n"


def write_starter(path: Path) -> None:
    """Write it. Raises: UserError where there is something already."""
    if path.exists():
        raise UserError(f"{path} exists: name a new file for the starter")
    write_file(path, starter(path.name).encode())
