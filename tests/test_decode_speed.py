"""The model made for speed against the one made for reading: same scores, same
searches, and sentences on their own.
"""

import pickle
from copy import deepcopy

import pytest
import torch

from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.loading import PRETRAINED
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.translation.search import (
    beam,
    best,
    greedy,
    likeliest,
    start_beams,
    survivors,
)
from annotated_transformer.engine.decoding import (
    DynamicInt8Linear,
    FastTransformer,
    Float32Linear,
    Int8Linear,
    Padding,
    dynamic_int8_pays,
    linear_kind,
    mkl_packed,
    step_weights,
)
from annotated_transformer.translation.translator import Translator, search_batches

CHOICE = "annotated_transformer.engine.decoding.dynamic_int8_pays"
needs_vnni = pytest.mark.skipif(
    not torch.cpu._is_vnni_supported(),
    reason="this processor has no instruction for products of 8-bit numbers",
)
VARIANTS = {
    "plain": {},
    "odd heads": dict(h=3, d_k=4, d_v=6),
    "two vocabularies": dict(src_vocab_size=15, shared_vocab=False),
    "learned positions": dict(positions="learned"),
}


def small_model(seed: int = 0, vocab: int = 12, **changes) -> Transformer:
    """An untrained model whose distributions are far from uniform, so that searches
    have something to decide.
    """
    torch.manual_seed(seed)
    settings = dict(
        src_vocab_size=vocab,
        tgt_vocab_size=vocab,
        N=2,
        d_model=16,
        d_ff=32,
        h=2,
        d_k=8,
        d_v=8,
    )
    model = Transformer(
        TransformerConfig(**settings | dict(max_length=80) | changes)
    ).eval()
    with torch.no_grad():
        model.tgt_embedding.weight *= 3.0
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:
                parameter += 0.1 * torch.randn_like(parameter)
    return model


def sources(
    rows: int = 7, width: int = 9, vocab: int = 12, seed: int = 1
) -> torch.Tensor:
    """Random source rows of different lengths, each with its end token, padded on the
    right.
    """
    torch.manual_seed(seed)
    src = torch.zeros(rows, width, dtype=torch.long)
    for row in range(rows):
        n = 1 + row % (width - 1)
        src[row, :n] = torch.randint(3, vocab, (n,))
        src[row, n] = 2
    return src


