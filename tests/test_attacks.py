"""Folders that are laid out to harm whoever opens or writes them: no file of the user's
changes, and one line says what is wrong.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_run import refused, start, train_arguments, write_pairs

from annotated_transformer import UserError, load, verify
from annotated_transformer.after.forecasting import Scale
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.files import locked, read_card
from annotated_transformer.interop.marian_tokenizer import read_side
from annotated_transformer.interop.text_models import word_pieces
from annotated_transformer.model_names import MODELS
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.run import fit
from annotated_transformer.training.run_state import resume
from annotated_transformer.translation.prepared_data import prepare_data

SHIPPED = MODELS / "phrasebook-en-de"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="links need no rights here")


@pytest.fixture
def thesis(tmp_path) -> Path:
    """A file that has to stay as it is."""
    path = tmp_path / "thesis.tex"
    path.write_text("all of it\n")
    yield path
    assert path.read_text() == "all of it\n"


READERS = [
    ["translate", "hi", "-m"],
    ["score", "hi", "hallo", "-m"],
    ["attend", "hi", "-m"],
    ["info"],
    ["verify"],
]


@pytest.mark.parametrize("command", READERS, ids=lambda words: words[0])
def test_a_reader_neither_writes_nor_locks(command, tmp_path, thesis, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SHIPPED, tmp_path / "x" / "model")
    (tmp_path / "x" / "model" / ".lock").symlink_to(thesis)
    names = sorted((tmp_path / "x").rglob("*"))
    assert run(*command, tmp_path / "x" / "model")[0] == 0
    assert sorted((tmp_path / "x").rglob("*")) == names


def test_a_picture_is_drawn_through_no_link(tmp_path, thesis, run):
    fit(start(tmp_path / "run", steps=1))
    (tmp_path / "run" / "curves.png").symlink_to(thesis)
    refused(run("plot", tmp_path / "run"), "curves.png is a link")


FILES = [".lock", "log.jsonl", "run.json", "data", "checkpoints", "model"]


@pytest.mark.parametrize("name", FILES)
def test_a_run_writes_through_no_link(name, tmp_path, thesis):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(thesis)
    with pytest.raises(UserError, match=f"{name} is a link.*remove it"):
        fit(start(tmp_path / "run"))
    assert (tmp_path / "run" / name).is_symlink()


def test_the_data_of_a_run_are_written_through_no_link(tmp_path, thesis, run):
    small = "N=1 d_model=16 d_ff=32 h=2 d_k=8 d_v=8 vocab_size=200 steps=1"
    train = write_pairs(tmp_path)
    assert run(*train_arguments(train, tmp_path / "run", small))[0] == 0
    shutil.rmtree(tmp_path / "run" / "data" / "train")
    for name in ("recipe.json", "tokenizer.json", "manifest.json"):
        out = Path(shutil.copytree(tmp_path / "run", tmp_path / name))
        for each in {name, "text.json", "manifest.json"}:
            (out / "data" / each).unlink()
        (out / "data" / name).symlink_to(thesis)
        status, _, err = run(*train_arguments(train, out, small))
        assert status == 2 and name in err
        assert err.splitlines()[-1].startswith("error: ")


def test_a_lock_neither_follows_a_link_nor_empties_a_file(tmp_path, thesis):
    os.link(thesis, tmp_path / ".lock")
    with locked(tmp_path):
        pass
    (tmp_path / ".lock").unlink()
    (tmp_path / ".lock").symlink_to(thesis)
    with pytest.raises(UserError, match="is a link"), locked(tmp_path):
        pass


def test_hidden_files_behind_a_link_are_not_swept_away(tmp_path):
    (tmp_path / "home" / ".draft-x.01234567").mkdir(parents=True)
    (tmp_path / "home" / ".netrc").write_text("secret")
    fit(start(tmp_path / "run", steps=1))
    shutil.move(tmp_path / "run" / "checkpoints", tmp_path / "kept")
    (tmp_path / "run" / "checkpoints").symlink_to(tmp_path / "home")
    with pytest.raises(UserError, match="checkpoints is a link"):
        fit(start(tmp_path / "run", steps=1))
    names = sorted(path.name for path in (tmp_path / "home").iterdir())
    assert names == [".draft-x.01234567", ".netrc"]


def test_no_manifest_of_another_program_is_written(tmp_path, run):
    app = tmp_path / "run" / "web" / "manifest.json"
    app.parent.mkdir(parents=True)
    app.write_text(json.dumps({"name": "my app", "icons": []}))
    (tmp_path / "run" / "linked").symlink_to(app.parent)
    shutil.copytree(SHIPPED, tmp_path / "run" / "model")
    (tmp_path / "run" / "run.json").write_text("{}")
    before = app.read_bytes()
    assert run("verify", tmp_path / "run")[0] == 0
    refused(run("verify", app.parent), "another program's")
    assert run("verify", tmp_path / "run", "--accept")[0] == 2, "there is no such thing"
    assert app.read_bytes() == before


def test_an_interruption_between_two_models_costs_none(tmp_path, monkeypatch):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    fit(start(tmp_path / "run", steps=4))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("annotated_transformer.training.run.give_name", killed)
        fit(start(tmp_path / "run", steps=8))
    assert not (tmp_path / "run" / "model").exists()
    fit(start(tmp_path / "run", steps=8))
    fit(start(tmp_path / "other", steps=8))
    paths = [
        tmp_path / name / "model" / "model.safetensors" for name in ("run", "other")
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert not list((tmp_path / "run").glob(".draft*"))


# -- sizes and ids ---------------------------------------------------------------------


def resume_from(folder: Path) -> None:
    """Go on from the folder as a run's only checkpoint."""
    checkpoints = folder.parent / "run" / "checkpoints"
    checkpoints.mkdir(parents=True)
    folder.rename(checkpoints / "step-00000001")
    resume(start(checkpoints.parent))


