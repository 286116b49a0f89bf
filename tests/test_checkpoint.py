"""Checkpoints: whole or not at all, every damage told by name, averages exact."""

import inspect
import json
import math
import os
import resource
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_run import data

from annotated_transformer import files, load
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.errors import UserError
from annotated_transformer.files import sha256_of, verify, whole_folder, write_manifest
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training import checkpoint
from annotated_transformer.training.checkpoint import (
    average_checkpoints,
    average_weights,
    load_checkpoint,
    load_model,
    save_checkpoint,
    save_model,
)
from annotated_transformer.training.schedule import adam


def new_model(seed=0, **changes):
    torch.manual_seed(seed)
    size = data()[0].src_vocab_size
    return Transformer(
        replace(
            TransformerConfig(size, size, N=1, d_model=16, d_ff=32, h=2, d_k=8, d_v=8),
            **changes,
        )
    )


def same(a, b):
    return all(
        torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True)
    )


def trained(seed=0):
    """A model and its Adam after one update."""
    model = new_model(seed)
    optimizer = adam(model)
    optimizer.param_groups[0]["lr"] = 0.01
    model(torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]])).square().sum().backward()
    optimizer.step()
    return model, optimizer


@pytest.fixture
def folder(tmp_path) -> Path:
    save_model(tmp_path / "model", new_model(), data()[0])
    return tmp_path / "model"


def test_what_is_saved_comes_back(folder):
    model, tokenizer = load_model(folder)
    assert same(model, new_model()) and not model.training
    assert tokenizer.encode_source(["ba du"]) == data()[0].encode_source(["ba du"])
    assert model.src_embedding.weight is model.tgt_embedding.weight
    names = sorted(path.name for path in folder.iterdir())
    others = ["manifest.json", "model.safetensors", "text.json", "tokenizer.json"]
    assert names == ["config.json", *others]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_separate_embeddings_stay_separate(tmp_path):
    size = data()[0].src_vocab_size
    save_model(
        tmp_path / "m", new_model(shared_vocab=False, tgt_vocab_size=size), data()[0]
    )
    model, _ = load_model(tmp_path / "m")
    assert model.src_embedding.weight is not model.tgt_embedding.weight
    assert not torch.equal(model.src_embedding.weight, model.tgt_embedding.weight)


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-50] ^= 1
    path.write_bytes(content)


def edit(path, **changes):
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | changes))


def edit_architecture(path, **changes):
    about = json.loads(path.read_text())
    path.write_text(
        json.dumps(about | {"architecture": about["architecture"] | changes})
    )


def poison(folder, value):
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights[sorted(weights)[-1]].flatten()[3] = value
    save_file(weights, path)


def move_last_id(path):
    about = json.loads(path.read_text())
    vocabulary = about["model"]["vocab"]
    vocabulary[max(vocabulary, key=vocabulary.get)] = 5_000
    path.write_text(json.dumps(about))


def weights_fault(change):
    return lambda folder: change(folder / "model.safetensors")


def config_fault(text):
    return lambda folder: (folder / "config.json").write_bytes(text.encode("latin-1"))


def other_architecture(**changes):
    return lambda folder: edit_architecture(folder / "config.json", **changes)


