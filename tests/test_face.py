"""The package's face: its lazy names, `python -m`, and the one opener, `load`."""

import ast
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

import annotated_transformer
from annotated_transformer import UserError, load, loading
from annotated_transformer.after.pretrained import import_marian

ROOT = Path(__file__).resolve().parent.parent
PHRASE, ANSWER = "the twenty-first of March", "der einundzwanzigste März"
SHIPPED = ROOT / "annotated_transformer" / "pretrained" / "phrasebook-en-de"


def python(*arguments: str) -> str:
    """What a fresh Python prints."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120
    ).stdout


# -- the lazy names --------------------------------------------------------------------


def test_the_import_is_fast_and_takes_no_torch():
    code = (
        "import sys, time; start = time.perf_counter(); import annotated_transformer\n"
        "print(time.perf_counter() - start, 'torch' in sys.modules)\n"
        "dir(annotated_transformer)\n"
        "from annotated_transformer import UserError, load\n"
        "print('torch' in sys.modules)\n"
        "annotated_transformer.Transformer; print('torch' in sys.modules)"
    )
    first, second, third = python("-c", code).splitlines()
    seconds, torch_at_import = first.split()
    assert float(seconds) < 0.3 and torch_at_import == "False"
    assert (second, third) == ("False", "True")


def test_every_name_of_the_face_is_there():
    listed = set(annotated_transformer.__all__)
    assert listed <= set(dir(annotated_transformer))
    for name in listed:
        assert getattr(annotated_transformer, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Transformers'"):
        _ = annotated_transformer.Transformers


@pytest.mark.parametrize(
    "package", ["annotated_transformer", "annotated_transformer.engine"]
)
def test_type_checkers_see_the_same_names(package):
    """The imports under TYPE_CHECKING and the table say the same, name by name."""
    import_module(package)
    source = ROOT.joinpath(*package.split("."), "__init__.py").read_text("utf-8")
    block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == sys.modules[package]._HOMES


def test_the_module_is_the_command_line():
    assert "translate" in python("-m", "annotated_transformer", "--help")


# -- load ------------------------------------------------------------------------------


def test_every_model_that_comes_with_the_package_opens_by_its_name():
    assert {"phrasebook-en-de", loading.SHIPPED} <= set(loading.shipped())
    for name in loading.shipped():
        assert load(name, device="cpu").translate([PHRASE]) == [ANSWER], name
        card = loading.model_card(name)
        assert all(word in card for word in ("Data", "Licence", "Scores", "can't"))


def test_no_name_is_the_first_of_them():
    model, named = load(device="cpu").model, load(loading.SHIPPED, device="cpu").model
    for one, other in zip(model.parameters(), named.parameters(), strict=True):
        assert torch.equal(one, other)
    assert model.tgt_embedding.weight.dtype is torch.float32


def test_a_folder_without_a_card_has_none(tmp_path):
    shutil.copytree(SHIPPED, tmp_path / "model")
    (tmp_path / "model" / "card.md").unlink()
    assert loading.model_card(tmp_path / "model") == ""


def test_a_run_and_a_model_folder_are_opened(tmp_path):
    shutil.copytree(SHIPPED, tmp_path / "run" / "model")
    for place in (tmp_path / "run", str(tmp_path / "run" / "model")):
        assert load(place, device="cpu").translate([PHRASE]) == [ANSWER]
    assert loading.architecture(tmp_path / "run").N == 2


def test_a_run_without_a_model_says_so(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UserError, match="has no model yet"):
        load(tmp_path)


def test_names_of_no_kind(tmp_path):
    with pytest.raises(UserError, match="nowhere: there is no such model.*phrasebook"):
        load("nowhere")
    with pytest.raises(UserError, match="holds no model"):
        load(tmp_path)
    with pytest.raises(UserError, match="there is no such model"):
        load(f"{tmp_path.name}/x/y")


def test_unknown_settings():
    with pytest.raises(UserError, match="engine 'torhc': did you mean 'torch'"):
        load(engine="torhc")
    with pytest.raises(UserError, match="device 'abacus' is not there"):
        load(device="abacus")
    with pytest.raises(UserError, match="unknown precision 'float17'"):
        load(precision="float17")
    for engine in ("torch", "plain"):
        with pytest.raises(UserError, match="int8': take the engine 'ctranslate2'"):
            load(engine=engine, precision="int8")
    with pytest.raises(UserError, match="take the engine 'torch' or 'ctranslate2'"):
        load(engine="plain", precision="bfloat16")


def test_a_gpu_is_found_where_there_is_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert loading.find_device() == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert loading.find_device() == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert loading.find_device() == torch.device("cuda:0")
    assert loading.find_device("cpu") == torch.device("cpu")


def test_a_model_of_the_hub(tmp_path, monkeypatch):
    """The Hub's own function is exchanged for one that copies a folder."""
    asked = []

    def snapshot(name, allow_patterns):
        asked.append((name, allow_patterns))
        shutil.copytree(SHIPPED, tmp_path / "cache", dirs_exist_ok=True)
        return str(tmp_path / "cache")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert load("someone/small-model", device="cpu").translate([PHRASE]) == [ANSWER]
    assert [name for name, _ in asked] == ["someone/small-model"]


def test_a_model_whose_weights_are_an_old_pickle(tmp_path, monkeypatch):
    asked = []

    def snapshot(name, allow_patterns):
        asked.append(allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert loading.download("someone/old") == tmp_path
    assert "pytorch_model.bin" not in asked[0] and "pytorch_model.bin" in asked[1]


def test_a_hub_that_cannot_be_reached(monkeypatch, tmp_path):
    def snapshot(*_, **__):
        raise ConnectionError("Name or service not known\nand more")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    with pytest.raises(UserError, match=r"Hub \(Name or service not known\)") as said:
        load("someone/small-model")
    assert "\n" not in str(said.value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(UserError, match="there is no such model"):
        load("runs/phrasebok")


def test_the_hub_without_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match="pip install huggingface_hub"):
        load("someone/small-model")


def test_a_marian_directory_is_opened_as_it_is(tmp_path):
    marian = pytest.importorskip("test_pretrained")
    marian.make(tmp_path / "opus")
    import_marian(tmp_path / "opus", tmp_path / "imported")
    opened = [load(tmp_path / name, device="cpu") for name in ("opus", "imported")]
    kinds = [
        loading.find_model(tmp_path / name)[0].title for name in ("opus", "imported")
    ]
    assert kinds == ["a Marian directory", "an imported model"]
    first, second = (translator.model for translator in opened)
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
    assert loading.architecture(tmp_path / "opus") == first.config == second.config
