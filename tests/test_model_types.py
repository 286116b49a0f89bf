"""The records of the model types, and a type of one's own: nbs/sort_digits.py."""

import importlib.util
import json
import signal
import sys
from pathlib import Path

import pytest
from tiny_run import refused

from annotated_transformer import UserError, fit, load, make_task, start_run
from annotated_transformer.pretrained import PretrainedModel
from annotated_transformer.registry import HOMES, SUMMARIES, model_type
from annotated_transformer.translation.translator import Translator

FILE = Path(__file__).resolve().parent.parent / "nbs" / "sort_digits.py"
SMALL = {"digits": 4, "N": 1, "d_model": 32, "d_ff": 64, "steps": 150, "peak": 1e-2}
SMALL |= {"save_every": 50}


@pytest.mark.parametrize("name", list(HOMES))
def test_a_record_has_the_name_it_is_listed_by(name):
    kind = model_type(name)
    assert kind.name == name and issubclass(kind.model, PretrainedModel)
    assert (name in SUMMARIES) == (kind.task is not None)
    if kind.task:
        assert callable(kind.model.evaluate)
        assert kind.data and kind.about and kind.training and kind.commands


def test_an_unknown_type_is_told():
    with pytest.raises(UserError, match="'clasifier': did you mean 'classifier'"):
        model_type("clasifier")


# -- a type of one's own ---------------------------------------------------------------


@pytest.fixture
def sorter(monkeypatch):
    """The module of the example, whose type is known during the test alone."""
    for table in (HOMES, SUMMARIES):
        monkeypatch.setitem(table, "digit-sorter", "")  # undone, it is gone
    spec = importlib.util.spec_from_file_location("sort_digits", FILE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "sort_digits", module)
    spec.loader.exec_module(module)
    return module


def losses(folder):
    """The losses of a run's updates and validations."""
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [(line["event"], line["step"], line["loss"]) for line in lines]


def test_a_type_of_ones_own_is_trained_resumed_opened_and_measured(sorter, tmp_path):
    def stop(record):
        if record["event"] == "update" and record["step"] == 50:
            signal.raise_signal(signal.SIGTERM)

    def start(folder, **more):
        return start_run(make_task("digit-sorter", **SMALL), folder, "cpu", **more)

    straight, halved = tmp_path / "straight", tmp_path / "halved"
    assert fit(start(straight)) == "finished"
    assert fit(start(halved, report=stop)) == "interrupted"
    assert fit(start(halved)) == "finished" and losses(halved) == losses(straight)
    model = load(halved, device="cpu")
    assert type(model) is sorter.Sorter and model.config.digits == 4
    assert model.evaluate()["sorted"] > 0.9
    assert model.sort("9120") == "0129" and model.sort(["3021"]) == ["0123"]
    model.save_pretrained(tmp_path / "copy")
    assert sorter.Sorter.from_pretrained(tmp_path / "copy").sort("5713") == "1357"
    with pytest.raises(UserError, match="'digit-sorter', which is no Translator"):
        Translator.from_pretrained(halved)
    with pytest.raises(UserError, match="the text is '12': write 4 digits"):
        model.sort("12")


def test_a_type_of_ones_own_has_commands(sorter, run, tmp_path):
    rows, out = tmp_path / "rows.txt", tmp_path / "run"
    rows.write_text("3141\n5926\n" * 30)
    sets = [w for name, value in SMALL.items() for w in ("--set", f"{name}={value}")]
    train = ["digit-sorter", "train", rows, "-o", out, *sets, "--device", "cpu"]
    assert run(*train)[0] == 0
    assert run("digit-sorter", "sort", out, "3141")[:2] == (0, "1134\n")
    status, told, _ = run("digit-sorter", "evaluate", out, rows)
    assert status == 0 and "1.0000" in told
    assert "Sort digits" in run("--help")[1]
    assert "digits=8" in run("digit-sorter", "train", "--help")[1]
    assert "row of digits" in " ".join(
        run("digit-sorter", "evaluate", "--help")[1].split()
    )
    refused(run("digit-sorter", "sort", out, "12x4"), "write 4 digits")
    refused(run("digit-sorted", "sort", out, "1234"), "digit-sorter")
    rows.write_text("3141\n59\n")
    refused(run(*train, "--overwrite"), f"{rows}, line 2", "write 4 digits")