NEWER = "format 3 and this version reads 2"
FAULTS = {
    "no weights": (weights_fault(Path.unlink), "model.safetensors is missing"),
    "no config": (lambda f: (f / "config.json").unlink(), "config.json is missing"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json"),
    "truncated": (weights_fault(cut), "is damaged"),
    "empty": (weights_fault(lambda path: path.write_bytes(b"")), "is damaged"),
    "not a number": (lambda f: poison(f, math.nan), "no finite numbers"),
    "infinite": (lambda f: poison(f, -math.inf), "no finite numbers"),
    "config cut": (lambda f: cut(f / "config.json"), "can't be read"),
    "config not UTF-8": (config_fault("\xff\xfe"), "can't be read"),
    "config a list": (config_fault("[]"), "holds no JSON object"),
    "foreign": (config_fault('{"model_type": "bart"}'), "annotated-transformer import"),
    "newer": (lambda f: edit(f / "config.json", format=3), NEWER),
    "newer, of other fields": (config_fault('{"format": 3, "model": {}}'), NEWER),
    "without architecture": (config_fault('{"format": 1}'), "names no architecture"),
    "an id too large": (
        lambda f: move_last_id(f / "tokenizer.json"),
        "not those from 0",
    ),
    "more layers": (other_architecture(N=2), "another architecture"),
    "wider": (other_architecture(d_ff=64), "has shape"),
    "misspelt": (other_architecture(drop_out=0), "did you mean 'dropout'"),
    "out of range": (other_architecture(dropout=2.0), "dropout is 2"),
    "other vocabulary": (
        other_architecture(src_vocab_size=99, tgt_vocab_size=99),
        "don't belong together",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named(folder, fault):
    spoil, message = FAULTS[fault]
    spoil(folder)
    write_manifest(folder, "test")  # as if all of it had been written so
    with pytest.raises(ValueError, match=message) as caught:
        load_model(folder)
    assert str(folder) in str(caught.value)


def older(folder):
    """Make a folder one of format 1, which had the hashes in its other files."""
    (folder / "manifest.json").unlink()
    sha256 = sha256_of(folder / "model.safetensors")
    edit(folder / "config.json", format=1, weights_sha256=sha256)
    if (folder / "progress.json").exists():
        sha256 = sha256_of(folder / "optimizer.safetensors")
        edit(folder / "progress.json", optimizer_sha256=sha256)


def test_a_folder_of_format_1_is_read_and_its_weights_are_held(folder):
    older(folder)
    assert same(load_model(folder)[0], new_model())
    flip(folder / "model.safetensors")
    with pytest.raises(UserError, match="not the file that was saved here"):
        load_model(folder)


def test_a_checkpoint_of_format_1_is_read_and_held(tmp_path):
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, data()[0], optimizer, {"step": 1})
    older(tmp_path / "c")
    assert load_checkpoint(tmp_path / "c", model, optimizer) == {"step": 1}
    flip(tmp_path / "c" / "optimizer.safetensors")
    with pytest.raises(UserError, match="not the file that was saved here"):
        load_checkpoint(tmp_path / "c", model, optimizer)


ODD = [torch.float8_e4m3fn, torch.bool, torch.int64, torch.complex64]


@pytest.mark.parametrize("kind", ODD, ids=str)
def test_weights_of_odd_types_are_refused(folder, kind):
    path = folder / "model.safetensors"
    weights = load_file(path)
    name = sorted(weights)[0]
    save_file(weights | {name: weights[name].to(kind)}, path)
    verify(folder, accept=True)
    with pytest.raises(UserError, match=f"{name}' is of type {kind}"):
        load_model(folder)


def test_a_header_cannot_promise_more_than_the_file_holds(folder):
    """So weights never take more memory than their file has bytes."""
    path = folder / "model.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["decoder.layers.0.feed_forward.W_1.bias"] = {
        "dtype": "F32",
        "shape": [2**40],
        "data_offsets": [0, 2**42],
    }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    verify(folder, accept=True)
    with pytest.raises(UserError, match="is damaged"):
        load_model(folder)


@pytest.mark.parametrize(
    "sizes",
    [{"N": 10**7}, {"d_model": 2**30}, {"d_ff": 2**30}, {"N": 2**31 - 1}],
    ids=str,
)
def test_sizes_that_no_machine_has_are_refused_at_once(folder, sizes):
    edit_architecture(folder / "config.json", **sizes)
    verify(folder, accept=True)
    start = time.process_time()
    with pytest.raises(UserError, match="don't belong together"):
        load_model(folder)
    assert time.process_time() - start < 1


def test_what_the_new_folder_would_not_have_is_not_deleted(folder):
    (folder / "notes.md").write_text("mine")
    with pytest.raises(ValueError, match="also holds notes.md: move that away"):
        save_model(folder, new_model(), data()[0])
    assert (folder / "notes.md").read_text() == "mine" and load_model(folder)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_model_does_not_replace_a_checkpoint(tmp_path):
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, data()[0], optimizer, {"step": 1})
    with pytest.raises(
        ValueError, match="also holds optimizer.safetensors, progress.json"
    ):
        save_model(tmp_path / "c", model, data()[0])
    assert load_checkpoint(tmp_path / "c", model, optimizer) == {"step": 1}


