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
import tracemalloc
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tiny_run import SETTINGS, data, losses, sentences, start, wait_for_lines

from annotated_transformer.cli.dry_run import rehearse
from annotated_transformer.data.batching import collate, token_batches
from annotated_transformer.engine import runs
from annotated_transformer.engine.runs import (
    StopVote,
    fit,
    prepare,
    resume,
    stop_requests,
)
from annotated_transformer.engine.scale import Processes
from annotated_transformer.errors import UserError
from annotated_transformer.files import verify, write_manifest
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training import checkpoint
from annotated_transformer.training.checkpoint import checkpoints, load_model
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.recipes import Recipe, recipe, recipes
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.trainer import (
    TrainingConfig,
    accumulate_gradient,
    summed_loss,
    train,
    validation_loss,
)

TINY_RUN = Path(__file__).with_name("tiny_run.py")


@pytest.fixture(autouse=True)
def one_thread():
    """The same arithmetic in this process and in those that the tests start."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The folder of a run that nobody disturbed."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert fit(start(folder)) == "finished"
    return folder


def weights(folder: Path) -> list[torch.Tensor]:
    return [p.detach() for p in load_model(folder)[0].parameters()]


def equal(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def stop_at(step, number):
    """A report that sends a signal to this process at a step."""

    def report(record):
        if record["event"] == "update" and record["step"] == step:
            signal.raise_signal(number)

    return report


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


def small_objective(dropout=0.1, smoothing=0.1):
    torch.manual_seed(0)
    size = data()[0].src_vocab_size
    sizes = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "d_k": 8, "d_v": 8}
    config = TransformerConfig(size, size, dropout=dropout, **sizes)
    return Objective(Transformer(config), smoothing)


def trained(dropout=0.1, start=(0, (0, 0)), objective=None, optimizer=None, **settings):
    """The objective, its optimizer, and what each update of the plain loop yielded."""
    objective = objective or small_objective(dropout)
    optimizer = optimizer or adam(objective.model)
    config = TrainingConfig(**(SETTINGS | settings))
    updates = list(train(objective, optimizer, data()[1], config, start))
    return objective, optimizer, updates


def flat(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def test_micro_batches_equal_the_batch():
    whole, parts = (trained(0.0, accumulate=n, steps=4) for n in (1, 4))
    sums = [
        [update.loss.item() for update in updates] for *_, updates in (whole, parts)
    ]
    assert sums[0] == pytest.approx(sums[1], rel=1e-5)
    assert torch.allclose(flat(whole[0]), flat(parts[0]), atol=1e-5)


def test_more_parts_than_rows_is_no_error():
    two = collate(data()[1], [0, 1])
    assert math.isfinite(accumulate_gradient(small_objective(), [two], parts=64))


def gradients(buckets, parts=1, gradient=accumulate_gradient):
    objective = small_objective(dropout=0.0)
    gradient(objective, buckets, parts)
    return [parameter.grad for parameter in objective.parameters()]


def near(some, others, atol=1e-6):
    return all(
        torch.allclose(a, b, atol=atol) for a, b in zip(some, others, strict=True)
    )


def test_the_gradient_is_that_of_the_loss_per_real_token():
    batch, objective = collate(data()[1], range(8)), small_objective(dropout=0.0)
    loss = summed_loss(objective, batch) / batch.tokens
    expected = torch.autograd.grad(loss, list(objective.parameters()))
    assert near(gradients([batch]), expected, atol=1e-7)


def test_buckets_have_the_gradient_of_one_batch_with_all_their_rows():
    """Of uneven sizes: a mean of means would be another number."""
    rows = [[0, 1, 2, 3, 4], [5], [6, 7]]
    buckets = [collate(data()[1], each) for each in rows]
    together = gradients([collate(data()[1], sum(rows, []))])
    for parts in (1, 2):
        assert near(gradients(buckets, parts), together)


@pytest.mark.parametrize("rows", [[1], [5], [3, 5], [3, 1, 2]])
def test_the_mean_over_processes_is_the_gradient_of_the_batch(rows):
    """What two processes compute, one after the other; Adam hides a wrong factor."""
    buckets = [
        collate(data()[1], range(10 * place, 10 * place + count))
        for place, count in enumerate(rows)
    ]
    ranks = []
    for rank in range(2):
        run = start(Path("unused"), dropout=0.0)
        processes = run.processes
        processes.rank, processes.world = rank, 2
        processes.accelerator = SimpleNamespace(
            device=torch.device("cpu"), no_sync=lambda model: nullcontext()
        )
        processes.gradient(run.objective, buckets, 2)
        ranks.append([parameter.grad for parameter in run.model.parameters()])
    means = [(one + two) / 2 for one, two in zip(*ranks, strict=True)]
    assert near(means, gradients(buckets))


def test_one_process_computes_the_plain_gradient():
    run, plain = start(Path("unused"), dropout=0.0), small_objective(dropout=0.0)
    batch = collate(data()[1], range(8))
    with torch.no_grad():
        for a, b in zip(plain.parameters(), run.objective.parameters(), strict=True):
            a.copy_(b)
    sums = [
        run.processes.gradient(run.objective, [batch], 2),
        accumulate_gradient(plain, [batch], 2),
    ]
    assert torch.allclose(*sums)
    assert near(
        [p.grad for p in run.objective.parameters()],
        [p.grad for p in plain.parameters()],
    )


def test_dropout_is_seeded_by_update():
    first, second = (trained(dropout=0.5, steps=2)[2] for _ in range(2))
    other = trained(dropout=0.5, steps=2, seed=2)[2]
    assert [each.loss for each in first] == [each.loss for each in second]
    assert first[0].loss / first[0].tokens != other[0].loss / other[0].tokens


def test_the_plain_loop_goes_on_bit_by_bit():
    straight, *_ = trained(steps=12)
    half, optimizer, updates = trained(steps=7)
    begun = updates[-1].step, updates[-1].place
    torch.rand(1000)
    trained(objective=half, optimizer=optimizer, start=begun, steps=12)
    assert torch.equal(flat(straight), flat(half))


def test_bf16_stays_close_to_fp32():
    results = {}
    for precision in ("fp32", "bf16"):
        run = start(Path("unused"), precision=precision, warmup=100, steps=5)
        given = run.objective, run.optimizer, run.train, run.config, (0, (0, 0))
        updates = train(*given, run.processes.gradient)
        results[precision] = [(each.loss / each.tokens).item() for each in updates]
        assert all(p.dtype == torch.float32 for p in run.model.parameters())
    assert results["bf16"] == pytest.approx(results["fp32"], rel=0.01)
    assert results["bf16"] != results["fp32"]


def test_validation_has_neither_dropout_nor_smoothing_and_leaves_no_trace():
    run = start(Path("unused"), dropout=0.5)
    batch = collate(run.valid, range(len(run.valid)))
    logits = run.model.eval()(batch.src, batch.tgt_in)
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=0
    )
    given = run.objective, run.valid, run.config
    assert validation_loss(*given) == pytest.approx(expected.item(), rel=1e-5)
    assert validation_loss(*given) == validation_loss(*given, run.processes.loss)


# Stopping and going on


def test_a_run_leaves_its_folder_in_order(whole):
    assert sorted(path.name for path in whole.iterdir()) == [
        "checkpoints",
        "log.jsonl",
        "model",
        "run.json",
    ]
    assert [path.name for path in checkpoints(whole)] == [
        "step-00000008",
        "step-00000012",
    ]
    steps = [(event, step) for event, step, _ in losses(whole)]
    assert [step for event, step in steps if event == "update"] == list(range(1, 13))
    assert [step for event, step in steps if event == "validation"] == [4, 8, 12]
    parts = [weights(path) for path in checkpoints(whole)]
    mean = [
        torch.stack(pair).double().mean(0).float() for pair in zip(*parts, strict=True)
    ]
    assert equal(weights(whole / "model"), mean)


@pytest.mark.parametrize("step", [7, 8])
def test_a_stopped_run_goes_on_bit_by_bit(whole, tmp_path, step):
    assert (
        fit(start(tmp_path / "r", report=stop_at(step, signal.SIGTERM)))
        == "interrupted"
    )
    assert checkpoints(tmp_path / "r")[-1].name == f"step-{step:08d}"
    assert not (tmp_path / "r" / "model").exists()
    assert fit(start(tmp_path / "r")) == "finished"
    assert losses(tmp_path / "r") == losses(whole)
    for part in ("checkpoints/step-00000012", "model"):
        assert equal(*(weights(folder / part) for folder in (tmp_path / "r", whole)))


def test_a_stop_inside_an_epoch_whose_batches_do_not_divide_into_buckets(tmp_path):
    settings = {"batch_tokens": 144, "buckets": 3, "steps": 24}
    train = data()[1]
    assert len(token_batches(train.src_lengths, train.tgt_lengths, 48, 1, 0)) % 3
    assert fit(start(tmp_path / "whole", **settings)) == "finished"
    assert (
        fit(start(tmp_path / "r", report=stop_at(15, signal.SIGTERM), **settings))
        == "interrupted"
    )
    assert fit(start(tmp_path / "r", **settings)) == "finished"
    assert losses(tmp_path / "r") == losses(tmp_path / "whole")


def test_the_buckets_of_an_update_share_its_tokens(tmp_path, monkeypatch):
    seen, gradient = [], Processes.gradient

    def watched(processes, objective, buckets, parts):
        seen.append(buckets)
        return gradient(processes, objective, buckets, parts)

    monkeypatch.setattr(Processes, "gradient", watched)
    fit(start(tmp_path / "r", batch_tokens=144, buckets=3))
    assert [len(buckets) for buckets in seen] == [3] * 12
    for bucket in (bucket for buckets in seen for bucket in buckets):
        assert max(bucket.src.numel(), bucket.tgt_out.numel()) <= 48


def test_the_checkpoint_of_a_stop_is_in_no_average(tmp_path):
    assert (
        fit(start(tmp_path / "r", report=stop_at(7, signal.SIGTERM), keep=3))
        == "interrupted"
    )
    assert fit(start(tmp_path / "r", keep=3)) == "finished"
    assert [path.name for path in checkpoints(tmp_path / "r")] == [
        f"step-{step:08d}" for step in (4, 8, 12)
    ]


def stop_after(monkeypatch, step):
    """Ask for a stop at an update that has no line in the log."""
    monkeypatch.setattr(StopVote, "stop", lambda vote: vote.run.progress.step == step)


def test_a_log_line_that_spans_the_interruption_is_the_same(tmp_path, monkeypatch):
    settings = {"log_every": 4, "save_every": 100, "steps": 8}
    assert fit(start(tmp_path / "a", **settings)) == "finished"
    with monkeypatch.context() as patch:
        stop_after(patch, 6)
        assert fit(start(tmp_path / "b", **settings)) == "interrupted"
    assert fit(start(tmp_path / "b", **settings)) == "finished"
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_ends_cleanly(whole, tmp_path, number):
    process = spawn(tmp_path / "r", pause=0.1)
    wait_for_lines(tmp_path / "r", 5, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out.strip(), err) == (0, "interrupted", "")
    assert fit(start(tmp_path / "r")) == "finished" and losses(
        tmp_path / "r"
    ) == losses(whole)


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    with pytest.raises(KeyboardInterrupt), stop_requests() as stops:
        signal.raise_signal(signal.SIGINT)
        assert stops == ["SIGINT"]
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_twice_leaves_no_half_written_file(whole, tmp_path):
    process = spawn(tmp_path / "r", pause=0.1)
    wait_for_lines(tmp_path / "r", 5, process)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert not list((tmp_path / "r").glob("**/.*"))
    assert fit(start(tmp_path / "r")) == "finished"
    assert losses(tmp_path / "r") == losses(whole)


def test_kill_9_loses_nothing(whole, tmp_path):
    process = spawn(tmp_path / "r", pause=0.1)
    wait_for_lines(tmp_path / "r", 7, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert fit(start(tmp_path / "r")) == "finished" and losses(
        tmp_path / "r"
    ) == losses(whole)


@pytest.mark.slow
def test_kill_9_at_random_moments_again_and_again(tmp_path):
    settings = {"save_every": 2, "steps": 40, "keep": 1}
    assert fit(start(tmp_path / "whole", **settings)) == "finished"
    rng, kills = random.Random(), 0
    for _ in range(12):
        process = spawn(tmp_path / "r", pause=0.01, **settings)
        log = tmp_path / "r" / "log.jsonl"
        wait_for_lines(
            tmp_path / "r",
            (log.read_text().count("\n") if log.exists() else 0) + 1,
            process,
        )
        time.sleep(rng.uniform(0, 0.15))
        kills += process.poll() is None
        process.kill()
        process.communicate()
    assert kills > 3
    assert fit(start(tmp_path / "r", **settings)) == "finished"
    assert losses(tmp_path / "r") == losses(tmp_path / "whole")
    assert not list((tmp_path / "r" / "checkpoints").glob(".*"))


def test_a_finished_run_has_nothing_left_to_do_and_can_be_prolonged(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "r")
    assert fit(start(tmp_path / "r")) == "finished" and losses(
        tmp_path / "r"
    ) == losses(whole)
    assert fit(start(tmp_path / "r", steps=14)) == "finished"
    assert (
        losses(tmp_path / "r")[: len(losses(whole))] == losses(whole)
        and losses(tmp_path / "r")[-1][1] == 14
    )


def test_patience_ends_a_run(tmp_path, monkeypatch):
    values = iter([3.0, 2.0, 2.5, 2.1, 2.2, 1.0])
    monkeypatch.setattr(runs, "validation_loss", lambda *_: next(values))
    run = start(tmp_path / "r", steps=100, save_every=1, patience=3)
    assert (
        fit(run) == "stopped early"
        and run.progress.step == 5
        and run.progress.best_loss == 2.0
    )
    assert (tmp_path / "r" / "model" / "model.safetensors").exists()


def test_a_diverged_run_stops_before_it_spoils_a_checkpoint(tmp_path, monkeypatch):
    values = iter([1.0, math.nan])
    monkeypatch.setattr(runs, "validation_loss", lambda *_: next(values))
    with pytest.raises(ValueError, match="diverged.*lower lr_factor"):
        fit(start(tmp_path / "r"))
    assert [path.name for path in checkpoints(tmp_path / "r")] == ["step-00000004"]


def test_a_stop_saves_no_diverged_weights(tmp_path, monkeypatch):
    run = start(tmp_path / "r", log_every=100)
    gradient = run.processes.gradient

    def diverges(*arguments):
        return gradient(*arguments) * (math.nan if run.progress.step > 4 else 1.0)

    run.processes.gradient = diverges
    stop_after(monkeypatch, 6)
    with pytest.raises(ValueError, match="diverged"):
        fit(run)
    assert [path.name for path in checkpoints(tmp_path / "r")] == ["step-00000004"]


def test_processes_must_find_the_same_checkpoint(whole, tmp_path, monkeypatch):
    shutil.copytree(whole, tmp_path / "r")
    run = start(tmp_path / "r")
    monkeypatch.setattr(run.processes, "total", lambda value: 2 * value)
    with pytest.raises(
        ValueError, match="find different checkpoints, here of update 12"
    ):
        resume(run)


# Faults


def test_a_full_disk_keeps_the_older_checkpoint(whole, tmp_path, monkeypatch):
    real = checkpoint.save_file

    def full(tensors, path):
        if (tmp_path / "r" / "checkpoints" / "step-00000004").exists():
            raise OSError(28, "No space left on device")
        real(tensors, path)

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(ValueError, match="free some space"):
        fit(start(tmp_path / "r"))
    assert [path.name for path in (tmp_path / "r" / "checkpoints").iterdir()] == [
        "step-00000004"
    ]
    monkeypatch.setattr(checkpoint, "save_file", real)
    assert fit(start(tmp_path / "r")) == "finished" and losses(
        tmp_path / "r"
    ) == losses(whole)


def test_a_damaged_checkpoint_is_named_and_the_one_before_serves(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "r")
    newest = checkpoints(tmp_path / "r")[-1]
    (newest / "optimizer.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match=f"damaged.*delete {newest}"):
        fit(start(tmp_path / "r"))
    shutil.rmtree(newest)
    assert fit(start(tmp_path / "r")) == "finished" and losses(
        tmp_path / "r"
    ) == losses(whole)


def spoil_progress(folder: Path, text: str) -> None:
    """Write another progress.json into the newest checkpoint, with its manifest."""
    newest = checkpoints(folder)[-1]
    (newest / "progress.json").write_text(text)
    write_manifest(newest, "a test")


def told(folder: Path) -> dict:
    return json.loads((checkpoints(folder)[-1] / "progress.json").read_text())


def retell(folder: Path, **changes) -> None:
    """Change the progress that the newest checkpoint tells."""
    spoil_progress(folder, json.dumps(told(folder) | changes))


def unsay(folder: Path, *names: str) -> None:
    """Take something out of what the newest checkpoint tells."""
    rest = {name: told(folder)[name] for name in told(folder) if name not in names}
    spoil_progress(folder, json.dumps(rest))


def relog(folder: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the lines of the log."""
    path = folder / "log.jsonl"
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda f: (f / "run.json").write_text("{"), "run.json can't be read"),
    (lambda f: (f / "run.json").write_text("{}"), "holds another run"),
    (lambda f: (f / "run.json").unlink(), "holds no run"),
    (lambda f: (f / "run.json").write_text("[" * 10**5), "run.json can't be read"),
    (lambda f: (f / "log.jsonl").write_text("hello\n"), "not the log.*of update 12"),
    (lambda f: (f / "log.jsonl").write_bytes(b"\xff\n"), "not the log"),
    (lambda f: relog(f, lambda lines: lines[:-1]), "not the log"),
    (lambda f: relog(f, lambda lines: lines[1:]), "not the log"),
    (lambda f: relog(f, lambda lines: [lines[0].replace("1", "2", 1), *lines[1:]]),
     "not the log"),
    (lambda f: retell(f, log_bytes=10), "not the log"),
    (lambda f: retell(f, log_sha256=7), "(?s)log_sha256.*delete"),
    (lambda f: retell(f, step=11), "is of update 11, not 12.*delete"),
    (lambda f: retell(f, step=10**30), "step is 1000.*delete"),
    (lambda f: retell(f, step=10**400), "step is 1000.*delete"),
    (lambda f: retell(f, position=10**30), "position is 1000.*delete"),
    (lambda f: retell(f, position=25), "position is 25 after 12 updates.*delete"),
    (lambda f: retell(f, epoch=25), r"epoch is 25 after 12 updates.*delete"),
    (lambda f: retell(f, seconds=math.inf), "seconds is inf.*delete"),
    (lambda f: retell(f, colour=1), "has an unknown colour.*delete"),
    (lambda f: unsay(f, "position"), "progress.json lacks position.*delete"),
    (lambda f: spoil_progress(f, "[" * 10**5), "progress.json can't be read.*delete"),
    (lambda f: spoil_progress(f, '{"step": 1' + "0" * 5000 + "}"), "can't be read"),
    (lambda f: retell(f, position="3"), "(?s)position.*delete"),
    (lambda f: retell(f, best_loss="low"), "(?s)best_loss.*delete"),
    (lambda f: retell(f, loss_sum=None), "(?s)loss_sum.*delete"),
    (lambda f: retell(f, epoch=-1), "epoch is -1.*delete"),
])  # fmt: skip
def test_a_folder_that_is_not_this_run_is_refused(whole, tmp_path, spoil, message):
    shutil.copytree(whole, tmp_path / "r")
    spoil(tmp_path / "r")
    verify(tmp_path / "r", accept=True)  # the manifests would tell of most of these
    before = weights(checkpoints(tmp_path / "r")[-1])
    with pytest.raises(UserError, match=message) as refused:
        fit(start(tmp_path / "r", steps=13))
    lines = str(refused.value).splitlines()
    assert len(lines) == 1 or lines[0].startswith("Type-check")  # in tests alone
    assert equal(weights(checkpoints(tmp_path / "r")[-1]), before)


