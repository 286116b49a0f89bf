"""A run of each model type: stopped and gone on with, refused, overwritten, opened."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tasks import TASKS

from annotated_transformer import UserError, load
from annotated_transformer.average import average_checkpoints
from annotated_transformer.cli.progress import run_folder, train_run
from annotated_transformer.cli.recipe import plan_training
from annotated_transformer.devices import matmul_seconds
from annotated_transformer.training import run as runs
from annotated_transformer.training.checkpoint import checkpoints
from annotated_transformer.training.distributed import World
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.run import Run, fit, start_run
from benchmarks.train import train_task

WEIGHTS = "model.safetensors"


def run(name: str, folder: Path, report=lambda record: None, overwrite=False, **given):
    """Train a tiny model of a type in a folder."""
    return fit(start_run(TASKS[name](**given), folder, "cpu", report, overwrite))


def records(folder: Path) -> list[dict]:
    """What a run logged, without its clocks."""
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    clocks = ("seconds", "_per_second")
    return [{n: v for n, v in r.items() if not n.endswith(clocks)} for r in lines]


@pytest.mark.parametrize("name", TASKS)
def test_resumed_equals_uninterrupted_and_the_model_opens(name, tmp_path):
    stopped = []

    def stop(record):
        if record["event"] == "update" and record["step"] >= 5 and not stopped:
            stopped.append(record["step"])
            signal.raise_signal(signal.SIGTERM)

    (straight, halved), each = (tmp_path / n for n in ("straight", "halved")), {}
    if name in ("classifier", "vision"):  # a log line for each of three passes
        each = {"epochs": 0, "steps": 12, "log_every": 2, "save_every": 4}
    assert run(name, straight, **each) == "finished"
    assert run(name, halved, stop, **each) == "interrupted" and stopped == [6]
    with pytest.warns(UserWarning, match="isn't finished: opening .*step-00000006$"):
        assert load(halved, device="cpu").config.model_type == name
    torch.rand(100)
    assert run(name, halved, **each) == "finished"
    assert records(halved) == records(straight)
    one, other = (load_file(f / "model" / WEIGHTS) for f in (straight, halved))
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert load(straight, device="cpu").config.model_type == name


@pytest.mark.parametrize("name", TASKS)
def test_the_last_checkpoints_of_any_type_are_averaged(name, tmp_path):
    assert run(name, tmp_path / "r", select="average", keep=2) == "finished"
    folders = checkpoints(tmp_path / "r")
    assert len(folders) == 2
    average_checkpoints(folders, tmp_path / "mean")
    mean = load(tmp_path / "mean", device="cpu")
    assert mean.config.model_type == name
    final = load_file(tmp_path / "r" / "model" / WEIGHTS)  # averaged by the run itself
    parameters = dict(mean.model.named_parameters())
    assert all(torch.equal(final[key], parameters[key]) for key in parameters)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_and_a_run_say_what_they_are(name, tmp_path):
    task = TASKS[name]()
    shown = f"{type(task).__name__}({name}, "
    assert repr(task).startswith(shown) and repr(task).endswith(" 12 updates)")
    begun = start_run(task, tmp_path / "r", "cpu")
    assert repr(begun).startswith(f"Run({shown}")
    assert f"in {tmp_path / 'r'}, at update 0, on cpu)" in repr(begun)


@pytest.mark.parametrize("name", ["transformer", "classifier"])
def test_another_run_is_refused_and_overwritten_on_demand(name, tmp_path):
    assert run(name, tmp_path / "r") == "finished"
    with pytest.raises(UserError, match="seed is 1 there and 2 here.*--overwrite"):
        run(name, tmp_path / "r", seed=2)
    assert run(name, tmp_path / "r", seed=2, overwrite=True) == "finished"
    assert json.loads((tmp_path / "r/run.json").read_text())["training"]["seed"] == 2
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    for overwrite in (False, True):
        with pytest.raises(UserError, match="holds no run: choose another folder"):
            run(name, tmp_path / "other", overwrite=overwrite)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.tex"]


def test_passes_decide_the_steps_and_the_best_one_is_kept(tmp_path):
    assert run("classifier", tmp_path / "r", epochs=3) == "finished"
    found = [r for r in records(tmp_path / "r") if r["event"] == "validation"]
    assert [record["step"] for record in found] == [4, 8, 12]
    best = min(found, key=lambda record: record["loss"])["step"]
    folders = (f"checkpoints/step-{best:08d}", "model")
    kept, final = (load_file(tmp_path / "r" / f / WEIGHTS) for f in folders)
    assert all(torch.equal(final[key], kept[key]) for key in kept)


@pytest.mark.parametrize("name", ["transformer", "classifier", "series"])
def test_training_without_a_folder_is_the_same(name, tmp_path):
    given = {"select": "best"}
    assert run(name, tmp_path / "r", **given) == "finished"
    task = TASKS[name](**given)
    points = list(train_task(task))
    found = [r["loss"] for r in records(tmp_path / "r") if r["event"] == "validation"]
    assert [point["loss"] for point in points] == pytest.approx(found, rel=1e-6)
    final = load_file(tmp_path / "r" / "model" / WEIGHTS)
    assert all(torch.equal(final[n], p) for n, p in task.model.named_parameters())


def test_sharding_is_for_translation(tmp_path):
    with pytest.raises(UserError, match="sharded is for translation models"):
        run("series", tmp_path / "r", sharded=True)


def test_tensorboard_shows_the_losses_of_the_log(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    begun = start_run(TASKS["series"](), tmp_path / "r", "cpu")
    assert train_run(begun, "tensorboard") == 0
    shown = EventAccumulator(str(tmp_path / "r" / "tensorboard"))
    shown.Reload()
    for event in ("update", "validation"):
        found = [(e.step, e.value) for e in shown.Scalars(f"{event}/loss")]
        logged = [
            (r["step"], pytest.approx(r["loss"]))
            for r in records(tmp_path / "r")
            if r["event"] == event
        ]
        assert found == logged and found


def test_processes_may_ask_for_one_folder_at_the_same_time(tmp_path):
    """What one process tries out never lies in another's way."""
    folder = tmp_path / "runs" / "one"
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: run_folder(folder, "name"), range(400)))
    assert found == [folder] * 400 and not list(tmp_path.glob("runs/*"))


