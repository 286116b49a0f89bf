"""The training loop: parts equal the whole, a stopped or killed run goes on to the same
losses, faults are named.
"""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_run import (
    SETTINGS,
    data,
    losses,
    opened,
    sentences,
    start,
    wait_for_lines,
)

from annotated_transformer.cli.dry_run import try_recipe
from annotated_transformer.data.batching import collate, token_batches
from annotated_transformer.errors import UserError
from annotated_transformer.files import verify
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.training.checkpoint import checkpoints
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.distributed import World
from annotated_transformer.training.recipes import Recipe, recipe
from annotated_transformer.training.run import Run, fit
from annotated_transformer.training.sentence_pairs import validation_loss
from annotated_transformer.training.signals import stop_requests
from annotated_transformer.training.trainer import accumulate_gradient, train
from annotated_transformer.translation import task as tasks
from annotated_transformer.translation.task import prepare

TINY_RUN = Path(__file__).with_name("tiny_run.py")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The folder of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert fit(start(folder)) == "finished"
    return folder


def weights(folder: Path) -> list[torch.Tensor]:
    return [p.detach() for p in opened(folder).model.parameters()]


def equal(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def saved(folder: Path) -> list[int]:
    """The updates of which a run has checkpoints."""
    return [int(path.name.removeprefix("step-")) for path in checkpoints(folder)]


def goes_on(folder: Path, whole: Path, **settings: int | float | str) -> None:
    """A run ends, to the losses of one that nobody disturbed."""
    assert fit(start(folder, **settings)) == "finished"
    assert losses(folder) == losses(whole)


@pytest.fixture
def copied(whole, tmp_path) -> Path:
    """A copy of the whole run, to prolong or to spoil."""
    return Path(shutil.copytree(whole, tmp_path / "r"))


def stopped(run: Run, step: int) -> Run:
    """A run that is asked to stop during an update."""
    gradient = run.processes.gradient

    def asking(*arguments):
        if run.progress.step == step - 1:
            signal.raise_signal(signal.SIGTERM)
        return gradient(*arguments)

    run.processes.gradient = asking
    return run


def spawn(folder: Path, **settings: int | float | str) -> subprocess.Popen:
    """A run in another process."""
    words = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return subprocess.Popen(
        [sys.executable, TINY_RUN, folder, *words],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# One update


def small_objective():
    """Without dropout, so that the same batch has the same gradient."""
    return start(Path("unused"), dropout=0.0).task.objective


def gradients(micro_batches, parts=1):
    objective = small_objective()
    accumulate_gradient(objective, micro_batches, parts)
    return [parameter.grad for parameter in objective.parameters()]


def near(some, others, atol=1e-6):
    return all(
        torch.allclose(a, b, atol=atol) for a, b in zip(some, others, strict=True)
    )


def test_the_gradient_is_that_of_the_loss_per_real_token():
    batch, objective = collate(data()[1], range(8)), small_objective()
    loss = objective(batch) / batch.tokens
    expected = torch.autograd.grad(loss, list(objective.parameters()))
    assert near(gradients([batch]), expected, atol=1e-7)


def test_micro_batches_have_the_gradient_of_one_batch_with_all_their_rows():
    """Of uneven sizes: a mean of means would be another number."""
    rows = [[0, 1, 2, 3, 4], [5], [6, 7]]
    micro_batches = [collate(data()[1], each) for each in rows]
    together = gradients([collate(data()[1], sum(rows, []))])
    for parts in (1, 2, 9):
        assert near(gradients(micro_batches, parts), together)


@pytest.mark.parametrize("rows", [[1], [3, 5], [3, 1, 2]])
def test_the_mean_over_processes_is_the_gradient_of_the_batch(rows):
    """What two processes compute, one after the other; Adam hides a wrong factor."""
    micro_batches = [
        collate(data()[1], range(10 * place, 10 * place + count))
        for place, count in enumerate(rows)
    ]
    ranks = []
    for rank in range(2):
        run = start(Path("unused"), dropout=0.0)
        run.processes.world = World(torch.device("cpu"), rank, size=2)
        run.processes.shared_gradient(run.task.objective, micro_batches, 2)
        ranks.append([parameter.grad for parameter in run.model.parameters()])
    means = [(one + two) / 2 for one, two in zip(*ranks, strict=True)]
    assert near(means, gradients(micro_batches))


def test_bf16_stays_close_to_fp32():
    results = {}
    for precision in ("fp32", "bf16"):
        run = start(Path("unused"), precision=precision, warmup=100, steps=3)
        task, source = run.task, run.task.batches((0, 0))
        given = run.processes.objective, source, run.optimizer, task.schedule
        updates = train(*given, run.config)
        results[precision] = [(each.loss / each.tokens).item() for each in updates]
        assert all(p.dtype == torch.float32 for p in run.model.parameters())
    assert results["bf16"] == pytest.approx(results["fp32"], rel=0.01)
    assert results["bf16"] != results["fp32"]


def test_validation_has_neither_dropout_nor_smoothing_and_leaves_no_trace():
    run = start(Path("unused"), dropout=0.5)
    valid = run.task.valid
    batch = collate(valid, range(len(valid)))
    logits = run.model.eval()(batch.src, batch.tgt_in)
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=0
    )
    given = run.task.objective, valid, run.config
    assert validation_loss(*given) == pytest.approx(expected.item(), rel=1e-5)
    assert validation_loss(*given) == validation_loss(*given, run.processes.batch_loss)


# Stopping and going on


def test_a_run_leaves_its_folder_in_order(whole):
    parts = [".lock", "checkpoints", "log.jsonl", "model", "run.json"]
    assert sorted(path.name for path in whole.iterdir()) == parts
    assert saved(whole) == [8, 12]
    steps = [(event, step) for event, step, _ in losses(whole)]
    assert [step for event, step in steps if event == "update"] == list(range(1, 13))
    assert [step for event, step in steps if event == "validation"] == [4, 8, 12]
    pair = zip(*map(weights, checkpoints(whole)), strict=True)
    mean = [torch.stack(each).double().mean(0).float() for each in pair]
    assert equal(weights(whole / "model"), mean)


UNEVEN = {"batch_tokens": 144, "micro_batches": 3, "steps": 6}
SELDOM = {"log_every": 4, "save_every": 100, "steps": 8}


@pytest.mark.parametrize(
    ("step", "settings"),
    [(8, {}), (9, {}), (3, UNEVEN), (6, SELDOM)],
    ids=["at a checkpoint", "after one", "uneven epochs", "within a line of the log"],
)
def test_a_stopped_run_goes_on_bit_by_bit(whole, tmp_path, step, settings):
    """And the checkpoint of the stop has no part in the average."""
    if settings:
        whole = tmp_path / "whole"
        assert fit(start(whole, **settings)) == "finished"
    assert fit(stopped(start(tmp_path / "r", **settings), step)) == "interrupted"
    assert saved(tmp_path / "r")[-1] == step
    assert not (tmp_path / "r" / "model").exists()
    goes_on(tmp_path / "r", whole, **settings)
    for part in (f"checkpoints/{checkpoints(whole)[-1].name}", "model"):
        assert equal(*(weights(folder / part) for folder in (tmp_path / "r", whole)))


def test_the_micro_batches_of_an_update_share_its_tokens(tmp_path):
    """And go over the end of an epoch, where it doesn't divide into updates."""
    train = data()[1]
    assert len(token_batches(train.src_lengths, train.tgt_lengths, 48, 1, 0)) % 3
    run, seen = start(tmp_path / "r", **UNEVEN), []
    gradient = run.processes.gradient
    run.processes.gradient = lambda *given: seen.append(given[1]) or gradient(*given)
    assert fit(run) == "finished"
    assert [len(micro_batches) for micro_batches in seen] == [3] * 6
    for batch in (batch for micro_batches in seen for batch in micro_batches):
        assert max(batch.src.numel(), batch.tgt_out.numel()) <= 48


def test_a_second_ctrl_c_ends_at_once():
    with pytest.raises(KeyboardInterrupt), stop_requests() as stops:
        signal.raise_signal(signal.SIGINT)
        assert stops == ["SIGINT"]
        signal.raise_signal(signal.SIGINT)


def test_kill_9_loses_nothing(whole, tmp_path):
    process = spawn(tmp_path / "r", pause=0.1)
    wait_for_lines(tmp_path / "r", 7, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    goes_on(tmp_path / "r", whole)
    assert [path.name for path in (tmp_path / "r").glob("**/.*")] == [".lock"]


@pytest.mark.slow
def test_kill_9_at_random_moments_again_and_again(tmp_path):
    settings = {"save_every": 2, "steps": 40, "keep": 1}
    assert fit(start(tmp_path / "whole", **settings)) == "finished"
    rng, kills = random.Random(), 0
    log = tmp_path / "r" / "log.jsonl"
    for _ in range(12):
        process = spawn(tmp_path / "r", pause=0.01, **settings)
        before = log.read_text().count("\n") if log.exists() else 0
        wait_for_lines(tmp_path / "r", before + 1, process)
        time.sleep(rng.uniform(0, 0.15))
        kills += process.poll() is None
        process.kill()
        process.communicate()
    assert kills > 3
    goes_on(tmp_path / "r", tmp_path / "whole", **settings)
    assert not list((tmp_path / "r" / "checkpoints").glob(".*"))


def test_a_finished_run_has_nothing_left_to_do_and_can_be_prolonged(whole, copied):
    goes_on(copied, whole)
    assert fit(start(copied, steps=14)) == "finished"
    assert losses(copied)[: len(losses(whole))] == losses(whole)
    assert losses(copied)[-1][1] == 14


def test_patience_ends_a_run(tmp_path, monkeypatch):
    values = iter([3.0, 2.0, 2.5, 2.1, 2.2, 1.0])
    monkeypatch.setattr(tasks, "validation_loss", lambda *_: next(values))
    run = start(tmp_path / "r", steps=100, save_every=1, patience=3)
    assert fit(run) == "stopped early"
    assert run.progress.step == 5 and run.progress.best_loss == 2.0
    assert (tmp_path / "r" / "model" / "model.safetensors").exists()


def test_a_diverged_run_stops_before_it_spoils_a_checkpoint(tmp_path, monkeypatch):
    values = iter([1.0, math.nan])
    monkeypatch.setattr(tasks, "validation_loss", lambda *_: next(values))
    with pytest.raises(ValueError, match="diverged.*lower peak"):
        fit(start(tmp_path / "r"))
    assert saved(tmp_path / "r") == [4]


def test_a_stop_saves_no_diverged_weights(tmp_path):
    run = start(tmp_path / "r", log_every=100)
    gradient = run.processes.gradient

    def diverges(*arguments):
        return gradient(*arguments) * (math.nan if run.progress.step > 4 else 1.0)

    run.processes.gradient = diverges
    with pytest.raises(ValueError, match="diverged"):
        fit(stopped(run, 6))
    assert saved(tmp_path / "r") == [4]


def test_adams_averages_stay_in_the_last_two_checkpoints_alone(tmp_path):
    fit(start(tmp_path / "r", steps=16, keep=4))
    folders = checkpoints(tmp_path / "r")
    kept = [(folder / "optimizer.safetensors").exists() for folder in folders]
    assert kept == [False, False, True, True]
    verify(tmp_path / "r")


# Faults


def test_a_damaged_checkpoint_is_named_and_the_one_before_serves(whole, copied):
    newest = checkpoints(copied)[-1]
    (newest / "optimizer.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match=f"damaged.*delete {newest}"):
        fit(start(copied))
    shutil.rmtree(newest)
    goes_on(copied, whole)


def spoil_progress(folder: Path, text: str) -> None:
    """Write another progress.json into the newest checkpoint."""
    (checkpoints(folder)[-1] / "progress.json").write_text(text)


def log_of(folder: Path, data: bytes | None) -> None:
    """Write another log, or a pipe that nobody writes to."""
    (folder / "log.jsonl").unlink()
    (folder / "log.jsonl").write_bytes(data) if data else os.mkfifo(
        folder / "log.jsonl"
    )


def retell(folder: Path, **changes) -> None:
    """Change the progress that the newest checkpoint tells."""
    about = json.loads((checkpoints(folder)[-1] / "progress.json").read_text())
    spoil_progress(folder, json.dumps(about | changes))


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda f: (f / "run.json").write_text("{"), "run.json can't be read"),
    (lambda f: (f / "run.json").write_text("{}"), "holds another run"),
    (lambda f: (f / "run.json").unlink(), "holds no run"),
    (lambda f: (f / "log.jsonl").write_text("hello\n"), "line 1: no log record"),
    (lambda f: retell(f, step=11), "is of update 11.*delete"),
    *[(lambda f, step=step: retell(f, step=step), "(?s)step.*delete")
      for step in (10**400, {}, "relu", None, -1, 1.5)],
    (lambda f: retell(f, position=10**30), "position is 1000.*no run.*delete"),
    (lambda f: retell(f, position=-3), "position is -3.*delete"),
    (lambda f: retell(f, position=0.5), "(?s)position.*0.5.*delete"),
    (lambda f: retell(f, position=12), "is not of this data"),
    (lambda f: retell(f, epoch=10**9), "epoch is 1000000000.*delete"),
    (lambda f: retell(f, tokens=True), "tokens is True.*delete"),
    (lambda f: retell(f, best_loss="x"), "(?s)best_loss.*'x'.*delete"),
    (lambda f: retell(f, best_loss=float("nan")), "best_loss is nan.*delete"),
    (lambda f: retell(f, seconds=None), "(?s)seconds.*None.*delete"),
    (lambda f: retell(f, loss_sum=10**400), "(?s)large|loss_sum.*delete"),
    (lambda f: log_of(f, b'{"step": 7}\n'), "line 1: no log record"),
    (lambda f: log_of(f, b"\xff\n"), "line 1: no log record"),
    (lambda f: log_of(f, b'{"event": "update", "step": 7, "loss": []}\n'), "line 1"),
    (lambda f: os.truncate(f / "log.jsonl", 2**33), "log.jsonl has over 536,870,912"),
    (lambda f: log_of(f, None), "log.jsonl is no regular file"),
    (lambda f: retell(f, colour=1), "unexpected keyword argument 'colour'.*delete"),
    (lambda f: (checkpoints(f)[-1] / "progress.json").unlink(), "is missing.*delete"),
    (lambda f: spoil_progress(f, "[" * 10**5), "progress.json can't be read.*delete"),
])  # fmt: skip
def test_a_folder_that_is_not_this_run_is_refused(copied, spoil, message):
    spoil(copied)
    before = weights(checkpoints(copied)[-1])
    with pytest.raises(UserError, match=message) as refused:
        fit(start(copied, steps=13))
    lines = str(refused.value).splitlines()
    assert len(lines) == 1 or lines[0].startswith("Type-check")  # in tests alone
    assert equal(weights(checkpoints(copied)[-1]), before)


