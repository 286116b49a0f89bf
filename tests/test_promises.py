"""What the page of promises says of folders: held by a manifest, bounded, one line."""

import json
import os
import shutil
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from tiny_run import data

import annotated_transformer
from annotated_transformer import UserError, load, verify
from annotated_transformer.data.batching import TokenizedPairs
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.files import read_json
from annotated_transformer.loading import PRETRAINED, shipped
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.costs import check_room, least_parameters
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import load_model, save_model

SHIPPED = PRETRAINED / "phrasebook-en-de"
PHRASE = "the twenty-first of March"


@pytest.fixture
def folder(tmp_path) -> Path:
    return Path(shutil.copytree(SHIPPED, tmp_path / "model"))


def listed(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def edit_json(path: Path, change) -> None:
    about = json.loads(path.read_text())
    change(about)
    path.write_text(json.dumps(about))


# -- the manifest ----------------------------------------------------------------------


@pytest.mark.parametrize("name", shipped())
def test_what_comes_with_the_package_has_its_manifest(name):
    place = PRETRAINED / name
    names = {path.name for path in place.iterdir()}
    assert set(listed(place)["files"]) == names - {"manifest.json"}
    assert verify(place) == len(names) - 1


def test_a_manifest_says_what_made_the_folder(tmp_path):
    size = data()[0].src_vocab_size
    config = TransformerConfig(size, size, N=1, d_model=16, d_ff=8, h=2, d_k=8, d_v=8)
    save_model(tmp_path / "model", Transformer(config), data()[0])
    about = listed(tmp_path / "model")
    version = annotated_transformer.__version__
    assert about["format"] == 1
    assert about["made_by"] == f"annotated_transformer {version}, save_model"
    for name, each in about["files"].items():
        assert each["bytes"] == (tmp_path / "model" / name).stat().st_size


EDITS = {
    "one token": ("tokenizer.json", lambda d: d.update(truncation=ONE_TOKEN)),
    "dropout": ("tokenizer.json", lambda d: d["model"].update(dropout=0.5)),
    "no merges": ("tokenizer.json", lambda d: d["model"].update(merges=[])),
    "heads": ("config.json", lambda d: d["architecture"].update(h=4, d_k=32, d_v=32)),
    "moses": ("text.json", lambda d: d.update(moses=True)),
}
ONE_TOKEN = {
    "direction": "Right",
    "max_length": 1,
    "strategy": "LongestFirst",
    "stride": 0,
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_file_is_refused_by_name_until_it_is_accepted(folder, edit, run):
    name, change = EDITS[edit]
    edit_json(folder / name, change)
    for refused in (lambda: load(folder, device="cpu"), lambda: verify(folder)):
        with pytest.raises(UserError, match=f"{name} is not the file that was") as said:
            refused()
    command = str(said.value).split("annotated-transformer ")[1]
    assert run(*command.split())[0] == 0
    assert verify(folder) == 5
    if edit == "no merges":  # which no tokenizer of ours can be
        with pytest.raises(UserError, match="has no merges"):
            load(folder, device="cpu")
    else:
        load(folder, device="cpu")


def test_one_flipped_bit_anywhere_in_the_weights_is_found(folder):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 7):
        spoilt = bytearray(whole)
        spoilt[place] ^= 1
        path.write_bytes(spoilt)
        with pytest.raises(UserError, match="model.safetensors is not the file"):
            load(folder, device="cpu")


def test_a_folder_of_this_version_without_its_manifest_is_refused(folder):
    (folder / "manifest.json").unlink()
    with pytest.raises(UserError, match="manifest.json is missing"):
        load(folder, device="cpu")
    with pytest.raises(UserError, match="has no manifest.json"):
        verify(folder)
    assert verify(folder, accept=True) == 5 and load(folder, device="cpu")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is damaged"),
        ("[1]", "is damaged"),
        ('{"format": 1, "files": {}}', "is damaged"),
        ('{"format": 1, "files": {"config.json": {"bytes": "9"}}}', "is damaged"),
        ('{"format": 2, "files": {}}', "has format 2 and this version reads 1"),
        ("[" * 100_000, "is damaged"),
    ],
    ids=lambda text: text[:12],
)
def test_a_damaged_manifest_is_named(folder, text, says):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=f"manifest.json {says}"):
        load(folder, device="cpu")


