"""Two processes under torchrun, on the CPU, give the losses of one."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_run import data, losses, start

from annotated_transformer.data.batching import token_batches
from annotated_transformer.training.checkpoint import load_model
from annotated_transformer.training.trainer import fit


def torchrun(folder: Path, processes: int, **settings: int | float | str) -> subprocess.CompletedProcess[str]:
    """A tiny run in several processes that meet on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    command += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
    command += [str(Path(__file__).with_name("tiny_run.py")), str(folder), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}, check=False)


def test_two_processes_log_the_losses_of_one_and_go_on(tmp_path):
    """Batches of uneven size, some of a single row, in two micro-batches each; then a resume."""
    train = data()[1]
    rows = {len(each) for each in token_batches(train.src_lengths, train.tgt_lengths, 48, 1, 0)}
    assert 1 in rows and any(number % 2 for number in rows if number > 1)
    steps = len(token_batches(train.src_lengths, train.tgt_lengths, 48, 1, 0))
    assert fit(start(tmp_path / "one", dropout=0.0, steps=steps)) == "finished"

    done = torchrun(tmp_path / "two", 2, dropout=0.0, steps=steps, accumulate=1)
    assert done.returncode == 0, done.stderr
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [record[:2] for record in one] == [record[:2] for record in two]
    assert [record[2] for record in two] == pytest.approx([record[2] for record in one], rel=1e-5)
    for a, b in zip(load_model(tmp_path / "one" / "model")[0].parameters(),
                    load_model(tmp_path / "two" / "model")[0].parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-4)

    # A run of two processes can be prolonged by one.
    assert fit(start(tmp_path / "two", dropout=0.0, steps=steps + 2)) == "finished"
    assert fit(start(tmp_path / "one", dropout=0.0, steps=steps + 2)) == "finished"
    assert losses(tmp_path / "two")[-1][2] == pytest.approx(losses(tmp_path / "one")[-1][2], rel=1e-4)


def test_when_one_process_fails_all_end_and_the_reason_is_shown(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    done = torchrun(tmp_path / "photos", 2)
    assert done.returncode != 0
    assert "photos is not empty and holds no run: choose another folder" in done.stderr
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]
