"""Checkpoints: whole or not at all, every damage told by name, averages exact."""

import inspect
import json
import math
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_run import data, opened, save_checkpoint

from annotated_transformer.average import average_checkpoints
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.errors import UserError
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training import checkpoint
from annotated_transformer.training.checkpoint import load_checkpoint, save_model
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.trainer import average_weights


def new_model(seed=0, **changes):
    torch.manual_seed(seed)
    size = data()[0].src_vocab_size
    config = TransformerConfig(size, size, N=1, d_model=16, d_ff=32, h=2)
    return Transformer(replace(config, **changes))


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
    translator = opened(folder)
    model, tokenizer = translator.model, translator.tokenizer
    assert same(model, new_model()) and not model.training
    assert tokenizer.encode_source(["ba du"]) == data()[0].encode_source(["ba du"])
    assert model.src_embedding.weight is model.tgt_embedding.weight
    names = sorted(path.name for path in folder.iterdir())
    others = ["manifest.json", "model.safetensors", "text.json", "tokenizer.json"]
    assert names == ["config.json", *others]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_separate_embeddings_stay_separate(tmp_path):
    save_model(tmp_path / "m", new_model(shared_vocab=False), data()[0])
    model = opened(tmp_path / "m").model
    assert not torch.equal(model.src_embedding.weight, model.tgt_embedding.weight)


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def edit(path, **changes):
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | changes))


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


def doubles_fault(folder):
    """Finite as float64, and infinite as the float32 that they become."""
    path = folder / "model.safetensors"
    save_file({n: t.double().fill_(1e300) for n, t in load_file(path).items()}, path)


def config_fault(text):
    return lambda folder: (folder / "config.json").write_text(text)


def other_architecture(**changes):
    return lambda folder: edit(folder / "config.json", **changes)


