"""Files and folders that are there whole or not at all."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from annotated_transformer.errors import UserError, nearest
from annotated_transformer.files import (
    new_folder,
    read_json,
    remove_folder,
    whole_folder,
    write_json,
    write_whole,
)


def anything(folder: Path) -> bool:
    """As if each folder had been written here."""
    return True


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_nearest_name_or_all_of_them():
    assert nearest("bas", ["base", "big"]) == "did you mean 'base'?"
    assert nearest("zzz", ["big", "base"]) == "choose one of: base, big"


def test_json_comes_back(tmp_path):
    write_json(tmp_path / "a.json", {"name": "März", "n": 1})
    assert read_json(tmp_path / "a.json") == {"name": "März", "n": 1}
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    ("text", "says"), [("[1]", "no JSON object"), ("{", "can't be read")]
)
def test_json_that_is_damaged_or_no_object_is_named(tmp_path, text, says):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError, match=says):
        read_json(tmp_path / "a.json")


def test_a_run_where_a_model_was_meant_gets_a_hint(tmp_path):
    (tmp_path / "model").mkdir()
    with pytest.raises(UserError, match="did you mean .*model"):
        read_json(tmp_path / "config.json")


def test_a_folder_is_replaced_whole(tmp_path):
    final = tmp_path / "folder"
    for text in ("old", "new"):
        with whole_folder(final, anything, "test") as draft:
            (draft / "a").write_text(text)
            assert not (final / "a").exists() or (final / "a").read_text() == "old"
    assert (final / "a").read_text() == "new"
    assert names(tmp_path) == ["folder"]


def test_a_failure_leaves_the_old_folder_and_no_draft(tmp_path):
    final = tmp_path / "folder"
    final.mkdir()
    (final / "a").write_text("old")
    with pytest.raises(RuntimeError), whole_folder(final, anything, "test") as draft:
        (draft / "a").write_text("half")
        raise RuntimeError
    assert (final / "a").read_text() == "old"
    assert names(tmp_path) == ["folder"]


def test_a_full_disk_is_one_clear_error(tmp_path):
    with pytest.raises(UserError, match="free some space"):
        with whole_folder(tmp_path / "folder", anything, "test"):
            raise OSError(28, "No space left on device")
    assert names(tmp_path) == []


def test_a_foreign_folder_is_left_alone(tmp_path):
    final = tmp_path / "folder"
    final.mkdir()
    (final / "thesis.tex").write_text("all of it")
    with pytest.raises(UserError, match="holds other files"):
        with whole_folder(final, lambda folder: False, "test"):
            pass
    with pytest.raises(UserError, match="also holds thesis.tex"):
        with whole_folder(final, anything, "test") as draft:
            (draft / "a").write_text("new")
    with (
        pytest.raises(UserError, match="not an empty folder"),
        new_folder(final, "test"),
    ):
        pass
    assert names(final) == ["thesis.tex"]


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with whole_folder(tmp_path / "link", anything, "test") as draft:
        (draft / "a").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").read_text() == "new"


def test_a_removed_folder_is_gone(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_text("x")
    remove_folder(tmp_path / "folder")
    assert names(tmp_path) == []


def test_two_writers_never_mix(tmp_path):
    texts = [b"a" * 100_000, b"b" * 100_000]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: write_whole(tmp_path / "x", texts[i % 2]), range(40)))
    assert (tmp_path / "x").read_bytes() in texts
    assert names(tmp_path) == ["x"]


@pytest.mark.skipif(os.name != "posix", reason="devices are files on POSIX only")
def test_a_device_is_written_in_place():
    write_whole(Path("/dev/null"), b"gone")
    assert not Path("/dev/null").is_file()


def test_write_whole_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="x can't be written: No space left on device"):
        write_whole(path, b"new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_write_whole_keeps_links_and_permissions(tmp_path):
    kept = tmp_path / "there"
    kept.write_text("old")
    kept.chmod(0o600)
    (tmp_path / "link").symlink_to(kept)
    write_whole(tmp_path / "link", b"new")
    assert (
        (tmp_path / "link").is_symlink()
        and kept.read_bytes() == b"new"
        and kept.stat().st_mode & 0o777 == 0o600
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "there"]


def test_write_whole_names_a_directory_that_is_a_file(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(UserError, match="can't be written"):
        write_whole(tmp_path / "x" / "y", b"")


def test_write_whole_names_a_name_too_long_for_the_system(tmp_path):
    with pytest.raises(UserError, match="File name too long"):
        write_whole(tmp_path / ("x" * 300), b"")
