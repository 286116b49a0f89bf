"""Damage at random to every file of every kind of folder: the same, or one line."""

import json

import pytest

from benchmarks.promises.fuzz import KINDS, attacks
from benchmarks.record import RESULTS

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:passed as unknown"),
]
OUTCOMES = {"the same", "refused", "another answer"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_folder_gives_the_same_answer_or_one_error(kind, tmp_path):
    if kind in ("Marian directory", "imported model"):
        pytest.importorskip("sentencepiece")
    found = list(attacks(24, tmp_path, [kind]))
    failed = [f"{each.done}: {each.said}" for each in found if each.outcome == "failed"]
    assert not failed and {each.outcome for each in found} <= OUTCOMES
    assert sum(each.outcome == "refused" for each in found) > 8


@pytest.mark.slow
def test_twenty_thousand_damaged_folders(tmp_path):
    pytest.importorskip("sentencepiece")
    failed = [
        f"{each.kind}, {each.done}: {each.said}"
        for each in attacks(20_000, tmp_path, seed=100_000)
        if each.outcome == "failed"
    ]
    assert not failed


def test_the_record_of_the_fuzz_has_no_failure():
    record = json.loads((RESULTS / "promises/fuzz.json").read_text(encoding="utf-8"))
    assert record["counts"].keys() == KINDS.keys() and not record["failures"]
    counts = record["counts"].values()
    assert sum(sum(each.values()) for each in counts) == record["mutations"]
    assert not any(each["failed"] for each in counts)