def test_a_log_that_is_removed_begins_anew_and_says_so(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "r")
    (tmp_path / "r" / "log.jsonl").unlink()
    with pytest.warns(UserWarning, match="log.jsonl is gone: a new one begins"):
        fit(start(tmp_path / "r", steps=13))
    assert {step for _, step, _ in losses(tmp_path / "r")} == {13}
    assert fit(start(tmp_path / "r", steps=14)) == "finished"
    assert {step for _, step, _ in losses(tmp_path / "r")} == {13, 14}


def test_a_checkpoint_that_counts_no_bytes_of_the_log_is_read(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "r")
    unsay(tmp_path / "r", "log_bytes", "log_sha256")
    log = tmp_path / "r" / "log.jsonl"
    log.write_text(log.read_text() + '{"event": "update", "step": 13}\n{"eve')
    assert fit(start(tmp_path / "r")) == "finished"
    assert losses(tmp_path / "r") == losses(whole)
    log.write_text("hello\n")
    with pytest.raises(ValueError, match="line 1: no log record"):
        fit(start(tmp_path / "r"))


def test_a_log_of_a_million_updates_is_checked_at_once_and_in_little_room(tmp_path):
    line = b'{"event": "update", "step": 1, "loss": 4.25, "lr": 0.001}\n'
    log, progress = runs.Log(tmp_path / "log.jsonl"), runs.Progress(step=1)
    log.path.write_bytes(line * 1_000_000)
    log.size, log.digest = 1_000_000 * len(line), sha256(log.path.read_bytes())
    log.mark(progress)
    with log.path.open("ab") as file:
        file.write(line[:20])
    begun = time.process_time()
    tracemalloc.start()
    log.take_back(progress)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert log.path.stat().st_size == 1_000_000 * len(line)
    assert most < 2**22 and time.process_time() - begun < 5


