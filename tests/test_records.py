"""Every record in results/ says how it is made again: command, commit, clean tree."""

import argparse
import importlib
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.exceptions import TyperException
from typer.main import get_command

from annotated_transformer.cli import app
from annotated_transformer.training.config import setting_owners
from annotated_transformer.training.recipes import recipe
from benchmarks.record import RESULTS, ROOT

Record = dict[str, Any]
AT_COMMIT = re.compile(r", at commit ([0-9a-f]{7})$")
LAUNCH = re.compile(r"^torchrun .* -m annotated_transformer ")
# A command in the prose of a page; … stands for what a reader puts there.
QUOTED = re.compile(
    r"(?:python -m benchmarks\.|annotated-transformer train |torchrun .*? -m )[^`\n…]+"
)
# The commit from which on benchmarks write commit and clean into their records.
FIRST = "0124315"
# Records of a tree that wasn't clean, and why they stay.
SHIPS = "trained for hours; the command put the model into the tree, then looked at it"
UNCLEAN = {
    "runs/tatoeba-de-en/record.json": SHIPS,
    "runs/tatoeba-de-en/robustness.json": SHIPS,
    "runs/tatoeba-en-de/record.json": SHIPS,
    "runs/tatoeba-en-de/robustness.json": SHIPS,
    "runs/tatoeba-en-de-first/record.json": "trained for hours, while others edited",
    "runs/tatoeba-en-de-second/record.json": SHIPS,
    "runs/tatoeba-en-de-third/record.json": SHIPS,
    "scale/recipe-dry-runs.json": "no code that it runs changed before its own commit",
}


def records() -> Iterator[tuple[str, Record]]:
    """Every record of results/ with its place; a study has one in each line."""
    for path in sorted(RESULTS.rglob("*.json*")):
        text, place = path.read_text("utf-8"), str(path.relative_to(RESULTS))
        if path.suffix == ".json":
            yield place, json.loads(text)
        elif path.name != "log.jsonl":  # of a run, whose record lies beside it
            for number, line in enumerate(text.splitlines(), 1):
                yield f"{place}:{number}", json.loads(line)


RECORDS = dict(records())


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)


# Part of a history, or none, can't say which commits there are.
whole_history = pytest.mark.skipif(
    git("rev-parse", "--is-shallow-repository").stdout.strip() != "false",
    reason="the history of this checkout isn't whole",
)


# -- what a record holds ---------------------------------------------------------------


def lacking(place: str, record: Record) -> list[str]:
    """What a record should hold and doesn't."""
    found = [name for name in ("command", "commit", "clean") if name not in record]
    if not re.fullmatch("[0-9a-f]{40}", record.get("commit") or ""):
        found.append("a whole commit")
    old = record.get("commit_of") == "history" and record.get("clean") is None
    if not (old or place in UNCLEAN or record.get("clean") is True):
        found.append("a clean tree")
    at = AT_COMMIT.search(record.get("command", ""))
    if at and not (record.get("commit") or "").startswith(at[1]):
        found.append("the commit at which its command runs")
    return found


def test_every_record_says_how_it_came_about():
    found = {place: lacking(place, record) for place, record in RECORDS.items()}
    assert {place: what for place, what in found.items() if what} == {}


def test_a_record_that_lacks_something_is_refused():
    good = {"command": "python -m x", "commit": "0" * 40, "clean": True}
    assert lacking("paper/x.json", good) == []
    assert lacking("paper/x.json", good | {"clean": False}) == ["a clean tree"]
    assert lacking("paper/x.json", good | {"clean": None}) == ["a clean tree"]
    assert lacking("paper/x.json", good | {"commit": "0" * 7}) == ["a whole commit"]
    gone = good | {"command": "python -m x, at commit 1234567"}
    assert lacking("paper/x.json", gone) == ["the commit at which its command runs"]
    assert lacking("paper/x.json", {}) == [
        *("command", "commit", "clean", "a whole commit", "a clean tree")
    ]


def test_no_record_is_excused_for_nothing():
    unclean = {place for place, record in RECORDS.items() if record["clean"] is False}
    assert unclean == set(UNCLEAN)


@whole_history
def test_the_commits_of_records_are_in_the_history():
    commits = {record["commit"] for record in RECORDS.values()}
    there = set(git("rev-list", "HEAD").stdout.split())
    assert commits - there == set()


