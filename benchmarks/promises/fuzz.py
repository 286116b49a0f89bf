"""Damage every file of every kind of folder that this package reads, at random.

A folder must give an answer or one UserError; never another kind of error, and never
nothing within 30 seconds. `python -m benchmarks.promises` and the tests use it.
"""

import random
import shutil
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotated_transformer.errors import UserError

from . import folders
from .damage import damage

SECONDS = 30


@dataclass(frozen=True)
class Kind:
    """One kind of folder: how it is made, and an answer that depends on all of it."""

    make: Callable[[Path], None]
    answer: Callable[[Path], Any]


KINDS = {
    "trained model": Kind(folders.trained, folders.translate),
    "recurrent model": Kind(folders.recurrent, folders.translate),
    "imported model": Kind(folders.imported, folders.translate),
    "classifier": Kind(folders.classifier, folders.classify),
    "language model": Kind(folders.language_model, folders.measure),
    "masked language model": Kind(folders.masked, folders.fill_ours),
    "image classifier": Kind(folders.vision, folders.see),
    "forecaster": Kind(folders.series, folders.forecast),
    "checkpoint": Kind(folders.checkpoint, folders.restore),
    "tokenized pairs": Kind(folders.pairs, folders.open_pairs),
    "run": Kind(folders.run, folders.go_on),
    "Marian directory": Kind(folders.marian, folders.translate),
    "GPT-2": Kind(folders.gpt2, folders.measure),
    "BERT": Kind(folders.bert, folders.fill),
}


@dataclass(frozen=True)
class Attack:
    """One damaged folder: what was done, and what came of it."""

    kind: str
    done: str
    outcome: str
    said: str


def attack(kind: str, seed: int, home: Path) -> Attack:
    """Damage a copy of a folder of this kind in `home`, and open it."""
    rng, of_kind = random.Random(f"{kind} {seed}"), KINDS[kind]
    original, copy = home / kind, home / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    done = damage(rng, copy)
    outcome, said = _outcome(of_kind, original, copy)
    return Attack(kind, done, outcome, said)


def _outcome(kind: Kind, original: Path, copy: Path) -> tuple[str, str]:
    expected = (original.parent / f"{original.name}.answer").read_text(encoding="utf-8")
    try:
        with limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = repr(kind.answer(copy))
    except UserError as error:
        return ("refused", str(error)) if str(error) else ("failed", "no words")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a library is no Exception
        last = "".join(traceback.format_exception(error)[-3:])
        return "failed", f"{type(error).__name__}: {last}"
    return "the same" if found == expected else "another answer", ""


class TooLong(BaseException):
    """No answer in time."""


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Raise TooLong in a block that takes longer."""

    def stop(*_: object) -> None:
        raise TooLong

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def make_all(home: Path, kinds: Sequence[str]) -> None:
    """Write a folder of each kind and its answer, which it must give twice."""
    for name in kinds:
        KINDS[name].make(home / name)
        first, second = (_answer(KINDS[name], home / name) for _ in range(2))
        if first != second:
            raise RuntimeError(f"a {name} doesn't answer the same twice")
        (home / f"{name}.answer").write_text(first, encoding="utf-8")


def _answer(kind: Kind, folder: Path) -> str:
    """The answer of a copy: a run goes on when it is asked."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return repr(kind.answer(copy))


def attacks(
    count: int, home: Path, seed: int = 0, kinds: Sequence[str] = tuple(KINDS)
) -> Iterator[Attack]:
    """So many attacks, in turn over all kinds."""
    make_all(home, kinds)
    for number in range(count):
        yield attack(kinds[number % len(kinds)], seed + number // len(kinds), home)
