"""Benchmarks start, and what is said of benchmarks and records is there."""

import importlib
import re
from pathlib import Path

import pytest

from benchmarks import measure, record

ROOT = Path(__file__).resolve().parent.parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
        ".__main__"
    ): path
    for path in (ROOT / "benchmarks").rglob("*.py")
}
COMMANDS = sorted(
    name for name, path in MODULES.items() if "\ndef main(" in path.read_text("utf-8")
)
PATH = re.compile(r"\b(?:results|benchmarks)/[\w/-]+\.(?:jsonl?|py)\b")
MODULE = re.compile(r"python -m (benchmarks(?:\.\w+)+)")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_says_what_it_does(name, capsys):
    try:
        main = "." + MODULES[name].stem if MODULES[name].stem == "__main__" else ""
        module = importlib.import_module(name + main)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(("annotated_transformer", "benchmarks")):
            raise
        pytest.skip(f"{error.name} is not installed")
    with pytest.raises(SystemExit, match="0"):
        module.main(["--help"])
    assert f"python -m {name}" in capsys.readouterr().out


def test_what_a_page_names_is_there():
    folders = ("nbs", "tools", "benchmarks", "results")
    pages = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    pages += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    kinds = {".ipynb", ".md", ".py"}
    texts = [path.read_text("utf-8") for path in pages if path.suffix in kinds]
    named = {each for text in texts for each in PATH.findall(text)}
    assert {each for each in named if not (ROOT / each).exists()} == set()
    assert {each for text in texts for each in MODULE.findall(text)} <= set(MODULES)


def test_a_record_says_how_it_came_about(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    (tmp_path / "speed").mkdir()
    record.save("speed/some.json", {"seconds": 1.5, "command": "make it"}, "nowhere")
    found = record.load("speed/some.json")
    assert found["seconds"] == 1.5 and found["command"] == "make it"
    assert {"commit", "clean", "date", "machine"} <= set(found)
    assert set(found["versions"]) == {"python", "torch", "nowhere"}
    assert record.load("speed/other.json") == {}


def test_bleu_says_how_short_the_outputs_are():
    target = ["eins zwei drei vier fünf sechs sieben acht"]
    short = measure.bleu(["eins zwei drei vier"], target)
    assert short["brevity_penalty"] == 0.368  # e to the power of 1 - 8 / 4
    assert measure.bleu(target, target)["brevity_penalty"] == 1