def test_a_run_given_for_a_model_gets_a_hint(folder):
    with pytest.raises(ValueError, match=f"did you mean {folder}"):
        load_model(folder.parent)


DAMAGE = [
    ("optimizer.safetensors", cut, "not the file"),
    ("optimizer.safetensors", flip, "not the file"),
    ("optimizer.safetensors", Path.unlink, "is missing"),
    ("progress.json", cut, "not the file"),
    ("progress.json", Path.unlink, "is missing"),
    ("model.safetensors", flip, "not the file"),
]


@pytest.mark.parametrize(("name", "spoil", "message"), DAMAGE)
def test_a_damaged_checkpoint_is_refused_before_anything_is_filled(
    tmp_path, name, spoil, message
):
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, data()[0], optimizer, {"step": 1})
    spoil(tmp_path / "c" / name)
    other = new_model(5)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(tmp_path / "c", other, adam(other))
    assert same(other, new_model(5))


@pytest.mark.parametrize("step", [{}, "relu", None, -1, 10**400, 1.5])
def test_a_step_that_is_no_number_is_refused(tmp_path, step):
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, data()[0], optimizer, {"step": 1})
    edit(tmp_path / "c" / "progress.json", step=step)
    verify(tmp_path / "c", accept=True)
    with pytest.raises(UserError, match="step is .*, and no number"):
        load_checkpoint(tmp_path / "c", model, optimizer)


def test_averages_of_another_shape_are_refused(tmp_path):
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, data()[0], optimizer, {"step": 1})
    path = tmp_path / "c" / "optimizer.safetensors"
    moments = load_file(path)
    name = sorted(moments)[0]
    save_file(moments | {name: torch.zeros(3)}, path)
    verify(tmp_path / "c", accept=True)
    with pytest.raises(UserError, match=f"{name} has shape"):
        load_checkpoint(tmp_path / "c", model, optimizer)


def test_a_checkpoint_brings_back_adam(tmp_path):
    model, optimizer = trained()
    save_checkpoint(
        tmp_path / "c", model, data()[0], optimizer, {"step": 1, "epoch": 3}
    )
    other = new_model(5)
    restored = adam(other)
    assert load_checkpoint(tmp_path / "c", other, restored) == {"step": 1, "epoch": 3}
    assert same(model, other)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        for name in ("step", "exp_avg", "exp_avg_sq"):
            assert torch.equal(optimizer.state[a][name], restored.state[b][name])


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_a_model_is_loaded_in_float32_whatever_the_default(folder, kind):
    expected = load_model(folder)[0]
    torch.set_default_dtype(kind)
    try:
        loaded = load_model(folder)[0]
    finally:
        torch.set_default_dtype(torch.float32)
    assert {parameter.dtype for parameter in loaded.parameters()} == {
        torch.float32
    } and same(loaded, expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_could_not_be_loaded_again_is_not_saved(tmp_path):
    model, tokenizer = new_model(1), data()[0]
    inspect.unwrap(save_model)(tmp_path / "compiled", torch.compile(model), tokenizer)
    assert same(load_model(tmp_path / "compiled")[0], model)
    with pytest.raises(ValueError, match="dtype is torch.int8"):
        save_model(tmp_path / "m", model, tokenizer, torch.int8)
    with torch.no_grad():
        next(model.parameters())[0, 0] = 1e5
    with pytest.raises(ValueError, match="too large for torch.float16"):
        save_model(tmp_path / "m", model, tokenizer, torch.float16)
    assert not (tmp_path / "m").exists()


def test_a_checkpoint_that_lacks_something_is_refused_before_anything_is_filled(
    tmp_path,
):
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, data()[0], optimizer, {"epoch": 3})
    other = new_model(5)
    with pytest.raises(ValueError, match="lacks step"):
        load_checkpoint(tmp_path / "c", other, adam(other))
    model.extra = torch.nn.Parameter(torch.zeros(1))
    with pytest.raises(ValueError, match="lacks exp_avg/extra"):
        load_checkpoint(tmp_path / "c", model, optimizer)
    assert same(other, new_model(5))


