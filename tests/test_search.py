"""Search against its definitions: enumeration of every output, forced scores, sentences
one by one, and limits.
"""

import itertools
import math

import pytest
import torch

from annotated_transformer.errors import UserError
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.translation.search import (
    ModelSearch,
    SearchOptions,
    beam,
    force,
    greedy,
    length_batches,
    length_limits,
    length_penalty,
    sample,
    textbook_beam,
)

EOS = 2


def tiny_model(
    vocab: int = 12, seed: int = 0, sharpness: float = 3.0, max_length: int = 64
) -> Transformer:
    """An untrained model whose distributions are far from uniform, so that searches
    have something to decide.
    """
    torch.manual_seed(seed)
    config = TransformerConfig(
        src_vocab_size=vocab,
        tgt_vocab_size=vocab,
        N=2,
        d_model=16,
        d_ff=32,
        h=2,
        d_k=8,
        d_v=8,
        max_length=max_length,
    )
    model = Transformer(config).eval()
    with torch.no_grad():
        model.tgt_embedding.weight *= sharpness
    return model


def sources(
    rows: int = 6, width: int = 7, vocab: int = 12, seed: int = 1
) -> torch.Tensor:
    """Random source rows of different lengths, each with its end token, padded on the
    right.
    """
    torch.manual_seed(seed)
    src = torch.zeros(rows, width, dtype=torch.long)
    for row in range(rows):
        n = 2 + row % (width - 2)
        src[row, :n] = torch.randint(3, vocab, (n,))
        src[row, n] = EOS
    return src


def without_padding(row: torch.Tensor) -> torch.Tensor:
    return row[row != 0][None]


def log_prob(model, src, tokens) -> float:
    """The sum of forced token scores, by the search-free path."""
    return float(force(model, src, torch.tensor([tokens])).sum())


def every_output(vocab: int, limit: int):
    """All token sequences that end within `limit` tokens, the end token counted."""
    words = [token for token in range(vocab) if token not in (0, 1, EOS)]
    for n in range(limit):
        for tokens in itertools.product(words, repeat=n):
            yield [*tokens, EOS]


# ---- what a search must find ----


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5, -0.7])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_equals_exhaustive_search(alpha, seed):
    vocab, limit = 6, 4
    model, src = tiny_model(vocab, seed, sharpness=2.0), sources(1, 5, vocab, seed)
    outputs = list(every_output(vocab, limit))
    assert len(outputs) == 1 + 3 + 9 + 27
    rows = torch.tensor([tokens + [0] * (limit - len(tokens)) for tokens in outputs])
    totals = force(model, src.expand(len(rows), -1), rows).sum(1).tolist()
    scores = [
        total / ((5 + len(tokens)) / 6) ** alpha
        for total, tokens in zip(totals, outputs, strict=True)
    ]
    ranked = sorted(zip(scores, totals, outputs, strict=True), reverse=True)
    options = SearchOptions(beam_size=108, alpha=alpha, max_length=limit, n_best=40)
    found = beam(model, src, options)[0]
    assert all(hypothesis.finished for hypothesis in found)
    assert [hypothesis.tokens for hypothesis in found] == [
        tokens[:-1] for _, _, tokens in ranked
    ]
    assert [h.score for h in found] == pytest.approx(
        [score for score, _, _ in ranked], abs=1e-5
    )
    assert [h.log_probability for h in found] == pytest.approx(
        [total for _, total, _ in ranked], abs=1e-5
    )


@pytest.mark.parametrize(
    "beam_size, alpha", [(1, 0.6), (2, 0.0), (3, 0.6), (4, 1.0), (4, -0.5), (7, 2.0)]
)
def test_the_fast_beam_equals_the_textbook_beam(beam_size, alpha):
    for seed in range(2):
        model, src = tiny_model(seed=seed, sharpness=2.0), sources(4, seed=seed)
        options = SearchOptions(beam_size, alpha, n_best=beam_size, max_length=9)
        for row, found in zip(src, beam(model, src, options), strict=True):
            expected = textbook_beam(model, without_padding(row), options)[:beam_size]
            assert [h.tokens for h in found] == [h.tokens for h in expected]
            assert [h.finished for h in found] == [h.finished for h in expected]
            assert [h.score for h in found] == pytest.approx(
                [h.score for h in expected], abs=1e-4
            )


