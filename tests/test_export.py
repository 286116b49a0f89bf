"""Exports: the folders, the command, and Marian models with our scores."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from exporting import (
    PHRASES,
    batch,
    beam_texts,
    close,
    greedy_texts,
    logits_of,
    random_model,
    run_elsewhere,
    shipped,
    two_vocabularies,
)
from tiny_run import refused
from tokenizers import Tokenizer

from annotated_transformer import load
from annotated_transformer.data.batching import pad_rows
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.decoding.search import greedy
from annotated_transformer.interop.ctranslate2 import export_ctranslate2
from annotated_transformer.interop.export_folder import write_tokenizer
from annotated_transformer.interop.marian import import_marian
from annotated_transformer.interop.marian_export import export_marian
from annotated_transformer.model.config import BOS

# --- the folder


def test_the_tokenizer_makes_spaces_one_and_takes_no_special_tokens(tmp_path):
    ours = shipped().tokenizer
    write_tokenizer(tmp_path, ours)
    alone = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    alone.encode_special_tokens = True
    for text in ["  March\t\t3\n", "a\u00a0b", "Zürich", "March\x1c3", "March [eos]"]:
        (wanted,) = ours.encode_source([" ".join(text.split())])
        assert alone.encode(text).ids == wanted
    loaded = type(ours).load(tmp_path)
    assert loaded.joint
    assert loaded.encode_source([" [eos] x"]) == ours.encode_source(["[eos] x"])


def test_an_export_normalizes_and_says_so(tmp_path):
    tokenizer = replace(shipped().tokenizer, normalize=True)
    export_ctranslate2(shipped().model, tokenizer, tmp_path / "out")
    assert PairTokenizer.load(tmp_path / "out").normalize
    assert "data.normalization" in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_nothing_is_replaced_and_nothing_half_written(tmp_path, monkeypatch):
    model, tokenizer = shipped().model, shipped().tokenizer
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "config.json").write_text("{}")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="full exists already"):
        export_marian(model, tokenizer, tmp_path / "full")
    for path in ("file", "file/below"):
        with pytest.raises(ValueError, match="exists already|can't be written"):
            export_marian(model, tokenizer, tmp_path / path)
    with pytest.raises(ValueError, match="int9"):
        export_ctranslate2(model, tokenizer, tmp_path / "new", "int9")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    export_marian(model, tokenizer, ".")
    assert (tmp_path / "here" / "config.json").exists()


# --- Marian


@pytest.fixture(scope="module")
def hugging_face():
    transformers = pytest.importorskip("transformers")
    transformers.utils.logging.disable_progress_bar()
    return transformers


def load_marian(hugging_face, folder):
    """The folder's model, after a check that it holds exactly the weights it should."""
    load = hugging_face.MarianMTModel.from_pretrained
    model, report = load(folder, output_loading_info=True)
    kinds = ("missing_keys", "unexpected_keys", "mismatched_keys")
    assert not any(report[kind] for kind in kinds)
    return model.eval()


@torch.inference_mode()
def marian_logits(marian, src, tgt):
    return marian(src, attention_mask=(src != 0).long(), decoder_input_ids=tgt).logits


def test_marian_gives_our_scores_and_translations(hugging_face, tmp_path):
    folder, ours = tmp_path / "marian", shipped()
    export_marian(ours.model, ours.tokenizer, folder)
    marian = load_marian(hugging_face, folder)
    tokenizer = hugging_face.AutoTokenizer.from_pretrained(folder)
    for text in ("a [eos] [pad] b", "March  3", "März"):
        (wanted,) = ours.tokenizer.encode_source([" ".join(text.split())])
        assert tokenizer(text)["input_ids"] == wanted
    rows = tokenizer(PHRASES, return_tensors="pt", padding=True)
    src, wanted = rows["input_ids"], ours.tokenizer.encode_source(PHRASES)
    assert torch.equal(src, pad_rows(wanted, torch.device("cpu")))
    tgt = torch.randint(4, 1000, (20, 12), generator=torch.Generator().manual_seed(0))
    close(marian_logits(marian, src, tgt), logits_of(ours.model, src, tgt))
    for settings, texts in (
        ({"num_beams": 1}, greedy_texts()),
        ({"num_beams": 4, "length_penalty": 0.0}, beam_texts()),
    ):
        found = marian.generate(**rows, **settings)
        assert tokenizer.batch_decode(found, skip_special_tokens=True) == texts


TRANSFORMERS = """
import json, sys
from transformers import AutoTokenizer, MarianMTModel
model = MarianMTModel.from_pretrained("transformers")
tokenizer = AutoTokenizer.from_pretrained("transformers")
rows = tokenizer(sys.argv[1:], return_tensors="pt", padding=True)
found = model.generate(**rows, num_beams=1)
print(json.dumps(tokenizer.batch_decode(found, skip_special_tokens=True)))
assert "annotated_transformer" not in sys.modules
"""
CTRANSLATE2 = """
import json, sys
import ctranslate2
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file("ctranslate2/tokenizer.json")
rows = [each.tokens for each in tokenizer.encode_batch(sys.argv[1:])]
engine = ctranslate2.Translator("ctranslate2", intra_threads=1)
found = [each.hypotheses[0] for each in engine.translate_batch(rows, beam_size=1)]
print(json.dumps([tokenizer.decode([*map(tokenizer.token_to_id, f)]) for f in found]))
assert "annotated_transformer" not in sys.modules
"""


