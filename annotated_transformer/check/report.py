"""How far a file is: each part of the reader's module checked, in another process."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Event, Timer
from typing import Any

from ..errors import UserError
from .verdict import Verdict

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
    left = [f"{name}={where}" for name, where in (use or {}).items()]
    verdicts: dict[str, Verdict] = {}
    lost: list[str] = []  # parts that ended their process
    while left or not verdicts:
        late = Event()
        answers = _answers(Path(path), [*left, *lost], late)
        first = next(answers, {})
        if "error" in first:
            raise UserError(first["error"])
        left = first.get("parts", left)
        for words in answers:
            uses = set(words.pop("uses"))
            name = left.pop(0).partition("=")[0]
            verdicts[name] = _after(Verdict(**words), uses, verdicts)
        how = f"takes more than {SECONDS} seconds" if late.is_set() else "ends Python"
        if not first:
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


def _answers(path: Path, names: list[str], late: Event) -> Iterator[dict[str, Any]]:
    """The answers of a child process, which is ended, and `late` set, if none comes."""
    command = [sys.executable, "-P", "-m", "annotated_transformer.check.child"]
    command += [str(path), *names]
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
