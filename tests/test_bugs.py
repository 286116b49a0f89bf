"""The planted bugs: their lines are there today, and the page knows all of them."""

import ast
import json
import math
import shutil
import subprocess

import pytest

from benchmarks.record import load
from benchmarks.training.bugs import (
    BUGS,
    CACHE,
    HEALTHY,
    MODEL,
    PLACE,
    first_complaint,
    planted,
)
from tools import touch

GALLERY = dict(touch.parts())["bug-gallery"]
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="no node")


def in_node(expression: str) -> object:
    """The value of an expression that knows the script as `it`, the page as `state`."""
    script = (
        f"const it = require({json.dumps(str(touch.TOUCH / 'bug-gallery.js'))});"
        'const state = JSON.parse(require("fs").readFileSync(0));'
        f"process.stdout.write(JSON.stringify({expression}))"
    )
    done = subprocess.run(
        ["node", "-e", script],
        input=json.dumps(GALLERY),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("bug", [*BUGS, CACHE], ids=lambda bug: bug.name)
def test_each_bug_changes_one_place_of_todays_file(bug):
    assert bug.source != bug.path.read_text(encoding="utf-8")
    ast.parse(bug.source)


def test_the_record_is_of_these_bugs():
    runs = {run["name"]: run for run in load(PLACE)["runs"]}
    assert list(runs) == [bug.name for bug in (HEALTHY, *BUGS)]
    for bug in BUGS:
        assert (runs[bug.name]["before"], runs[bug.name]["after"]) == (
            bug.before,
            bug.after,
        )


@pytest.mark.parametrize("name", ["residual", "lost"])
def test_the_check_says_what_the_record_says(name):
    bug = next(bug for bug in BUGS if bug.name == name)
    recorded = next(run for run in load(PLACE)["runs"] if run["name"] == name)
    assert first_complaint(planted(bug, MODEL)) == recorded["check"]


def test_each_case_has_four_suspects_and_the_culprit_among_them():
    names = [bug.name for bug in (*BUGS, CACHE, HEALTHY)]
    assert sorted(case["name"] for case in GALLERY["cases"]) == sorted(names)
    for case in GALLERY["cases"]:
        assert len(set(case["suspects"])) == 4 and case["name"] in case["suspects"]
        assert set(case["suspects"]) <= set(GALLERY["labels"])


@needs_node
def test_the_culprit_stands_in_each_place_now_and_then():
    places = {case["suspects"].index(case["name"]) for case in GALLERY["cases"]}
    assert places == {0, 1, 2, 3}


@needs_node
def test_a_case_shows_its_line_and_its_numbers():
    lost = 'it.diff(it.runOf(state, "lost"))'
    assert in_node(lost) == "+ del targets[700]"
    numbers = 'it.filled("{right}, {healthy.right}, {forced%}", {right: 1, forced: 0.5}'
    assert in_node(f"{numbers}, {{right: 2}})") == "1, 2, 50 %"
    smoothed = 0.9 * math.log(0.9) + 0.1 * math.log(0.1 / 28)
    assert in_node("it.floor(29)") == pytest.approx(-smoothed)
