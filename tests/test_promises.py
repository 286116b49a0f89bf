"""What the page of promises says of folders: verified, bounded, one line."""

import io
import json
import os
import shutil
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from tiny_run import data, refused

from annotated_transformer import UserError, load, verify
from annotated_transformer.after.classifier_parts import ClassifierConfig
from annotated_transformer.after.text_classification import new_classifier
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.files import read_json
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.memory import check_memory
from annotated_transformer.model_names import MODELS, shipped

SHIPPED = MODELS / "phrasebook-en-de"
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
    place = MODELS / name
    names = {path.name for path in place.iterdir()}
    assert set(listed(place)["files"]) == names - {"manifest.json"}
    assert verify(place) == len(names) - 1


EDITS = {
    "one token": ("tokenizer.json", lambda d: d.update(truncation=ONE_TOKEN)),
    "dropout": ("tokenizer.json", lambda d: d["model"].update(dropout=0.5)),
    "no merges": ("tokenizer.json", lambda d: d["model"].update(merges=[])),
    "heads": ("config.json", lambda d: d.update(h=4, d_k=32, d_v=32)),
    "moses": ("text.json", lambda d: d.update(moses=True)),
}
ONE_TOKEN = {
    "direction": "Right",
    "max_length": 1,
    "strategy": "LongestFirst",
    "stride": 0,
}


@pytest.mark.parametrize("edit", ["one token", "dropout", "heads", "moses"])
def test_a_sound_file_that_was_edited_is_used_and_verify_names_it(folder, edit, run):
    name, change = EDITS[edit]
    edit_json(folder / name, change)
    load(folder, device="cpu")
    status, _, err = run("verify", folder)
    assert status == 2 and f"{name} is not the file that was written here" in err


def test_verify_finds_one_flipped_bit_anywhere_in_the_weights(folder):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 7):
        spoilt = bytearray(whole)
        spoilt[place] ^= 1
        path.write_bytes(spoilt)
        with pytest.raises(UserError, match="model.safetensors is not the file"):
            verify(folder)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "can't be read"),
        ("[1]", "no JSON object"),
        ('{"format": 1, "files": 7}', "is damaged"),
        ('{"format": 1, "files": {"../x": {}}}', "is damaged"),
        ('{"format": 1, "files": {"config.json": 7}}', "is not the file"),
        ('{"format": 2, "files": {}}', "a later version's"),
        ("[" * 100_000, "can't be read"),
    ],
    ids=lambda text: text[:12],
)
def test_verify_names_a_damaged_manifest_and_load_reads_none(folder, text, says):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=says):
        verify(folder)
    load(folder, device="cpu")
    (folder / "manifest.json").unlink()
    with pytest.raises(UserError, match="has no manifest.json"):
        verify(folder)
    load(folder, device="cpu")


def test_verify_checks_the_parts_of_a_run_and_no_other_folder(tmp_path, run):
    out = tmp_path / "run"
    for part in ("model", "checkpoints/step-00000004", "notes", ".draft-model.1"):
        shutil.copytree(SHIPPED, out / part)
    TokenizedPairs.build([("ba du", "du ba")] * 9, data()[0], out / "data" / "train")
    (out / "run.json").write_text("{}")
    for part in ("notes", ".draft-model.1"):
        (out / part / "text.json").unlink()
    assert run("verify", out)[:2] == (0, f"15 files of {out}: as they were written\n")
    (out / "data" / "train" / "src.tokens").unlink()
    refused(run("verify", out), "src.tokens is missing")
    assert run("verify", "tatoeba-en-de")[0] == 0
    refused(run("verify", tmp_path), "has no manifest.json: name a folder of this")


# -- folders of others -----------------------------------------------------------------


@pytest.mark.parametrize("edit", ["one token", "dropout"])
def test_a_tokenizer_that_cuts_or_draws_lots_does_neither_here(folder, edit):
    edit_json(folder / "tokenizer.json", EDITS[edit][1])
    changed = load(folder, device="cpu")
    expected = load("phrasebook-en-de", device="cpu").translate(PHRASE)
    assert [changed.translate(PHRASE) for _ in range(5)] == [expected] * 5


def test_a_tokenizer_without_its_merges_is_refused(folder):
    edit_json(folder / "tokenizer.json", EDITS["no merges"][1])
    with pytest.raises(UserError, match="tokenizer.json has no merges"):
        load(folder, device="cpu")


PANICS = {
    "a template": lambda d: d["post_processor"].update(special_tokens={}),
    "a prefix": lambda d: d["model"].update(continuing_subword_prefix="ääää"),
    "a table": lambda d: d.update(
        normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    ),
}