def test_other_settings_are_another_run(whole):
    with pytest.raises(ValueError, match="seed is 1 there and 2 here"):
        fit(start(whole, seed=2))
    with pytest.raises(ValueError, match="dropout is 0.1 there and 0.0 here"):
        fit(start(whole, dropout=0.0))


def test_who_does_the_work_is_not_part_of_the_run(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "r")
    elsewhere = {"accumulate": 3, "sharded": True, "timeout": 5}
    assert fit(start(tmp_path / "r", steps=13, **elsewhere)) == "finished"


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "r").write_text("")
    with pytest.raises(ValueError, match="can't be written"):
        fit(start(tmp_path / "r"))


BAD_SETTINGS = [
    ({"steps": 0}, "steps is 0"),
    ({"lr_factor": 0.0}, "lr_factor is 0"),
    ({"lr_factor": math.nan}, "lr_factor is nan"),
    ({"label_smoothing": 1.0}, "label_smoothing is 1"),
    ({"precision": "bf61"}, "did you mean 'bf16'"),
    ({"buckets": 0}, "buckets is 0"),
    ({"buckets": 49}, "buckets is 49: it must be at most batch_tokens, 48"),
    ({"patience": -1}, "patience is -1"),
    ({"seed": -1}, "seed is -1"),
    ({"warm_up": 5}, "did you mean 'warmup'"),
]