FAULTS = {
    "no weights": (weights_fault(Path.unlink), "model.safetensors is missing"),
    "no config": (lambda f: (f / "config.json").unlink(), "holds no model"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json"),
    "truncated": (weights_fault(cut), "is damaged"),
    "empty": (weights_fault(lambda path: path.write_bytes(b"")), "is damaged"),
    "not a number": (lambda f: poison(f, math.nan), "no finite numbers"),
    "too large": (doubles_fault, "no finite numbers"),
    "infinite": (lambda f: poison(f, -math.inf), "no finite numbers"),
    "foreign": (config_fault('{"model_type": "bart"}'), "of type 'bart'"),
    "without a type": (config_fault("{}"), "names no model_type"),
    "an id too large": (
        lambda f: move_last_id(f / "tokenizer.json"),
        "ids up to 5000 and the model",
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
    with pytest.raises(ValueError, match=message) as caught:
        opened(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.int64], ids=str)
def test_weights_of_odd_types_are_refused(folder, kind):
    path = folder / "model.safetensors"
    weights = load_file(path)
    name = sorted(weights)[0]
    save_file(weights | {name: weights[name].to(kind)}, path)
    with pytest.raises(UserError, match=f"{name}' is of type {kind}"):
        opened(folder)


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
    with pytest.raises(UserError, match="is damaged"):
        opened(folder)


def test_weights_of_one_byte_that_have_no_room_are_refused(tmp_path, monkeypatch):
    """They take four bytes each once they are read."""
    save_model(tmp_path / "m", new_model(), data()[0], torch.int8)
    size = (tmp_path / "m" / "model.safetensors").stat().st_size
    free = SimpleNamespace(available=size)
    monkeypatch.setattr("psutil.virtual_memory", lambda: free)
    with pytest.raises(UserError, match="as float32, takes at least"):
        opened(tmp_path / "m")


@pytest.mark.parametrize(
    "sizes",
    [{"N": 10**7}, {"d_model": 2**30}, {"d_ff": 2**30}, {"N": 2**31 - 1}],
    ids=str,
)
def test_sizes_that_no_machine_has_are_refused_at_once(folder, sizes):
    edit(folder / "config.json", **sizes)
    message = "don't belong together|another architecture|has shape|memory"
    with pytest.raises(UserError, match=message):
        opened(folder)


@pytest.fixture
def saved(tmp_path):
    """A checkpoint, and a model and an optimizer to fill from it."""
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, data()[0], optimizer, {"step": 1})
    other = new_model(5)
    return tmp_path / "c", other, adam(other)


def test_a_model_replaces_nothing(saved):
    with pytest.raises(UserError, match="exists already: choose another folder"):
        save_model(saved[0], new_model(), data()[0])
    load_checkpoint(*saved, 1)
    assert same(saved[1], trained()[0])


def moments_fault(change):
    def spoil(path):
        moments = load_file(path)
        save_file(change(moments, sorted(moments)[0]), path)

    return spoil


MOMENTS = "optimizer.safetensors"
DAMAGE = [
    ("model.safetensors", cut, "is damaged"),
    (MOMENTS, cut, "is damaged"),
    (MOMENTS, Path.unlink, "is missing"),
    (MOMENTS, moments_fault(lambda m, name: m | {name: torch.zeros(3)}), "has shape"),
    (MOMENTS, moments_fault(lambda m, name: {"x": m[name]}), "no tensor 'exp_avg/"),
]


@pytest.mark.parametrize(("name", "spoil", "message"), DAMAGE)
def test_a_damaged_checkpoint_is_refused_before_anything_is_filled(
    saved, name, spoil, message
):
    folder, model, optimizer = saved
    spoil(folder / name)
    with pytest.raises(UserError, match=message):
        load_checkpoint(folder, model, optimizer, 1)
    assert same(model, new_model(5)) and not optimizer.state


def test_a_model_is_loaded_in_float32_whatever_the_default(folder):
    torch.set_default_dtype(torch.bfloat16)
    try:
        loaded = opened(folder).model
    finally:
        torch.set_default_dtype(torch.float32)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    assert same(loaded, new_model())


def test_weights_of_one_byte_are_met_to_half_a_step_of_their_row(tmp_path):
    model = new_model(1)
    with torch.no_grad():
        model.encoder.layers[0].feed_forward.W_1.weight[2] = 0  # a row of zeros
    save_model(tmp_path / "m", model, data()[0], torch.int8)
    save_model(tmp_path / "whole", model, data()[0])
    sizes = [
        (tmp_path / name / "model.safetensors").stat().st_size
        for name in ("m", "whole")
    ]
    assert sizes[0] < 0.5 * sizes[1]
    loaded = dict(opened(tmp_path / "m").model.named_parameters())
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            assert torch.equal(loaded[name], weight)
        else:
            step = weight.abs().amax(dim=1, keepdim=True) / 127
            assert ((loaded[name] - weight).abs() <= 0.501 * step).all()
    save_model(tmp_path / "again", opened(tmp_path / "m").model, data()[0], torch.int8)
    again = dict(opened(tmp_path / "again").model.named_parameters())
    for name, weight in loaded.items():
        torch.testing.assert_close(again[name], weight, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_a_compiled_model_is_saved_as_what_was_compiled(tmp_path):
    compiled = torch.compile(new_model(1))
    inspect.unwrap(save_model)(tmp_path / "m", compiled, data()[0])
    assert same(opened(tmp_path / "m").model, new_model(1))


def test_what_could_not_be_loaded_again_is_not_saved(tmp_path):
    model, tokenizer = new_model(1), data()[0]
    with pytest.raises(ValueError, match="dtype is torch.int16"):
        save_model(tmp_path / "m", model, tokenizer, torch.int16)
    with torch.no_grad():
        next(model.parameters())[0, 0] = 1e5
    with pytest.raises(ValueError, match="too large for torch.float16"):
        save_model(tmp_path / "m", model, tokenizer, torch.float16)
    assert not (tmp_path / "m").exists()


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
    for name in ("d", "e"):
        calls.clear()
        with pytest.raises(ValueError, match="No space left.*free some space"):
            save_checkpoint(tmp_path / name, *newer, {"step": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    other = new_model(5)
    load_checkpoint(tmp_path / "c", other, adam(other), 1)
    assert same(other, model)


def test_the_files_of_a_model_are_as_readable_as_its_folder(tmp_path):
    before = os.umask(0o027)
    try:
        save_model(tmp_path / "model", new_model(), data()[0])
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert modes == {0o640}


def test_only_whole_names_are_checkpoints(tmp_path):
    for name in ("00000004", "00000004-backup", "100000000", "00000012", "x"):
        (tmp_path / "checkpoints" / f"step-{name}").mkdir(parents=True)
    found = [path.name for path in checkpoint.checkpoints(tmp_path)]
    assert found == ["step-00000004", "step-00000012", "step-100000000"]


def test_averages_are_exact_and_ties_are_kept(tmp_path):
    models = [new_model(seed) for seed in range(3)]
    folders = [tmp_path / str(seed) for seed in range(3)]
    for path, model in zip(folders, models, strict=True):
        save_model(path, model, data()[0])
    average_checkpoints(folders, tmp_path / "mean")
    mean = opened(tmp_path / "mean").model
    for middle, *parts in zip(*(m.parameters() for m in (mean, *models)), strict=True):
        assert torch.equal(middle, torch.stack(parts).double().mean(0).float())
    assert mean.src_embedding.weight is mean.tgt_embedding.weight
    one = dict(models[0].named_parameters())
    three = average_weights([one] * 3)
    assert all(torch.equal(three[name], tensor) for name, tensor in one.items())
    with pytest.raises(UserError, match="mean exists already"):
        average_checkpoints(folders, tmp_path / "mean")
    with pytest.raises(UserError, match="no checkpoint to average"):
        average_checkpoints([], tmp_path / "none")


@pytest.mark.parametrize(
    "change", [{"N": 2}, {"h": 1, "d_k": 16, "d_v": 16}, {"dropout": 0.5}]
)
def test_what_does_not_belong_together_is_not_averaged(folder, change):
    other, mean = (folder.with_name(name) for name in ("other", "mean"))
    save_model(other, new_model(**change), data()[0])
    with pytest.raises(ValueError, match="can't be averaged"):
        average_checkpoints([folder, other], mean)
    assert not mean.exists()


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
    with pytest.raises(ValueError, match="target_tokenizer.json and can't be averaged"):
        average_checkpoints([tmp_path / "a", tmp_path / "b"], tmp_path / "mean")
