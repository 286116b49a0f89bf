"""CTranslate2 computes our scores and writes our translations."""

import os
import subprocess
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
from annotated_transformer.decoding.model_search import ModelSearch, teacher_forcing
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.errors import UserError
from annotated_transformer.files import read_card
from annotated_transformer.interop.ctranslate2 import (
    CTranslate2Engine,
    export_ctranslate2,
)
from annotated_transformer.interop.marian_weights import weights_of
from annotated_transformer.model.config import EOS


@pytest.fixture(scope="module")
def ctranslate2():
    return pytest.importorskip("ctranslate2")


def engine(ctranslate2, folder):
    return ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)


def ctranslate2_texts(tokenizer, found):
    ids = tokenizer.target.token_to_id
    return tokenizer.decode([list(map(ids, each.hypotheses[0])) for each in found])


def test_ctranslate2_gives_our_translations(ctranslate2, tmp_path):
    export_ctranslate2(shipped().model, shipped().tokenizer, tmp_path / "ct2")
    assert "Licence" in read_card(tmp_path / "ct2")
    rows = [shipped().tokenizer.source.encode(p).tokens for p in PHRASES]
    model = engine(ctranslate2, tmp_path / "ct2")
    for settings, ours in (
        ({"beam_size": 1}, greedy_texts()),
        ({"beam_size": 4, "length_penalty": 0}, beam_texts()),
    ):
        found = model.translate_batch(rows, **settings)
        assert ctranslate2_texts(shipped().tokenizer, found) == ours


@pytest.mark.parametrize(
    "changes", [{"d_k": 3, "d_v": 5}, {"positions": "learned"}], ids=str
)
def test_ctranslate2_gives_our_scores(ctranslate2, tmp_path, changes):
    model = random_model(two_vocabularies(), **changes)
    export_ctranslate2(model, two_vocabularies(), tmp_path / "ct2")
    src, tgt = batch(model)
    source, target = two_vocabularies().source, two_vocabularies().target
    sources = [[source.id_to_token(i) for i in row if i] for row in src.tolist()]
    targets = [list(map(target.id_to_token, row)) for row in tgt[:, 1:].tolist()]
    theirs = engine(ctranslate2, tmp_path / "ct2").score_batch(sources, targets)
    ours = teacher_forcing(
        model, src, torch.cat([tgt[:, 1:], torch.full((3, 1), EOS)], dim=1)
    )
    close([each.log_probs for each in theirs], ours)


def test_quantization_shrinks_the_file_and_spares_the_model(ctranslate2, tmp_path):
    model, tokenizer, sizes = shipped().model, shipped().tokenizer, []
    before = weights_of(model)
    for bits in ("float32", "int8"):
        export_ctranslate2(model, tokenizer, tmp_path / bits, bits)
        sizes.append((tmp_path / bits / "model.bin").stat().st_size)
        found = engine(ctranslate2, tmp_path / bits).translate_batch(
            [tokenizer.source.encode(phrase).tokens for phrase in PHRASES], beam_size=1
        )
        texts = ctranslate2_texts(tokenizer, found)
        assert sum(a == b for a, b in zip(texts, greedy_texts(), strict=True)) >= 18
    assert sizes[0] > 2.5 * sizes[1]
    for name, weight in weights_of(model).items():
        assert torch.equal(weight, before[name])


# --- as an engine of the translator


def rows_of(model):
    return [[i for i in row if i] for row in batch(model)[0].tolist()]


@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(beam_size=1, max_length=5),
        SearchOptions(alpha=0.0, n_best=4, max_length=20),
    ],
    ids=str,
)
def test_the_engine_finds_what_our_search_finds(ctranslate2, options):
    """A random model seldom ends, so that most of its outputs are cut at a limit."""
    model = random_model(two_vocabularies(), max_length=61)
    engine = CTranslate2Engine(model, two_vocabularies())
    ours = ModelSearch(model).search(rows_of(model), options)
    theirs = engine.search(rows_of(model), options)
    for mine, other in zip(ours, theirs, strict=True):
        assert [each.tokens for each in mine] == [each.tokens for each in other]
        assert [each.finished for each in mine] == [each.finished for each in other]


def test_the_papers_penalty_ranks_the_hypotheses(ctranslate2):
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


def test_a_translator_takes_the_engine(ctranslate2):
    fast = load("phrasebook-en-de", device="cpu", engine="ctranslate2")
    assert fast.translate(PHRASES, SearchOptions(alpha=0.0)) == beam_texts()
    assert fast.translate(["March 3", " ", "March 3"])[1] == ""
    total, expected = (it.score("March 3", "3. März").total for it in (fast, shipped()))
    assert total == pytest.approx(expected, abs=1e-4)


def test_what_the_engine_cannot_do_is_refused(ctranslate2):
    model, tokenizer = shipped().model, shipped().tokenizer
    engine, longest = CTranslate2Engine(model, tokenizer), model.config.max_length
    assert engine.search([], SearchOptions()) == []
    with pytest.raises(UserError, match="no samples: take engine='torch' or 'plain'"):
        engine.search([[5, 2]], SearchOptions(temperature=1.0))
    for row in ([], [5] * (longest + 1)):
        with pytest.raises(UserError, match=f"row 1 has {len(row)} tokens"):
            engine.search([[5, 2], row], SearchOptions())
    with pytest.raises(UserError, match="int4 is not a valid quantization type"):
        CTranslate2Engine(model, tokenizer, "int4")
    for device in ("mps", "cuda:97"):
        with pytest.raises(UserError, match=f"can't run in float32 on {device} "):
            CTranslate2Engine(model, tokenizer, device=device)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_process_translates_and_ends():
    code = """
import os, sys
from annotated_transformer import load
translator = load("phrasebook-en-de", engine="ctranslate2", device="cpu")
before = translator.translate("two hours ago")
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.exit(translator.translate("two hours ago") != before)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
