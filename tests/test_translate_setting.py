"""`translate`: translations while a model trains, and the checkpoint chosen by them."""

import io
import json
import signal
from pathlib import Path

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from tasks import TASKS
from tiny_run import losses, opened, refused, start, train_arguments, write_pairs

from annotated_transformer import UserError
from annotated_transformer.after.text_classification import ClassifierTraining
from annotated_transformer.cli import progress
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.distributed import World
from annotated_transformer.training.log import as_line
from annotated_transformer.training.recipes import Recipe
from annotated_transformer.training.run import Run, fit, validate
from annotated_transformer.training.run_state import checkpoint_of
from annotated_transformer.translation import task as tasks
from annotated_transformer.translation.scores import scores
from annotated_transformer.translation.task import TranslationTask, prepare

PHRASES = phrasebook("en", "de", "train", 24)
LONG = (" ".join(["the first of March"] * 12), "zu lang")
WEIGHTS = "model.safetensors"


def prepared(folder: Path, valid=PHRASES, report=None, **settings) -> Run:
    """A run that soon knows its few phrases by heart."""
    sizes = dict(N=1, d_model=32, d_ff=64, h=2, dropout=0.0, max_length=48)
    few = dict(steps=80, batch_tokens=512, warmup=20, peak=0.01, keep=4)
    every = dict(log_every=40, save_every=20)
    training = TrainingConfig(**(few | every | settings))
    architecture = TransformerConfig(**sizes)
    plan = Recipe("own", "en", "de", architecture, training, 200, max_tokens=32)
    return prepare(plan, folder, PHRASES, valid, report, "cpu")


def validations(folder: Path) -> list[dict]:
    """What the log says of each validation."""
    lines = map(json.loads, (folder / "log.jsonl").read_text("utf-8").splitlines())
    return [record for record in lines if record["event"] == "validation"]


def chosen(folder: Path) -> list[int]:
    """The steps of the checkpoints whose weights the final model has."""
    final, found = load_file(folder / "model" / WEIGHTS), []
    for path in sorted((folder / "checkpoints").iterdir()):
        weights = load_file(path / WEIGHTS)
        if all(torch.equal(weights[name], each) for name, each in final.items()):
            found.append(int(path.name.removeprefix("step-")))
    return found


@pytest.mark.filterwarnings("ignore:line .*translation")
def test_the_log_has_scores_and_samples_of_what_the_checkpoint_translates(tmp_path):
    plain, seen = prepared(tmp_path / "plain", [LONG, *PHRASES]), []
    watched = prepared(tmp_path / "r", [LONG, *PHRASES], seen.append, translate=9)
    assert (fit(plain), fit(watched)) == ("finished", "finished")
    assert losses(tmp_path / "plain") == losses(tmp_path / "r"), "training is the same"
    assert validations(tmp_path / "plain")[0].keys() == {
        *("event", "step", "loss", "perplexity", "seconds")
    }
    logged = validations(tmp_path / "r")
    sources, references = zip(*PHRASES[:9], strict=True)
    assert logged[-1]["bleu"] > 50 > logged[0]["bleu"]
    for record in logged[1::2]:
        model = opened(checkpoint_of(tmp_path / "r", record["step"]))
        outputs = model.translate([*sources], beam_size=1)
        found = {each.name: each.value for each in scores(outputs, references, "de")}
        assert record["bleu"] == pytest.approx(found["BLEU 13a"])
        assert record["chrf"] == pytest.approx(found["chrF"])
        wanted = [(sources[i], outputs[i], references[i]) for i in (0, 3, 6)]
        assert [tuple(each.values()) for each in record["samples"]] == wanted
        shown = as_line(record).splitlines()
        assert "  bleu " in shown[0] and len(shown) == 10
        assert shown[2].split("translation  ") == ["   ", outputs[0]]
    assert [each for each in seen if each["event"] == "validation"] == logged


@pytest.mark.parametrize("select", ["bleu", "chrf"])
def test_the_checkpoint_with_the_best_score_is_taken(select, tmp_path, monkeypatch):
    """Also where the loss calls the first one best."""
    rising = iter(range(1, 100))
    monkeypatch.setattr(tasks, "validation_loss", lambda *_: float(next(rising)))
    assert fit(prepared(tmp_path, translate=24, select=select)) == "finished"
    logged = validations(tmp_path)
    best = max(logged, key=lambda record: record[select])
    assert chosen(tmp_path) == [best["step"]] != [logged[0]["step"]]


def told(monkeypatch, *bleu: float) -> None:
    """Let validations find these scores, and a loss that falls and falls."""
    scores, falling = iter(bleu), iter(range(len(bleu), 0, -1))
    found = lambda _: {"bleu": next(scores), "chrf": 0.0, "samples": []}  # noqa: E731
    monkeypatch.setattr(TranslationTask, "translations", found)
    monkeypatch.setattr(tasks, "validation_loss", lambda *_: float(next(falling)))


