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
    sentences,
    start,
    train_arguments,
    wait_for_lines,
)

from annotated_transformer.data.batching import token_batches
from annotated_transformer.engine.runs import fit, stop_requests
from annotated_transformer.engine.scale import report_failure_once
from annotated_transformer.training.checkpoint import load_model

HERE = Path(__file__).parent
LAUNCHER = [sys.executable, "-m", "torch.distributed.run"]
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}
Done = subprocess.CompletedProcess[str]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torchrun(processes: int, *arguments: object, options: tuple[str, ...] = ()) -> Done:
    """A script and its arguments in several processes that meet on this machine."""
    command = [
        *LAUNCHER,
        "--standalone",
        "--nproc-per-node",
        str(processes),
        *options,
        *map(str, arguments),
    ]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        env=ENVIRONMENT,
        check=False,
    )


def tiny_run(processes: int, folder: Path, **settings: object) -> Done:
    """tests/tiny_run.py in several processes."""
    words = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return torchrun(processes, HERE / "tiny_run.py", folder, *words)


@pytest.fixture
def train_command(tmp_path: Path) -> list[object]:
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


def close(
    some: list[tuple[str, int, float]], others: list[tuple[str, int, float]]
) -> bool:
    """Whether two logs tell of the same updates, and of equal losses up to rounding."""
    values = pytest.approx([loss for *_, loss in others], rel=1e-5)
    return [record[:2] for record in some] == [record[:2] for record in others] and [
        x for *_, x in some
    ] == values


def uneven_steps() -> int:
    """The updates of an epoch whose batches have odd numbers of rows, some a single
    one.
    """
    train = data()[1]
    rows = [
        len(each)
        for each in token_batches(train.src_lengths, train.tgt_lengths, 48, 1, 0)
    ]
    assert (
        1 in rows
        and any(number % 2 for number in rows if number > 1)
        and any(number % 4 for number in rows)
    )
    return len(rows)


# The same losses


@pytest.mark.parametrize(
    ("processes", "buckets"),
    [pytest.param(2, 1, marks=pytest.mark.slow), (4, 1), (2, 2)],
)
def test_copies_log_the_losses_of_one_process(tmp_path, processes, buckets):
    """Batches of uneven size, some of fewer rows than processes; then a resume by one
    process alone.
    """
    settings = {
        "dropout": 0.0,
        "steps": uneven_steps(),
        "batch_tokens": 48 * buckets,
        "buckets": buckets,
    }
    assert fit(start(tmp_path / "one", **settings)) == "finished"
    done = tiny_run(processes, tmp_path / "many", **settings)
    assert done.returncode == 0, done.stderr
    assert close(losses(tmp_path / "many"), losses(tmp_path / "one"))
    for a, b in zip(
        load_model(tmp_path / "one" / "model")[0].parameters(),
        load_model(tmp_path / "many" / "model")[0].parameters(),
        strict=True,
    ):
        assert torch.allclose(a, b, atol=1e-4)
    more = settings | {"steps": settings["steps"] + 2}
    assert [fit(start(tmp_path / name, **more)) for name in ("one", "many")] == [
        "finished",
        "finished",
    ]
    assert losses(tmp_path / "many")[-1][2] == pytest.approx(
        losses(tmp_path / "one")[-1][2], rel=1e-4
    )


@pytest.mark.parametrize(
    ("processes", "accumulate"), [(2, 1), pytest.param(4, 2, marks=pytest.mark.slow)]
)
def test_a_run_goes_from_one_process_to_shards_and_back(
    tmp_path, processes, accumulate
):
    """Updates 1 to 8 by one process, to the last but four by shards of the model, the
    rest by one process again.
    """
    steps = uneven_steps()
    assert fit(start(tmp_path / "whole", dropout=0.0, steps=steps)) == "finished"
    assert fit(start(tmp_path / "moved", dropout=0.0, steps=8)) == "finished"
    done = tiny_run(
        processes,
        tmp_path / "moved",
        dropout=0.0,
        steps=steps - 4,
        sharded=True,
        accumulate=accumulate,
    )
    assert done.returncode == 0, done.stderr
    share = float(re.search(r"holds ([0-9.]+) of the model", done.stdout)[1])
    assert share == pytest.approx(1 / processes, rel=0.05)
    assert fit(start(tmp_path / "moved", dropout=0.0, steps=steps)) == "finished"
    found = [record for record in losses(tmp_path / "moved") if record[0] == "update"]
    assert close(
        found,
        [record for record in losses(tmp_path / "whole") if record[0] == "update"],
    )


@pytest.mark.slow
def test_shards_in_bfloat16_stay_near_one_process(tmp_path):
    settings = {"dropout": 0.0, "precision": "bf16"}
    assert fit(start(tmp_path / "one", **settings)) == "finished"
    assert tiny_run(2, tmp_path / "two", sharded=True, **settings).returncode == 0
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [record[2] for record in two] == pytest.approx(
        [record[2] for record in one], rel=1e-2
    )


