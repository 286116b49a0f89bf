"""The public API: its names, and what `load` opens."""

import ast
import inspect
import pydoc
import shutil
import subprocess
import sys
from collections.abc import Iterator
from inspect import Parameter
from pathlib import Path

import click
import pytest
import torch
from typer.main import get_command

import annotated_transformer
from annotated_transformer import UserError, fit, load, make_task, registry, start_run
from annotated_transformer.cli import app
from annotated_transformer.devices import find_device
from annotated_transformer.files import read_card
from annotated_transformer.model_names import SHIPPED, shipped
from annotated_transformer.performance.decoding import fast_engine
from annotated_transformer.pretrained import find_model

ROOT = Path(__file__).resolve().parent.parent
PHRASE, ANSWER = "the twenty-first of March", "der einundzwanzigste März"
FOLDER = ROOT / "annotated_transformer" / "models" / "phrasebook-en-de"


# -- the lazy names --------------------------------------------------------------------


def test_the_import_takes_no_torch():
    code = (
        "import sys, annotated_transformer; print('torch' in sys.modules)\n"
        "dir(annotated_transformer)\n"
        "from annotated_transformer import UserError, verify\n"
        "print('torch' in sys.modules)\n"
        "annotated_transformer.Transformer; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False", "True"], done.stderr


def test_every_name_is_there():
    listed = {*annotated_transformer._HOMES, "__version__"}
    assert listed <= set(dir(annotated_transformer))
    for name in listed:
        assert getattr(annotated_transformer, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Transformers'"):
        _ = annotated_transformer.Transformers


def test_help_is_short_enough_to_read():
    """The page at its head, and no class in full, as `__all__` would have it."""
    words = pydoc.render_doc(annotated_transformer, renderer=pydoc.plaintext)
    assert "Train one of six model types" in words and len(words.splitlines()) < 130


def test_type_checkers_see_the_same_names():
    """The imports under TYPE_CHECKING and the table say the same, name by name."""
    source = Path(annotated_transformer.__file__).read_text("utf-8")
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    block = next(it for it in blocks if ast.unparse(it.test) == "TYPE_CHECKING")
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == annotated_transformer._HOMES


# -- make_task -------------------------------------------------------------------------


def test_a_task_is_made_trained_and_opened_by_names(tmp_path):
    (tmp_path / "own.txt").write_text("the cat sat on the mat\n" * 40)
    small = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "max_length": 8, "steps": 2}
    task = make_task("language-model", tmp_path / "own.txt", **small)
    assert fit(start_run(task, tmp_path / "run", "cpu")) == "finished"
    assert load(tmp_path / "run").config == task.model.config


@pytest.mark.parametrize(
    ("words", "settings", "message"),
    [
        (["clasifier"], {}, "did you mean 'classifier'"),
        (["vision", "nowhere"], {}, "nowhere: no such file.*mnist"),
        (["series"], {"horzon": 9}, "unknown setting 'horzon': did you mean 'horizon'"),
        (["vision"], {"height": 9}, "height follows from the data"),
    ],
)
def test_tasks_that_are_none(words, settings, message):
    with pytest.raises(UserError, match=message):
        make_task(*words, **settings)


# -- load ------------------------------------------------------------------------------


def test_every_model_that_comes_with_the_package_opens_by_its_name():
    assert {"phrasebook-en-de", SHIPPED} <= set(shipped())
    for name in shipped():
        assert load(name, device="cpu").translate([PHRASE]) == [ANSWER], name
        assert read_card(find_model(name).folder)


def test_a_run_and_a_model_folder_are_opened(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "run" / "model")
    for place in (tmp_path / "run", str(tmp_path / "run" / "model")):
        assert load(place, device="cpu").translate([PHRASE]) == [ANSWER]
    assert find_model(tmp_path / "run").config().N == 2


def test_a_run_without_a_checkpoint_says_so(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UserError, match="has no checkpoint yet: let it go on"):
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
    with pytest.raises(UserError, match="dtype is 'float17'"):
        load(dtype="float17")
    for engine in ("torch", "plain"):
        with pytest.raises(UserError, match="int8': take the engine 'ctranslate2'"):
            load(engine=engine, dtype="int8")
    with pytest.raises(UserError, match="take the engine 'torch' or 'ctranslate2'"):
        load(engine="plain", dtype="bfloat16")