def test_patience_counts_the_score_and_a_resumed_run_remembers_it(
    tmp_path, monkeypatch
):
    told(monkeypatch, 1.0, 5.0, 4.0, 4.5, 9.0)
    given = {"steps": 100, "translate": 2, "select": "bleu", "patience": 2, "keep": 1}

    def stop(record):
        if record["event"] == "validation" and record["step"] == 12:
            signal.raise_signal(signal.SIGTERM)

    assert fit(start(tmp_path / "r", report=stop, **given)) == "interrupted"
    again = start(tmp_path / "r", **given)
    assert fit(again) == "stopped early" and again.progress.step == 16
    assert [each["bleu"] for each in validations(tmp_path / "r")] == [1.0, 5, 4, 4.5]
    assert chosen(tmp_path / "r") == [8]


def test_a_run_goes_on_with_other_translations_unless_they_choose(tmp_path):
    assert fit(start(tmp_path / "r")) == "finished"
    about = json.loads((tmp_path / "r" / "run.json").read_text("utf-8"))
    assert "translate" not in str(about), "runs from before there was the setting"
    assert fit(start(tmp_path / "r", steps=16, translate=3)) == "finished"
    assert "bleu" in validations(tmp_path / "r")[-1]
    given = {"select": "chrf", "steps": 4}
    assert fit(start(tmp_path / "s", translate=3, **given)) == "finished"
    with pytest.raises(UserError, match="translate is 3 there and 4 here"):
        fit(start(tmp_path / "s", translate=4, **given))


def test_all_processes_go_by_what_the_first_one_found(tmp_path):
    class Others(World):
        def total(self, value):
            return value - 7.0  # the first process found a score of 7

    task = TASKS["transformer"](translate=3, select="bleu")
    run = Run(task, tmp_path / "r", Others(torch.device("cpu"), rank=1), None)
    validate(run)
    assert run.progress.best_loss == -7.0


@pytest.mark.parametrize("name", ["recurrent", "transformer-since-2017"])
def test_other_translation_models_translate_while_they_train(name, tmp_path):
    task = TASKS[name](translate=3, select="chrf")
    assert fit(Run(task, tmp_path, World(torch.device("cpu")), None)) == "finished"
    assert all(len(each["samples"]) == 3 for each in validations(tmp_path))


def test_a_task_of_another_kind_may_have_a_score_of_its_own(tmp_path):
    class Scored(ClassifierTraining):
        scores = ("accuracy",)

    task, found = TASKS["classifier"](keep=3), iter([0.5, 0.75, 0.25])
    task.config = Scored(**task.config.to_dict() | {"select": "accuracy"})
    task.evaluate = lambda: {"loss": 1.0, "accuracy": next(found)}
    assert fit(Run(task, tmp_path, World(torch.device("cpu")), None)) == "finished"
    assert chosen(tmp_path) == [validations(tmp_path)[1]["step"]]


def test_a_diverged_run_is_named_though_it_is_to_translate(tmp_path, monkeypatch):
    run = start(tmp_path / "r", translate=3)
    with torch.no_grad():
        next(run.model.parameters()).fill_(torch.nan)
    with pytest.raises(UserError, match="diverged"):
        validate(run)


def test_a_terminal_shows_texts_as_they_are(monkeypatch):
    """Brackets and colons are no markup, and control characters are written out."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200, color_system=None)
    monkeypatch.setattr(progress, "console", console)
    sample = {"source": "[b] :cat:\x1b[31m\n", "translation": "x", "reference": "y"}
    record = {"event": "validation", "step": 1, "loss": 1.0, "seconds": 0.0}
    with progress.record_display(2) as show:
        show(record | {"samples": [sample]})
    assert "        source  [b] :cat:\\x1b[31m\\n" in screen.getvalue()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("select=bleu", ("select is 'bleu' and translate 0", "translate=200")),
        ("select=chrf translate=-1", ("translate is -1", "at least 0")),
        ("translate=9 sharded=true", ("translate is 9 and sharded true",)),
    ],
)
def test_settings_that_dont_go_together_are_named(settings, words, run, tmp_path):
    arguments = train_arguments(write_pairs(tmp_path), tmp_path / "out", settings)
    refused(run(*arguments), *words)
    assert not (tmp_path / "out").exists()


def test_the_command_prints_translations_below_its_line(run, tmp_path):
    small = "N=1 d_model=16 d_ff=32 h=2 vocab_size=200 steps=4 save_every=2 warmup=2 "
    small += "batch_tokens=256 micro_batches=1 translate=5 select=chrf"
    arguments = train_arguments(write_pairs(tmp_path), tmp_path / "out", small)
    status, out, _ = run(*arguments)
    sources, _ = zip(*phrasebook("en", "de", "val", 10), strict=True)
    assert status == 0
    for text in sources[:3]:
        assert out.count(f"        source  {text}\n") == 2