def test_a_log_ahead_of_its_checkpoint_is_cut(whole, copied):
    log = copied / "log.jsonl"
    log.write_text(log.read_text() + '{"event": "data", "step": 13}\n{"eve')
    goes_on(copied, whole)


def test_other_settings_are_another_run_but_for_who_does_the_work(copied):
    with pytest.raises(ValueError, match="seed is 1 there and 2 here"):
        fit(start(copied, seed=2))
    with pytest.raises(ValueError, match="dropout is 0.1 there and 0.0 here"):
        fit(start(copied, dropout=0.0))
    elsewhere = {"accumulate": 3, "sharded": True, "timeout": 5}
    assert fit(start(copied, steps=13, **elsewhere)) == "finished"


# Recipes


def small_recipe(**changes):
    sizes = dict(N=1, d_model=16, d_ff=32, h=2, d_k=8, d_v=8, max_length=64)
    training = TrainingConfig(**(SETTINGS | {"steps": 4}))
    given = "own", "en", "de", TransformerConfig(**sizes), training
    return replace(Recipe(*given, vocab_size=40, max_tokens=12), **changes)


def prepared(folder, pairs=None, report=lambda record: None, **changes):
    """A run of a small recipe with some changes."""
    given = pairs or sentences(), sentences()[:5], report
    return prepare(small_recipe(**changes), folder, *given, device="cpu")