@pytest.mark.slow
def test_accelerate_launches_the_same_command(train_command):
    """Its one way to start several processes on a machine has GPU in its name, and
    works without one.
    """
    launch = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--multi_gpu",
        "--num_processes",
        "2",
    ]
    launch += [
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
    ]
    launch += ["--main_process_port", str(free_port()), "-m"]
    command = [
        *launch,
        "annotated_transformer",
        *map(str, train_command),
        "--dry-run",
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "outcome: finished" in done.stdout and "device: 2 × cpu" in done.stdout


@pytest.mark.skipif(
    torch.accelerator.is_available(), reason="processes would share an accelerator"
)
def test_processes_find_each_other_without_being_told_of_the_cpu(train_command):
    """Or each would train alone, and all would write the same files."""
    command = [word for word in train_command if word not in ("--device", "cpu")]
    done = torchrun(2, "-m", "annotated_transformer", *command, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("device: 2 × cpu") == 1, done.stdout


# What fails


def error_of(text: str) -> str:
    """The one line in which the command line says what is wrong; fails when there are
    more or fewer.
    """
    found = [line for line in text.splitlines() if line.startswith("error: ")]
    assert len(found) == 1, text
    return found[0]


def test_when_one_rank_fails_all_end_and_one_line_says_why(tmp_path, train_command):
    began = time.monotonic()
    done = torchrun(2, HERE / "faulty_cli.py", "raise", 1, 6, *train_command)
    assert done.returncode != 0 and time.monotonic() - began < 200, (
        "far less than the timeout of 600"
    )
    assert re.match(
        r"error: rank 1 of 2 on \S+: RuntimeError: the cosmic ray$",
        error_of(done.stderr),
    )
    assert done.stderr.count("the cosmic ray") <= 3, (
        "the launcher's summary has the trace, and nobody else"
    )
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == [
        "step-00000004"
    ]


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


def test_when_all_ranks_refuse_the_first_one_speaks(tmp_path, train_command):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "cat.jpg").touch()
    done = torchrun(2, "-m", "annotated_transformer", *train_command)
    assert done.returncode != 0
    assert error_of(done.stderr).endswith(
        "run is not empty and holds no run: choose another folder"
    )
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["cat.jpg"]


@pytest.mark.slow
def test_a_rank_that_hangs_is_given_up(tmp_path, train_command):
    """Rank 1 sleeps; rank 0 waits for it as long as `timeout` says and no longer."""
    command = [
        HERE / "faulty_cli.py",
        "hang",
        1,
        6,
        *train_command,
        "--set",
        "timeout=5",
    ]
    began = time.monotonic()
    done = torchrun(2, *command, options=("--shutdown-timeout", "3"))
    assert done.returncode != 0 and time.monotonic() - began < 200
    assert re.match(
        r"error: rank 0 of 2 on \S+: waited in vain .*longer timeout$",
        error_of(done.stderr),
    )


# What goes on


def test_a_killed_worker_is_started_again_and_nothing_is_lost(tmp_path, train_command):
    """Rank 1 dies by SIGKILL before update 7; all start again from the checkpoint of
    update 4.
    """
    whole, run = tmp_path / "whole", tmp_path / "run"
    alone = subprocess.run(
        [
            sys.executable,
            "-m",
            "annotated_transformer",
            *map(str, train_command[:-1]),
            whole,
        ],
        capture_output=True,
        text=True,
        timeout=600,
        env=ENVIRONMENT,
        check=False,
    )
    assert alone.returncode == 0, alone.stderr
    done = torchrun(
        2,
        HERE / "faulty_cli.py",
        "kill",
        1,
        7,
        *train_command,
        options=("--max-restarts", "1"),
    )
    assert done.returncode == 0, done.stderr
    assert "step       6" in done.stdout and done.stdout.count("step       5") == 2, (
        "update 5 was made twice"
    )
    assert close(losses(run), losses(whole))


@pytest.mark.slow
def test_a_launcher_that_is_asked_to_end_leaves_a_checkpoint(tmp_path):
    """SIGTERM goes on to the workers, which save after the same update; the run goes on
    to the same losses.
    """
    assert fit(start(tmp_path / "whole", dropout=0.0)) == "finished"
    words = ["dropout=0.0", "save_every=12", "pause=1"]
    command = [
        *LAUNCHER,
        "--standalone",
        "--nproc-per-node",
        "2",
        str(HERE / "tiny_run.py"),
        str(tmp_path / "run"),
    ]
    process = subprocess.Popen(
        [*command, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    wait_for_lines(tmp_path / "run", 3, process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=200)
    (saved,) = (tmp_path / "run" / "checkpoints").iterdir()
    assert "step-00000003" <= saved.name < "step-00000012"
    assert fit(start(tmp_path / "run", dropout=0.0, save_every=12)) == "finished"
    updates = [
        [record for record in losses(tmp_path / name) if record[0] == "update"]
        for name in ("run", "whole")
    ]
    assert close(*updates)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["none", "kill"])
def test_two_nodes(tmp_path, train_command, fault):
    """Two launchers meet at an address, as on two machines; when a worker of one is
    killed, both start again.
    """
    options = [
        "--nnodes",
        "2",
        "--nproc-per-node",
        "1",
        "--rdzv-backend",
        "c10d",
        "--rdzv-id",
        "test",
    ]
    options += [
        "--rdzv-endpoint",
        f"localhost:{free_port()}",
        "--local-addr",
        "localhost",
        "--max-restarts",
        "1",
    ]
    command = [
        *LAUNCHER,
        *options,
        str(HERE / "faulty_cli.py"),
        fault,
        "1",
        "7" if fault == "kill" else "0",
    ]
    nodes = [
        subprocess.Popen(
            [*command, *map(str, train_command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        for _ in range(2)
    ]
    results = [node.communicate(timeout=300) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], results
    assert sum("finished at step 12" in out for out, _ in results) == 1
    assert [
        step for event, step, _ in losses(tmp_path / "run") if event == "update"
    ] == list(range(1, 13))
