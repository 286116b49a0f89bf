"""The fast form against the readable one: same scores, same searches, other models."""

from copy import deepcopy
from itertools import chain

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import beam, greedy
from annotated_transformer.errors import UserError
from annotated_transformer.interop.marian import MarianConfig, MarianTransformer
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import FastTransformer, fast
from annotated_transformer.pretrained import load

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
    assert_same(greedy(fast(model), src, 30), greedy(model, src, 30))


@pytest.mark.parametrize("beam_size, alpha", [(1, 0.6), (4, 0.6), (5, -0.5), (12, 1.0)])
def test_beam_search_is_the_same(beam_size, alpha):
    options = SearchOptions(beam_size, alpha, n_best=beam_size, max_length=20)
    model, src = small_model(), sources()
    found, expected = beam(fast(model), src, options), beam(model, src, options)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)


@variants
def test_bfloat16_comes_near(changes):
    model, src = small_model(**changes), sources(5)
    tgt = torch.randint(3, 12, (5, 6))
    with torch.inference_mode():
        expected = model(src, tgt)
    quick = fast(model, "bfloat16")
    cache = quick.start(src)
    found = torch.stack([quick.step(tokens, cache) for tokens in tgt.T], dim=1)
    assert 1e-4 < (found - expected).std() / expected.std() < 0.05


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


def unscaled(module, query, key, value, mask=None, is_causal=False):
    """Attention without √d_k."""
    causal = {"is_causal": is_causal, "scale": 1.0}
    heads = F.scaled_dot_product_attention(query, key, value, mask, **causal)
    return module.W_O(heads.transpose(1, 2).flatten(2))


def source_first(layer, y, past, memory, src_mask=None):
    """A decoder's step with its two attentions in the other order."""
    own, source = layer.self_attention, layer.source_attention
    attended = source.attend(source.queries(y), memory.key, memory.value, src_mask)
    y = layer.after_source_attention(y, attended)
    key, value = past.update(*own.keys_values(y))
    attended = own.attend(own.queries(y), key, value, past.seen)
    y = layer.after_self_attention(y, attended)
    return layer.after_feed_forward(y, layer.feed_forward(y))


def end_hidden(ids, pad_id):
    """A padding mask that hides the end token, too."""
    return ((ids != pad_id) & (ids != 2))[:, None, None]


EDITS = {
    "√d_k": ("attention.MultiHeadAttention.attend", unscaled),
    "the padding mask": ("attention.padding_mask", end_hidden),
    "positions": ("position.SinusoidalPositions.forward", lambda _, x, start=0: x),
    "√d_model": (
        "embedding.Embedding.forward",
        lambda part, ids: F.embedding(ids, part.weight),
    ),
    "the output layer": (
        "embedding.Embedding.logits",
        lambda part, hidden: 0.5 * F.linear(hidden, part.weight),
    ),
    "the residual": ("layers.AddNorm.forward", lambda part, x, added: part.norm(added)),
    "the norm's place": (
        "layers.AddNorm.forward",
        lambda part, x, added: x + part.norm(added),
    ),
    "the order of sub-layers": ("layers.DecoderLayer.step", source_first),
    "ReLU": (
        "feed_forward.FeedForward.forward",
        lambda part, x: part.W_2(part.W_1(x).sigmoid()),
    ),
    "the length penalty": ("search.length_penalty", lambda length, alpha: 2.0 + length),
    "the limit of lengths": (
        "search.length_limits",
        lambda src, config, most=None: torch.full_like(src[:, 0], 3),
    ),
}


@pytest.mark.parametrize("home, edited", EDITS.values(), ids=EDITS)
def test_an_edit_in_a_chapter_changes_the_fast_form_as_the_readable_one(
    home, edited, monkeypatch
):
    model, src, options = small_model(), sources(), SearchOptions(n_best=4)
    before = beam(fast(model), src, options)
    module, _, name = home.partition(".")
    if "." in name:
        monkeypatch.setattr(f"annotated_transformer.model.{home}", edited)
    elif module == "search":
        monkeypatch.setattr(f"annotated_transformer.decoding.{home}", edited)
    else:
        for user in ("model.transformer", "performance.decoding"):
            monkeypatch.setattr(f"annotated_transformer.{user}.{name}", edited)
    found, expected = beam(fast(model), src, options), beam(model, src, options)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)
    scores = [[h.score for h in chain.from_iterable(each)] for each in (found, before)]
    moved = [abs(a - b) for a, b in zip(*scores, strict=True)]
    assert max(moved) > 1e-3
