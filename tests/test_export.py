"""Export: three other engines must compute our scores and write our translations."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.engine import ctranslate2
from annotated_transformer.model.config import BOS, EOS, TransformerConfig, table_3
from annotated_transformer.model.position import sinusoids
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import load_model, save_model
from annotated_transformer.loading import PRETRAINED
from annotated_transformer.translation.search import (
    SearchOptions,
    force,
    greedy,
    pad_rows,
)
from annotated_transformer.translation.translator import Translator

SHIPPED = PRETRAINED / "phrasebook-en-de"
PHRASES = [source for source, _ in phrasebook("en", "de", "test", 20)]
PAIRS = list(phrasebook("en", "de", "train", 200))


@pytest.fixture(scope="module")
def translator():
    """The model that ships with the package."""
    return Translator.from_pretrained(SHIPPED)


@pytest.fixture(scope="module")
def greedy_texts(translator):
    return translator.translate(PHRASES, SearchOptions(beam_size=1))


@pytest.fixture(scope="module")
def beam_texts(translator):
    """Beam 4 without length penalty, where every engine's beam means the same."""
    return translator.translate(PHRASES, SearchOptions(alpha=0.0))


@pytest.fixture(scope="module")
def two_vocabularies():
    """A tokenizer with a vocabulary for each language."""
    return train_tokenizer(PAIRS, "en", "de", 150, joint=False)


def random_model(tokenizer, **changes):
    """A small model with random weights everywhere, biases and norms included, and
    separate embeddings.
    """
    torch.manual_seed(3)
    sizes = {
        "N": 2,
        "d_model": 16,
        "d_ff": 24,
        "h": 2,
        "d_k": 8,
        "d_v": 8,
        "max_length": 48,
    }
    vocab = (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size)
    model = Transformer(
        TransformerConfig(*vocab, shared_vocab=False, **(sizes | changes))
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def batch(model):
    """Three rows of source ids, two of them padded, and target rows that begin."""
    torch.manual_seed(4)
    src = torch.randint(4, model.config.src_vocab_size, (3, 9))
    src[1, 6:], src[2, 3:] = 0, 0
    src[0, 8], src[1, 5], src[2, 2] = EOS, EOS, EOS
    tgt = torch.randint(4, model.config.tgt_vocab_size, (3, 7))
    tgt[:, 0] = BOS
    return src, tgt


@torch.inference_mode()
def logits_of(model, src, tgt):
    return model(src, tgt)


def close(theirs, ours, atol=1e-4):
    torch.testing.assert_close(
        torch.as_tensor(np.asarray(theirs, dtype=np.float32)), ours, atol=atol, rtol=0
    )


# --- the stream and the heads


def test_every_weight_says_where_the_stream_lies(translator, two_vocabularies):
    for model in (
        translator.model,
        random_model(two_vocabularies, positions="learned"),
    ):
        for name, weight in model.named_parameters():
            axis = export.stream_axis(name)
            assert (axis is None) == name.endswith("W_1.bias")
            assert axis is None or weight.size(axis) == model.config.d_model


def test_reordering_the_stream_keeps_every_score_and_can_be_undone(two_vocabularies):
    model = random_model(two_vocabularies)
    order, (src, tgt) = export.sines_first(16), batch(model)
    weights = export.weights_of(model)
    reordered = export.reorder_stream(weights, order)
    other = Transformer(model.config).eval()
    assert not other.load_state_dict(reordered, strict=False).unexpected_keys
    other.positions.table.copy_(sinusoids(48, 16)[:, order])
    close(logits_of(other, src, tgt), logits_of(model, src, tgt), atol=1e-5)
    back = export.reorder_stream(reordered, order.argsort())
    assert all(torch.equal(back[name], weight) for name, weight in weights.items())


def test_sines_first_is_the_order_of_concatenated_sinusoids():
    assert export.sines_first(6).tolist() == [0, 2, 4, 1, 3, 5]
    angle = torch.arange(20.0, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(4, dtype=torch.float64) / 4
    )
    concatenated = torch.cat([angle.sin(), angle.cos()], dim=1).float()
    close(sinusoids(20, 8)[:, export.sines_first(8)], concatenated, atol=1e-6)


def test_every_row_of_table_3_has_heads_that_fit():
    for config in table_3().values():
        assert export.head_width(config) * config.h == config.d_model


def test_copies_leave_the_model_alone(translator):
    name, weight = next(iter(export.weights_of(translator.model).items()))
    weight.zero_()
    assert dict(translator.model.named_parameters())[name].abs().sum() > 0


# --- the folder


def test_the_tokenizer_makes_spaces_one_and_takes_no_special_tokens(
    translator, tmp_path
):
    from tokenizers import Tokenizer

    export.write_tokenizer(tmp_path, translator.tokenizer)
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
            == translator.tokenizer.encode_source([" ".join(text.split())])[0]
        )
    loaded = type(translator.tokenizer).load(tmp_path)
    assert loaded.joint and loaded.encode_source(
        [" [eos] x"]
    ) == translator.tokenizer.encode_source(["[eos] x"])


