"""One contract for every model type: opened, saved, moved, shown and refused alike."""

import math
import shutil
import struct
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tasks import SMALL, TASKS, texts

from annotated_transformer import UserError, load
from annotated_transformer.after.classifier_parts import ClassifierConfig
from annotated_transformer.after.image_classification import ImageClassifier
from annotated_transformer.after.language_model import LanguageModelConfig
from annotated_transformer.after.mask_filling import MaskedTraining
from annotated_transformer.after.masked_language_model import MaskedLanguageModelConfig
from annotated_transformer.after.masked_texts import mask_tokenizer
from annotated_transformer.after.series import SeriesConfig
from annotated_transformer.after.text_classification import (
    ClassifierTraining,
    TextClassifier,
)
from annotated_transformer.after.text_generation import LanguageTraining
from annotated_transformer.after.vision import VisionConfig
from annotated_transformer.data.text_tokenizer import byte_pairs
from annotated_transformer.interop.gpt2 import GPT2, GPT2Config, GPT2Generator
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.pretrained import PretrainedModel, find_model
from annotated_transformer.registry import model_type
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.translation.translator import Translator

pytestmark = pytest.mark.filterwarnings("ignore:.*reached its limit")
TEXTS = texts()
ROWS = torch.sin(torch.arange(40.0))[:, None] * torch.tensor([1.0, 2.0])
IMAGES = torch.randint(256, (3, 8, 8), generator=torch.Generator().manual_seed(0)).to(
    torch.uint8
)


def translations(model):
    return [(t.text, t.log_probability) for t in model.n_best(TEXTS[0], max_length=9)]


def continuations(model):
    return model.generate(["ba", "du"], 9, seed=1)


# What each type answers.
ANSWERS = {
    "transformer": translations,
    "recurrent": translations,
    "transformer-since-2017": translations,
    "classifier": lambda model: model.probabilities(TEXTS[:3]).tolist(),
    "language-model": continuations,
    "masked-language-model": lambda model: model.fill("ba [MASK] du"),
    "vision": lambda model: model.probabilities(IMAGES).tolist(),
    "series": lambda model: model.forecast(ROWS).tolist(),
    "gpt2": continuations,
}


def new(name) -> PretrainedModel:
    """A model of a type with random weights."""
    if name == "gpt2":
        tokenizer = byte_pairs("\n".join(TEXTS), 270)
        sizes = SMALL | {"vocab_size": tokenizer.size, "max_length": 32}
        torch.manual_seed(0)
        return GPT2Generator(GPT2(GPT2Config(**sizes)), tokenizer)
    task = TASKS[name]()
    cls, beside = model_type(name).model, task.tokenizer
    if name in ("classifier", "masked-language-model"):
        beside = beside.tokenizer  # which a task wraps, to save it
    return cls(task.model) if beside is None else cls(task.model, beside)


@cache
def made(name) -> PretrainedModel:
    return new(name)


@pytest.fixture
def saved(name, tmp_path) -> Path:
    """The folder of such a model."""
    made(name).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


every = pytest.mark.parametrize("name", ANSWERS)


@every
def test_what_is_saved_opens_as_the_same_class_and_answers_alike(name, saved):
    model, answers = made(name), ANSWERS[name]
    found = find_model(saved)
    assert found.model_type == name and found.config() == model.config
    again = type(model).from_pretrained(saved, device="cpu")
    assert type(again) is type(model) and not again.model.training
    engine = {"engine": "plain"} if isinstance(model, Translator) else {}
    exact = load(saved, device="cpu", **engine)
    assert type(exact) is type(model)
    assert answers(exact) == answers(model) == answers(model.to("cpu"))
    first, second = repr(model).splitlines()
    assert first.startswith(f"{type(model).__name__}({name}, ")
    assert "from memory, on cpu" in second and len(second) < 100