@pytest.mark.parametrize(("setting", "message"), BAD_SETTINGS)
def test_bad_settings_are_named(setting, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig.from_dict(SETTINGS | setting)


# Recipes


def small_recipe(**changes):
    architecture = TransformerConfig(
        N=1, d_model=16, d_ff=32, h=2, d_k=8, d_v=8, max_length=64
    )
    training = TrainingConfig(**(SETTINGS | {"steps": 4}))
    return replace(
        Recipe("own", "en", "de", architecture, training, vocab_size=40, max_tokens=12),
        **changes,
    )


def test_recipes_are_complete_and_the_papers_are_the_papers():
    base, big = recipe("wmt14-en-de-base"), recipe("wmt14-en-de-big")
    assert (base.training.steps, base.training.warmup, base.training.batch_tokens) == (
        100_000,
        4_000,
        25_000,
    )
    assert (big.architecture.d_model, big.architecture.dropout) == (1024, 0.3)
    assert (big.training.steps, big.training.keep) == (300_000, 20)
    french = recipe("wmt14-en-fr-big")
    assert (
        french.architecture == replace(big.architecture, dropout=0.1)
        and french.training == big.training
    )
    assert (french.src, french.tgt, french.vocab_size, french.joint) == (
        "en",
        "fr",
        32_000,
        True,
    )
    assert set(recipes()) >= {"phrasebook", "multi30k-en-de-tiny"}
    with pytest.raises(ValueError, match="did you mean 'phrasebook'"):
        recipe("phrasebok")


def test_long_pairs_are_left_out_and_counted(tmp_path):
    records = []
    run = prepare(
        small_recipe(),
        tmp_path / "r",
        sentences(),
        sentences()[:5],
        records.append,
        device="cpu",
    )
    assert run.train.dropped > 0 and len(run.train) + run.train.dropped == len(
        sentences()
    )
    assert fit(run) == "finished"
    dropped = {"dropped_train": run.train.dropped, "dropped_valid": run.valid.dropped}
    assert records[0] == {"event": "data", "step": 0, **dropped}
    fit(
        prepare(
            small_recipe(),
            tmp_path / "r",
            sentences(),
            sentences()[:5],
            records.append,
            device="cpu",
        )
    )
    assert (tmp_path / "r" / "log.jsonl").read_text().count('"data"') == 1


def test_the_data_of_a_run_are_made_once(tmp_path):
    first = prepare(
        small_recipe(), tmp_path / "r", sentences(), sentences()[:5], device="cpu"
    )
    second = prepare(
        small_recipe(),
        tmp_path / "r",
        [("changed", "since")],
        [("changed", "since")],
        device="cpu",
    )
    assert (second.train.src_tokens == first.train.src_tokens).all() and len(
        second.valid
    ) == len(first.valid)
    assert equal(list(first.model.parameters()), list(second.model.parameters()))
    with pytest.raises(ValueError, match="another recipe"):
        prepare(
            small_recipe(lowercase=True),
            tmp_path / "r",
            sentences(),
            sentences()[:5],
            device="cpu",
        )


def test_a_mistake_that_was_refused_can_be_put_right_in_the_same_folder(tmp_path):
    for changes, message in [
        ({"vocab_size": 5}, "too small"),
        ({"max_tokens": 1}, "no sentence pairs are left"),
    ]:
        with pytest.raises(ValueError, match=message):
            prepare(
                small_recipe(**changes),
                tmp_path / "r",
                sentences(),
                sentences()[:5],
                device="cpu",
            )
    run = prepare(
        small_recipe(), tmp_path / "r", sentences(), sentences()[:5], device="cpu"
    )
    assert (
        run.tokenizer.src_vocab_size <= small_recipe().vocab_size
        and len(run.valid) == 5
    )


def test_a_dry_run_goes_to_the_end_and_leaves_nothing(tmp_path):
    found = rehearse(
        small_recipe(),
        tmp_path / "dry",
        sentences(),
        sentences()[:5],
        device="cpu",
        pairs=40,
    )
    assert (
        found["outcome"] == "finished"
        and len(found["losses"].split()) == len(found["perplexity"].split()) == 3
    )
    assert found["sentence"] == sentences()[0][0] and found["parameters"] > 0
    assert (
        found["all that the run keeps, bytes"]
        == SETTINGS["keep"] * found["a checkpoint, bytes"]
    )
    assert found["a checkpoint, bytes"] > 12 * found["parameters"], (
        "weights and two moments of four bytes"
    )
    assert not list(tmp_path.iterdir())


def test_a_dry_run_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="no sentence pairs are left"):
        rehearse(
            small_recipe(max_tokens=1),
            tmp_path / "dry",
            sentences(),
            sentences(),
            device="cpu",
        )
    assert not list(tmp_path.iterdir())