def test_nothing_is_replaced_and_nothing_half_written(translator, tmp_path):
    model, tokenizer = translator.model, translator.tokenizer
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "config.json").write_text("{}")
    (tmp_path / "file").write_text("x")
    for place in ("full", "file"):
        with pytest.raises(ValueError, match=f"{place} is not an empty folder"):
            export.export_marian(model, tokenizer, tmp_path / place)
    with pytest.raises(ValueError, match="can't be written"):
        export.export_marian(model, tokenizer, tmp_path / "file" / "below")
    with pytest.raises(ValueError, match="int9"):
        export.export_ctranslate2(model, tokenizer, tmp_path / "new", "int9")
    with pytest.raises(RuntimeError), export.new_folder(tmp_path / "new") as draft:
        (draft / "half").write_text("x")
        raise RuntimeError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


def test_an_empty_folder_and_this_folder_may_be_written(
    translator, tmp_path, monkeypatch
):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    export.export_marian(translator.model, translator.tokenizer, ".")
    assert (tmp_path / "here" / "config.json").exists()


def test_the_readme_says_what_moses_needs(tmp_path):
    tokenizer = train_tokenizer(PAIRS, "en", "de", 150, moses=True, lowercase=True)
    export.write_readme(tmp_path, "onnx", tokenizer, TransformerConfig())
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
def marian_folder(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "marian"
    export.export_marian(translator.model, translator.tokenizer, folder)
    return folder


def test_marian_gives_our_scores_and_translations(
    translator, hugging_face, marian_folder, greedy_texts, beam_texts
):
    marian = load_marian(hugging_face, marian_folder)
    tokenizer = hugging_face.AutoTokenizer.from_pretrained(marian_folder)
    rows = tokenizer(PHRASES, return_tensors="pt", padding=True)
    assert torch.equal(
        rows["input_ids"],
        pad_rows(translator.tokenizer.encode_source(PHRASES), torch.device("cpu")),
    )
    tgt = torch.randint(4, 1000, (20, 12), generator=torch.Generator().manual_seed(0))
    close(
        marian_logits(marian, rows["input_ids"], tgt),
        logits_of(translator.model, rows["input_ids"], tgt),
    )
    for settings, ours in (
        ({"num_beams": 1}, greedy_texts),
        ({"num_beams": 4, "length_penalty": 0.0}, beam_texts),
    ):
        assert (
            tokenizer.batch_decode(
                marian.generate(**rows, **settings), skip_special_tokens=True
            )
            == ours
        )


def test_marians_tokenizer_keeps_special_tokens_out_of_text(
    translator, hugging_face, marian_folder
):
    tokenizer = hugging_face.AutoTokenizer.from_pretrained(marian_folder)
    for text in ("a [eos] [pad] b", "March  3", "März"):
        assert (
            tokenizer(text)["input_ids"]
            == translator.tokenizer.encode_source([" ".join(text.split())])[0]
        )


@pytest.mark.parametrize(
    "changes", [{}, {"d_k": 3, "d_v": 5}, {"h": 4, "d_k": 4, "d_v": 4}], ids=str
)
def test_marian_with_two_vocabularies_and_narrow_heads(
    hugging_face, two_vocabularies, tmp_path, changes
):
    model = random_model(two_vocabularies, **changes)
    export.export_marian(model, two_vocabularies, tmp_path / "marian")
    marian, (src, tgt) = load_marian(hugging_face, tmp_path / "marian"), batch(model)
    close(marian_logits(marian, src, tgt), logits_of(model, src, tgt))
    outputs = marian.generate(
        src, attention_mask=(src != 0).long(), num_beams=1, max_new_tokens=12
    )
    for row, ours in zip(
        outputs.tolist(), greedy(model, src, max_length=12), strict=True
    ):
        assert row[0] == BOS and row[1 : 1 + len(ours.tokens)] == ours.tokens


def test_marian_refuses_what_it_cannot_express(two_vocabularies, tmp_path):
    for changes, words in (
        ({"positions": "learned"}, "positions is 'learned'.*ctranslate2 or onnx"),
        ({"d_k": 9}, "d_k is 9.*export to onnx"),
        ({"h": 3, "d_k": 4, "d_v": 4}, "16 / 3.*export to onnx"),
    ):
        with pytest.raises(ValueError, match=words):
            export.export_marian(
                random_model(two_vocabularies, **changes),
                two_vocabularies,
                tmp_path / "marian",
            )
    assert not list(tmp_path.iterdir())


# --- CTranslate2


@pytest.fixture(scope="module")
def ctranslate2():
    return pytest.importorskip("ctranslate2")


def engine(ctranslate2, folder):
    return ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)