class Bigrams(Transformer):
    """A model whose next token depends on the last one alone, by a random table: long
    outputs are often worth it.
    """

    def __init__(self, seed: int, vocab: int = 9):
        super().__init__(tiny_model(vocab).config)
        self.table = 2 * torch.randn(
            vocab, vocab, generator=torch.Generator().manual_seed(seed)
        )
        self.eval()

    def forward(self, src, tgt):
        return self.table[tgt]

    def step(self, tokens, cache):
        super().step(tokens, cache)  # the cache moves as it would
        return self.table[tokens]


@pytest.mark.parametrize("search", [greedy, beam, sample])
def test_scores_that_are_no_numbers_are_an_error(search):
    broken = Bigrams(1)
    broken.table[:] = float("nan")
    with pytest.raises(ValueError, match="not numbers"):
        search(broken, sources(2, seed=4))


def test_a_cache_needs_reorder_alone():
    class OwnCache:
        def __init__(self, rows):
            self.rows = rows

        def reorder(self, rows):
            self.rows = self.rows[rows]

    class Plain:
        config, training, table = Bigrams(4).config, False, Bigrams(4).table

        def start(self, src, beam_size=1):
            return OwnCache(torch.arange(len(src) * beam_size))

        def step(self, tokens, cache):
            assert len(cache.rows) == len(tokens)
            return self.table[tokens]

    src, options = sources(3, 4, 9), SearchOptions(beam_size=3, max_length=9)
    assert beam(Plain(), src, options) == beam(Bigrams(4), src, options)
    rows = [without_padding(row)[0].tolist() for row in src]
    assert ModelSearch(Plain()).search(rows) == ModelSearch(Bigrams(4)).search(rows)


def test_a_textbook_beam_of_one_that_has_ended_leaves_nothing_cut():
    one = SearchOptions(beam_size=1)
    found = textbook_beam(Bigrams(4), sources(1, seed=4), one)
    assert [h.finished for h in found] == [True]


@pytest.mark.parametrize("alpha", [0.6, 2.5, -2.0])
def test_stopping_early_never_loses_the_winner(alpha):
    """A stop at the first finished hypothesis, or by a bound at the wrong one of the
    two lengths, loses some.
    """
    longer, src = 0, sources(1, 4, 9)
    options = SearchOptions(alpha=alpha, max_length=12)
    for seed in range(24):
        (found,) = beam(Bigrams(seed), src, options)[0]
        expected = textbook_beam(Bigrams(seed), src, options)
        assert found.tokens == expected[0].tokens, seed
        lengths = [len(h.tokens) for h in expected if h.finished]
        longer += lengths[0] > min(lengths)
    assert (
        longer >= 5 if alpha > 1 else True
    )  # the winner often was not the first to end: the rule had work to do


@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_beam_one_equals_greedy(alpha):
    """Also where an output that goes on past its end would score more."""
    options = SearchOptions(beam_size=1, alpha=alpha, max_length=20)
    for model, src in [(tiny_model(), sources())] + [
        (Bigrams(seed), sources(1, 4, 9)) for seed in range(12)
    ]:
        beams = beam(model, src, options)
        for one, (first,) in zip(greedy(model, src, 20), beams, strict=True):
            assert (first.tokens, first.finished) == (one.tokens, one.finished)
            assert first.log_probability == pytest.approx(one.log_probability, abs=1e-5)


# ---- scores ----


