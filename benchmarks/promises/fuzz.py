"""Damage every file of every kind of folder that this package reads, at random.

    python -m benchmarks.promises.fuzz --mutations 20000

A folder with a manifest must give the same answer as before or one UserError. Where
nothing vouches for a file (a folder of others, or one whose damage was accepted into
the manifest) another answer may come, but never another kind of error, and never none
within 30 seconds. Writes the counts by kind of folder and outcome to
results/promises/fuzz.json; with --kind, those of the others stay there.
"""

import random
import shutil
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from annotated_transformer.errors import UserError
from annotated_transformer.files import verify

from ..record import command, command_line, load, save
from . import folders
from .damage import damage

SECONDS = 30


@dataclass(frozen=True)
class Kind:
    """One kind of folder: how it is made, and an answer that depends on all of it.

    `vouched` says that a manifest vouches for its files.
    """

    make: Callable[[Path], None]
    answer: Callable[[Path], Any]
    vouched: bool = True


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
    "model of format 1": Kind(folders.format_1, folders.translate, vouched=False),
    "Marian directory": Kind(folders.marian, folders.translate, vouched=False),
    "GPT-2": Kind(folders.gpt2, folders.measure, vouched=False),
    "BERT": Kind(folders.bert, folders.fill, vouched=False),
}


@dataclass(frozen=True)
class Attack:
    """One damaged folder: what was done, and what came of it."""

    kind: str
    done: str
    outcome: str
    said: str


def attack(kind: str, seed: int, home: Path, accepted: bool = False) -> Attack:
    """Damage a copy of a folder of this kind in `home`, and open it.

    `accepted`: the damage is accepted into the manifest.
    """
    rng, of_kind = random.Random(f"{kind} {seed}"), KINDS[kind]
    original, copy = home / kind, home / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    done = damage(rng, copy)
    if accepted:
        try:
            verify(copy, accept=True)
        except UserError:
            accepted = False
    strict = of_kind.vouched and not accepted
    outcome, said = _outcome(of_kind, original, copy, strict)
    return Attack(kind, done, outcome, said)


def _outcome(kind: Kind, original: Path, copy: Path, strict: bool) -> tuple[str, str]:
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
    if found == expected:
        return "the same", ""
    return ("failed", "another answer") if strict else ("another answer", "")


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
    mutations: int, home: Path, kinds: Sequence[str] = tuple(KINDS), seed: int = 0
) -> Iterator[Attack]:
    """So many attacks in turn over all kinds; every other one on a vouched folder is
    accepted.
    """
    make_all(home, kinds)
    for number in range(mutations):
        kind = kinds[number % len(kinds)]
        turn = seed + number // len(kinds)
        yield attack(kind, turn, home, KINDS[kind].vouched and turn % 2 == 1)


def main(argv: Sequence[str] | None = None) -> None:
    """Attack, count and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS), action="append")
    parser.add_argument("--show", action="store_true", help="print each failure whole")
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    counts: dict[str, Counter[str]] = {}
    failures = []
    with tempfile.TemporaryDirectory() as name:
        kinds = given.kind or list(KINDS)
        for each in attacks(given.mutations, Path(name), kinds, given.seed):
            counts.setdefault(each.kind, Counter())[each.outcome] += 1
            if each.outcome == "failed":
                failures.append(f"{each.kind}: {each.done}: {each.said[-1500:]}")
                print(failures[-1] if given.show else failures[-1].splitlines()[0])
    for kind, found in counts.items():
        print(f"{kind}: {dict(found)}")
    outcomes = ["the same", "refused", "another answer", "failed"]
    table = {
        kind: {each: found[each] for each in outcomes} for kind, found in counts.items()
    }
    earlier = load("promises/fuzz.json") if given.kind else {}
    table = earlier.get("counts", {}) | table
    record = {
        "command": "; ".join([*filter(None, [earlier.get("command")]), command()]),
        "mutations": sum(sum(each.values()) for each in table.values()),
        "counts": table,
        "failures": earlier.get("failures", []) + failures[:50],
    }
    save("promises/fuzz.json", record, "tokenizers")


if __name__ == "__main__":
    main()