def precisions(folder: Path) -> list[str]:
    """The number formats that a run logged, one for each start."""
    return [r["precision"] for r in records(folder) if r["event"] == "precision"]


def test_the_faster_number_format_is_taken_and_kept(tmp_path, monkeypatch, capsys):
    """A run that goes on keeps its format unless the other is twice as fast."""
    place, took = tmp_path / "r", {}
    monkeypatch.setattr(runs, "matmul_seconds", lambda device: took)
    training = {"precision": "auto", "save_every": 2}
    used = []
    for steps, bf16 in ((2, 12.0), (4, 0.9), (6, 0.4), (8, 1.5), (10, 2.1)):
        took |= {"fp32": 1.0, "bf16": bf16}
        begun = start_run(TASKS["transformer"](steps=steps, **training), place, "cpu")
        assert fit(begun) == "finished"
        used.append(begun.processes.mixed.precision)
    assert used == ["fp32", "fp32", "bf16", "bf16", "fp32"] == precisions(place)
    out = capsys.readouterr().out
    assert (
        "takes 12 times as long in bfloat16 as in float32 here: training in float32"
        in out
    )
    assert (
        "takes 0.4 times as long in bfloat16" in out and "training in bfloat16" in out
    )
    assert "fp32" not in (place / "run.json").read_text()


@pytest.mark.parametrize("named", ["fp32", "bf16"])
def test_a_named_number_format_is_obeyed(named, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "matmul_seconds", lambda device: 1 / 0)
    begun = start_run(TASKS["series"](precision=named), tmp_path / "r", "cpu", None)
    assert fit(begun) == "finished" and begun.processes.mixed.precision == named
    assert not precisions(tmp_path / "r")


def test_the_first_process_chooses_the_number_format_for_all(tmp_path, monkeypatch):
    class Others(World):
        def total(self, value):
            return value + 1.0  # the first process said "bf16"

    monkeypatch.setattr(runs, "matmul_seconds", lambda device: 1 / 0)
    world = Others(torch.device("cpu"), rank=1)
    begun = Run(TASKS["series"](precision="auto"), tmp_path / "r", world)
    runs.choose_precision(begun)
    assert begun.processes.mixed.precision == "bf16"


def test_a_product_of_matrices_is_timed_in_both_formats():
    found = matmul_seconds(torch.device("cpu"))
    assert list(found) == ["fp32", "bf16"] and 0 < min(found.values())
    assert max(found.values()) < 5


def test_a_run_prints_its_progress_unless_told_otherwise(tmp_path, capsys):
    for name in ("transformer", "series"):
        assert fit(start_run(TASKS[name](), tmp_path / name, "cpu")) == "finished"
        lines = capsys.readouterr().out.splitlines()
        assert any("loss" in line and "/s" in line for line in lines), lines
        assert any("validation" in line for line in lines)
        assert fit(start_run(TASKS[name](), tmp_path / "2" / name, "cpu", None))
        assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("pairs", "name"), [(99_999, "multi30k-en-de-tiny"), (100_000, "tatoeba-en-de")]
)
def test_settings_follow_the_number_of_pairs(pairs, name, tmp_path):
    for lang in ("en", "de"):
        (tmp_path / f"own.{lang}").write_text("a\n" * pairs)
    own = {"src": "en", "tgt": "de", "valid": "own", "recipe": None}
    plan = plan_training(str(tmp_path / "own"), own, [], None, None)
    wanted = recipe(name)
    assert (plan.architecture, plan.training) == (wanted.architecture, wanted.training)
    assert not plan.moses and not plan.lowercase and plan.corpus.endswith("own")


def test_a_run_of_another_type_is_refused_in_one_short_line(tmp_path):
    run("classifier", tmp_path / "run")
    with pytest.raises(UserError, match="another run .*; and [0-9]+ more") as told:
        run("vision", tmp_path / "run")
    assert len(str(told.value)) < 600 + len(str(tmp_path))