@whole_history
def test_only_records_from_before_the_commit_was_kept_have_it_of_history():
    old = {r["commit"] for r in RECORDS.values() if r.get("commit_of") == "history"}
    before = set(git("rev-list", FIRST).stdout.split())
    assert old - before == set()


# -- what today's program takes --------------------------------------------------------


class Parsed(Exception):
    """A command was parsed, and would run now."""


def parse(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse a command as today's program does. Raises: ValueError if it refuses."""
    words = shlex.split(LAUNCH.sub("annotated-transformer ", command))
    try:
        if words[0] == "annotated-transformer":
            parse_program(words[1:])
        elif words[:2] == ["python", "-m"]:
            parse_benchmark(words[2], words[3:], monkeypatch)
        else:
            raise ValueError(f"no command of ours: {words[0]}")
    except (SystemExit, TyperException) as error:
        raise ValueError(f"{command}: {error}") from None
    except Parsed:
        return
    raise ValueError(f"{command}: it isn't parsed")


def parse_benchmark(name: str, words: list[str], monkeypatch: Any) -> None:
    """Parse a benchmark's arguments. Folders that they name needn't be there."""
    path = ROOT.joinpath(*name.split("."))
    if not name.startswith("benchmarks."):
        raise ValueError(f"{name} is no benchmark")
    if not path.is_dir() and not path.with_suffix(".py").exists():
        raise ValueError(f"there is no {name}")
    module = importlib.import_module(f"{name}.__main__" if path.is_dir() else name)
    parse_args = argparse.ArgumentParser.parse_args

    def only_parse(parser: Any, arguments: Any = None, namespace: Any = None) -> None:
        parse_args(parser, arguments, namespace)
        raise Parsed

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
        patch.setattr(Path, "is_dir", lambda _: True)
        module.main(words)


def parse_program(words: list[str]) -> None:
    """Parse the arguments of `annotated-transformer`, with the names of settings."""
    plan = recipe("multi30k-en-de-tiny")
    known = setting_owners([plan.architecture, plan.training, plan])

    def only_parse(settings: list[str] | None = None, **_: object) -> None:
        for setting in settings or []:
            if (name := setting.partition("=")[0]) not in known:
                raise ValueError(f"unknown setting {name}")
        raise Parsed

    todo = [program := get_command(app)]
    while todo:
        command = todo.pop()
        if inside := getattr(command, "commands", {}):
            todo += inside.values()
        else:
            command.callback = only_parse
    program.main(words, standalone_mode=False)


def takes(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why today's program refuses a command, or one of several; empty if it doesn't."""
    try:
        for part in command.split("; "):
            parse(part, monkeypatch)
    except ValueError as error:
        return str(error)
    return ""


def test_commands_of_records_are_taken_or_carry_their_commit(monkeypatch):
    commands = dict.fromkeys(record.get("command", "") for record in RECORDS.values())
    today = [each for each in commands if not AT_COMMIT.search(each)]
    refused = {each: takes(each, monkeypatch) for each in today}
    assert {each: why for each, why in refused.items() if why} == {}


def test_commands_of_pages_are_taken(monkeypatch):
    found = set()
    for path in [ROOT / "README.md", *sorted((ROOT / "nbs").rglob("*.[im][pd]*"))]:
        text = path.read_text("utf-8")
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            prose = [each for each in cells if each["cell_type"] == "markdown"]
            text = "\n".join("".join(each["source"]) for each in prose)
        for match in QUOTED.finditer(text.replace("\\\n", " ")):
            if "--help" not in match[0]:
                found.add((path.name, match[0].strip()))
    assert len(found) > 50
    refused = {each: takes(each[1], monkeypatch) for each in sorted(found)}
    assert {each: why for each, why in refused.items() if why} == {}


@pytest.mark.parametrize(
    "command",
    [
        "annotated-transformer train multi30k-en-de-tiny --set buckets=2",
        "annotated-transformer train multi30k-en-de-tiny --sett warmup=2",
        "annotated-transformer reproduce table3 base",
        "torchrun --nproc-per-node 2 -m annotated_transformer train --set buckets=2",
        "python -m benchmarks.paper.heads --limits 5",
        "python -m benchmarks.paper.gone",
        "python -m benchmarks.paper.heads; python -m benchmarks.paper.gone",
        "python benchmarks/heads.py",
    ],
)
def test_a_command_that_is_gone_is_refused(command, monkeypatch):
    assert takes(command, monkeypatch)
