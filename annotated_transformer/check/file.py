"""How far a file is: each part of the reader's module checked."""

import dis
import inspect
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Event, Timer
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..errors import UserError
from . import learning, stacks, sublayers, whole
from .attention import attention, causal_mask, multi_head_attention, padding_mask
from .verdict import Verdict

# What a reader writes, in the order of the chapters.
CHECKS = {
    "attention": attention,
    "padding_mask": padding_mask,
    "causal_mask": causal_mask,
    "MultiHeadAttention": multi_head_attention,
    "FeedForward": sublayers.feed_forward,
    "Embedding": sublayers.embedding,
    "sinusoids": sublayers.sinusoids,
    "AddNorm": sublayers.add_norm,
    "EncoderLayer": stacks.encoder_layer,
    "DecoderLayer": stacks.decoder_layer,
    "Encoder": stacks.encoder,
    "Decoder": stacks.decoder,
    "Transformer": whole.transformer,
    "smoothed_cross_entropy": learning.smoothed_cross_entropy,
    "training_step": learning.training_step,
    "greedy_search": learning.greedy_search,
}


SECONDS = 60  # for the import of a file, and for each part


def progress(
    path: str | Path, use: Mapping[str, str] | None = None
) -> dict[str, Verdict]:
    """The verdict on each part, by the name that it has in the file.

    With `use`, on the parts named there: `{"Encoder": "their.module:Stack"}`, or a name
    in the file, in whatever way they want to be called.

    A part that uses another one, which isn't right, waits for that. The file is run, as
    an import runs it, in a process of its own; a part that ends the
    process or takes more than a minute gets a verdict that says so, and the next one a
    new process. Raises: UserError for a file that can't be run.
    """
    left = [f"{name}={where}" for name, where in (use or {}).items()] or list(CHECKS)
    verdicts: dict[str, Verdict] = {}
    lost: list[str] = []  # parts that ended their process
    while left:
        imported, late = False, Event()
        for words in _answers(Path(path), [*left, *lost], late):
            if "error" in words:
                raise UserError(words["error"])
            if imported:
                uses = set(words.pop("uses"))
                name = left.pop(0).partition("=")[0]
                verdicts[name] = _after(Verdict(**words), uses, verdicts)
            imported = True
        how = f"takes more than {SECONDS} seconds" if late.is_set() else "ends Python"
        if not imported:
            raise UserError(f"{path} can't be imported: it {how}")
        if left:
            name = left.pop(0).partition("=")[0]
            verdicts[name] = Verdict(f"{name} {how}, so that it can't be checked.")
            lost.append(f"-{name}")
    return verdicts


def _after(verdict: Verdict, uses: set[str], others: dict[str, Verdict]) -> Verdict:
    """The verdict, unless the part uses one that is to be mended first."""
    wrong = (name for name, other in others.items() if name in uses and not other)
    name = next(wrong, "")
    if not name or not verdict.written:
        return verdict
    first = others[name].waits_for or name
    mend = "mend" if others[first].written else "write"
    return Verdict(f"uses {first}; {mend} that first", waits_for=first)


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


def _answers(path: Path, names: list[str], late: Event) -> Iterator[dict[str, Any]]:
    """The answers of a child process, which is ended, and `late` set, if none comes."""
    command = [sys.executable, "-P", "-m", f"{__package__}.child", str(path), *names]
    home = str(Path(__file__).parents[2])  # of this package
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    with Popen(command, stdout=PIPE, encoding="utf-8", env=env) as child:

        def end() -> None:
            late.set()
            child.kill()

        try:
            while True:
                timer = Timer(SECONDS, end)
                timer.start()
                line = child.stdout.readline() if child.stdout else ""
                timer.cancel()
                if not line.endswith("\n"):
                    return
                yield json.loads(line)
        finally:
            child.kill()


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
