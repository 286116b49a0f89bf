"""The promises of the package under attack, in small; the whole is in
benchmarks/promises/, and its records are read here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


def attack(name: str, *arguments: str) -> str:
    """Run an attack that records nothing; what it found, if no promise was broken."""
    pytest.importorskip("sentencepiece")
    pytest.importorskip("ctranslate2")
    command = [sys.executable, "-m", f"benchmarks.promises.{name}", "--no-record"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_fault_at_any_operation_leaves_the_old_or_the_new():
    assert " 0 broken promises" in attack(
        "faults", "--every", "21", "--only", "average"
    )
    assert " 0 broken promises" in attack("faults", "--every", "73", "--only", "train")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "import", "export", "ctranslate2"])
def test_a_fault_at_many_operations(command):
    assert " 0 broken promises" in attack("faults", "--every", "4", "--only", command)


def test_kills_and_interruptions_change_nothing():
    ways = ["--only", "one process", "Ctrl-C twice"]
    assert "0 broken promises" in attack("kills", "--kills", "6", *ways)


@pytest.mark.slow
def test_kills_of_two_processes_change_nothing():
    ways = ["--only", "two processes", "torchrun", "Ctrl-C twice"]
    assert "0 broken promises" in attack("kills", "--kills", "30", *ways)


def test_no_attack_on_record_broke_a_promise():
    """results/promises/faults.json and results/promises/kills.json"""
    faults, kills = (
        json.loads((ROOT / "results/promises" / f"{name}.json").read_text())
        for name in ("faults", "kills")
    )
    assert faults["failures"] == kills["failures"] == 0
    assert set(faults["commands"]) == {
        "train",
        "average",
        "import",
        "export",
        "ctranslate2",
    }
    counted = {
        kind: sum(found["kills"].values()) for kind, found in kills["kinds"].items()
    }
    assert sum(counted.values()) - counted["Ctrl-C twice"] >= 200
    assert counted["Ctrl-C twice"] >= 50 and min(counted.values()) >= 10