def test_a_gpu_is_found_where_there_is_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert find_device() == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device() == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device() == torch.device("cuda:0")
    assert find_device("cpu") == torch.device("cpu")


def test_a_folder_with_a_shipped_name_is_never_taken_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FOLDER, tmp_path / "tatoeba-en-de")
    with pytest.raises(UserError, match="a folder here: write ./tatoeba-en-de"):
        load("tatoeba-en-de")
    opened = load("./tatoeba-en-de", device="cpu")
    assert opened.config.d_model == 128 and "from ./tatoeba-en-de" in repr(opened)


def test_auto_is_ctranslate2_where_it_fits(monkeypatch):
    pytest.importorskip("ctranslate2")
    opened = load("phrasebook-en-de", device="cpu")
    assert opened.engine_name == "ctranslate2" and opened.translate(PHRASE) == ANSWER
    assert opened.translate(PHRASE, temperature=0.1, seed=1) == ANSWER  # by our search
    assert opened.to("cpu").engine_name == "ctranslate2"
    half = load("phrasebook-en-de", device="cpu", dtype="bfloat16")
    assert half.engine_name == "torch" and half.dtype == "bfloat16"
    module = "annotated_transformer.decoding.engines.find_spec"
    monkeypatch.setattr(module, lambda name: None)
    assert load("phrasebook-en-de", device="cpu").engine_name == "torch"


def test_samples_make_their_model_once(monkeypatch):
    """CTranslate2 draws none, so our own search does, over one model for all lines."""
    pytest.importorskip("ctranslate2")
    made = []

    def make(*given):
        made.append(given)
        return fast_engine(*given)

    monkeypatch.setitem(registry.MAKERS, "torch", make)
    opened = load("phrasebook-en-de", device="cpu")
    assert not made
    how = {"temperature": 0.1, "seed": 1}
    assert list(opened.translate_stream([PHRASE] * 3, **how)) == [ANSWER] * 3
    assert opened.translate(PHRASE, **how) == ANSWER
    assert len(made) == 1


# -- what a release promises -----------------------------------------------------------

PROMISED = Path(__file__).with_name("public_api.txt")


def signature(call: object) -> str:
    """The names of the parameters, with "=" where there is a default."""
    stars = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
    parts, keywords = [], False
    for each in inspect.signature(call).parameters.values():
        if each.kind is Parameter.KEYWORD_ONLY and not keywords:
            parts, keywords = [*parts, "*"], True
        default = "=" * (each.default is not Parameter.empty)
        parts.append(f"{stars.get(each.kind, '')}{each.name}{default}")
    return f"({', '.join(parts)})"


def members(kind: type) -> Iterator[str]:
    """A class's public methods and properties, its bases' here among them."""
    for name in sorted(each for each in dir(kind) if not each.startswith("_")):
        value = inspect.getattr_static(kind, name)
        if isinstance(value, property):
            yield f"{kind.__name__}.{name}"
        call = getattr(value, "__func__", value)
        own = str(getattr(call, "__module__", "")).startswith("annotated_transformer")
        if own and inspect.isfunction(call):
            yield f"{kind.__name__}.{name}{signature(call)}"


def commands(name: str, command: click.Command) -> Iterator[str]:
    """Each command with its arguments and options."""
    if hasattr(command, "list_commands"):
        for each in command.list_commands(None):
            yield from commands(f"{name} {each}", command.get_command(None, each))
    else:
        words = [each.opts[0] for each in command.params]
        yield " ".join([name, *words])


def public_api() -> list[str]:
    """Every public name with its parameters, and every command with its options."""
    lines = []
    for name in sorted(annotated_transformer._HOMES):
        value = getattr(annotated_transformer, name)
        error = isinstance(value, type) and issubclass(value, Exception)
        lines.append(name if error else f"{name}{signature(value)}")
        if isinstance(value, type) and not error:
            lines += members(value)
    return [*lines, *commands("annotated-transformer", get_command(app))]


def test_the_public_api_is_what_was_promised():
    """A change that is meant is written by `python tests/test_public_api.py`, and the
    changelog says it.
    """
    assert public_api() == PROMISED.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    PROMISED.write_text("\n".join(public_api()) + "\n", encoding="utf-8")