def test_reported_log_probabilities_are_the_forced_ones():
    model, src = tiny_model(), sources()
    four = beam(model, src, SearchOptions(n_best=4))
    found = [(i, h) for i, hs in enumerate(four) for h in hs]
    found += list(enumerate(greedy(model, src)))
    found += list(enumerate(sample(model, src, SearchOptions(temperature=1.0, seed=0))))
    assert {h.finished for _, h in found} == {True, False}
    for i, h in found:
        tokens = h.tokens + [EOS] * h.finished
        assert h.log_probability == pytest.approx(
            log_prob(model, src[i : i + 1], tokens), abs=1e-4
        )


def test_force_is_one_pass_of_the_definition_and_ignores_padding():
    model, src = tiny_model(), sources(3)
    tgt = torch.tensor([[5, 6, EOS, 0], [4, EOS, 0, 0], [7, 8, 9, EOS]])
    scores = force(model, src, tgt)
    assert (
        scores.shape == tgt.shape
        and bool((scores[tgt == 0] == 0).all())
        and bool((scores[tgt != 0] < 0).all())
    )
    for row in range(3):
        inputs = [1]
        for place, token in enumerate(without_padding(tgt[row])[0].tolist()):
            logits = model(without_padding(src[row]), torch.tensor([inputs]))[
                0, -1
            ].detach()
            assert float(scores[row, place]) == pytest.approx(
                float(logits.log_softmax(0)[token]), abs=1e-5
            )
            inputs.append(token)


def test_length_penalty_is_the_papers():
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 0.6) == pytest.approx(2**0.6)
    assert length_penalty(100, 0.0) == 1.0
    model, src = tiny_model(), sources()
    for found in beam(model, src, SearchOptions(n_best=4)):
        for h in found:
            length = len(h.tokens) + h.finished
            assert h.score == pytest.approx(
                h.log_probability / ((5 + length) / 6) ** 0.6, abs=1e-5
            )


def test_n_best_is_sorted_and_distinct():
    model, src = tiny_model(), sources()
    for found in beam(model, src, SearchOptions(beam_size=5, n_best=5)):
        assert (
            len(found) == 5
            and len({tuple(h.tokens) + (h.finished,) for h in found}) == 5
        )
        finished = [h.score for h in found if h.finished]
        assert [h.finished for h in found] == [True] * len(finished) + [False] * (
            5 - len(finished)
        )
        assert finished == sorted(finished, reverse=True)


def test_fewer_kept_finds_the_same_first_ones():
    model, src = tiny_model(seed=3), sources()
    few, many = SearchOptions(beam_size=5), SearchOptions(beam_size=5, n_best=5)
    for one, five in zip(beam(model, src, few), beam(model, src, many), strict=True):
        assert one[0].tokens == five[0].tokens


# ---- batches ----


@pytest.mark.parametrize(
    "search",
    [
        lambda m, s: greedy(m, s, 25),
        lambda m, s: [h for hs in beam(m, s, SearchOptions(3, n_best=2)) for h in hs],
    ],
)
def test_a_batch_equals_its_sentences_one_by_one(search):
    for seed in range(2):
        model, src = tiny_model(seed=seed), sources(seed=seed)
        together = search(model, src)
        alone = [h for row in src for h in search(model, without_padding(row))]
        assert [(h.tokens, h.finished) for h in together] == [
            (h.tokens, h.finished) for h in alone
        ]
        assert [h.score for h in together] == pytest.approx(
            [h.score for h in alone], abs=1e-4
        )


def test_padding_and_batch_mates_change_nothing():
    model, src = tiny_model(), sources(4)
    wider = torch.cat([src, torch.zeros(4, 5, dtype=torch.long)], dim=1)[
        [3, 1, 0, 2, 1]
    ]
    expected, found = beam(model, src), beam(model, wider)
    for place, row in enumerate([3, 1, 0, 2, 1]):
        assert found[place][0].tokens == expected[row][0].tokens


def test_a_search_engine_keeps_the_order_of_its_rows():
    model, src = tiny_model(), sources(5)
    rows = [without_padding(row)[0].tolist() for row in src][::-1]
    expected = [found[0].tokens for found in beam(model, src)][::-1]
    for batch_tokens in (1, 12, 4096):
        options = SearchOptions(batch_tokens=batch_tokens)
        found = ModelSearch(model).search(rows, options)
        assert [h.tokens for (h,) in found] == expected
    assert ModelSearch(model).search([]) == []