@every
def test_what_a_type_lacks_is_refused_by_name(name, saved):
    with pytest.raises(UserError, match="dtype"):
        load(saved, device="cpu", dtype="float17")
    if not isinstance(made(name), Translator):
        with pytest.raises(UserError, match="has no option 'engine'"):
            load(saved, device="cpu", engine="torch")
        with pytest.raises(UserError, match=f"type '{name}' has float32"):
            load(saved, device="cpu", dtype="bfloat16")
    for other in {TextClassifier, ImageClassifier, Translator} - {
        *type(made(name)).mro()
    }:
        with pytest.raises(UserError, match=f"type '{name}', which is no"):
            other.from_pretrained(saved)


@every
def test_weights_that_are_not_numbers_give_one_clear_error(name):
    model = new(name)
    with torch.no_grad():
        [*model.model.parameters()][-1].fill_(math.nan)
        next(model.model.parameters()).fill_(math.nan)
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        ANSWERS[name](model)


@pytest.mark.parametrize(
    "name", ["classifier", "language-model", "masked-language-model"]
)
def test_a_tokenizer_that_is_another_s_or_damaged_or_gone_is_told(saved):
    file = saved / "tokenizer.json"
    for text, words in (
        (mask_tokenizer(["other words"], 40).to_str(), "don't belong together"),
        ("{}", "not a readable tokenizer"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=words):
            load(saved)
    file.unlink()
    with pytest.raises(UserError, match="is missing"):
        load(saved)


@pytest.mark.parametrize(
    "make, change, words",
    [
        (ClassifierConfig, {"attention": "learnt"}, "learned"),
        (ClassifierConfig, {"classes": ("one",)}, "at least two"),
        (ClassifierConfig, {"classes": ("one", "one")}, "each once"),
        (ClassifierConfig, {"vocab_size": 3}, "vocab_size is 3"),
        (ClassifierConfig, {"d_model": 15}, "d_model"),
        (ClassifierTraining, {"epochs": -1}, "epochs is -1"),
        (ClassifierTraining, {"word_dropout": 1.0}, "word_dropout is 1.0"),
        (LanguageModelConfig, {"vocab_size": 0}, "vocab_size is 0"),
        (LanguageModelConfig, {"h": 3}, "h is 3"),
        (LanguageTraining, {"peak": 2.0}, "peak is 2.0"),
        (MaskedLanguageModelConfig, {"vocab_size": 4}, "vocab_size is 4"),
        (MaskedLanguageModelConfig, {"max_length": 0}, "max_length is 0"),
        (MaskedTraining, {"steps": 0}, "steps is 0"),
        (MaskedTraining, {"share": 0.0}, "share is 0.0"),
        (MaskedTraining, {"masked": 1.5}, "masked is 1.5"),
        (MaskedTraining, {"short": 0}, "short is 0"),
        (MaskedTraining, {"short_share": -1.0}, "short_share is -1.0"),
        (SeriesConfig, {"context": 25}, "context is 25"),
        (SeriesConfig, {"context": 1, "patch": 1}, "two steps or more"),
        (SeriesConfig, {"horizon": 0}, "horizon is 0"),
        (SeriesConfig, {"patch": 0}, "patch is 0"),
        (TrainingConfig, {"steps": 0}, "steps is 0"),
        (TrainingConfig, {"lr_factor": math.nan}, "lr_factor is nan"),
        (TrainingConfig, {"label_smoothing": 1.0}, "label_smoothing is 1"),
        (TrainingConfig, {"precision": "bf61"}, "did you mean 'bf16'"),
        (TrainingConfig, {"micro_batches": 0}, "micro_batches is 0"),
        (TrainingConfig, {"micro_batches": 99_999}, "must be at most batch_tokens"),
        (TrainingConfig, {"patience": -1}, "patience is -1"),
        (TrainingConfig, {"seed": -1}, "seed is -1"),
        (TransformerConfig, {"max_length": 20_000_000}, "below 1048576"),
        (VisionConfig, {"patch": 0}, "patch is 0"),
        (VisionConfig, {"classes": 0}, "classes is 0"),
        (VisionConfig, {"patch": 1, "width": 99, "height": 99}, "take a larger patch"),
    ],
)
def test_a_setting_out_of_range_is_named(make, change, words):
    with pytest.raises(UserError, match=words):
        replace(make(), **change)


# -- a text or a list in, an answer or a list out --


def test_a_text_has_one_answer_and_a_list_has_a_list():
    for model, ask in (
        (made("classifier"), lambda m, x: m.predict(x)),
        (made("language-model"), lambda m, x: m.generate(x, 5, top_k=1)),
        (made("masked-language-model"), lambda m, x: m.fill(x, 2)),
        (made("transformer"), lambda m, x: m.translate(x, beam_size=1, max_length=5)),
    ):
        gap = "[MASK]" if model is made("masked-language-model") else "lo"
        asked = [f"ba {gap} du", f"ki {gap}"]
        assert [ask(model, text) for text in asked] == ask(model, asked)


def test_an_option_of_another_name_is_told():
    with pytest.raises(UserError, match="'max_length': did you mean 'length'"):
        made("language-model").generate("ba", max_length=9)


def test_search_options_are_keywords():
    model = made("transformer")
    assert len(model.n_best(TEXTS[0], n_best=6, max_length=5)) == 6  # a wider beam
    with pytest.raises(UserError, match="'beam': did you mean 'beam_size'"):
        model.translate(TEXTS[0], beam=2)


# -- images --


def test_images_of_every_kind_are_the_same(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    model, array = made("vision"), IMAGES[0].numpy()
    picture = Image.fromarray(array)
    picture.save(tmp_path / "picture.png")
    wanted = model.probabilities(IMAGES[0])
    for each in (array, array / 255, picture, tmp_path / "picture.png"):
        assert torch.equal(model.probabilities(each), wanted)
    assert model.predict([picture, IMAGES[0]]) == [model.predict(array)] * 2
    assert model.predict(IMAGES.numpy()) == model.predict(IMAGES)


@pytest.mark.parametrize(
    "image, words",
    [
        (np.full((8, 8), 200.0), "outside of 0 to 1"),
        (np.full((8, 8), 300), "outside of 0 to 255"),
        (np.full((8, 8), np.nan), "outside of 0 to 1"),
        (np.zeros((9, 8)), "9 × 8 pixels .* 8 × 8"),
        ("nowhere.png", "can't be read as a picture"),
        (len, "expected an image and got builtin_function_or_method"),
        ([], "no image in the list"),
    ],
    ids=str,
)
def test_images_that_are_refused(image, words):
    with pytest.raises(UserError, match=words):
        made("vision").predict(image)


def test_broken_and_huge_pictures_end_in_one_line(tmp_path, monkeypatch):
    Image = pytest.importorskip("PIL.Image")
    path = tmp_path / "picture.png"
    Image.new("L", (64, 64)).save(path)
    broken = tmp_path / "broken.png"
    broken.write_bytes(path.read_bytes()[:60])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 3_000)
    for each in (path, broken):
        with pytest.raises(UserError, match="can't be read as a picture") as said:
            made("vision").predict(each)
        assert "\n" not in str(said.value)


def test_a_picture_of_one_long_line_is_refused_before_it_is_decoded(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    size = struct.pack(">4sIIBBBBB", b"IHDR", 1, 89_000_000, 8, 0, 0, 0, 0)
    parts = [b"\x89PNG\r\n\x1a\n"]  # a header, and a row or two of 89 million
    for part in (size, b"IDAT" + zlib.compress(bytes(4)), b"IEND"):
        crc = struct.pack(">I", zlib.crc32(part))
        parts += [struct.pack(">I", len(part) - 4), part, crc]
    path = tmp_path / "line.png"
    path.write_bytes(b"".join(parts))
    for picture in (path, Image.open(path)):
        with pytest.raises(UserError, match="a side of more than 65,536") as said:
            made("vision").predict(picture)
        assert "\n" not in str(said.value)


# -- series --


def test_series_of_every_kind_are_the_same(tmp_path):
    DataFrame = pytest.importorskip("pandas").DataFrame
    model, days = made("series"), [f"day {i}" for i in range(len(ROWS))]
    a, b = ROWS.numpy().T
    table = DataFrame({"date": days, "a": a, "b": b})
    table.to_csv(tmp_path / "rows.csv", index=False)
    wanted = model.forecast(ROWS)
    for each in (ROWS.numpy(), tmp_path / "rows.csv", str(tmp_path / "rows.csv")):
        assert torch.equal(model.forecast(each), wanted)
    for frame in (table, table[["a", "b"]]):
        assert torch.equal(model.forecast(frame), wanted)
    for several in ([ROWS, ROWS.numpy()], [tmp_path / "rows.csv", table]):
        assert all(torch.equal(found, wanted) for found in model.forecast(several))
        assert len(model.forecast(several)) == 2
    assert torch.equal(model.forecast(ROWS.tolist()), wanted)  # rows of one series
    with pytest.raises(UserError, match="the columns are b, a"):
        model.forecast(table[["b", "a"]])
    with pytest.raises(UserError, match=r"row 39 of b is no number"):
        model.forecast(DataFrame({"a": a, "b": [*b[:-1], np.nan]}))
    with pytest.raises(UserError, match=r"shape \(40, 1\).* columns a, b"):
        model.forecast(a)


# -- the Hub --


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The Hub's public functions, which work on a folder of this machine here."""
    asked = []

    class Api:
        def create_repo(self, repository, private=None, exist_ok=False):
            asked.append(("create", repository, private, exist_ok))

        def upload_folder(self, *, repo_id, folder_path, revision=None):
            shutil.copytree(folder_path, tmp_path / "hub" / repo_id)
            return f"https://huggingface.co/{repo_id}/commit/1"

    def snapshot(repository, revision=None, allow_patterns=()):
        asked.append(("get", repository, revision, tuple(allow_patterns)))
        if not (folder := tmp_path / "hub" / repository).is_dir():
            raise ConnectionError("Name or service not known\nand more")
        return str(folder)

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    monkeypatch.chdir(tmp_path)
    return asked


@every
def test_a_model_is_pushed_to_the_hub_and_opened_from_it(name, hub):
    made(name).push_to_hub("someone/model", private=True)
    assert hub == [("create", "someone/model", True, True)]
    for asked, revision in (("hf:someone/model@v1", "v1"), ("someone/model", None)):
        assert type(load(asked, device="cpu")) is type(made(name))
        assert hub.pop()[:3] == ("get", "someone/model", revision)


def test_a_model_of_the_hub_without_safetensors_is_named(hub, tmp_path):
    folder = tmp_path / "hub" / "someone" / "pickled"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "marian"}')
    with pytest.raises(UserError, match=r"someone/pickled .* no safetensors"):
        load("someone/pickled")


def test_names_of_the_hub_that_are_refused(hub):
    with pytest.raises(UserError, match=r"Hub: Name or service not known;") as said:
        load("someone/else")
    assert "\n" not in str(said.value)
    for asked, words in (
        (lambda: load("hf:someone"), "write hf:owner/name"),
        (lambda: load("hf:a/b@v1", revision="v2"), "names a revision already"),
        (lambda: load("phrasebook-en-de", revision="v2"), "leave the revision out"),
    ):
        with pytest.raises(UserError, match=words):
            asked()


def test_a_path_in_the_wrong_folder_asks_nobody(hub):
    Path("runs").mkdir()
    for name in ("runs/phrasebok", "./someone/model", "/someone/model", Path("a/b")):
        with pytest.raises(UserError, match="there is no such model"):
            load(name)
    assert hub == []