def assert_same(found, expected):
    """The same hypotheses, and log-probabilities that differ by rounding alone."""
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    assert [h.finished for h in found] == [h.finished for h in expected]
    assert [h.log_probability for h in found] == pytest.approx(
        [h.log_probability for h in expected], abs=1e-4
    )
    assert [h.score for h in found] == pytest.approx(
        [h.score for h in expected], abs=1e-4
    )


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_every_step_gives_the_scores_of_the_whole_pass(changes):
    """Past the first block of reserved places, too."""
    model, src = small_model(**changes), sources()
    tgt = torch.randint(3, 12, (len(src), 70))
    with torch.inference_mode():
        expected = model(src, tgt)
        fast = FastTransformer(model)
        cache = fast.start(src)
        found = torch.stack([fast.step(tokens, cache) for tokens in tgt.T], dim=1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_greedy_search_is_the_same(changes):
    model, src = small_model(**changes), sources()
    found, expected = greedy(FastTransformer(model), src), greedy(model, src)
    assert (
        len({len(h.tokens) for h in expected}) > 2
    )  # sentences leave at different steps
    assert_same(found, expected)


@pytest.mark.parametrize(
    "beam_size, alpha", [(1, 0.6), (2, 0.0), (4, 0.6), (5, -0.5), (12, 1.0)]
)
def test_beam_search_is_the_same(beam_size, alpha):
    for seed in range(3):
        model, src = small_model(seed), sources(seed=seed)
        found = beam(FastTransformer(model), src, beam_size, alpha, n_best=beam_size)
        for one, other in zip(
            found, beam(model, src, beam_size, alpha, n_best=beam_size), strict=True
        ):
            assert_same(one, other)


def test_a_sentence_does_not_depend_on_its_neighbours():
    fast, src = FastTransformer(small_model()), sources()
    for row, together in zip(src, beam(fast, src, 4), strict=True):
        assert_same(beam(fast, row[row != 0][None], 4)[0], together)


def test_beams_that_change_places_keep_their_pasts():
    """One model fed by hand: each beam's scores are those of its own tokens in a whole
    pass.
    """
    model, src = small_model(), sources(2)
    fast = FastTransformer(model)
    cache = start_beams(fast, src, 3)
    texts, generator = torch.full((2, 3, 1), 1), torch.Generator().manual_seed(0)
    with torch.inference_mode():
        for _ in range(8):
            found = fast.step(texts[:, :, -1].flatten(), cache)
            expected = model(src.repeat_interleave(3, 0), texts.flatten(0, 1))[:, -1]
            torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
            parents = torch.randint(3, (2, 3), generator=generator)
            cache.follow(parents)
            new = torch.randint(3, 12, (2, 3, 1), generator=generator)
            texts = torch.cat(
                [texts.gather(1, parents[..., None].expand_as(texts)), new], dim=2
            )


@pytest.mark.parametrize("precision, near", [("bfloat16", 0.05), ("int8", 0.1)])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize(
    "sizes",
    [dict(d_model=32, d_ff=64), dict(d_model=36, d_ff=72, d_v=9)],
    ids=["even", "odd"],
)
def test_lower_precision_comes_near(precision, near, rows, sizes, monkeypatch):
    """Also where the number of inputs is no multiple of 16, which PyTorch's kernel for
    int8 would read past.
    """
    monkeypatch.setattr(CHOICE, lambda: False)
    compare_precision(small_model(vocab=160, **sizes), precision, near, rows)


@needs_vnni
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("width", [512, 520])
def test_a_model_of_large_matrices_with_rounded_inputs_comes_near(
    rows, width, monkeypatch
):
    monkeypatch.setattr(CHOICE, lambda: True)
    compare_precision(
        small_model(vocab=600, d_model=width, d_ff=1200, N=1), "int8", 0.1, rows
    )


def compare_precision(model, precision, near, rows):
    """Six steps differ from the readable model's, but by less than `near` of the spread
    of the scores.
    """
    vocab = model.config.tgt_vocab_size
    src = sources(rows, vocab=vocab)
    tgt = torch.randint(3, vocab, (rows, 6))
    with torch.inference_mode():
        expected = model(src, tgt)
        fast = FastTransformer(model, precision)
        cache = fast.start(src)
        found = torch.stack([fast.step(tokens, cache) for tokens in tgt.T], dim=1)
    error = (found - expected).std() / expected.std()
    assert 1e-4 < error < near


@needs_vnni
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 2, 5, 70])
def test_the_product_of_whole_numbers_comes_near(rows, bias):
    torch.manual_seed(rows)
    layer, x = torch.nn.Linear(600, 900, bias=bias), torch.randn(rows, 600)
    fast = DynamicInt8Linear(layer.weight, layer.bias)
    for found, expected in ((fast(x), layer(x)), (fast(x, relu=True), layer(x).relu())):
        assert found.shape == expected.shape and found.dtype == torch.float32
        assert not rows or 1e-3 < (found - expected).abs().max() / expected.std() < 0.07


@needs_vnni
def test_rounded_inputs_do_not_depend_on_their_neighbours():
    """Each row has a scale of its own, be it large or small or zero."""
    layer = DynamicInt8Linear(torch.randn(520, 512))
    x = torch.randn(6, 512) * torch.tensor([1e-3, 1.0, 1e3, 0.0, 50.0, 1.0])[:, None]
    together = layer(x)
    assert torch.equal(together, torch.cat([layer.times_rows(row[None]) for row in x]))
    assert (together[3] == 0).all() and together[0].std() < 1e-3 * together[4].std()


