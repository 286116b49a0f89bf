"""`--config FILE`: the command line in YAML, and each run's config.yaml."""

import pytest
import yaml
from test_cli import CASES, SMALL, TINY
from tiny_run import losses, refused, write_pairs

from annotated_transformer.cli.config_file import as_number

SIZES = f"{SMALL} vocab_size=200 batch_tokens=256 warmup=4 steps=10"


def write(path, values):
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def as_mapping(words):
    """`N=1 d_model=16` as one would write it into a file."""
    pairs = (word.split("=") for word in words.split())
    return {name: int(text) if text.isdigit() else text for name, text in pairs}


@pytest.fixture
def own(tmp_path):
    """A file with all that a tiny translation run takes."""
    write_pairs(tmp_path)
    files = {"source": str(tmp_path / "train"), "valid": str(tmp_path / "valid")}
    settings = as_mapping(SIZES) | {"peak": "2e-3", "joint": True}
    where = {"device": "cpu", "out": str(tmp_path / "a"), "set": settings}
    return write(tmp_path / "run.yaml", files | {"src": "en", "tgt": "de"} | where)


def test_a_run_of_a_file_is_repeated_by_its_own(run, own, tmp_path):
    assert run("train", "--config", own)[0] == 0
    assert (
        run("train", "--config", tmp_path / "a/config.yaml", "-o", tmp_path / "b")[0]
        == 0
    )
    assert len(losses(tmp_path / "a")) == 4
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    first, second = (
        yaml.safe_load((tmp_path / each / "config.yaml").read_text()) for each in "ab"
    )
    assert second == first | {"out": str(tmp_path / "b")}
    assert first["set"]["steps"] == 10 and "overwrite" not in first


def test_what_is_typed_is_what_the_file_said(run, own, tmp_path):
    """Options, settings and all: the same run as of the command without a file."""
    said = yaml.safe_load(own.read_text())
    settings = [f"{name}={value}" for name, value in said["set"].items()]
    words = [word for each in settings for word in ("--set", each)]
    options = [
        word
        for name in ("src", "tgt", "valid", "device")
        for word in (f"--{name}", said[name])
    ]
    assert run("train", said["source"], *options, *words, "-o", tmp_path / "b")[0] == 0
    assert run("train", "--config", own)[0] == 0
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


def test_what_is_typed_wins(run, own, tmp_path):
    typed = ["--set", "steps=5", "--out", tmp_path / "b", "--config", own]
    assert run("train", *typed)[0] == 0 and not (tmp_path / "a").exists()
    assert [step for _, step, _ in losses(tmp_path / "b")] == [5, 5]
    said = yaml.safe_load((tmp_path / "b" / "config.yaml").read_text())
    assert said["set"]["steps"] == 5 and said["set"]["d_model"] == 16
    refused(run("train", tmp_path / "none", "--config", own), "none.en", "no such file")


def test_a_run_goes_on_by_its_file_and_a_refused_one_leaves_it(run, own, tmp_path):
    again = ["train", "--config", tmp_path / "a" / "config.yaml"]
    assert run("train", "--config", own)[0] == 0
    assert run(*again, "--set", "steps=15")[0] == 0
    assert [step for kind, step, _ in losses(tmp_path / "a") if kind == "update"] == [
        5,
        10,
        15,
    ]
    before = (tmp_path / "a" / "config.yaml").read_text()
    assert "steps: 15" in before
    refused(run(*again, "--set", "seed=2"), "holds another run")
    assert (tmp_path / "a" / "config.yaml").read_text() == before
    assert run(*again, "--set", "seed=2", "--overwrite")[0] == 0
    after = (tmp_path / "a" / "config.yaml").read_text()
    assert "seed: 2" in after and "overwrite" not in after


@pytest.mark.parametrize("task", CASES)
def test_every_task_is_trained_by_a_file(run, tmp_path, task):
    make, sizes, _, _ = CASES[task]
    said = {"data": str(make(tmp_path)), "set": as_mapping(f"{TINY} {sizes}")}
    file = write(tmp_path / "run.yaml", said | {"device": "cpu"})
    assert run(task, "train", "--config", file, "-o", tmp_path / "a")[0] == 0
    again = [task, "train", "--config", tmp_path / "a" / "config.yaml"]
    assert run(*again, "--out", tmp_path / "b")[0] == 0
    assert losses(tmp_path / "a") == losses(tmp_path / "b") != []


def test_without_settings_it_says_the_data(run, tmp_path, monkeypatch):
    monkeypatch.setattr("annotated_transformer.training.run.fit", lambda _: "finished")
    monkeypatch.chdir(tmp_path)
    data = CASES["classifier"][0](tmp_path)
    assert run("classifier", "train", data)[0] == 0
    text = (tmp_path / "runs" / "classifier" / "config.yaml").read_text()
    assert yaml.safe_load(text) == {"data": str(data)}
    command = "# annotated-transformer classifier train --config runs/classifier/"
    assert text.startswith(command)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("valld: own", ["'valld'", "did you mean 'valid'?"]),
        ("steps: 3", ["'steps' is no option of train", "under set"]),
        (
            "source: phrasebook\nset: {stps: 3}",
            ["run.yaml: unknown", "did you mean 'steps'?"],
        ),
        ("source: phrasebok", ["run.yaml: unknown recipe", "'phrasebook'?"]),
        ("source: phrasebook\nset: {steps: -3}", ["run.yaml: steps is -3"]),
        ("source: phrasebook\nset: {steps: many}", ["run.yaml: steps is 'many'"]),
        ("source: phrasebook\nset: {steps: [1, 2]}", ["steps holds several values"]),
        ("source: phrasebook\nset: [steps]", ["set holds no names", "NAME: VALUE"]),
        ("source: [a, b]", ["source holds several values"]),
        ("source: phrasebook\nsrc: no", ["src is False", "in quotes"]),
        ("source: phrasebook\nthreads: few", ["run.yaml: ", "--threads"]),
        ("source: phrasebook\noverwrite: perhaps", ["--overwrite"]),
        ("config: other.yaml", ["'config' is no option"]),
        ("phrasebook", ["holds no names"]),
        ("source: [", ["is no YAML", "mend it"]),
        ("source: !!python/object/apply:os.getcwd []", ["is no YAML"]),
        ("day: 2020-99-99", ["is no YAML"]),
        ("", ["Missing argument", "source"]),
    ],
)
def test_a_wrong_file_is_one_line(run, tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(text)
    refused(run("train", "--config", "run.yaml"), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]


def test_what_is_typed_is_not_the_file_s_fault(run, tmp_path):
    file = write(tmp_path / "run.yaml", {"source": "phrasebook", "set": {"steps": 3}})
    for typed in (["--set", "steps=many"], ["--threads", "few"]):
        status, _, err = run("train", "--config", file, *typed)
        assert status == 2 and "run.yaml" not in err


def test_no_file(run, tmp_path):
    refused(
        run("train", "--config", tmp_path / "none.yaml"), "none.yaml", "No such file"
    )


@pytest.mark.parametrize(
    "text", "10 007 2e-3 0.10 0.1 1_0 0x10 true no inf nan -".split()
)
def test_a_setting_keeps_its_text(text):
    assert str(yaml.safe_load(yaml.safe_dump({"x": as_number(text)}))["x"]) == text