def test_a_search_engine_samples_each_row_n_times():
    model, rows = tiny_model(sharpness=1.0), [[5, 6, EOS], [7, EOS], [5, 6, EOS]]
    options = SearchOptions(temperature=1.0, n_best=9, seed=3)
    found = ModelSearch(model).search(rows, options)
    assert found == ModelSearch(model).search(rows, options)
    assert [len(each) for each in found] == [9, 9, 9] and found[0] != found[2]
    for each in found:
        scores = [h.score for h in each]
        assert scores == sorted(scores, reverse=True)


def test_batches_are_sorted_by_length_and_within_the_budget():
    lengths = [3, 9, 1, 4, 4, 30, 2]
    batches = list(length_batches(lengths, 12))
    assert sorted(place for batch in batches for place in batch) == list(range(7))
    by_length = [[lengths[place] for place in batch] for batch in batches]
    assert by_length == [[30], [9], [4, 4, 3], [2, 1]]


def test_an_empty_batch_is_an_empty_answer():
    model, none = tiny_model(), torch.zeros(0, 4, dtype=torch.long)
    assert (
        greedy(model, none) == []
        and beam(model, none) == []
        and sample(model, none) == []
    )


# ---- limits ----


def test_the_limit_is_source_length_plus_fifty_unless_the_model_ends_before():
    config = tiny_model().config
    src = sources(3)
    assert length_limits(src, config).tolist() == [53, 54, 55]
    assert length_limits(src, config, 20).tolist() == [20] * 3
    assert length_limits(src, tiny_model(max_length=16).config).tolist() == [16] * 3


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_outputs_at_the_limit_are_marked_unfinished(limit):
    model, src = tiny_model(), sources()
    with torch.no_grad():
        model.tgt_embedding.weight[EOS] = 0.0  # the end token never wins
    for h in [
        *greedy(model, src, limit),
        *(hs[0] for hs in beam(model, src, SearchOptions(1, max_length=limit))),
    ]:
        assert not h.finished and len(h.tokens) == limit


def test_each_sentence_of_a_batch_has_its_own_limit():
    model, src = tiny_model(), sources(3)
    with torch.no_grad():
        model.tgt_embedding.weight[EOS] = 0.0
    assert [len(h.tokens) for h in greedy(model, src)] == [53, 54, 55]
    assert [len(hs[0].tokens) for hs in beam(model, src, SearchOptions(1))] == [
        53,
        54,
        55,
    ]


def test_the_last_place_may_be_the_end_token():
    vocab = 4
    model, src = tiny_model(vocab), sources(1, 5, 5).clamp(max=3)
    (found,) = beam(model, src, SearchOptions(max_length=1, n_best=4))
    assert [(h.tokens, h.finished) for h in found] == [([], True), ([3], False)]


def test_the_model_is_used_to_its_last_position():
    model = tiny_model(max_length=8)
    with torch.no_grad():
        model.tgt_embedding.weight[EOS] = 0.0
    assert len(greedy(model, sources())[0].tokens) == 8
    assert len(beam(model, sources(), SearchOptions(2))[0][0].tokens) <= 8


def test_padding_and_begin_are_never_produced():
    model, src = tiny_model(), sources()
    with torch.no_grad():  # both would win every step
        direction = model.decode(
            torch.ones(6, 1, dtype=torch.long), *model.encode(src)
        )[0, -1]
        model.tgt_embedding.weight[[0, 1]] = 10 * direction
    found = [
        *greedy(model, src, 9),
        *sample(model, src, SearchOptions(temperature=3.0)),
    ]
    four = beam(model, src, SearchOptions(max_length=9, n_best=4))
    found += [h for hs in four for h in hs]
    assert all(token not in (0, 1) for h in found for token in h.tokens)


