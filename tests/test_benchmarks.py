"""Benchmarks start and records are used: no measurement without a reader."""

import importlib
import json
import re
from pathlib import Path

import pytest

from benchmarks import record

ROOT = Path(__file__).resolve().parent.parent
HELPERS = {"record", "peers", "forks", "damage", "folders", "__init__"}
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.stem not in HELPERS
)
RECORDS = sorted((ROOT / "results").rglob("*.json"))
READERS = [
    path
    for folder in ("nbs", "tests", "tools")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".ipynb", ".md", ".py"} and path != Path(__file__).resolve()
]
PATH = re.compile(r"\b(?:results|benchmarks)/[\w/-]+\.(?:jsonl?|py)\b")
MODULE = re.compile(r"python -m (benchmarks(?:\.\w+)+)")
# What a benchmark writes on a machine that nobody has had yet.
TO_COME = {
    "results/scale/gpu.json",
    "results/speed/translation-speed.json",
    "results/run.json",
}


def texts() -> dict[Path, str]:
    """What may speak of benchmarks and records: chapters, tests, tools and pages."""
    pages = [*READERS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    pages += (ROOT / "benchmarks").rglob("*.py")
    return {path: path.read_text(encoding="utf-8") for path in pages}


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_says_what_it_does(name, capsys):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(("annotated_transformer", "benchmarks")):
            raise
        pytest.skip(f"{error.name} is not installed")
    with pytest.raises(SystemExit) as ended:
        module.main(["--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"python -m {name}" in shown and module.__doc__.splitlines()[0] in shown


def test_what_is_named_is_there():
    named = {
        (path.name, each)
        for path, text in texts().items()
        for each in PATH.findall(text)
        if each not in TO_COME and not (ROOT / each).exists()
    }
    assert not named
    modules = {each for text in texts().values() for each in MODULE.findall(text)}
    assert not {each for each in modules if each not in MODULES}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_names_its_command_and_has_a_reader(path):
    command = json.loads(path.read_text(encoding="utf-8"))["command"]
    text = command if isinstance(command, str) else " ".join(command)
    modules = MODULE.findall(text)
    # A command that is gone is named with the commit that had it.
    gone = re.search(r", at commit [0-9a-f]{7,}$", text)
    ours = text.startswith("annotated-transformer ")
    assert ours or gone or modules and set(modules) <= set(MODULES)
    words = {path.name, path.parent.name, path.parent.name.removesuffix("-fp32")}
    readers = "".join(path.read_text(encoding="utf-8") for path in READERS)
    assert any(word in readers for word in words - {"paper", "speed", "scale"})


def test_a_record_is_written_whole_with_what_it_depends_on(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    record.save("speed/some.json", {"seconds": 1.5, "command": "make it"}, "nowhere")
    found = record.load("speed/some.json")
    assert found["seconds"] == 1.5 and found["command"] == "make it"
    assert found["machine"] == record.machine()
    assert set(found["versions"]) == {"python", "torch", "nowhere"}
    assert record.load("speed/other.json") == {}


def test_the_readme_is_short():
    words = (ROOT / "README.md").read_text(encoding="utf-8").split()
    assert len([word for word in words if word.strip("|-:")]) <= 900