READ = {
    "config.json": load,
    "text.json": load,
    "tokenizer.json": load,
    "manifest.json": verify,
    "card.md": lambda folder: read_card(folder),
    "pairs.json": TokenizedPairs.open,
    "run.json": lambda folder: fit(start(folder)),
    "scale.json": Scale.load,
    "progress.json": resume_from,
    "vocab.json": lambda folder: read_side(
        folder / "source.spm", folder / "vocab.json"
    ),
    "vocab.txt": lambda folder: word_pieces(folder, folder / "vocab.txt"),
}


@pytest.mark.parametrize("name", READ)
def test_a_file_of_three_gigabytes_is_refused_unread(name, tmp_path):
    folder = Path(shutil.copytree(SHIPPED, tmp_path / "model"))
    (folder / name).touch()
    os.truncate(folder / name, 3 * 2**30)  # of which the disk holds nothing
    with pytest.raises(UserError, match=f"{name} has over 134,217,728 bytes"):
        READ[name](folder)


LINKED = READ | {
    "model.safetensors": load,
    "model": load,
}


@pytest.mark.parametrize("name", LINKED)
def test_no_file_is_read_through_a_link_out_of_its_folder(name, tmp_path, thesis):
    folder = Path(shutil.copytree(SHIPPED, tmp_path / "model"))
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(thesis)
    with pytest.raises(UserError, match=f"{name} is a link"):
        LINKED[name](folder)


def test_a_card_carries_no_private_file_away(tmp_path, thesis, run):
    folder = Path(shutil.copytree(SHIPPED, tmp_path / "model"))
    (folder / "card.md").unlink(missing_ok=True)
    (folder / "card.md").symlink_to(thesis)
    for command in (["info", folder], ["average", folder, "-o", tmp_path / "out"]):
        refused(run(*command), "card.md is a link that leads out of its folder")
    assert not (tmp_path / "out").exists()


def test_the_cache_of_the_hub_has_links_and_opens(tmp_path, thesis):
    folder = tmp_path / "models--owner--name" / "snapshots" / "0123abcd"
    blobs = folder.parent.parent / "blobs"
    shutil.copytree(SHIPPED, blobs)
    folder.mkdir(parents=True)
    for path in blobs.iterdir():
        (folder / path.name).symlink_to(Path("../../blobs") / path.name)
    assert load(folder, device="cpu").translate("the twenty-first of March")
    (folder / "card.md").unlink(missing_ok=True)
    (folder / "card.md").symlink_to(thesis)
    with pytest.raises(UserError, match="card.md is a link"):
        load(folder)


@pytest.mark.parametrize("outside", [-1, 60_000])
def test_stored_tokens_outside_of_the_vocabulary_are_refused(outside, tmp_path):
    pairs, folder = [("ba du", "du ba")] * 9, tmp_path / "run" / "data"
    plan, given = recipe("phrasebook"), (folder, pairs, pairs)
    prepare_data(plan, *given)
    ids = np.fromfile(folder / "train" / "src.tokens", np.uint16).astype(np.int32)
    ids[3] = outside
    ids.tofile(folder / "train" / "src.tokens")
    path = folder / "train" / "pairs.json"
    path.write_text(path.read_text().replace("uint16", "int32", 1))
    with pytest.raises(UserError, match="train has tokens of another vocabulary"):
        prepare_data(plan, *given)


def test_a_run_starts_with_no_foreign_tokenizer(tmp_path):
    """A model that has one opens; training with it is refused."""
    pairs, folder = [("ba du", "du ba")] * 9, tmp_path / "run" / "data"
    prepare_data(recipe("phrasebook"), folder, pairs, pairs)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"post_processor": None}))
    with pytest.raises(UserError, match=r"tokenizer doesn't end a text with \[eos\]"):
        prepare_data(recipe("phrasebook"), folder, pairs, pairs)
