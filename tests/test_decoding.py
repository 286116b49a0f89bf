"""The fast form against the readable one: same scores, same searches, other models."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from annotated_transformer.after.pretrained import MarianConfig, MarianTransformer
from annotated_transformer.engine import decoding
from annotated_transformer.engine.decoding import FastTransformer, fast
from annotated_transformer.errors import UserError
from annotated_transformer.loading import load
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.translation.search import SearchOptions, beam, greedy

SIZES = dict(N=2, d_model=16, d_ff=32, h=2, d_k=8, d_v=8, max_length=80)
VARIANTS = {
    "plain": {},
    "odd heads": dict(h=3, d_k=4, d_v=6),
    "two vocabularies": dict(src_vocab_size=15, shared_vocab=False),
    "learned positions": dict(positions="learned"),
    "marian, swish": dict(activation="swish", decoder_N=1),
    "marian, gelu": dict(activation="gelu", decoder_N=2),
}
variants = pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)


def small_model(seed: int = 0, **changes) -> Transformer:
    """Untrained, with distributions far from uniform and no bias at zero."""
    torch.manual_seed(seed)
    settings = dict(src_vocab_size=12, tgt_vocab_size=12) | SIZES | changes
    if "activation" in settings:
        model = MarianTransformer(MarianConfig(**settings)).eval()
    else:
        model = Transformer(TransformerConfig(**settings)).eval()
    with torch.no_grad():
        model.tgt_embedding.weight *= 3.0
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:
                parameter += 0.1 * torch.randn_like(parameter)
    return model


def sources(rows: int = 7, width: int = 9, seed: int = 1) -> torch.Tensor:
    """Random rows of different lengths, each with its end token, padded."""
    torch.manual_seed(seed)
    src = torch.zeros(rows, width, dtype=torch.long)
    for row in range(rows):
        n = 1 + row % (width - 1)
        src[row, :n] = torch.randint(3, 12, (n,))
        src[row, n] = 2
    return src


def assert_same(found, expected):
    """The same hypotheses, and log-probabilities that differ by rounding alone."""
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    assert [h.finished for h in found] == [h.finished for h in expected]
    for name in ("log_probability", "score"):
        ours, theirs = ([getattr(h, name) for h in hs] for hs in (found, expected))
        assert ours == pytest.approx(theirs, abs=1e-4)


@variants
def test_every_step_gives_the_scores_of_the_whole_pass(changes):
    """Past the first block of reserved places, too."""
    model, src = small_model(**changes), sources()
    tgt = torch.randint(3, 12, (len(src), 70))
    with torch.inference_mode():
        expected = model(src, tgt)
    quick = fast(model)
    assert isinstance(quick, FastTransformer)
    cache = quick.start(src)
    found = torch.stack([quick.step(tokens, cache) for tokens in tgt.T], dim=1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@variants
def test_greedy_search_is_the_same(changes):
    model, src = small_model(**changes), sources()
    assert_same(greedy(fast(model), src), greedy(model, src))


@pytest.mark.parametrize(
    "beam_size, alpha", [(1, 0.6), (2, 0.0), (4, 0.6), (5, -0.5), (12, 1.0)]
)
def test_beam_search_is_the_same(beam_size, alpha):
    options = SearchOptions(beam_size, alpha, n_best=beam_size)
    for seed in range(3):
        model, src = small_model(seed), sources(seed=seed)
        found, expected = beam(fast(model), src, options), beam(model, src, options)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)


def test_a_sentence_does_not_depend_on_its_neighbours():
    quick, src = fast(small_model()), sources()
    for row, together in zip(src, beam(quick, src), strict=True):
        assert_same(beam(quick, row[row != 0][None])[0], together)


def test_beams_that_change_places_keep_their_pasts():
    """Each beam's scores are those of its own tokens in a whole pass."""
    model, src = small_model(), sources(2)
    quick = fast(model)
    cache = quick.start(src, 3)
    texts, generator = torch.full((2, 3, 1), 1), torch.Generator().manual_seed(0)
    for _ in range(8):
        found = quick.step(texts[:, :, -1].flatten(), cache)
        with torch.inference_mode():
            expected = model(src.repeat_interleave(3, 0), texts.flatten(0, 1))[:, -1]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        parents = torch.randint(3, (2, 3), generator=generator)
        cache.reorder((torch.arange(2)[:, None] * 3 + parents).flatten())
        new = torch.randint(3, 12, (2, 3, 1), generator=generator)
        pasts = texts.gather(1, parents[..., None].expand_as(texts))
        texts = torch.cat([pasts, new], dim=2)


def test_sentences_may_leave():
    quick, src, kept = fast(small_model()), sources(), torch.tensor([0, 6, 2])
    cache, alone = quick.start(src), quick.start(src[kept])
    quick.step(torch.ones(len(src), dtype=torch.long), cache)
    quick.step(torch.ones(3, dtype=torch.long), alone)
    cache.reorder(kept)
    tokens = torch.tensor([5, 4, 3])
    torch.testing.assert_close(quick.step(tokens, cache), quick.step(tokens, alone))


@variants
@pytest.mark.parametrize("rows", [1, 5])
def test_bfloat16_comes_near(rows, changes):
    model, src = small_model(**changes), sources(rows)
    tgt = torch.randint(3, 12, (rows, 6))
    with torch.inference_mode():
        expected = model(src, tgt)
    quick = fast(model, "bfloat16")
    cache = quick.start(src)
    found = torch.stack([quick.step(tokens, cache) for tokens in tgt.T], dim=1)
    assert 1e-4 < (found - expected).std() / expected.std() < 0.05


def test_padding_is_not_multiplied(monkeypatch):
    rows, product = [], decoding.Product.__call__

    def watched(self, x):
        rows.append(len(x))
        return product(self, x)

    monkeypatch.setattr(decoding.Product, "__call__", watched)
    src = sources()
    fast(small_model()).start(src)
    assert set(rows) == {int((src != 0).sum())} and len(rows) == 2 * (4 + 1)


def test_the_fast_form_holds_copies():
    model, src = small_model(), sources(3)
    quick, ones = fast(model), torch.ones(3, dtype=torch.long)
    before = quick.step(ones, quick.start(src))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "W_" in name:
                parameter.add_(1.0)
    assert torch.equal(quick.step(ones, quick.start(src)), before)


class Wrapped(nn.Module):
    """A projection with something added, as an adapter is."""

    def __init__(self, inner: nn.Linear):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) + 1


def test_a_model_with_parts_of_its_own_is_left_as_it_is():
    model = deepcopy(small_model())
    attention = model.encoder.layers[0].self_attention
    attention.W_Q = Wrapped(attention.W_Q)
    assert fast(model) is model
    with pytest.raises(UserError, match="'bfloat16': this model runs in float32"):
        fast(model, "bfloat16")


def test_an_unknown_precision_is_named():
    with pytest.raises(UserError, match="'int8': choose one of: bfloat16, float32"):
        fast(small_model(), "int8")


def test_no_sources_give_no_translations():
    none, quick = torch.zeros(0, 3, dtype=torch.long), fast(small_model())
    assert greedy(quick, none) == beam(quick, none) == []


def test_the_shipped_model_translates_the_same():
    texts = ["the twenty-first of March", "27.4 kilometers", "in two weeks"]
    plain, quick = (
        load("phrasebook-en-de", engine=name, device="cpu")
        for name in ("plain", "torch")
    )
    assert quick.translate(texts) == plain.translate(texts)
    assert isinstance(quick.engine.model, FastTransformer)
    assert quick.to("cpu").translate(texts) == plain.translate(texts)
