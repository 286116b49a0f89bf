"""CTranslate2 computes our scores and writes our translations."""

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

from annotated_transformer.after.pretrained import weights_of
from annotated_transformer.engine.ctranslate2 import export_ctranslate2
from annotated_transformer.model.config import EOS
from annotated_transformer.translation.search import force


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