STALE = {"TORCHELASTIC_MAX_RESTARTS": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
LAUNCHERS = [
    ({"ACCELERATE_USE_FSDP": "true"}, "set sharded=true"),
    (STALE, "DISABLE_SHARE_RDZV_TCP_STORE=1"),
]


@pytest.mark.parametrize(("environment", "message"), LAUNCHERS)
def test_launchers_that_would_not_work_are_refused(
    tmp_path, monkeypatch, environment, message
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        prepare(small_recipe(), tmp_path / "r", sentences(), sentences(), device="cpu")


def test_what_prepare_refuses(tmp_path):
    for changes in (dict(pad_id=5), dict(bos_id=3), dict(eos_id=7)):
        with pytest.raises(ValueError, match="must be 0, 1 and 2"):
            replace(
                small_recipe(),
                architecture=replace(small_recipe().architecture, **changes),
            )
    with pytest.raises(ValueError, match="vocab_size is -1"):
        replace(small_recipe(), vocab_size=-1)
    with pytest.raises(ValueError, match="read more than once"):
        prepare(
            small_recipe(), tmp_path / "r", iter(sentences()), sentences(), device="cpu"
        )
    with pytest.raises(ValueError, match="max_tokens is 65"):
        small_recipe(max_tokens=65)
    few = replace(small_recipe().training, buckets=5)
    with pytest.raises(
        ValueError, match="max_tokens is 12: .* at most batch_tokens / buckets, 9"
    ):
        small_recipe(training=few)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(ValueError, match="holds no run"):
        prepare(
            small_recipe(), tmp_path / "photos", sentences(), sentences(), device="cpu"
        )
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]