def test_the_recipes_of_the_paper_are_the_papers():
    base, big = recipe("wmt14-en-de-base").training, recipe("wmt14-en-de-big")
    assert (base.steps, base.warmup, base.batch_tokens) == (100_000, 4_000, 25_000)
    assert (big.architecture.d_model, big.architecture.dropout) == (1024, 0.3)
    assert (big.training.steps, big.training.keep) == (300_000, 20)
    french = recipe("wmt14-en-fr-big")
    assert french.architecture == replace(big.architecture, dropout=0.1)
    assert french.training == big.training and french.vocab_size == 32_000
    with pytest.raises(ValueError, match="did you mean 'phrasebook'"):
        recipe("phrasebok")


def test_the_data_of_a_run_are_made_once_and_what_was_left_out_is_counted(tmp_path):
    records = []
    run = prepared(tmp_path / "r", report=records.append)
    kept, left_out = len(run.task.train), run.task.train.dropped
    assert left_out > 0 and kept + left_out == len(sentences())
    assert fit(run) == "finished"
    counts = {"dropped_train": left_out, "dropped_valid": run.task.valid.dropped}
    assert records[0] == {"event": "data", "step": 0, **counts}
    made = (tmp_path / "r" / "data" / "train" / "src.tokens").stat().st_mtime_ns
    again = prepared(tmp_path / "r")
    now = (tmp_path / "r" / "data" / "train" / "src.tokens").stat().st_mtime_ns
    assert now == made
    assert (again.task.train.src_tokens == run.task.train.src_tokens).all()
    fit(again)
    assert (tmp_path / "r" / "log.jsonl").read_text().count('"data"') == 1
    with pytest.raises(ValueError, match=r"\(lowercase is False there and True here\)"):
        prepared(tmp_path / "r", lowercase=True)
    with pytest.raises(ValueError, match="normalize is None there and True here"):
        prepared(tmp_path / "r", normalize=True)
    assert prepared(tmp_path / "normalize", normalize=True).task.tokenizer.normalize


