"""Table 3: the rows as the paper has them and in small, what a difference says, and the
command that trains them.
"""

import json
import math
import random
import signal
from dataclasses import replace
from statistics import mean

import numpy as np
import pytest

from annotated_transformer.data import corpus
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.model.config import preset
from annotated_transformer.model.costs import parameter_count
from annotated_transformer.translation import variations as chapter
from annotated_transformer.translation.variations import (
    CLAIMS,
    Spread,
    at_home,
    in_small,
    judge,
    variation,
    variations,
)

ROWS = variations()
each_row = pytest.mark.parametrize("name", list(ROWS))


def changed(old, new):
    """The names of the fields in which two dataclasses differ."""
    return {name for name, value in vars(new).items() if value != vars(old)[name]}


# --- the rows


def test_there_are_twenty_rows_and_each_changes_base():
    base = ROWS["base"]
    assert len(ROWS) == 20 and base.architecture == preset("base")
    for name, row in ROWS.items():
        if name != "base":
            fields = {"architecture", "smoothing", "steps"} & changed(base, row)
            assert fields, f"{name} is base"
            assert fields == {"architecture"} or name[0] == "D" or name == "big"


@each_row
def test_our_counts_are_near_the_printed_ones(name):
    row = ROWS[name]
    if row.parameters:
        found = parameter_count(row.architecture) / 1e6
        assert abs(found / row.parameters - 1) < 0.07


@each_row
def test_a_row_in_small_keeps_the_ratios(name):
    full, small = ROWS[name].architecture, at_home(ROWS[name]).architecture
    base, small_base = preset("base"), in_small(preset("base"))
    for size in ("N", "d_model", "d_ff", "h", "d_k", "d_v"):
        ratio = getattr(full, size) / getattr(base, size)
        assert getattr(small, size) / getattr(small_base, size) == ratio
    assert changed(base, full) == changed(small_base, small)


@each_row
def test_a_row_in_small_is_trained_as_base_is(name):
    plan, base = at_home(ROWS[name], seed=7), at_home(ROWS["base"], seed=7)
    allowed = {"D": {"label_smoothing"}, "b": {"steps"}}.get(name[0], set())
    assert changed(base.training, plan.training) <= allowed
    assert changed(base, plan) <= {"architecture", "training"}
    assert plan.training.seed == 7
    assert plan.training.steps / base.training.steps == ROWS[name].steps / 100_000


def test_a_misspelt_row_gets_the_nearest():
    with pytest.raises(ValueError, match="A-16-heads"):
        variation("A-16-haeds")


def test_the_claims_are_what_the_table_says():
    for claim in CLAIMS:
        worse, better = ROWS[claim.worse], ROWS[claim.better]
        if claim.measure == "bleu":
            assert worse.bleu < better.bleu
        else:
            assert worse.perplexity > better.perplexity


# --- what a difference says


@pytest.mark.parametrize("freedom", list(chapter._T))
def test_the_factors_are_students(freedom):
    """19 of 20 values of Student's distribution lie within."""
    limit = chapter._T[freedom]
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale = math.exp(log_scale) / math.sqrt(freedom * math.pi)
    x = np.linspace(-limit, limit, 200_001)
    density = scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2)
    assert np.trapezoid(density, x) == pytest.approx(0.95, abs=5e-4)


def test_the_spread_is_pooled_over_the_rows_that_ran_twice():
    spread = Spread.of({"a": [1.0, 1.2], "b": [5.0, 5.1, 5.2], "c": [9.0]})
    assert spread.freedom == 3
    assert spread.deviation == pytest.approx(math.sqrt((0.02 + 0.02) / 3))
    assert spread.half_width(2, 3) == pytest.approx(
        3.18 * spread.deviation * math.sqrt(1 / 2 + 1 / 3)
    )
    assert Spread.of({"c": [9.0]}).half_width(1) == math.inf
    assert Spread(1.0, 12).half_width(1) == 2.23  # of ten, on the safe side


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


