"""Table 3: the rows as the paper has them and in small, what a difference says, and the
benchmark that trains them.
"""

import math
import random
import signal
from dataclasses import replace
from statistics import mean

import pytest
from scipy import stats

from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.model.config import preset
from annotated_transformer.training.run import fit
from annotated_transformer.translation import table3 as chapter
from annotated_transformer.translation.table3 import (
    Spread,
    judge,
    scaled_down_recipe,
    variations,
)
from benchmarks import record
from benchmarks.paper import table3

ROWS = variations()


def changed(old, new):
    """The names of the fields in which two dataclasses differ."""
    return {name for name, value in vars(new).items() if value != vars(old)[name]}


# --- the rows


@pytest.mark.parametrize("name", list(ROWS))
def test_a_row_in_small_keeps_the_ratios_and_is_trained_as_base_is(name):
    row, base = ROWS[name], scaled_down_recipe(ROWS["base"])
    plan, full = scaled_down_recipe(row), preset("base")
    for size in ("N", "d_model", "d_ff", "h", "d_k", "d_v"):
        ratio = getattr(row.architecture, size) / getattr(full, size)
        assert (
            getattr(plan.architecture, size) / getattr(base.architecture, size) == ratio
        )
    allowed = {"D": {"label_smoothing"}, "b": {"steps"}}.get(name[0], set())
    assert changed(base.training, plan.training) <= allowed
    assert changed(base, plan) <= {"architecture", "training"}
    assert (plan == base) == (name == "base")


# --- what a difference says


def test_the_spread_is_pooled_over_the_rows_that_ran_twice():
    spread = Spread.of({"a": [1.0, 1.2], "b": [5.0, 5.1, 5.2], "c": [9.0]})
    assert spread.freedom == 3
    assert spread.deviation == pytest.approx(math.sqrt((0.02 + 0.02) / 3))
    assert spread.half_width(2, 3) == pytest.approx(
        3.18 * spread.deviation * math.sqrt(1 / 2 + 1 / 3)
    )
    assert Spread.of({"c": [9.0]}).half_width(1) == math.inf
    assert Spread(1.0, 12).half_width(1) == 2.23  # of ten, on the safe side
    for freedom in (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 60):
        known = round(stats.t.ppf(0.975, freedom), 2)
        assert Spread(1.0, freedom).half_width(1) == pytest.approx(known)


def test_what_a_seed_does_to_all_rows_is_taken_out():
    rng, effect = random.Random(0), {1: -3.0, 2: 0.5, 3: 2.5}
    alone = {n: {s: rng.gauss(0, 1) for s in effect} for n in "abcdefghij"}
    shifted = {n: {s: x + effect[s] for s, x in r.items()} for n, r in alone.items()}
    one, two = chapter.without_seeds(alone), chapter.without_seeds(shifted)
    for name in alone:
        assert two[name] == pytest.approx(one[name])
        assert mean(two[name].values()) == pytest.approx(mean(alone[name].values()))
    rows = {name: list(found.values()) for name, found in two.items()}
    assert Spread.of(rows, 3).freedom == 18
    assert 0.7 < Spread.of(rows, 3).deviation < 1.3


def test_a_verdict_names_the_direction():
    spread = Spread(0.1, 30)
    assert judge([1.5] * 3, [1.0] * 3, spread).words == "survives"
    assert judge([1.0] * 3, [1.5] * 3, spread).words == "is reversed"
    assert judge([1.1] * 3, [1.0] * 3, spread).words == "inconclusive"
    assert judge([9.0], [1.0], Spread.of({})).words == "inconclusive"


# --- the benchmark


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Rows that take a second, in a folder of their own."""

    def small(row, seed=1, steps=2_000, batch_tokens=512):
        plan = scaled_down_recipe(row, seed, steps * 3 // 2_000, batch_tokens // 2)
        training = replace(plan.training, log_every=1, save_every=2)
        return replace(plan, training=training, vocab_size=150)

    def few(name, split, src, tgt):
        return phrasebook(src, tgt, split, {"train": 60, "val": 4}[split])

    monkeypatch.setattr(table3, "scaled_down_recipe", small)
    monkeypatch.setattr(table3, "load_corpus", few)
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.chdir(tmp_path)


def test_rows_are_trained_scored_and_left_alone(tiny):
    command = ["--row", "C-2-layers", "D-no-smoothing", "--device", "cpu"]
    table3.main(command)
    first, second = record.read_runs(table3.PLACE)
    assert [first["row"], second["row"]] == ["C-2-layers", "D-no-smoothing"]
    assert first["updates"] == 3 and first["perplexity"] > 1
    assert "case:lc" in first["signature"] and not list(table3.RUNS.iterdir())
    table3.main([*command[:2], "--device", "cpu", "--seed", "1", "2"])
    runs = record.read_runs(table3.PLACE)
    assert runs[:2] == [first, second] and [run["seed"] for run in runs] == [1, 1, 2]


def test_a_long_run_stands_beside_the_short_one(tiny):
    command = ["--row", "C-2-layers", "--device", "cpu"]
    for more in ([], ["--long"], ["--long"]):
        table3.main(command + more)
    short, long = record.read_runs(table3.PLACE)
    assert [short["updates"], long["updates"]] == [3, 15]
    assert long["perplexities"][-1] == [15, long["perplexity"]]
    assert [step for step, _ in long["perplexities"]] == [2, 4, 6, 8, 10, 12, 14, 15]


def test_an_interrupted_row_goes_on(tiny, monkeypatch):
    def interrupted(run):
        run.report = lambda row: (
            row["step"] == 1 and signal.raise_signal(signal.SIGTERM)
        )
        return fit(run)

    command = ["--row", "C-2-layers", "--device", "cpu"]
    table3.main(command)
    (record.RESULTS / table3.PLACE).rename("whole.jsonl")
    with monkeypatch.context() as patch, pytest.raises(SystemExit, match="130"):
        patch.setattr(table3, "fit", interrupted)
        table3.main(command)
    assert not record.read_runs(table3.PLACE)
    table3.main(command)
    whole, parts = record.read_runs("whole.jsonl") + record.read_runs(table3.PLACE)
    assert whole["perplexity"] == parts["perplexity"]
    assert parts["processor_seconds"] is None
