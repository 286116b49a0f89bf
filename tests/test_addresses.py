"""The project's addresses stand in settings.ini, and one command writes the rest."""

import subprocess
from pathlib import Path

from tools.addresses import ROOT, rewrite, stored, wanted


def git(folder: Path, *words: str) -> bytes:
    """What Git prints in a folder."""
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True).stdout


def test_the_files_have_the_addresses_of_settings_ini():
    assert stored(ROOT) == wanted(ROOT)


def test_whoever_publishes_elsewhere_changes_settings_ini_alone(tmp_path):
    for name in git(ROOT, "grep", "-lIi", "annotated-transformer").decode().split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", ".")
    settings = tmp_path / "settings.ini"
    repository, book, name = wanted(ROOT)
    text = settings.read_text(encoding="utf-8")
    text = text.replace(repository, "https://code.example/team/transformer")
    text = text.replace(
        "https://annotated-transformer.github.io", "https://book.example"
    )
    settings.write_text(text.replace("= /annotated-transformer", "= /transformer"))
    assert {"README.md", "CITATION.cff", "book/_config.yml"} <= {*rewrite(tmp_path)}
    assert stored(tmp_path) == wanted(tmp_path)
    for old in (repository, book, name):
        left = git(tmp_path, "ls-files", "-z").decode().split("\0")
        assert not [
            each for each in left if each and old in (tmp_path / each).read_text()
        ]
    assert rewrite(tmp_path) == []