# ---- sampling ----


def test_a_cold_sample_is_greedy():
    model, src = tiny_model(), sources()
    for cold in (dict(temperature=1e-6), dict(top_k=1), dict(top_p=1e-6)):
        drawn = sample(model, src, SearchOptions(**{"temperature": 1.0} | cold))
        assert [h.tokens for h in drawn] == [h.tokens for h in greedy(model, src)]


def frequencies(model, src, temperature=1.0, top_k=None, top_p=1.0):
    draws = 8000
    options = SearchOptions(
        max_length=1, temperature=temperature, top_k=top_k, top_p=top_p, seed=0
    )
    drawn = sample(model, src.expand(draws, -1), options)
    counts = torch.zeros(model.config.tgt_vocab_size)
    for h in drawn:
        counts[h.tokens[0] if h.tokens else EOS] += 1
    return counts / draws


def test_frequencies_match_the_distribution():
    model, src = tiny_model(sharpness=1.0), sources(1)
    logits = model(src, torch.tensor([[1]]))[0, -1].detach()
    logits[[0, 1]] = -math.inf
    plain = logits.softmax(0)
    assert frequencies(model, src) == pytest.approx(plain, abs=0.02)
    assert frequencies(model, src, temperature=0.5) == pytest.approx(
        (logits / 0.5).softmax(0), abs=0.02
    )
    kept = torch.where(plain >= plain.sort(descending=True).values[2], plain, 0.0)
    assert frequencies(model, src, top_k=3) == pytest.approx(
        kept / kept.sum(), abs=0.02
    )
    values, order = plain.sort(descending=True)
    nucleus = order[
        : int((values.cumsum(0) < 0.5).sum()) + 1
    ]  # the fewest tokens that hold half the probability
    kept = torch.zeros_like(plain).scatter(0, nucleus, plain[nucleus])
    assert frequencies(model, src, top_p=0.5) == pytest.approx(
        kept / kept.sum(), abs=0.02
    )


def test_a_seed_repeats_the_draws():
    model, src = tiny_model(sharpness=1.0), sources()
    first, second, other = (
        sample(model, src, SearchOptions(temperature=1.0, seed=s)) for s in (1, 1, 2)
    )
    assert (
        [h.tokens for h in first]
        == [h.tokens for h in second]
        != [h.tokens for h in other]
    )


# ---- faults ----


@pytest.mark.parametrize(
    "setting, message",
    [
        (dict(beam_size=0), "beam_size is 0"),
        (dict(beam_size=2, n_best=3), "n_best is 3.*beam_size of 2"),
        (dict(n_best=0), "n_best is 0"),
        (dict(alpha=math.nan), "alpha is nan"),
        (dict(temperature=0.0), "temperature is 0.0.*beam"),
        (dict(temperature=math.inf), "temperature is inf"),
        (dict(temperature=1.0, top_k=0), "top_k is 0"),
        (dict(temperature=1.0, top_p=0.0), "top_p is 0.0"),
        (dict(temperature=1.0, seed=-1), "seed is -1"),
        (dict(top_k=5), "give a temperature too"),
        (dict(max_length=0), "max_length is 0"),
        (dict(batch_tokens=0), "batch_tokens is 0"),
    ],
)
def test_a_bad_option_is_named(setting, message):
    with pytest.raises(UserError, match=message):
        SearchOptions(**setting)


def test_what_can_not_be_searched_is_named():
    model, src = tiny_model(), sources()
    with pytest.raises(UserError, match="max_length is 0"):
        greedy(model, src, 0)
    with pytest.raises(UserError, match="row 0 holds nothing but padding"):
        beam(model, torch.zeros_like(src))
    with pytest.raises(UserError, match=r"training mode.*model.eval\(\)"):
        greedy(model.train(), src)


def test_search_records_no_gradients():
    model, src = tiny_model(), sources(2)
    assert not force(model, src, torch.tensor([[5, EOS], [6, EOS]])).requires_grad
