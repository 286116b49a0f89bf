"""The wheel: built of what is committed, and the same each time."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLANTED = ["planted.py", "planted.tsv", "models/mine/model.safetensors"]


@pytest.mark.slow
@pytest.mark.skipif(
    not (ROOT / ".git").exists() or not shutil.which("make"),
    reason="a wheel is made of a commit, by make",
)
def test_a_wheel_holds_what_is_committed_and_is_the_same_twice(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    for name in PLANTED:
        path = clone / "annotated_transformer" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("planted")
    hashes = set()
    for umask in (0o077, 0o022):
        subprocess.run(
            ["make", "wheel", "READY=", f"BIN={Path(sys.executable).parent}"],
            cwd=clone,
            check=True,
            capture_output=True,
            preexec_fn=lambda umask=umask: os.umask(umask),
        )
        (wheel,) = (clone / "dist").glob("*.whl")
        hashes.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert len(hashes) == 1
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "planted" in name or "mine" in name]
    committed = subprocess.run(
        ["git", "ls-files", "annotated_transformer"],
        cwd=clone,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert set(committed) <= set(names)
    assert any(name.endswith("licenses/LICENSE.unicode") for name in names)