@pytest.mark.parametrize("failing_call", [1, 2])
def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch, failing_call):
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, data()[0], optimizer, {"step": 1})
    calls, real = [], checkpoint.save_file
    newer_model, newer_optimizer = trained(1)
    newer = (newer_model, data()[0], newer_optimizer)

    def full(*args):
        calls.append(1)
        if len(calls) == failing_call:
            Path(args[1]).write_bytes(b"half")
            raise OSError(28, "No space left on device")
        real(*args)

    monkeypatch.setattr(checkpoint, "save_file", full)
    for name in ("c", "d"):
        calls.clear()
        with pytest.raises(
            ValueError, match="No space left on device.*free some space"
        ):
            save_checkpoint(tmp_path / name, *newer, {"step": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    other = new_model(5)
    assert load_checkpoint(tmp_path / "c", other, adam(other)) == {"step": 1} and same(
        other, model
    )


def test_a_write_that_the_system_refuses(folder):
    """A limit on the size of files makes real writes fail, in safetensors' own code
    too.
    """
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, limits[1]))
    try:
        with pytest.raises(ValueError, match="can't be written"):
            save_model(folder, new_model(1), data()[0])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ValueError, match="can't be written"):
        save_model(tmp_path / "file" / "model", new_model(), data()[0])
    with pytest.raises(ValueError, match="can't be written"):
        save_model("/proc/model", new_model(), data()[0])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("novel.txt", "chapter one"),
        ("config.json", '{"model_type": "marian"}'),
        ("config.json", "[1, 2]"),
        ("config.json", "no JSON"),
    ],
)
def test_a_folder_of_something_else_is_never_replaced(tmp_path, name, text):
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / name).write_text(text)
    with pytest.raises(ValueError, match="holds other files"):
        save_model(tmp_path / "documents", new_model(), data()[0])
    assert (tmp_path / "documents" / name).read_text() == text


def test_what_a_killed_process_left_is_swept_up_by_the_next(folder):
    for name in (".draft-model.0123abcd", ".old-model", ".draft-model.eins"):
        shutil.copytree(folder, folder.with_name(name))
    folder.with_name(".lock-model").write_text("{}")
    save_model(folder, new_model(1), data()[0])
    assert same(load_model(folder)[0], new_model(1))
    names = {path.name for path in folder.parent.iterdir()}
    assert names == {"model", ".draft-model.eins"}, "the last is somebody else's"


def test_what_was_there_before_a_kill_between_two_renames_comes_back(folder):
    aside = folder.with_name(".old-model")
    folder.rename(aside)
    assert same(load_model(folder)[0], new_model(0)) and not aside.exists()
    folder.rename(aside)
    written = checkpoint.written_here
    with pytest.raises(RuntimeError), whole_folder(folder, written, "test"):
        raise RuntimeError
    assert same(load_model(folder)[0], new_model(0)) and not aside.exists()
    folder.rename(aside)
    load(folder, device="cpu")
    folder.rename(aside)
    load(folder.parent, device="cpu")  # a run, whose model this may be
    assert not aside.exists()


def test_a_model_in_a_place_that_is_read_only_is_not_put_right(folder, monkeypatch):
    folder.rename(folder.with_name(".old-model"))
    real = os.open

    def refuse(path, *arguments):
        if str(path).endswith(".lock-model"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ValueError, match="rename .*.old-model to .*model"):
        load_model(folder)


def test_the_files_of_a_model_are_as_readable_as_its_folder(tmp_path):
    before = os.umask(0o027)
    try:
        save_model(tmp_path / "model", new_model(), data()[0])
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()} == {
        0o640
    }


def test_two_who_save_to_one_place_write_no_mixture(folder):
    with whole_folder(folder, checkpoint.written_here, "test") as first:
        checkpoint.write_model(
            first, dict(new_model(1).named_parameters()), new_model(1).config, data()[0]
        )
        save_model(folder, new_model(2), data()[0])
        assert same(load_model(folder)[0], new_model(2))
    assert same(load_model(folder)[0], new_model(1)) and [
        path.name for path in folder.parent.iterdir()
    ] == ["model"]