def test_a_mistake_that_was_refused_can_be_put_right_in_the_same_folder(tmp_path):
    for changes, message in [
        ({"vocab_size": 5}, "too small"),
        ({"max_tokens": 1}, "no sentence pairs are left"),
    ]:
        with pytest.raises(ValueError, match=message):
            prepared(tmp_path / "r", **changes)
    assert len(prepared(tmp_path / "r").task.valid) == 5


def test_a_dry_run_goes_to_the_end_and_leaves_nothing(tmp_path):
    given = tmp_path / "dry", sentences(), sentences()[:5]
    found = try_recipe(small_recipe(), *given, device="cpu", pairs=40)
    assert found["outcome"] == "finished"
    assert len(found["losses"].split()) == len(found["perplexity"].split()) == 3
    bytes_each = found["a checkpoint, bytes"]
    assert found["all that the run keeps, bytes"] == SETTINGS["keep"] * bytes_each
    assert bytes_each > 12 * found["parameters"] > 0, "weights and two moments"
    with pytest.raises(ValueError, match="no sentence pairs are left"):
        try_recipe(small_recipe(max_tokens=1), *given, device="cpu")
    assert not list(tmp_path.iterdir())


def test_a_launcher_that_would_not_work_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "1")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    with pytest.raises(ValueError, match="DISABLE_SHARE_RDZV_TCP_STORE=1"):
        prepared(tmp_path / "r")


def test_what_a_recipe_refuses(tmp_path):
    for changes in (dict(pad_id=5), dict(bos_id=3), dict(eos_id=7)):
        with pytest.raises(ValueError, match="must be 0, 1 and 2"):
            small_recipe(architecture=TransformerConfig(**changes))
    few = TrainingConfig(**SETTINGS, micro_batches=5)
    for changes, message in (
        ({"vocab_size": -1}, "vocab_size is -1"),
        ({"max_tokens": 65}, "max_tokens is 65"),
        ({"bpe_dropout": 1.5}, "bpe_dropout is 1.5"),
        ({"training": few}, "max_tokens is 12: .* batch_tokens / micro_batches, 9"),
    ):
        with pytest.raises(ValueError, match=message):
            small_recipe(**changes)
    with pytest.raises(ValueError, match="read more than once"):
        prepared(tmp_path / "r", iter(sentences()))
