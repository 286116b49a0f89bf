"""Odd terminals, languages and clocks, folders that are read-only: the same output, or
one line.
"""

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_run import data, losses, start, train_arguments, write_pairs

from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.training.run import fit

ROOT = Path(__file__).resolve().parents[1]
NOBODY = 65534


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """The command line with nothing but these settings in its environment."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "annotated_transformer", *map(str, arguments)],
        capture_output=True,
        env=kept | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment,
    )


@pytest.mark.parametrize("settings", [
    {"TERM": "no-such-terminal", "NO_COLOR": "1", "COLUMNS": "1"},
    {"TERM": "dumb", "COLUMNS": "-3", "LINES": "x"},
    {"TERM": "", "FORCE_COLOR": "1", "COLUMNS": "100000"},
], ids=str)  # fmt: skip
def test_an_odd_terminal(settings):
    done = command("--help", **settings)
    assert done.returncode == 0 and done.stdout and done.stderr == b""
    refused = command("info", "nowhere", **settings)
    assert refused.returncode == 2 and refused.stdout == b""
    assert refused.stderr.startswith(b"error: ") and b"nowhere" in refused.stderr
    assert refused.stderr.count(b"\n") == 1


def test_a_locale_without_letters():
    asked = ["translate", "-m", "phrasebook-en-de", "the twenty-first of March"]
    done = command(*asked, LC_ALL="C")
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.decode("utf-8") == "der einundzwanzigste März\n"
    ascii_alone = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = command(*asked, LC_ALL="C", **ascii_alone)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert b"set PYTHONIOENCODING=utf-8" in done.stderr


def test_a_clock_that_goes_back(tmp_path, monkeypatch):
    fit(start(tmp_path / "whole"))
    real, calls = time.time, []

    def jumping() -> float:
        calls.append(1)
        return real() - 1e6 * len(calls) + 3e6 * (len(calls) % 5)

    monkeypatch.setattr(time, "time", jumping)
    fit(start(tmp_path / "run", steps=8))
    fit(start(tmp_path / "run"))
    assert losses(tmp_path / "run") == losses(tmp_path / "whole")
    assert [p.name for p in (tmp_path / "run").glob("**/.*")] == [".lock"]


@pytest.fixture
def as_nobody(tmp_path):
    """The command line run by an ordinary user, in a folder that others own."""
    if not hasattr(os, "fork"):
        pytest.skip("nothing forks here")
    forks = pytest.importorskip("benchmarks.promises.forks")
    importlib.import_module("zoneinfo")  # which nobody may read later, perhaps
    if os.geteuid() == 0:
        for folder in [tmp_path, *tmp_path.parents]:
            if "pytest-of-" in str(folder):
                folder.chmod(0o755)
    else:
        tmp_path.chmod(0o555)

    def drop() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    def call(*arguments: object) -> tuple[int, str, str]:
        place = Path(f"{tmp_path}-said")
        done = forks.wait(forks.fork(arguments, place, drop), place)
        return done.status, done.out, done.err

    yield call
    tmp_path.chmod(0o755)


def test_a_folder_that_is_read_only(tmp_path, as_nobody):
    tmp_path.chmod(0o755)
    model = start(tmp_path / "unused").model
    save_model(tmp_path / "a", model, data()[0])
    tmp_path.chmod(0o555)
    said = Path(f"{tmp_path}-said")
    said.mkdir()
    before = sorted(tmp_path.rglob("*"))
    for command in (
        ["average", tmp_path / "a", tmp_path / "a", "--out", tmp_path / "out"],
        ["export", "marian", "-o", tmp_path / "out", "-m", tmp_path / "a"],
        train_arguments(write_pairs(said), tmp_path / "run"),
    ):
        status, out, err = as_nobody(*command)
        assert status == 2 and out == "" and err.count("\n") == 1, (command, err)
        assert "Permission denied" in err or "Read-only" in err
    assert sorted(tmp_path.rglob("*")) == before
    status, out, _ = as_nobody("score", "ba", "du", "-m", tmp_path / "a")
    assert status == 0 and out, "what may be read can be used"