def ctranslate2_texts(tokenizer, found):
    return tokenizer.decode(
        [
            [tokenizer.target.token_to_id(t) for t in each.hypotheses[0]]
            for each in found
        ]
    )


def test_ctranslate2_gives_our_translations(
    translator, ctranslate2, tmp_path, greedy_texts, beam_texts
):
    export.export_ctranslate2(translator.model, translator.tokenizer, tmp_path / "ct2")
    rows, model = (
        [translator.tokenizer.source.encode(p).tokens for p in PHRASES],
        engine(ctranslate2, tmp_path / "ct2"),
    )
    for settings, ours in (
        ({"beam_size": 1}, greedy_texts),
        ({"beam_size": 4, "length_penalty": 0}, beam_texts),
    ):
        assert (
            ctranslate2_texts(
                translator.tokenizer, model.translate_batch(rows, **settings)
            )
            == ours
        )


@pytest.mark.parametrize(
    "changes", [{}, {"d_k": 3, "d_v": 5}, {"positions": "learned"}], ids=str
)
def test_ctranslate2_gives_our_scores(ctranslate2, two_vocabularies, tmp_path, changes):
    model = random_model(two_vocabularies, **changes)
    export.export_ctranslate2(model, two_vocabularies, tmp_path / "ct2")
    src, tgt = batch(model)
    sources = [
        [two_vocabularies.source.id_to_token(i) for i in row if i]
        for row in src.tolist()
    ]
    targets = [
        [two_vocabularies.target.id_to_token(i) for i in row]
        for row in tgt[:, 1:].tolist()
    ]
    theirs = engine(ctranslate2, tmp_path / "ct2").score_batch(sources, targets)
    ours = force(model, src, torch.cat([tgt[:, 1:], torch.full((3, 1), EOS)], dim=1))
    close([each.log_probs for each in theirs], ours)


def test_quantization_shrinks_the_file_and_spares_the_model(
    translator, ctranslate2, tmp_path, greedy_texts
):
    model, tokenizer, sizes = translator.model, translator.tokenizer, []
    before = export.weights_of(model)
    for bits in ("float32", "int16", "int8"):
        export.export_ctranslate2(model, tokenizer, tmp_path / bits, bits)
        sizes.append((tmp_path / bits / "model.bin").stat().st_size)
        found = engine(ctranslate2, tmp_path / bits).translate_batch(
            [tokenizer.source.encode(phrase).tokens for phrase in PHRASES], beam_size=1
        )
        same = sum(
            a == b
            for a, b in zip(
                ctranslate2_texts(tokenizer, found), greedy_texts, strict=True
            )
        )
        assert same >= 18, bits
    assert sizes[0] > 1.7 * sizes[1] > 2.5 * sizes[2]
    assert all(
        torch.equal(weight, before[name])
        for name, weight in export.weights_of(model).items()
    )


# --- ONNX: exported in a process of its own, as the checks of shapes that these tests
# add can't be traced


