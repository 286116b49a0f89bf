"""Exports: the folders, the command, and Marian models with our scores."""

import json
import sys
from pathlib import Path

import pytest
import torch
from exporting import (
    PAIRS,
    PHRASES,
    batch,
    beam_texts,
    close,
    greedy_texts,
    logits_of,
    random_model,
    readme_texts,
    shipped,
    two_vocabularies,
)

from annotated_transformer.after.pretrained import (
    export_marian,
    head_width,
    reorder_stream,
    sines_first,
    stream_axis,
    weights_of,
    write_readme,
    write_tokenizer,
)
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.engine.ctranslate2 import export_ctranslate2
from annotated_transformer.files import new_folder
from annotated_transformer.model.config import BOS, table_3
from annotated_transformer.model.position import sinusoids
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.translation.search import greedy, pad_rows

# --- the stream and the heads


def test_every_weight_says_where_the_stream_lies():
    for model in (
        shipped().model,
        random_model(two_vocabularies(), positions="learned"),
    ):
        for name, weight in model.named_parameters():
            axis = stream_axis(name)
            assert (axis is None) == name.endswith("W_1.bias")
            assert axis is None or weight.size(axis) == model.config.d_model


def test_reordering_the_stream_keeps_every_score_and_can_be_undone():
    model = random_model(two_vocabularies())
    order, (src, tgt) = sines_first(16), batch(model)
    weights = weights_of(model)
    reordered = reorder_stream(weights, order)
    other = Transformer(model.config).eval()
    assert not other.load_state_dict(reordered, strict=False).unexpected_keys
    other.positions.table.copy_(sinusoids(48, 16)[:, order])
    close(logits_of(other, src, tgt), logits_of(model, src, tgt), atol=1e-5)
    back = reorder_stream(reordered, order.argsort())
    assert all(torch.equal(back[name], weight) for name, weight in weights.items())


def test_sines_first_is_the_order_of_concatenated_sinusoids():
    assert sines_first(6).tolist() == [0, 2, 4, 1, 3, 5]
    angle = torch.arange(20.0, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(4, dtype=torch.float64) / 4
    )
    concatenated = torch.cat([angle.sin(), angle.cos()], dim=1).float()
    close(sinusoids(20, 8)[:, sines_first(8)], concatenated, atol=1e-6)


def test_every_row_of_table_3_has_heads_that_fit():
    for config in table_3().values():
        assert head_width(config) * config.h == config.d_model


def test_copies_leave_the_model_alone():
    name, weight = next(iter(weights_of(shipped().model).items()))
    weight.zero_()
    assert dict(shipped().model.named_parameters())[name].abs().sum() > 0


# --- the folder


def test_the_tokenizer_makes_spaces_one_and_takes_no_special_tokens(tmp_path):
    from tokenizers import Tokenizer

    write_tokenizer(tmp_path, shipped().tokenizer)
    alone = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    alone.encode_special_tokens = True
    for text in [
        "March 3",
        "  March\t\t3\n",
        "five   kilometers",
        "a\u00a0b",
        "Zürich",
        "March\x1c3",
        "March [eos]",
    ]:
        assert (
            alone.encode(text).ids
            == shipped().tokenizer.encode_source([" ".join(text.split())])[0]
        )
    loaded = type(shipped().tokenizer).load(tmp_path)
    assert loaded.joint and loaded.encode_source(
        [" [eos] x"]
    ) == shipped().tokenizer.encode_source(["[eos] x"])


def test_nothing_is_replaced_and_nothing_half_written(tmp_path):
    model, tokenizer = shipped().model, shipped().tokenizer
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "config.json").write_text("{}")
    (tmp_path / "file").write_text("x")
    for place in ("full", "file"):
        with pytest.raises(ValueError, match=f"{place} is not an empty folder"):
            export_marian(model, tokenizer, tmp_path / place)
    with pytest.raises(ValueError, match="can't be written"):
        export_marian(model, tokenizer, tmp_path / "file" / "below")
    with pytest.raises(ValueError, match="int9"):
        export_ctranslate2(model, tokenizer, tmp_path / "new", "int9")
    with pytest.raises(RuntimeError), new_folder(tmp_path / "new", "test") as draft:
        (draft / "half").write_text("x")
        raise RuntimeError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


