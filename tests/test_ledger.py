"""The ledger of the paper's numbers is in step with the package and the records."""

import json
from dataclasses import asdict

from benchmarks.paper import ledger
from benchmarks.record import RESULTS

FOUND = json.loads((RESULTS / "ledger.json").read_text(encoding="utf-8"))["rows"]


def test_the_ledger_is_what_the_package_and_the_records_give():
    rows = [asdict(row) for row in ledger.rows()]
    assert rows == FOUND, "run python -m benchmarks.paper.ledger"
