"""The process in which a reader's file is run.

`python -m annotated_transformer.check.child FILE [PART[=MODULE:NAME]]… [-PART]…`
answers on standard output: a line of JSON for the import, with the names of the parts
(all, where none is named), and one for each of them. What uses a part with a minus,
which ended a process before, isn't run.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ..errors import UserError, nearest
from .adapters import adapted
from .checks import CHECKS
from .file import import_file, names_in
from .parts import raised
from .verdict import NOT_YET, Verdict


def main(path: str, names: Sequence[str]) -> None:
    """Answer; what the file itself prints goes to standard error."""
    torch.set_num_threads(1)  # parts are small: more would only wait for each other
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)

        def answer(**words: object) -> None:
            print(json.dumps(words), file=answers, flush=True)

        lost = {each[1:] for each in names if each.startswith("-")}
        asked = [each for each in names if not each.startswith("-")] or list(CHECKS)
        try:
            for name in (each.partition("=")[0] for each in asked):
                if name not in CHECKS:
                    raise UserError(f"{name}: no such part, {nearest(name, CHECKS)}")
            module = import_file(Path(path))
        except UserError as error:
            answer(error=str(error))
            return
        answer(parts=asked)
        for each in asked:
            name, _, where = each.partition("=")
            verdict: Verdict = NOT_YET
            part: Any = None
            try:
                part = found(where, module) if where else getattr(module, name, None)
                if lost & names_in(part):
                    lost.add(name)
                    verdict = Verdict(f"{name} waits for another part.")
                elif where:
                    verdict = adapted(name, CHECKS[name], part)
                elif part is not None:
                    verdict = CHECKS[name](part)
            except BaseException as error:  # the file's own, a SystemExit for one
                verdict = Verdict(f"{raised(name, error)}.")
            answer(uses=sorted(names_in(part)), **asdict(verdict))


def found(where: str, module: ModuleType) -> Any:
    """`module:name`, or a name in the file. Raises: AttributeError, ImportError."""
    other, _, attribute = where.rpartition(":")
    sys.path.insert(0, os.getcwd())
    return getattr(import_module(other) if other else module, attribute)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
