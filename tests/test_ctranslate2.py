"""CTranslate2 computes our scores and writes our translations."""

import sys

import pytest
import torch
from exporting import (
    PHRASES,
    batch,
    beam_texts,
    close,
    greedy_texts,
    random_model,
    shipped,
    two_vocabularies,
)

from annotated_transformer import load
from annotated_transformer.after.pretrained import weights_of
from annotated_transformer.engine.ctranslate2 import (
    CTranslate2Engine,
    export_ctranslate2,
)
from annotated_transformer.errors import UserError
from annotated_transformer.model.config import EOS
from annotated_transformer.translation.search import ModelSearch, SearchOptions, force


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


def test_ctranslate2_gives_our_translations(ctranslate2, tmp_path):
    export_ctranslate2(shipped().model, shipped().tokenizer, tmp_path / "ct2")
    rows, model = (
        [shipped().tokenizer.source.encode(p).tokens for p in PHRASES],
        engine(ctranslate2, tmp_path / "ct2"),
    )
    for settings, ours in (
        ({"beam_size": 1}, greedy_texts()),
        ({"beam_size": 4, "length_penalty": 0}, beam_texts()),
    ):
        assert (
            ctranslate2_texts(
                shipped().tokenizer, model.translate_batch(rows, **settings)
            )
            == ours
        )


@pytest.mark.parametrize(
    "changes", [{}, {"d_k": 3, "d_v": 5}, {"positions": "learned"}], ids=str
)
def test_ctranslate2_gives_our_scores(ctranslate2, tmp_path, changes):
    model = random_model(two_vocabularies(), **changes)
    export_ctranslate2(model, two_vocabularies(), tmp_path / "ct2")
    src, tgt = batch(model)
    sources = [
        [two_vocabularies().source.id_to_token(i) for i in row if i]
        for row in src.tolist()
    ]
    targets = [
        [two_vocabularies().target.id_to_token(i) for i in row]
        for row in tgt[:, 1:].tolist()
    ]
    theirs = engine(ctranslate2, tmp_path / "ct2").score_batch(sources, targets)
    ours = force(model, src, torch.cat([tgt[:, 1:], torch.full((3, 1), EOS)], dim=1))
    close([each.log_probs for each in theirs], ours)


def test_quantization_shrinks_the_file_and_spares_the_model(ctranslate2, tmp_path):
    model, tokenizer, sizes = shipped().model, shipped().tokenizer, []
    before = weights_of(model)
    for bits in ("float32", "int16", "int8"):
        export_ctranslate2(model, tokenizer, tmp_path / bits, bits)
        sizes.append((tmp_path / bits / "model.bin").stat().st_size)
        found = engine(ctranslate2, tmp_path / bits).translate_batch(
            [tokenizer.source.encode(phrase).tokens for phrase in PHRASES], beam_size=1
        )
        same = sum(
            a == b
            for a, b in zip(
                ctranslate2_texts(tokenizer, found), greedy_texts(), strict=True
            )
        )
        assert same >= 18, bits
    assert sizes[0] > 1.7 * sizes[1] > 2.5 * sizes[2]
    assert all(
        torch.equal(weight, before[name]) for name, weight in weights_of(model).items()
    )


# --- as an engine of the translator


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A home directory of its own, so that nothing is left in the user's cache."""
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def rows_of(model):
    return [[i for i in row if i] for row in batch(model)[0].tolist()]


@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(beam_size=1),
        SearchOptions(alpha=0.0),
        SearchOptions(alpha=0.0, n_best=4),
        SearchOptions(beam_size=1, max_length=5),
        SearchOptions(beam_size=3, alpha=0.0, max_length=7),
    ],
    ids=str,
)
def test_the_engine_finds_what_our_search_finds(home, options):
    """A random model seldom ends, so that most of its outputs are cut at a limit."""
    model = random_model(two_vocabularies(), max_length=61)
    engine = CTranslate2Engine(model, two_vocabularies())
    ours = ModelSearch(model).search(rows_of(model), options)
    theirs = engine.search(rows_of(model), options)
    for mine, other in zip(ours, theirs, strict=True):
        assert [each.tokens for each in mine] == [each.tokens for each in other]
        assert [each.finished for each in mine] == [each.finished for each in other]