def test_a_link_stays_a_link(tmp_path, monkeypatch):
    (tmp_path / "big").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "big")
    for seed in (0, 1):
        save_model(tmp_path / "link", new_model(seed), data()[0])
    assert (tmp_path / "link").is_symlink() and same(
        load_model(tmp_path / "big")[0], new_model(1)
    )
    monkeypatch.chdir(tmp_path / "big")
    save_model(".", new_model(2), data()[0])
    assert same(load_model(tmp_path / "link")[0], new_model(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big", "link"]


def test_the_old_model_comes_back_when_the_new_one_cannot_take_its_place(
    folder, monkeypatch
):
    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files.os, "replace", refuse)
    with pytest.raises(ValueError, match="Input/output error"):
        save_model(folder, new_model(1), data()[0])
    assert same(load_model(folder)[0], new_model()) and [
        path.name for path in folder.parent.iterdir()
    ] == ["model"]


def test_only_whole_names_are_checkpoints(tmp_path):
    for name in (
        "step-00000004",
        "step-00000004-backup",
        "step-100000000",
        "step-00000012",
        "step-x",
    ):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    found = [path.name for path in checkpoint.checkpoints(tmp_path)]
    assert found == ["step-00000004", "step-00000012", "step-100000000"]


def test_a_resumed_run_does_not_hold_on_to_the_file(tmp_path):
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, data()[0], optimizer, {"step": 1})
    other = new_model(5)
    restored = adam(other)
    load_checkpoint(tmp_path / "c", other, restored)
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("needs Linux's list of mapped files")
    assert str(tmp_path) not in maps.read_text() and restored.state


def test_averages_are_exact_and_ties_are_kept(tmp_path):
    models = [new_model(seed) for seed in range(3)]
    folders = [tmp_path / str(seed) for seed in range(3)]
    for path, model in zip(folders, models, strict=True):
        save_model(path, model, data()[0])
    average_checkpoints(folders, tmp_path / "mean")
    mean, _ = load_model(tmp_path / "mean")
    for middle, *parts in zip(*(m.parameters() for m in (mean, *models)), strict=True):
        assert torch.equal(middle, torch.stack(parts).double().mean(0).float())
    assert mean.src_embedding.weight is mean.tgt_embedding.weight
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            average_weights([folders[0]] * 3).values(),
            average_weights(folders[:1]).values(),
            strict=True,
        )
    )


@pytest.mark.parametrize(
    "change", [{"N": 2}, {"h": 1, "d_k": 16, "d_v": 16}, {"dropout": 0.5}]
)
def test_what_does_not_belong_together_is_not_averaged(folder, change):
    save_model(folder.with_name("other"), new_model(**change), data()[0])
    with pytest.raises(ValueError, match="can't be averaged"):
        average_checkpoints(
            [folder, folder.with_name("other")], folder.with_name("mean")
        )
    assert not folder.with_name("mean").exists()


def test_target_vocabularies_are_compared_as_well(tmp_path):
    pairs = [("one two", "eins zwei"), ("two three", "zwei drei")] * 5
    tokenizer = train_tokenizer(pairs, "en", "de", 30, joint=False)
    sizes = dict(
        src_vocab_size=tokenizer.src_vocab_size,
        tgt_vocab_size=tokenizer.tgt_vocab_size,
        shared_vocab=False,
    )
    for name in ("a", "b"):
        save_model(tmp_path / name, new_model(**sizes), tokenizer)
    path = tmp_path / "b" / "target_tokenizer.json"
    path.write_text(path.read_text().replace('"z"', '"q"'))
    verify(tmp_path / "b", accept=True)
    with pytest.raises(ValueError, match="target_tokenizer.json and can't be averaged"):
        average_checkpoints([tmp_path / "a", tmp_path / "b"], tmp_path / "mean")


def test_averaging_nothing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no checkpoint to average"):
        average_checkpoints([], tmp_path / "mean")
