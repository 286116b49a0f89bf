"""The ledger of the paper's numbers is in step with the package and the records."""

import json
from dataclasses import asdict

import pytest

from benchmarks.paper import ledger
from benchmarks.record import RESULTS, ROOT

FOUND = json.loads((RESULTS / "ledger.json").read_text(encoding="utf-8"))["rows"]


def test_the_ledger_is_what_the_package_and_the_records_give():
    rows = [asdict(row) for row in ledger.rows()]
    assert rows == FOUND, "run python -m benchmarks.paper.ledger"


def test_every_number_is_there_once():
    assert len(FOUND) >= 100
    assert len({(row["place"], row["what"]) for row in FOUND}) == len(FOUND)


@pytest.mark.parametrize("label", ["exact", "scaled", "not attempted"])
def test_a_label_keeps_its_promise(label):
    for row in (row for row in FOUND if row["label"] == label):
        done = label != "not attempted"
        assert bool(row["ours"]) == bool(row["evidence"]) == done, row
        if label == "scaled":
            assert (ROOT / row["evidence"]["record"]).exists() and row["why"], row
            assert {"command", "machine", "versions"} <= set(row["evidence"]), row


def test_what_is_exact_agrees_or_says_why():
    for row in FOUND:
        if row["label"] != "exact" or row["place"] in ("Table 1", "§4"):
            continue
        ours, paper = (float(row[key].replace(",", "")) for key in ("ours", "paper"))
        assert row["why"] or abs(ours / paper - 1) < 0.01, row