@pytest.fixture(scope="module")
def onnx_folders(two_vocabularies, tmp_path_factory):
    """By command line: the shipped model with attention, and a random one (learned
    positions, uneven heads) without.
    """
    pytest.importorskip("onnxruntime")
    top = tmp_path_factory.mktemp("onnx")
    model = random_model(two_vocabularies, N=1, positions="learned", d_k=3, d_v=5)
    save_model(top / "model", model, two_vocabularies)
    calls = [["shipped", "--attention"], ["random", "--model", str(top / "model")]]
    program = "import sys; from annotated_transformer.cli import app\n" + "\n".join(
        f"app(['export', 'onnx', *{call}], standalone_mode=False)" for call in calls
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=top,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.splitlines()[0].startswith("wrote shipped")
    return top


def steps(parts, src, tgt):
    """Every output of the encoder graph, then of each step of the decoder graph, by
    name.
    """
    encoder, step, _ = parts

    def run(session, feed):
        return dict(
            zip(
                [output.name for output in session.get_outputs()],
                session.run(None, feed),
                strict=True,
            )
        )

    state = run(encoder, {"ids": src.numpy()})
    yield state
    feed = {name: state[name] for name in ("mask", "memory_keys", "memory_values")}
    feed |= {name: feed[f"memory_{name}"][:, :, :, :0] for name in ("keys", "values")}
    for token in tgt.T.numpy():
        found = run(step, {"token": token, **feed})
        feed["keys"], feed["values"] = found["new_keys"], found["new_values"]
        yield found


@pytest.mark.parametrize("name", ["shipped", "random"])
def test_onnx_gives_our_scores_step_by_step(onnx_folders, name):
    model, _ = load_model(SHIPPED if name == "shipped" else onnx_folders / "model")
    parts, (src, tgt) = export.open_onnx(onnx_folders / name), batch(model)
    for rows in (src, src[:1, :1], src[:2, :5]):
        first, *rest = steps(parts, rows, tgt[: len(rows)])
        with torch.inference_mode():
            close(first["memory"], model.encode(rows)[0])
        ours = logits_of(model, rows, tgt[: len(rows)])
        for place, found in enumerate(rest):
            close(found["logits"], ours[:, place])
            assert found["new_keys"].shape[3] == place + 1


def test_onnx_returns_every_heads_attention_when_asked(translator, onnx_folders):
    parts = export.open_onnx(onnx_folders / "shipped")
    text = PHRASES[0]
    inside = translator.attention(text)
    src = torch.tensor(translator.tokenizer.encode_source([text]))
    tgt = torch.tensor(
        [
            [
                translator.tokenizer.target.token_to_id(t) if t != "<s>" else BOS
                for t in inside.inputs
            ]
        ]
    )
    first, *rest = steps(parts, src, tgt)
    close(first["attention"][:, 0], inside.encoder)
    for place, found in enumerate(rest):
        close(found["source_attention"][:, 0], inside.cross[:, :, place])
        close(found["self_attention"][:, 0], inside.decoder[:, :, place, : place + 1])
    silent = export.open_onnx(onnx_folders / "random")[:2]
    assert not [
        output.name
        for each in silent
        for output in each.get_outputs()
        if "attention" in output.name
    ]


def test_onnx_greedy_gives_our_translations(translator, onnx_folders, greedy_texts):
    found = export.greedy_onnx(
        export.open_onnx(onnx_folders / "shipped"),
        translator.tokenizer.encode_source(PHRASES),
    )
    assert translator.tokenizer.decode(found) == greedy_texts


def test_onnx_greedy_stops_where_our_search_stops(onnx_folders):
    """A random model seldom ends, so the limits end it: source + 50, or the model's
    positions (48).
    """
    model, _ = load_model(onnx_folders / "model")
    src, _ = batch(model)
    rows = [[i for i in row if i] for row in src.tolist()]
    found = export.greedy_onnx(export.open_onnx(onnx_folders / "random"), rows)
    assert found == [hypothesis.tokens for hypothesis in greedy(model, src)]
    assert max(map(len, found)) == 48


def test_a_folder_without_graphs_is_named(tmp_path):
    pytest.importorskip("onnxruntime")
    with pytest.raises(ValueError, match="lacks encoder.onnx, decoder_step.onnx"):
        export.open_onnx(tmp_path)


def test_noting_attention_changes_nothing_afterwards(translator):
    src, tgt = batch(translator.model)
    before = logits_of(translator.model, src, tgt)
    with export.noted_attention(translator.model) as notes:
        close(logits_of(translator.model, src, tgt), before, atol=1e-4)
    assert len(notes) == 3 * translator.model.config.N
    assert torch.equal(logits_of(translator.model, src, tgt), before)


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
    ("form", "package"), [("ctranslate2", "ctranslate2"), ("onnx", "onnx")]
)
def test_a_missing_package_is_named_with_its_remedy(
    run, tmp_path, monkeypatch, form, package
):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    status, _, err = run("export", form, tmp_path / "x")
    assert status == 2 and err.count("\n") == 1
    assert f"needs {package}: pip install 'annotated-transformer[export]'" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["marian", "ctranslate2", "onnx"])
def test_the_code_in_the_readme_translates(
    translator, hugging_face, onnx_folders, tmp_path, monkeypatch, form
):
    folder = onnx_folders / "shipped"
    if form != "onnx":
        pytest.importorskip(form if form == "ctranslate2" else "transformers")
        folder = tmp_path / form
        {"marian": export.export_marian, "ctranslate2": export.export_ctranslate2}[
            form
        ](translator.model, translator.tokenizer, folder)
    code = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.S)[
        1
    ]
    monkeypatch.chdir(folder)
    names: dict = {"lines": [*PHRASES[:4], "March [eos] 3 [pad]"]}
    exec(code.replace('"..."', "*lines"), names)
    options = SearchOptions(beam_size=1 if form == "onnx" else 4)
    assert names["texts"] == translator.translate(names["lines"], options)
