"""`check`: how far a Transformer is that you write yourself."""

import json
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError, escaped
from .options import app
from .streams import echo

if TYPE_CHECKING:
    from ..check import Verdict


Uses = Annotated[
    list[str] | None,
    typer.Option(
        help="PART=NAME or PART=MODULE:NAME: check this as that part, alone, in "
        "whatever way it wants to be called. May be given again."
    ),
]


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A Python file or folder: it is run.")],
    use: Uses = None,
    starter: Annotated[
        bool,
        typer.Option(
            "--starter",
            help="Write the file instead: the parts' signatures, to be filled in.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was found as JSON.")
    ] = False,
) -> None:
    """Check a Transformer that you write yourself, part by part.

    Each part is done, not yet written, waits for one that it uses, departs from the
    paper (≈) or has the first thing that is wrong, below what was expected beside what
    was found.
    This runs the file, as `import` does, in a process of its own, which has a minute
    for each part. Of a folder, a line a file says how many parts are right and what is
    to be mended first. Status 0 when every part is right, 1 when one isn't.

    **Example**

    `annotated-transformer check my_transformer.py --starter`

    `annotated-transformer check my_transformer.py`

    `annotated-transformer check theirs.py --use Encoder=Stack`

    `annotated-transformer check class/ --json`
    """
    if starter:
        _start(file, use)
    elif not _told(file, use, as_json):
        raise typer.Exit(1)


def _start(file: Path, use: list[str] | None) -> None:
    """Write the starter, alone."""
    from ..check.starter import write_starter

    if use:
        raise UserError("--starter writes a file, and --use asks one: leave one out")
    write_starter(file)
    echo(f"wrote {file}: write its parts, and check it by the same command")


def _told(path: Path, use: list[str] | None, as_json: bool) -> bool:
    """Print what is found of a file or of a folder's; whether all parts are right."""
    from ..check import progress

    asked = _asked(use or [])
    if path.is_dir():
        return _told_folder(path, asked, as_json)
    found = progress(path, asked)
    echo(_as_json(found)) if as_json else _tell(found, whole=bool(use))
    return all(found.values())


def _told_folder(folder: Path, asked: dict[str, str], as_json: bool) -> bool:
    """The same of each Python file in a folder, a line a file."""
    from ..check import progress

    if not (files := sorted(folder.glob("*.py"))):
        raise UserError(f"{folder} holds no Python file: name one, or their folder")
    found: dict[str, dict[str, Verdict] | str] = {}
    for file in files:
        try:
            found[file.name] = progress(file, asked)
        except UserError as error:
            found[file.name] = str(error)
        if not as_json:
            echo(f"{file.name:23} {_in_a_line(found[file.name])}")
    if as_json:
        echo(_as_json(found))
    return all(isinstance(each, dict) and all(each.values()) for each in found.values())


def _as_json(found: object) -> str:
    """Verdicts, by name, as a person or a program may read them."""
    return json.dumps(found, default=asdict, indent=1, ensure_ascii=False)


def _in_a_line(found: "dict[str, Verdict] | str") -> str:
    """How many parts of a file are right, and the first that is to be mended."""
    if isinstance(found, str):
        return escaped(found)
    unfinished = [
        (each.departs or each.waits_for != "", f"  {name}: {each.sentence}")
        for name, each in found.items()
        if not each
    ]
    first = min(unfinished, key=itemgetter(0), default=(False, ""))[1]
    return escaped(f"{len(found) - len(unfinished)} of {len(found)}{first}")


def _tell(verdicts: "dict[str, Verdict]", whole: bool) -> None:
    """Print each verdict of a file, of those that are right the sentence if `whole`."""
    for name, verdict in verdicts.items():
        for line in verdict.numbers.splitlines():
            echo(f"{name:24}{line}")
            name = ""
        sentence = escaped(verdict.sentence) if whole or not verdict else "done"
        echo(f"{name:24}{sentence}")
    done = sum(map(bool, verdicts.values()))
    departing = sum(each.departs for each in verdicts.values())
    departs = f", {departing} depart{'s' * (departing == 1)}" * bool(departing)
    echo(f"{done} of {len(verdicts)} parts are right{departs}")


def _asked(use: list[str]) -> dict[str, str]:
    """The name by part. Raises: UserError for a part without one."""
    asked = dict(each.partition("=")[::2] for each in use)
    for part, name in asked.items():
        if not name:
            raise UserError(f"--use {part}: say what to check, --use {part}=NAME")
    return asked