@pytest.mark.parametrize(
    ("package", "program", "write"),
    [
        ("transformers", TRANSFORMERS, export_marian),
        ("ctranslate2", CTRANSLATE2, export_ctranslate2),
    ],
)
def test_a_program_without_this_package_translates_as_we_do(
    package, program, write, tmp_path
):
    write(shipped().model, shipped().tokenizer, tmp_path / package)
    (printed,) = run_elsewhere(package, program, *PHRASES, cwd=tmp_path)
    assert json.loads(printed) == greedy_texts()


@pytest.mark.parametrize("changes", [{}, {"d_k": 3, "d_v": 5}], ids=str)
def test_marian_with_two_vocabularies_and_narrow_heads(hugging_face, tmp_path, changes):
    model = random_model(two_vocabularies(), **changes)
    export_marian(model, two_vocabularies(), tmp_path / "marian")
    marian, (src, tgt) = load_marian(hugging_face, tmp_path / "marian"), batch(model)
    close(marian_logits(marian, src, tgt), logits_of(model, src, tgt))
    settings = dict(attention_mask=(src != 0).long(), num_beams=1, max_new_tokens=12)
    outputs = marian.generate(src, **settings).tolist()
    for row, ours in zip(outputs, greedy(model, src, max_length=12), strict=True):
        assert row[0] == BOS and row[1 : 1 + len(ours.tokens)] == ours.tokens


@pytest.mark.parametrize("name", ["phrasebook-en-de", "tatoeba-en-de"])
def test_our_own_marian_comes_back_and_translates_the_same(run, name, tmp_path):
    texts = ["March 3", "the twenty-first of March", "I wrote to tom@example.org."]
    source = tmp_path / "lines.txt"
    source.write_text("".join(f"{text}\n" for text in texts))
    out, back = tmp_path / "marian", tmp_path / "back"
    assert run("export", "marian", "-m", name, "-o", out)[0] == 0
    assert run("import", out, "-o", back)[0] == 0
    wanted = run("translate", "-m", name, "-i", source)
    assert wanted[0] == 0 and wanted[1].count("\n") == len(texts)
    for folder in (out, back):
        for engine in ("auto", "plain"):
            asked = ("translate", "-m", folder, "-i", source, "--engine", engine)
            assert run(*asked) == wanted
    assert load(back).tokenizer.src_lang == "en"


def test_our_own_marian_with_two_vocabularies_comes_back(tmp_path):
    model, tokenizer = random_model(two_vocabularies()), two_vocabularies()
    export_marian(model, tokenizer, tmp_path / "marian")
    import_marian(tmp_path / "marian", tmp_path / "back")
    back = load(tmp_path / "back", device="cpu", engine="plain")
    close(logits_of(back.model, *batch(model)), logits_of(model, *batch(model)))
    rows = back.tokenizer.encode_source(PHRASES)
    assert rows == tokenizer.encode_source(PHRASES)


def test_an_export_for_ctranslate2_says_what_to_open(run, tmp_path):
    pytest.importorskip("ctranslate2")
    out = tmp_path / "exported"
    assert run("export", "ctranslate2", "-m", "phrasebook-en-de", "-o", out)[0] == 0
    for asked in (["translate", "March 3", "-m"], ["info"]):
        refused(run(*asked, out), out, "CTranslate2", "made from")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"positions": "learned"}, "positions is 'learned'.*ctranslate2 or onnx"),
        ({"d_k": 9}, "d_k is 9.*export to onnx"),
        ({"h": 3, "d_k": 4, "d_v": 4}, "16 / 3.*export to onnx"),
    ],
)
def test_marian_refuses_what_it_cannot_express(tmp_path, changes, words):
    model = random_model(two_vocabularies(), **changes)
    with pytest.raises(ValueError, match=words):
        export_marian(model, two_vocabularies(), tmp_path / "marian")
    assert not list(tmp_path.iterdir())


# --- the command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mariann", "-o", "x"], ["mariann", "'marian'"]),
        (
            ["marian", "-o", "x", "--quantization", "int8"],
            ["--quantization", "marian --help"],
        ),
        (["ctranslate2", "-o", "x", "--quantization", "int9"], ["int9", "int8"]),
        (["marian", "-o", str(Path(__file__).parent)], ["tests", "exists already"]),
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
    status, _, err = run("export", form, "-o", tmp_path / "x")
    assert status == 2 and err.count("\n") == 1
    assert f"needs {form}: pip install 'annotated-transformer[{extra}]'" in err
    assert not list(tmp_path.iterdir())
