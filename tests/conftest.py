"""What every test shares: shapes are checked at run time, and real corpora are used
where they are.
"""

import os
import sys
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import torch
from browser import CHROMIUM, PREFIX, Browser, Served
from jaxtyping import install_import_hook

# Every function of the package checks the shapes and types of its signature while the
# tests run.
# The hook must stand before the first import of the package.
hook = install_import_hook("annotated_transformer", "beartype.beartype")

# One thread: the tensors here are small, and a second thread only waits when the
# machine is busy.
torch.set_num_threads(1)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real corpora; a test that needs it is skipped without it."""
    folder = os.environ.get("ANNOTATED_TRANSFORMER_DATA")
    if not folder:
        pytest.skip(
            "needs the real corpora: set ANNOTATED_TRANSFORMER_DATA to their folder"
        )
    if not Path(folder).is_dir():
        pytest.skip(f"ANNOTATED_TRANSFORMER_DATA is {folder!r}, which is not a folder")
    return Path(folder)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The one window that all tests of pages share."""
    if not CHROMIUM:
        pytest.skip("no Chromium is installed")
    with Browser() as window:
        yield window


@pytest.fixture(scope="session")
def served() -> Iterator[str]:
    """The address of the built book on a server of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command line in this process: status, standard output and error."""
    from annotated_transformer import cli

    def call(*arguments):
        monkeypatch.setattr(
            sys, "argv", ["annotated-transformer", *map(str, arguments)]
        )
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def axe() -> str:
    """The script that finds faults of access."""
    script = ROOT / "tests" / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        pytest.skip("axe is not installed: run npm ci --prefix tests")
    return script.read_text(encoding="utf-8")
