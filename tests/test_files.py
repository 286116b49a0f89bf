"""Files and folders that are there whole or not at all."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from annotated_transformer.errors import UserError, nearest
from annotated_transformer.files import (
    new_folder,
    read_json,
    sweep,
    write_file,
    write_json,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_nearest_name_or_all_of_them():
    assert nearest("bas", ["base", "big"]) == "did you mean 'base'?"
    assert nearest("zzz", ["big", "base"]) == "choose one of: base, big"


def test_json_comes_back_and_its_damage_is_named(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"name": "März", "n": 1})
    assert read_json(path) == {"name": "März", "n": 1}
    for text, says in (("[1]", "no JSON object"), ("{", "can't be read")):
        path.write_text(text)
        with pytest.raises(UserError, match=says):
            read_json(path)


def test_a_folder_is_there_whole_or_not_at_all(tmp_path):
    final = tmp_path / "folder"
    final.mkdir()
    with new_folder(final, "test") as draft:
        (draft / "a").write_text("new")
        assert not names(final)
    assert names(final) == ["a", "manifest.json"]
    with pytest.raises(UserError, match="free some space"):
        with new_folder(tmp_path / "other", "test") as draft:
            (draft / "a").write_text("half")
            raise OSError(28, "No space left on device")
    assert names(tmp_path) == ["folder"]


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    final = tmp_path / "folder"
    final.mkdir()
    (final / "thesis.tex").write_text("all of it")
    for place in (final, final / "thesis.tex"):
        with pytest.raises(UserError, match="exists already: choose another folder"):
            with new_folder(place, "test"):
                pass
    assert names(final) == ["thesis.tex"] and names(tmp_path) == ["folder"]


@pytest.mark.parametrize("place", ["/", "folder"])
def test_what_is_deleted_was_made_here(tmp_path, monkeypatch, place):
    """Whatever goes wrong; the root has no name beside which a draft could stand."""
    (tmp_path / "folder").mkdir()
    before, deleted = set(tmp_path.rglob("*")), []
    monkeypatch.setattr(shutil, "rmtree", lambda path, **_: deleted.append(Path(path)))
    with pytest.raises(UserError):
        with new_folder(tmp_path / place, "test"):
            raise OSError(28, "No space left on device")
    assert not before & set(deleted)
    assert all(path.parent == tmp_path for path in deleted)


def test_nothing_is_written_through_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder-link").symlink_to(tmp_path / "real")
    (tmp_path / "file-link").symlink_to(tmp_path / "file")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    for link in ("file-link", "nowhere"):
        with pytest.raises(UserError, match=f"{link} is a link"):
            write_file(tmp_path / link, b"new")
    with pytest.raises(UserError, match="folder-link is a link"):
        with new_folder(tmp_path / "folder-link", "test"):
            pass
    assert (tmp_path / "file").read_text() == "old"
    assert not (tmp_path / "missing").exists() and not names(tmp_path / "real")
    write_file(tmp_path / "folder-link" / "a", b"in a folder that a link leads to")


def test_what_killed_processes_left_is_swept_up(tmp_path):
    for name in (".draft-a.01234567", ".draft-a.eins", ".hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / ".draft-run.json.0123abcd").touch()
    (tmp_path / ".draft-b.01234567").symlink_to(tmp_path / ".hidden")
    sweep(tmp_path)
    assert names(tmp_path) == [".draft-a.eins", ".draft-b.01234567", ".hidden"]


def test_two_writers_never_mix(tmp_path):
    texts = [b"a" * 100_000, b"b" * 100_000]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: write_file(tmp_path / "x", texts[i % 2]), range(40)))
    assert (tmp_path / "x").read_bytes() in texts
    assert names(tmp_path) == ["x"]


@pytest.mark.skipif(os.name != "posix", reason="devices are files on POSIX only")
def test_a_device_is_written_in_place():
    write_file(Path("/dev/null"), b"gone")
    assert not Path("/dev/null").is_file()


def test_write_whole_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="x can't be written: No space left on device"):
        write_file(path, b"new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_write_whole_keeps_permissions(tmp_path):
    path = tmp_path / "there"
    path.write_text("old")
    path.chmod(0o600)
    write_file(path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["there"]


def test_write_whole_names_a_place_that_cannot_be(tmp_path):
    (tmp_path / "x").touch()
    for name, words in (("x/y", "written"), ("x" * 300, "File name too long")):
        with pytest.raises(UserError, match=words):
            write_file(tmp_path / name, b"")