@pytest.mark.parametrize("panic", PANICS)
def test_a_tokenizer_that_panics_its_library_is_refused(folder, panic):
    edit_json(folder / "tokenizer.json", PANICS[panic])
    with pytest.raises(UserError, match="readable|is not read here"):
        load(folder, device="cpu")


@pytest.mark.parametrize("name", ["config.json", "text.json", "model.safetensors"])
def test_a_pipe_where_a_file_should_be_is_refused_at_once(folder, name, run):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    status, _, err = run("translate", "-m", folder, PHRASE)
    assert status == 2 and err.count("\n") == 1


def test_a_device_is_no_json_file(tmp_path):
    with pytest.raises(UserError, match="no regular file"):
        read_json(Path("/dev/zero"))


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "a\u202eb", "a\rb"])
def test_an_odd_name_neither_splits_nor_colours_the_line(tmp_path, name, run):
    (tmp_path / name).mkdir()
    status, _, err = run("translate", "-m", tmp_path / name, PHRASE)
    assert status == 2 and err.endswith("\n") and err[:-1].isprintable()


class Terminal(io.StringIO):
    """Somebody looks at it."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_no_control_characters(folder, run, monkeypatch):
    """A model's card has some, shown on a terminal and kept in a file."""
    odd, shown = "a\x1b[31mb\x9bc\u202ed", r"a\x1b[31mb\x9bc\u202ed"
    (folder / "card.md").write_text(f"# {odd}\n\ttwo\n", encoding="utf-8")
    assert f"# {odd}\n\ttwo\n" in run("info", folder)[1]
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    run("info", folder)
    assert f"# {shown}\n\ttwo\n" in terminal.getvalue()


def test_a_class_with_a_line_break_is_one_line(tmp_path, run):
    classes = ("good\nbad", "b\x1b[31m")
    sizes = dict(N=1, d_model=16, d_ff=16, h=2, vocab_size=50)
    config = ClassifierConfig(**sizes, classes=classes)
    model = new_classifier(["a text", "two"] * 9, config)
    model.save_pretrained(tmp_path / "model")
    out = run("classifier", "predict", tmp_path / "model", "a text")[1]
    assert out.count("\n") == 1 and out[:-1].replace("\t", " ").isprintable()
    assert "\x1b" not in repr(load(tmp_path / "model"))


# -- sizes -----------------------------------------------------------------------------

HUGE = [{"N": 2**31 - 1}, {"d_ff": 2**30, "N": 1}]


@pytest.mark.parametrize("sizes", HUGE, ids=str)
def test_a_model_that_has_no_room_is_refused_before_it_is_built(sizes, run, tmp_path):
    with pytest.raises(UserError, match="GB of memory"):
        check_memory(TransformerConfig(**sizes))
    words = [f"{name}={value}" for name, value in sizes.items()]
    settings = [word for each in words for word in ("--set", each)]
    out = tmp_path / "run"
    status, _, err = run("train", "phrasebook", *settings, "--out", out)
    assert status == 2 and "GB of memory" in err and not out.exists()


@pytest.mark.parametrize("name", ["transformer", "language-model"])
def test_layers_without_tensors_are_not_told_of(folder, run, name):
    sizes = {"N": 100_000, "d_model": 16, "h": 2, "vocab_size": 1_000}
    about = {"N": 100_000} if name == "transformer" else {"model_type": name} | sizes
    if name != "transformer":
        (folder / "config.json").write_text("{}")
    edit_json(folder / "config.json", lambda config: config.update(about))
    refused(run("info", folder), "layers and there are")


def test_a_sparse_file_of_a_terabyte_is_refused_unread(folder):
    path = folder / "model.safetensors"
    about = {"dtype": "F32", "shape": [2**38], "data_offsets": [0, 2**40]}
    header = json.dumps({"x": about}).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        try:
            file.truncate(8 + len(header) + 2**40)
        except OSError:
            pytest.skip("this file system has no such files")
    with pytest.raises(UserError, match="model.safetensors takes at least"):
        load(folder, device="cpu")


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


@pytest.mark.parametrize("change", ["batch mates", "eight threads"])
def test_what_batch_mates_and_threads_may_change(translator, pairs, alone, change):
    """Sums are added in another order: a token's log-probability by at most 1e-4."""
    sources, targets = map(list, zip(*pairs, strict=True))
    before = torch.get_num_threads()
    torch.set_num_threads(8 if change == "eight threads" else 1)
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