@pytest.mark.parametrize(
    "vnni, amx, pays", [(True, False, True), (True, True, False), (False, False, False)]
)
def test_inputs_are_rounded_where_whole_numbers_are_the_fast_ones(
    vnni, amx, pays, monkeypatch
):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: vnni)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    assert dynamic_int8_pays() is pays


@pytest.mark.parametrize("pays", [True, False])
def test_the_processor_decides_how_int8_is_multiplied(pays, monkeypatch):
    monkeypatch.setattr(CHOICE, lambda: pays)
    kind = linear_kind("int8", torch.device("cpu"))
    assert isinstance(
        kind(torch.randn(512, 1024)), DynamicInt8Linear if pays else Int8Linear
    )
    assert isinstance(
        kind(torch.randn(512, 512)), Float32Linear if pays else Int8Linear
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 16, 17, 31, 32, 33, 70])
def test_large_float32_matrices_give_the_same_product_for_any_number_of_rows(
    rows, bias
):
    """The packed layout is made for 32 rows and used for 2 to 32."""
    torch.manual_seed(rows)
    layer, x = torch.nn.Linear(600, 900, bias=bias), torch.randn(rows, 600)
    fast = Float32Linear(layer.weight, layer.bias)
    assert (
        fast.packed is not None
    ) == torch.backends.mkl.is_available() and mkl_packed(layer.weight[:9]) is None
    assert torch.allclose(fast(x), layer(x), atol=1e-5)
    assert torch.allclose(fast(x, relu=True), layer(x).relu(), atol=1e-5)


def test_padding_is_never_multiplied(monkeypatch):
    """The encoder's products get the rows of real tokens alone."""
    rows, product = [], Float32Linear.__call__

    def watched(self, x, relu=False):
        rows.append(len(x))
        return product(self, x, relu)

    monkeypatch.setattr(Float32Linear, "__call__", watched)
    src = sources()
    FastTransformer(small_model()).start(src)
    assert set(rows) == {int((src != 0).sum())} and len(rows) == 2 * (4 + 1)
    table = torch.arange(6.0).view(6, 1)
    padding = Padding(torch.tensor([[True, False, False], [True, True, True]]))
    assert padding.leave_out(table).flatten().tolist() == [0, 3, 4, 5]
    assert padding.put_back(padding.leave_out(table + 1)).flatten().tolist() == [
        1,
        0,
        0,
        4,
        5,
        6,
    ]
    whole = Padding(torch.ones(2, 3, dtype=torch.bool))
    assert whole.leave_out(table) is table and whole.put_back(table) is table


def test_sentences_may_leave_outside_inference_mode():
    """As from the readable cache, by whoever writes a search of their own."""
    fast, src = FastTransformer(small_model()), sources()
    cache = fast.start(src)
    fast.step(torch.ones(len(src), dtype=torch.long), cache)
    cache.reorder(torch.tensor([0, 6, 2]))
    tokens = torch.tensor([5, 4, 3])
    alone = fast.start(src[[0, 6, 2]])
    fast.step(torch.ones(3, dtype=torch.long), alone)
    torch.testing.assert_close(fast.step(tokens, cache), fast.step(tokens, alone))


def test_a_prepared_model_shares_no_weights_of_products():
    model, src = small_model(), sources(3)
    fast = FastTransformer(model)
    before = fast.step(torch.ones(3, dtype=torch.long), fast.start(src))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "W_" in name:
                parameter.add_(1.0)
    assert torch.equal(
        fast.step(torch.ones(3, dtype=torch.long), fast.start(src)), before
    )


@pytest.mark.parametrize("search", [greedy, beam])
def test_no_sources_give_no_translations(search):
    none = torch.zeros(0, 3, dtype=torch.long)
    assert (
        search(small_model(), none)
        == search(FastTransformer(small_model()), none)
        == []
    )


def test_an_unknown_precision_is_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match="unknown precision 'int4'.*int8"):
        FastTransformer(small_model(), "int4")