def test_a_row_that_lacks_a_seed_is_compared_fairly():
    rows = {"a": {1: 0.0, 2: 4.0}, "b": {1: 1.0, 2: 5.0}, "c": {1: 1.0}}
    found = chapter.without_seeds(rows)
    assert found["c"][1] == found["b"][1] == found["b"][2] == 3.0
    assert chapter.without_seeds({"a": {1: 1.0}, "b": {2: 3.0}})["b"] == {2: 3.0}


def test_chance_alone_is_seldom_told_as_a_difference():
    rng, told = random.Random(0), 0
    for _trial in range(400):
        rows = {name: [rng.gauss(0, 1) for _ in range(3)] for name in "abcdefghij"}
        found = judge(rows["a"], rows["b"], Spread.of(rows))
        told += found.words != "can't be told"
    assert 8 <= told <= 32  # one in twenty: 20 of 400


def test_a_verdict_names_the_direction():
    spread = Spread(0.1, 30)
    assert judge([1.5] * 3, [1.0] * 3, spread).words == "survives"
    assert judge([1.0] * 3, [1.5] * 3, spread).words == "is reversed"
    assert judge([1.1] * 3, [1.0] * 3, spread).words == "can't be told"
    assert judge([9.0], [1.0], Spread.of({})).words == "can't be told"


# --- the command


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Rows that take a second, in a folder of their own."""
    real = chapter.at_home

    def small(row, seed=1):
        plan = real(row, seed)
        training = replace(
            plan.training, steps=3, batch_tokens=256, log_every=1, save_every=2
        )
        return replace(plan, training=training, vocab_size=150)

    def few(name, split, src, tgt, root=None):
        return phrasebook(src, tgt, split, {"train": 60, "val": 4}[split])

    monkeypatch.setattr(chapter, "at_home", small)
    monkeypatch.setattr(corpus, "load_corpus", few)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results/paper/table3"


def test_rows_are_trained_scored_and_left_alone(run, tiny):
    command = ["reproduce", "table3", "C-2-layers", "D-no-smoothing", "--device", "cpu"]
    status, out, _ = run(*command)
    assert status == 0 and "perplexity" in out
    names = ["C-2-layers-1.json", "D-no-smoothing-1.json"]
    assert sorted(path.name for path in tiny.iterdir()) == names
    found = json.loads((tiny / names[0]).read_text())
    assert found["row"] == "C-2-layers" and found["updates"] == 3
    assert found["command"].endswith("reproduce table3 C-2-layers --seed 1")
    assert found["perplexity"] > 1 and "case:lc" in found["signature"]
    assert not list((tiny.parents[2] / "runs/table3").iterdir())
    before = {path: path.read_text() for path in tiny.iterdir()}
    status, out, _ = run(*command, "--seed", 1, "--seed", 2)
    assert status == 0 and out.count("is there") == 2
    assert all(path.read_text() == text for path, text in before.items())
    assert (tiny / "C-2-layers-2.json").exists()


def test_an_interrupted_row_goes_on(run, tiny, monkeypatch):
    command = ["reproduce", "table3", "C-2-layers", "--device", "cpu"]
    assert run(*command, "--out", "whole")[0] == 0
    from annotated_transformer.cli import progress

    line = progress.line

    def interrupt(record):
        if record["step"] == 1:
            signal.raise_signal(signal.SIGTERM)
        return line(record)

    monkeypatch.setattr(progress, "line", interrupt)
    status, _, _ = run(*command, "--out", "parts")
    assert status == 130 and not (tiny.parents[2] / "parts").exists()
    monkeypatch.setattr(progress, "line", line)
    assert run(*command, "--out", "parts")[0] == 0
    whole, parts = (
        json.loads((tiny.parents[2] / name / "C-2-layers-1.json").read_text())
        for name in ("whole", "parts")
    )
    assert whole["perplexity"] == parts["perplexity"]
    assert parts["processor_seconds"] is None


def test_what_there_is_not_is_refused(run, tiny):
    for arguments, word in (
        (["table4"], "table3"),
        (["table3", "C-2-layrs"], "C-2-layers"),
        (["table3", "--seed", "-1"], "seed"),
    ):
        status, _, err = run("reproduce", *arguments)
        assert status == 2 and word in err and err.count("\n") == 1