def test_a_file_that_the_manifest_does_not_list_is_not_read(folder):
    edit_json(folder / "manifest.json", lambda about: about["files"].pop("text.json"))
    with pytest.raises(UserError, match="text.json is not in manifest.json"):
        load(folder, device="cpu")


def test_verify_goes_through_a_run_and_passes_drafts_by(tmp_path, run):
    shutil.copytree(SHIPPED, tmp_path / "run" / "model")
    shutil.copytree(SHIPPED, tmp_path / "run" / ".draft-model.1")
    TokenizedPairs.build(
        [("ba du", "du ba")] * 9, data()[0], tmp_path / "run" / "data" / "train"
    )
    (tmp_path / "run" / ".draft-model.1" / "text.json").unlink()
    status, out, _ = run("verify", tmp_path / "run")
    assert (status, out.split(":")[1].strip()) == (0, "as they were written")
    assert out.startswith("10 files")
    (tmp_path / "run" / "data" / "train" / "src.tokens").unlink()
    status, _, err = run("verify", tmp_path / "run")
    assert status == 2 and "src.tokens is missing" in err and err.count("\n") == 1
    assert run("verify", "tatoeba-en-de")[0] == 0
    status, _, err = run("verify", tmp_path)
    assert status == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("all of it")
    status, _, err = run("verify", tmp_path / "mine", "--accept")
    assert status == 2 and "no folder of this package" in err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


# -- folders of others -----------------------------------------------------------------


def old_tokenizer(folder: Path, change) -> Path:
    """A model folder of format 1, without a manifest, whose tokenizer is changed."""
    about = listed(folder)["files"]["model.safetensors"]["sha256"]
    (folder / "manifest.json").unlink()
    edit_json(
        folder / "config.json", lambda d: d.update(format=1, weights_sha256=about)
    )
    edit_json(folder / "tokenizer.json", change)
    return folder


@pytest.mark.parametrize("edit", ["one token", "dropout"])
def test_a_tokenizer_that_cuts_or_draws_lots_does_neither_here(folder, edit):
    changed = load(old_tokenizer(folder, EDITS[edit][1]), device="cpu")
    expected = load("phrasebook-en-de", device="cpu").translate(PHRASE)
    assert [changed.translate(PHRASE) for _ in range(5)] == [expected] * 5


def test_a_tokenizer_without_its_merges_is_refused(folder):
    with pytest.raises(UserError, match="tokenizer.json has no merges"):
        load(old_tokenizer(folder, EDITS["no merges"][1]), device="cpu")


PANICS = {
    "a template": lambda d: d["post_processor"].update(special_tokens={}),
    "a prefix": lambda d: d["model"].update(continuing_subword_prefix="ääää"),
    "a table": lambda d: d.update(
        normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    ),
}


@pytest.mark.parametrize("panic", PANICS)
def test_a_tokenizer_that_panics_its_library_is_one_line(folder, panic):
    old_tokenizer(folder, PANICS[panic])
    command = [sys.executable, "-m", "annotated_transformer", "translate", "-m"]
    done = subprocess.run([*command, folder, PHRASE], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "not a readable tokenizer" in done.stderr


@pytest.mark.parametrize("name", ["config.json", "text.json", "model.safetensors"])
def test_a_pipe_where_a_file_should_be_is_refused_at_once(folder, name, run):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    start = time.monotonic()
    status, _, err = run("translate", "-m", folder, PHRASE)
    assert status == 2 and err.count("\n") == 1 and time.monotonic() - start < 20


def test_a_device_is_no_json_file(tmp_path):
    (tmp_path / "config.json").symlink_to("/dev/zero")
    with pytest.raises(UserError, match="no regular file"):
        read_json(tmp_path / "config.json")


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "a\u202eb", "a\rb"])
def test_an_odd_name_neither_splits_nor_colours_the_line(tmp_path, name, run):
    (tmp_path / name).mkdir()
    status, _, err = run("translate", "-m", tmp_path / name, PHRASE)
    assert status == 2 and err.endswith("\n") and err[:-1].isprintable()