@pytest.mark.parametrize(
    "n, count, size",
    [(1000, 8, 10), (1003, 8, 10), (50, 8, 100), (5, 8, 100), (99, 1, 10)],
)
def test_the_best_by_blocks_are_the_best(n, count, size):
    values = torch.randn(4, 3, n, generator=torch.Generator().manual_seed(n))
    found, expected = best(values, count, size), values.topk(min(count, n))
    assert torch.equal(found[0], expected.values) and torch.equal(
        found[1], expected.indices
    )


@pytest.mark.parametrize("rows", [1, 7, 8, 20])
@pytest.mark.parametrize("n", [12, 100, 250, 10_050])
def test_the_likeliest_token_is_the_largest_of_its_row(rows, n):
    log_probs = torch.randn(rows, n, generator=torch.Generator().manual_seed(rows + n))
    values, tokens = likeliest(log_probs)
    assert torch.equal(values, log_probs.amax(dim=1)) and torch.equal(
        tokens, log_probs.argmax(dim=1)
    )


def test_survivors_are_those_that_go_on_and_most_stay():
    generator = torch.Generator().manual_seed(0)
    for n in range(1, 20):
        going = torch.rand(n, generator=generator) < 0.6
        kept = survivors(going)
        assert sorted(kept.tolist()) == going.nonzero().squeeze(1).tolist()
        assert all(kept[place] == place for place in range(len(kept)) if going[place])


def test_a_step_reads_every_decoder_matrix_but_the_source_keys_and_values():
    model = small_model(shared_vocab=True)
    decoder = sum(
        p.numel()
        for name, p in model.decoder.named_parameters()
        if "W_" in name and "bias" not in name
    )
    unread = sum(
        p.numel()
        for name, p in model.decoder.named_parameters()
        if name.endswith(("source_attention.W_K.weight", "source_attention.W_V.weight"))
    )
    assert step_weights(model) == decoder - unread + model.tgt_embedding.weight.numel()


@pytest.mark.parametrize(
    "precision, at_least", [("float32", 1.0), ("bfloat16", 0.95), ("int8", 0.95)]
)
def test_the_shipped_model_translates_the_same_in_every_precision(precision, at_least):
    translator = Translator.from_pretrained(PRETRAINED / "phrasebook-en-de", precision=precision)
    lines = [source for source, _ in phrasebook("en", "de", "test", 60)]
    rows = translator.tokenizer.encode_source(lines)
    expected = search_batches(translator.model, rows, 4, 0.6, 1, 4096)
    texts = translator.tokenizer.decode([best.tokens for (best,) in expected])
    same = sum(a == b for a, b in zip(translator.translate(lines), texts, strict=True))
    assert same >= at_least * len(lines)


def test_the_shipped_model_is_small_and_right():
    pairs = phrasebook("en", "de", "test", 1_000)
    outputs = Translator.from_pretrained(PRETRAINED / "phrasebook-en-de").translate(
        [source for source, _ in pairs]
    )
    right = sum(
        output == target for output, (_, target) in zip(outputs, pairs, strict=True)
    )
    assert (
        right >= 980
        and sum(path.stat().st_size for path in (PRETRAINED / "phrasebook-en-de").rglob("*") if path.is_file())
        <= 4e6
    )


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_a_model_of_another_type_is_searched_in_its_own(kind):
    torch.manual_seed(0)
    model = (
        Transformer(
            TransformerConfig(60, 60, N=2, d_model=32, d_ff=64, h=4, d_k=8, d_v=8)
        )
        .eval()
        .to(kind)
    )
    src = torch.randint(4, 60, (3, 9))
    fast = FastTransformer(model)
    assert fast.dtype == kind
    if kind == torch.float64:
        for found, expected in zip(
            beam(fast, src, 4), beam(model, src, 4), strict=True
        ):
            assert found[0].tokens == expected[0].tokens
            assert abs(found[0].log_probability - expected[0].log_probability) < 1e-4


def test_a_large_matrix_can_be_copied():
    layer = Float32Linear(torch.randn(1_024, 512))
    x = torch.randn(8, 512)
    for copy in (deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(copy(x), layer(x)) and (copy.packed is None) == (
            layer.packed is None
        )
