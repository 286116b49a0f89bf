"""One writer at a time: who comes second is told so at once, and a crash locks nobody
out.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tiny_run import data, start, train_arguments

from annotated_transformer import locks
from annotated_transformer.engine.runs import fit
from annotated_transformer.errors import UserError
from annotated_transformer.files import claimed, whole_folder
from annotated_transformer.locks import in_use
from annotated_transformer.training.checkpoint import save_model

pytestmark = pytest.mark.skipif(locks.fcntl is None, reason="there is no flock")
HOLD = """
import sys, time
from pathlib import Path
from annotated_transformer.locks import in_use
folder = Path(sys.argv[1])
with in_use(folder, folder / ".lock" if sys.argv[2] == "inside" else None):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder():
    """Start processes that hold the lock of a folder, and end them."""
    started = []

    def hold(folder: Path, place: str = "beside") -> subprocess.Popen:
        command = [sys.executable, "-c", HOLD, str(folder), place]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_the_second_is_told_who_is_first(tmp_path, holder):
    process = holder(tmp_path / "model")
    host = re.escape(os.uname().nodename)
    words = rf"model is in use by process {process.pid} \(on {host} since 20..-..-.. "
    with pytest.raises(UserError, match=words), in_use(tmp_path / "model"):
        pass


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path, holder):
    process = holder(tmp_path / "model")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / ".lock-model").exists(), "the file is left, and locks nobody out"
    with in_use(tmp_path / "model"):
        assert json.loads((tmp_path / ".lock-model").read_text())["process"] == (
            os.getpid()
        )
    assert not list(tmp_path.iterdir())


def test_another_thread_is_another_writer(tmp_path):
    def try_it() -> bool:
        with in_use(tmp_path / "model"):
            return True

    with ThreadPoolExecutor(1) as pool, in_use(tmp_path / "model"):
        assert try_it(), "the same thread may"
        with pytest.raises(UserError, match=f"in use by process {os.getpid()}"):
            pool.submit(try_it).result()
    assert try_it()


def test_one_that_waits_gets_the_lock_at_last(tmp_path):
    events = []

    def wait() -> None:
        with in_use(tmp_path / "model", wait=True):
            events.append("second")

    with ThreadPoolExecutor(1) as pool:
        with in_use(tmp_path / "model"):
            waiting = pool.submit(wait)
            time.sleep(0.1)
            events.append("first")
        waiting.result(timeout=10)
    assert events == ["first", "second"] and not list(tmp_path.iterdir())


def test_many_take_turns(tmp_path):
    inside = []

    def enter(_: int) -> None:
        with in_use(tmp_path / "model", wait=True):
            inside.append(1)
            assert len(inside) == 1
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(200)))


def test_a_file_that_says_nothing_still_locks(tmp_path, holder):
    holder(tmp_path / "model")
    for text in ("", "[1]", '{"process": 1}', "\x00"):
        (tmp_path / ".lock-model").write_text(text)
        with pytest.raises(UserError, match="in use by another process: wait"):
            with in_use(tmp_path / "model"):
                pass


def test_where_the_file_system_keeps_no_locks_there_is_a_warning(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(locks.fcntl, "flock", none)
    with pytest.warns(UserWarning, match="keeps no locks"), in_use(tmp_path / "model"):
        pass
    monkeypatch.setattr(locks, "fcntl", None)
    with warnings.catch_warnings(action="error"), in_use(tmp_path / "model"):
        assert not list(tmp_path.iterdir())


def test_a_clock_that_jumps_does_not_matter(tmp_path, monkeypatch):
    with in_use(tmp_path / "model"):
        monkeypatch.setattr(time, "time", lambda: -1e9)
        with in_use(tmp_path / "model"):
            pass
    with in_use(tmp_path / "model"):
        pass


def test_a_folder_that_another_writes_is_neither_replaced_nor_swept(tmp_path, holder):
    model = start(tmp_path / "unused").model
    save_model(tmp_path / "model", model, data()[0])
    holder(tmp_path / "model")
    (tmp_path / ".draft-model.0123abcd").mkdir()
    with pytest.raises(UserError, match="in use by process"):
        save_model(tmp_path / "model", model, data()[0])
    with pytest.raises(UserError, match="in use"), claimed(tmp_path / "model"):
        pass
    assert (tmp_path / ".draft-model.0123abcd").exists()
    with whole_folder(tmp_path / "other", lambda _: True, "test"):
        pass


def test_a_second_trainer_in_one_folder_is_refused(tmp_path, holder):
    process = holder(tmp_path / "run", "inside")
    with pytest.raises(UserError, match=f"run is in use by process {process.pid} "):
        fit(start(tmp_path / "run"))
    process.kill()
    process.wait()
    assert fit(start(tmp_path / "run")) == "finished"
    assert not list((tmp_path / "run").glob("**/.*"))


def write_pairs(folder: Path) -> None:
    for name in ("train", "valid"):
        for side in ("en", "de"):
            (folder / f"{name}.{side}").write_text("one two three\n" * 50)


def test_each_command_that_writes_refuses_a_folder_in_use(run, tmp_path, holder):
    out, series = tmp_path / "out", tmp_path / "series.csv"
    write_pairs(tmp_path)
    model = tmp_path / "model"
    save_model(model, start(tmp_path / "unused").model, data()[0])
    text = "date,OT\n" + "".join(f"{day},{day % 7}\n" for day in range(400))
    series.write_text(text)
    (tmp_path / "text.txt").write_text("to be or not to be, that is it. " * 100)
    examples = [f"{each % 2}\tone two {each}\n" for each in range(50)]
    (tmp_path / "classes.tsv").write_text("".join(examples))
    commands = [
        ["average", model, "--out", out],
        ["export", "marian", out, "--model", model],
        ["export", "ctranslate2", out, "--model", model],
        ["series", "train", out, "--data", series, "--context", 14, "--patch", 7]
        + ["--horizon", 7, "--steps", 1],
        ["language-model", "train", out, "--text", tmp_path / "text.txt"],
        ["classifier", "train", out, "--data", tmp_path / "classes.tsv"],
    ]
    first = holder(out)
    for command in commands:
        code, shown, error = run(*command)
        said = f"error: {out} is in use by process {first.pid} (on "
        assert code == 2 and error.splitlines()[-1].startswith(said), (command, error)
    holder(out, "inside")
    small = "N=1 d_model=16 d_ff=32 h=2 d_k=8 d_v=8 vocab_size=50 steps=2"
    code, _, error = run(*train_arguments(tmp_path, out, small))
    assert code == 2 and f"{out} is in use by process" in error
    assert sorted(path.name for path in out.iterdir()) == [".lock"]


def test_a_row_of_table_3_is_trained_by_one_process(run, tmp_path, monkeypatch, holder):
    monkeypatch.chdir(tmp_path)
    first = holder(tmp_path / "runs/table3/base-1", "inside")
    code, _, error = run("reproduce", "table3", "base")
    said = f"error: runs/table3/base-1 is in use by process {first.pid} (on "
    assert code == 2 and error.startswith(said)