def test_an_empty_folder_and_this_folder_may_be_written(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    export_marian(shipped().model, shipped().tokenizer, ".")
    assert (tmp_path / "here" / "config.json").exists()


def test_the_readme_says_what_moses_needs(tmp_path):
    tokenizer = train_tokenizer(PAIRS, "en", "de", 150, moses=True, lowercase=True)
    write_readme(tmp_path, "onnx", tokenizer, "code", [])
    text = (tmp_path / "README.md").read_text()
    assert (
        "moses_tokenize(lines, 'en', True)" in text
        and "moses_detokenize(lines, 'de')" in text
    )
    assert "in lower case" in text


# --- Marian


@pytest.fixture(scope="module")
def hugging_face():
    transformers = pytest.importorskip("transformers")
    transformers.utils.logging.disable_progress_bar()
    return transformers


def load_marian(hugging_face, folder):
    """The folder's model, after a check that it holds exactly the weights it should."""
    model, report = hugging_face.MarianMTModel.from_pretrained(
        folder, output_loading_info=True
    )
    assert not any(
        report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")
    )
    return model.eval()


@torch.inference_mode()
def marian_logits(marian, src, tgt):
    return marian(src, attention_mask=(src != 0).long(), decoder_input_ids=tgt).logits


@pytest.fixture(scope="module")
def marian_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "marian"
    export_marian(shipped().model, shipped().tokenizer, folder)
    return folder


def test_marian_gives_our_scores_and_translations(hugging_face, marian_folder):
    marian = load_marian(hugging_face, marian_folder)
    tokenizer = hugging_face.AutoTokenizer.from_pretrained(marian_folder)
    rows = tokenizer(PHRASES, return_tensors="pt", padding=True)
    assert torch.equal(
        rows["input_ids"],
        pad_rows(shipped().tokenizer.encode_source(PHRASES), torch.device("cpu")),
    )
    tgt = torch.randint(4, 1000, (20, 12), generator=torch.Generator().manual_seed(0))
    close(
        marian_logits(marian, rows["input_ids"], tgt),
        logits_of(shipped().model, rows["input_ids"], tgt),
    )
    for settings, ours in (
        ({"num_beams": 1}, greedy_texts()),
        ({"num_beams": 4, "length_penalty": 0.0}, beam_texts()),
    ):
        assert (
            tokenizer.batch_decode(
                marian.generate(**rows, **settings), skip_special_tokens=True
            )
            == ours
        )


def test_marians_tokenizer_keeps_special_tokens_out_of_text(
    hugging_face, marian_folder
):
    tokenizer = hugging_face.AutoTokenizer.from_pretrained(marian_folder)
    for text in ("a [eos] [pad] b", "March  3", "März"):
        assert (
            tokenizer(text)["input_ids"]
            == shipped().tokenizer.encode_source([" ".join(text.split())])[0]
        )


@pytest.mark.parametrize(
    "changes", [{}, {"d_k": 3, "d_v": 5}, {"h": 4, "d_k": 4, "d_v": 4}], ids=str
)
def test_marian_with_two_vocabularies_and_narrow_heads(hugging_face, tmp_path, changes):
    model = random_model(two_vocabularies(), **changes)
    export_marian(model, two_vocabularies(), tmp_path / "marian")
    marian, (src, tgt) = load_marian(hugging_face, tmp_path / "marian"), batch(model)
    close(marian_logits(marian, src, tgt), logits_of(model, src, tgt))
    outputs = marian.generate(
        src, attention_mask=(src != 0).long(), num_beams=1, max_new_tokens=12
    )
    for row, ours in zip(
        outputs.tolist(), greedy(model, src, max_length=12), strict=True
    ):
        assert row[0] == BOS and row[1 : 1 + len(ours.tokens)] == ours.tokens


def test_marian_refuses_what_it_cannot_express(tmp_path):
    for changes, words in (
        ({"positions": "learned"}, "positions is 'learned'.*ctranslate2 or onnx"),
        ({"d_k": 9}, "d_k is 9.*export to onnx"),
        ({"h": 3, "d_k": 4, "d_v": 4}, "16 / 3.*export to onnx"),
    ):
        with pytest.raises(ValueError, match=words):
            export_marian(
                random_model(two_vocabularies(), **changes),
                two_vocabularies(),
                tmp_path / "marian",
            )
    assert not list(tmp_path.iterdir())


# --- the command, and what the folders say about themselves


def test_the_command_writes_a_folder(run, tmp_path):
    status, out, _ = run("export", "marian", tmp_path / "marian")
    assert status == 0 and "README.md" in out
    assert (
        json.loads((tmp_path / "marian" / "config.json").read_text())["model_type"]
        == "marian"
    )
    status, out, _ = run("export", "--help")
    assert status == 0 and "annotated-transformer export" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mariann", "x"], ["mariann", "did you mean 'marian'?"]),
        (["tflite", "x"], ["tflite", "ctranslate2, marian, onnx"]),
        (
            ["marian", "x", "--quantization", "int8"],
            ["--quantization", "ctranslate2", "marian"],
        ),
        (["ctranslate2", "x", "--attention"], ["--attention", "onnx"]),
        (["ctranslate2", "x", "--quantization", "int9"], ["int9", "int8"]),
        (["marian", str(Path(__file__).parent)], ["tests", "not an empty folder"]),
        (["onnx", "x", "--model", "nowhere"], ["nowhere"]),
    ],
    ids=lambda value: " ".join(value[:1]),
)
def test_the_command_refuses_in_one_line(run, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    status, _, err = run("export", *arguments)
    assert status == 2 and err.startswith("error: ") and err.count("\n") == 1, err
    assert all(word in err for word in words), err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("form", "extra"), [("ctranslate2", "fast"), ("onnx", "export")]
)
def test_a_missing_package_is_named_with_its_remedy(
    run, tmp_path, monkeypatch, form, extra
):
    for name in [name for name in sys.modules if name.split(".")[0] == form]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, form, None)
    status, _, err = run("export", form, tmp_path / "x")
    assert status == 2 and err.count("\n") == 1
    assert f"needs {form}: pip install 'annotated-transformer[{extra}]'" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["marian", "ctranslate2"])
@pytest.mark.filterwarnings("ignore:passed as unknown")
def test_the_code_in_the_readme_translates(tmp_path, monkeypatch, form):
    pytest.importorskip({"marian": "transformers"}.get(form, form))
    export = {"marian": export_marian, "ctranslate2": export_ctranslate2}[form]
    export(shipped().model, shipped().tokenizer, tmp_path / form)
    lines = [*PHRASES[:4], "March [eos] 3 [pad]"]
    found = readme_texts(tmp_path / form, lines, monkeypatch)
    assert found == shipped().translate(lines)
