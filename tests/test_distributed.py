"""Several processes under torchrun, on the CPU: the losses of one, copied or sharded;
one error; restarts.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tiny_run import (
    data,
    losses,
    opened,
    sentences,
    start,
    train_arguments,
    wait_for_lines,
)

from annotated_transformer.data.batching import token_batches
from annotated_transformer.training.distributed import report_failure_once
from annotated_transformer.training.run import fit
from annotated_transformer.training.signals import stop_requests

HERE = Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
PACKAGE = ["-m", "annotated_transformer"]
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}
WHAT = dict(env=ENVIRONMENT, text=True)
WHAT |= dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
Done = subprocess.CompletedProcess[str]
slow = pytest.mark.slow


def several(processes: int, *options: object) -> list[object]:
    """The launcher of several processes that meet on this machine."""
    return [*TORCHRUN, "--standalone", "--nproc-per-node", processes, *options]


def done(*words: object, good: bool = True) -> Done:
    """A command, run to its end."""
    found = subprocess.run([*map(str, words)], timeout=300, check=False, **WHAT)
    assert (found.returncode == 0) == good, found.stderr
    return found


def tiny_run(processes: int, folder: Path, **settings: object) -> Done:
    """tests/tiny_run.py in several processes."""
    words = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return done(*several(processes), HERE / "tiny_run.py", folder, *words)


@pytest.fixture
def command(tmp_path: Path) -> list[object]:
    """Arguments of the command line for a run of 12 updates in tmp_path / "run", saved
    every 4.
    """
    for split, pairs in {"train": sentences(), "valid": sentences()[:10]}.items():
        for side, language in enumerate(["en", "de"]):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (tmp_path / f"{split}.{language}").write_text(text, encoding="utf-8")
    small = """N=1 d_model=16 d_ff=32 h=2 d_k=8 d_v=8 dropout=0.0 vocab_size=40
        max_length=64 max_tokens=48 batch_tokens=48 warmup=4 steps=12 save_every=4
        keep=2 log_every=1 precision=fp32"""
    return train_arguments(tmp_path, tmp_path / "run", small)


def same_losses(one: Path, other: Path, event: str = "", rel: float = 1e-5) -> bool:
    """Whether two logs tell of the same updates, and of equal losses up to rounding."""
    logs = [[r for r in losses(f) if event in ("", r[0])] for f in (one, other)]
    steps = [[r[:2] for r in log] for log in logs]
    values = [[r[2] for r in log] for log in logs]
    return steps[0] == steps[1] and values[0] == pytest.approx(values[1], rel=rel)


def uneven_steps() -> int:
    """The updates of an epoch whose batches have odd numbers of rows, some a single
    one.
    """
    train = data()[1]
    drawn = token_batches(train.src_lengths, train.tgt_lengths, 48, 1, 0)
    rows = [len(each) for each in drawn]
    assert 1 in rows and any(n % 2 for n in rows if n > 1) and any(n % 4 for n in rows)
    return len(rows)


# The same losses


@pytest.mark.parametrize(
    ("processes", "micro_batches"), [pytest.param(4, 1, marks=slow), (2, 2)]
)
def test_copies_log_the_losses_of_one_process(tmp_path, processes, micro_batches):
    """Batches of uneven size, some of fewer rows than processes; then a resume by one
    process alone.
    """
    one, many = tmp_path / "one", tmp_path / "many"
    settings = {"dropout": 0.0, "steps": uneven_steps() // micro_batches + 1}
    settings |= {"batch_tokens": 48 * micro_batches, "micro_batches": micro_batches}
    settings |= {"save_every": settings["steps"]}
    assert fit(start(one, **settings)) == "finished"
    tiny_run(processes, many, **settings)
    assert same_losses(many, one)
    models = (opened(each).model.parameters() for each in (one, many))
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(*models, strict=True))
    more = settings | {"steps": settings["steps"] + 2}
    assert {fit(start(each, **more)) for each in (one, many)} == {"finished"}
    assert same_losses(many, one, rel=1e-4)


@slow
@pytest.mark.parametrize(("processes", "accumulate"), [(2, 1), (4, 2)])
def test_a_run_goes_from_one_process_to_shards_and_back(
    tmp_path, processes, accumulate
):
    """Updates 1 to 4 by one process, to 8 by shards of the model, the rest by one
    process again.
    """
    whole, moved = tmp_path / "whole", tmp_path / "moved"
    assert fit(start(whole, dropout=0.0)) == "finished"
    assert fit(start(moved, dropout=0.0, steps=4)) == "finished"
    shards = {"dropout": 0.0, "steps": 8, "sharded": True, "accumulate": accumulate}
    said = tiny_run(processes, moved, **shards).stdout
    share = float(re.search(r"holds ([0-9.]+) of the model", said)[1])
    assert share == pytest.approx(1 / processes, rel=0.05)
    assert max(step for _, step, _ in losses(moved)) == 8
    assert fit(start(moved, dropout=0.0)) == "finished"
    assert same_losses(moved, whole, "update")


@slow
def test_a_language_model_has_the_losses_of_one_process(tmp_path):
    """Another type than translation, by its command."""
    text = "\n".join(" ".join(pair) for pair in sentences())
    (tmp_path / "text.txt").write_text(text)
    words = ["language-model", "train", tmp_path / "text.txt"]
    sizes = "N=1 d_model=16 d_ff=32 h=2 max_length=16 steps=8 batch=6 log_every=1"
    words += [word for each in sizes.split() for word in ("--set", each)]
    words += ["--device", "cpu"]
    done(sys.executable, *PACKAGE, *words, "-o", tmp_path / "one")
    done(*several(2), *PACKAGE, *words, "-o", tmp_path / "two")
    assert same_losses(tmp_path / "two", tmp_path / "one")


@slow
@pytest.mark.skipif(
    torch.accelerator.is_available(), reason="processes would share an accelerator"
)
def test_processes_find_each_other_without_being_told_of_the_cpu(command):
    """Or each would train alone, and all would write the same files."""
    words = [word for word in command if word not in ("--device", "cpu")]
    said = done(*several(2), *PACKAGE, *words, "--dry-run").stdout
    assert said.count("device: 2 × cpu") == 1, said


# What fails


def error_of(text: str) -> str:
    """The one line in which the command line says what is wrong; fails when there are
    more or fewer.
    """
    (found,) = [line for line in text.splitlines() if line.startswith("error: ")]
    return found


@slow
def test_when_one_rank_fails_all_end_and_one_line_says_why(tmp_path, command):
    fault = [HERE / "faulty_cli.py", "raise", 1, 6]
    said = done(*several(2), *fault, *command, good=False).stderr
    reason = r"error: rank 1 of 2 on \S+: RuntimeError: the cosmic ray$"
    assert re.match(reason, error_of(said))
    assert said.count("the cosmic ray") <= 3, "the launcher's summary alone has more"
    saved = [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()]
    assert saved == ["step-00000004"]


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (RuntimeError("[gloo] Connection closed"), SystemExit(143)),
        (ValueError("disk full"), ValueError("disk full")),
    ],
)
def test_who_was_asked_to_end_and_then_lost_the_others_says_nothing(
    monkeypatch, error, end
):
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with (
        pytest.raises(type(end), match=str(end)),
        report_failure_once(own=0.0, others=0.0),
        stop_requests(),
    ):
        signal.raise_signal(signal.SIGTERM)
        raise error


@slow
def test_when_all_ranks_refuse_the_first_one_speaks(tmp_path, command):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "cat.jpg").touch()
    said = done(*several(2), *PACKAGE, *command, good=False).stderr
    assert error_of(said).endswith("holds no run: choose another folder")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["cat.jpg"]


@slow
def test_a_rank_that_hangs_is_given_up(command):
    """Rank 1 sleeps; rank 0 waits for it as long as `timeout` says and no longer."""
    began = time.monotonic()
    fault = [HERE / "faulty_cli.py", "hang", 1, 6, *command, "--set", "timeout=5"]
    said = done(*several(2, "--shutdown-timeout", 3), *fault, good=False).stderr
    assert time.monotonic() - began < 200
    reason = r"error: rank 0 of 2 on \S+: waited in vain .*longer timeout$"
    assert re.match(reason, error_of(said))


# What goes on


@slow
def test_a_killed_worker_is_started_again_and_nothing_is_lost(tmp_path, command, run):
    """Rank 1 dies by SIGKILL before update 7; all start again from the checkpoint of
    update 4.
    """
    assert run(*command[:-1], tmp_path / "whole")[0] == 0
    fault = [HERE / "faulty_cli.py", "kill", 1, 7]
    said = done(*several(2, "--max-restarts", 1), *fault, *command).stdout
    assert said.count("step       5") == 2, "update 5 was made twice"
    assert same_losses(tmp_path / "run", tmp_path / "whole")


@slow
def test_a_launcher_that_is_asked_to_end_leaves_a_checkpoint(tmp_path):
    """SIGTERM goes on to the workers, which save after the same update; the run goes on
    to the same losses.
    """
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert fit(start(whole, dropout=0.0)) == "finished"
    words = [HERE / "tiny_run.py", run, "dropout=0.0", "save_every=12", "pause=1"]
    process = subprocess.Popen([*map(str, [*several(2), *words])], **WHAT)
    wait_for_lines(run, 3, process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=200)
    (saved,) = (run / "checkpoints").iterdir()
    assert "step-00000003" <= saved.name < "step-00000012"
    assert fit(start(run, dropout=0.0, save_every=12)) == "finished"
    assert same_losses(run, whole, "update")


@slow
def test_two_nodes(tmp_path, command):
    """Two launchers meet at an address, as on two machines; when a worker of one is
    killed, both start again.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = "--nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-id test "
    options += f"--rdzv-endpoint localhost:{port} --local-addr localhost "
    options += "--max-restarts 1"
    words = [*TORCHRUN, *options.split(), HERE / "faulty_cli.py", "kill", 1, 7]
    words = [*map(str, [*words, *command])]
    nodes = [subprocess.Popen(words, **WHAT) for _ in range(2)]
    results = [node.communicate(timeout=300) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], results
    assert sum("finished at step 12" in out for out, _ in results) == 1
    updates = [step for event, step, _ in losses(tmp_path / "run") if event == "update"]
    assert updates == list(range(1, 13))