def test_the_papers_penalty_ranks_the_hypotheses(home):
    engine = CTranslate2Engine(shipped().model, shipped().tokenizer)
    rows = shipped().tokenizer.encode_source(PHRASES)
    options = SearchOptions(alpha=0.6, n_best=4)
    found = engine.search(rows, options)
    for each in found:
        scores = [hypothesis.score for hypothesis in each]
        assert len(each) == 4 and scores == sorted(scores, reverse=True)
        for one in each:
            penalty = ((5 + len(one.tokens) + one.finished) / 6) ** 0.6
            assert one.score == pytest.approx(one.log_probability / penalty)
    ours = ModelSearch(shipped().model).search(rows, options)
    for mine, other in zip(ours, found, strict=True):
        assert mine[0].tokens == other[0].tokens
        assert mine[0].score == pytest.approx(other[0].score, abs=1e-3)


def test_a_translator_takes_the_engine(home):
    fast = load("phrasebook-en-de", device="cpu", engine="ctranslate2")
    options = SearchOptions(alpha=0.0)
    assert fast.translate(PHRASES, options) == beam_texts()
    assert list(fast.translate_stream(PHRASES, options)) == beam_texts()
    assert fast.translate(["March 3", " ", "March 3"])[1] == " ".strip()
    assert fast.score("March 3", "3. März").total == pytest.approx(
        shipped().score("March 3", "3. März").total, abs=1e-4
    )


def test_eight_bits_are_an_engine_too(home):
    coarse = load(
        "phrasebook-en-de", device="cpu", engine="ctranslate2", precision="int8"
    )
    found = coarse.translate(PHRASES, SearchOptions(beam_size=1))
    same = sum(a == b for a, b in zip(found, greedy_texts(), strict=True))
    assert same >= 18


def test_the_command_line_hands_translation_over(home, run):
    phrase = "the twenty-first of March"
    status, out, err = run(
        "translate", "-m", "phrasebook-en-de", "--engine", "ctranslate2", phrase
    )
    assert (status, out, err) == (0, "der einundzwanzigste März\n", "")


def test_an_empty_call_finds_nothing(home):
    engine = CTranslate2Engine(shipped().model, shipped().tokenizer)
    assert engine.search([], SearchOptions()) == []


def test_what_the_engine_cannot_do_is_refused(home):
    model, tokenizer = shipped().model, shipped().tokenizer
    engine, longest = CTranslate2Engine(model, tokenizer), model.config.max_length
    with pytest.raises(UserError, match="no samples: take engine='torch' or 'plain'"):
        engine.search([[5, 2]], SearchOptions(temperature=1.0))
    for row in ([], [5] * (longest + 1)):
        with pytest.raises(UserError, match=f"row 1 has {len(row)} tokens"):
            engine.search([[5, 2], row], SearchOptions())
    with pytest.raises(UserError, match="precision is 'int4': CTranslate2 has float32"):
        CTranslate2Engine(model, tokenizer, "int4")
    for device in ("mps", "cuda:97"):
        with pytest.raises(UserError, match=f"can't run on {device}: choose one"):
            CTranslate2Engine(model, tokenizer, device=device)


def test_a_model_is_converted_once_and_again_when_damaged(home, monkeypatch):
    tokenizer, rows = two_vocabularies(), [[7, 8, EOS]]
    model = random_model(tokenizer)
    first = CTranslate2Engine(model, tokenizer).search(rows, SearchOptions())
    (folder,) = (home / ".cache" / "annotated-transformer" / "ctranslate2").iterdir()
    whole = (folder / "model.bin").read_bytes()
    stamp = (folder / "model.bin").stat().st_mtime_ns
    assert CTranslate2Engine(model, tokenizer).search(rows, SearchOptions()) == first
    assert (folder / "model.bin").stat().st_mtime_ns == stamp
    (folder / "model.bin").write_bytes(whole[:99])
    assert CTranslate2Engine(model, tokenizer).search(rows, SearchOptions()) == first
    assert (folder / "model.bin").read_bytes() == whole
    with torch.no_grad():
        model.tgt_embedding.weight += 1
    CTranslate2Engine(model, tokenizer)
    assert len(list(folder.parent.iterdir())) == 2


def test_a_missing_package_is_one_line(home, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    status, _, err = run("translate", "--engine", "ctranslate2", "March 3")
    assert status == 2 and err.count("\n") == 1
    assert "pip install 'annotated-transformer[fast]'" in err