# -- sizes -----------------------------------------------------------------------------

HUGE = [{"N": 2**31 - 1}, {"d_model": 2**30}, {"d_ff": 2**30, "N": 1}]


@pytest.mark.parametrize("sizes", HUGE, ids=str)
def test_a_model_that_has_no_room_is_refused_before_it_is_built(sizes, run, tmp_path):
    start = time.process_time()
    with pytest.raises(UserError, match="GB of memory"):
        check_room(TransformerConfig(**sizes))
    assert time.process_time() - start < 1
    words = [f"{name}={value}" for name, value in sizes.items()]
    settings = [word for each in words for word in ("--set", each)]
    out = tmp_path / "run"
    status, _, err = run("train", "phrasebook", *settings, "--out", out)
    assert status == 2 and "GB of memory" in err and not out.exists()


def test_too_many_positions_are_refused():
    with pytest.raises(UserError, match="max_length is 20000000: .* below 1048576"):
        TransformerConfig(max_length=20_000_000)


def test_the_estimate_is_near_and_never_above_the_truth():
    config = TransformerConfig(100, 100, N=2, d_model=64, d_ff=256, h=4, d_k=16, d_v=16)
    assert least_parameters(config) == sum(
        p.numel() for p in Transformer(config).parameters()
    )
    for name in shipped():
        model = load_model(PRETRAINED / name)[0]
        assert least_parameters(model.config) == sum(
            p.numel() for p in model.parameters()
        )


def test_a_sparse_file_of_a_terabyte_is_refused_unread(folder):
    path = folder / "model.safetensors"
    header = json.dumps(
        {"x": {"dtype": "F32", "shape": [2**38], "data_offsets": [0, 2**40]}}
    ).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        try:
            file.truncate(8 + len(header) + 2**40)
        except OSError:
            pytest.skip("this file system has no such files")
    start = time.process_time()
    with pytest.raises(UserError, match="model.safetensors is not the file"):
        load(folder, device="cpu")
    assert time.process_time() - start < 1


# -- threads and batch mates -----------------------------------------------------------


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return phrasebook("en", "de", "test", 32)


@pytest.fixture(scope="module")
def translator():
    return load("phrasebook-en-de", device="cpu")


def test_eight_threads_on_one_translator_answer_as_one(translator, pairs):
    parts = [pairs[start::8] for start in range(8)]

    def answer(part):
        sources, targets = map(list, zip(*part, strict=True))
        scores = translator.score(sources, targets)
        return translator.translate(sources), [each.total for each in scores]

    one_by_one = [answer(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(answer, parts)) == one_by_one


@pytest.fixture(scope="module")
def alone(translator, pairs):
    """Each pair's score and each source's translation by itself, in one thread."""
    texts = [translator.translate(source) for source, _ in pairs]
    return [translator.score(*pair) for pair in pairs], texts


@pytest.mark.parametrize("change", ["batch mates", "two threads", "eight threads"])
def test_what_batch_mates_and_threads_may_change(translator, pairs, alone, change):
    """Sums are added in another order: a token's log-probability by at most 1e-4."""
    sources, targets = map(list, zip(*pairs, strict=True))
    before = torch.get_num_threads()
    torch.set_num_threads({"two threads": 2, "eight threads": 8}.get(change, 1))
    try:
        found, translated = translator.score(sources, targets), alone[1]
        if change == "batch mates":
            translated = translator.translate(sources)
    finally:
        torch.set_num_threads(before)
    for one, other in zip(alone[0], found, strict=True):
        both = one.token_log_probabilities, other.token_log_probabilities
        assert max(abs(a - b) for a, b in zip(*both, strict=True)) < 1e-4
    assert translated == alone[1]
