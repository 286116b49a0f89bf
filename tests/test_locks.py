"""One writer at a time: who comes second is told so at once, and a crash locks nobody
out.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tiny_run import refused, start, train_arguments, write_pairs

from annotated_transformer.errors import UserError
from annotated_transformer.files import locked
from annotated_transformer.training.run import fit

HOLD = """
import sys, time
from pathlib import Path
from annotated_transformer.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder():
    """Start processes that hold the lock of a folder, and end them."""
    started = []

    def hold(folder: Path) -> subprocess.Popen:
        command = [sys.executable, "-c", HOLD, str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path, holder):
    process = holder(tmp_path)
    with pytest.raises(UserError, match="in use by another.*wait"), locked(tmp_path):
        pass
    process.kill()
    process.wait()
    with locked(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_another_thread_is_another_writer(tmp_path):
    def try_it() -> bool:
        with locked(tmp_path):
            return True

    with ThreadPoolExecutor(1) as pool, locked(tmp_path):
        assert try_it(), "the same thread may"
        with pytest.raises(UserError, match="in use by another"):
            pool.submit(try_it).result()
    assert try_it()


def test_a_second_trainer_in_one_folder_is_refused(tmp_path, holder, run):
    process = holder(tmp_path / "run")
    with pytest.raises(UserError, match="run is in use by another process"):
        fit(start(tmp_path / "run"))
    command = train_arguments(write_pairs(tmp_path), tmp_path / "run", "steps=2")
    refused(run(*command), f"{tmp_path / 'run'} is in use by another process")
    process.kill()
    process.wait()
    assert fit(start(tmp_path / "run")) == "finished"
