"""The recurrent baseline and simple self-attention."""

import pytest
import torch
from torch import nn

from annotated_transformer.before.graph import longest_chain
from annotated_transformer.before.recurrent import AdditiveAttention, gru_step
from annotated_transformer.before.recurrent_model import RecurrentModel
from annotated_transformer.before.self_attention import (
    SelfAttention,
)
from annotated_transformer.translation.recurrent_translator import RecurrentConfig


@pytest.fixture
def model() -> RecurrentModel:
    torch.manual_seed(0)
    return RecurrentModel(RecurrentConfig(20, 30, False, d_model=16)).eval()


@pytest.fixture
def src() -> torch.Tensor:
    return torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])


def test_a_step_is_torchs_step():
    torch.manual_seed(0)
    cell = nn.GRUCell(5, 5).double()
    x, h = torch.randn(2, 3, 5, dtype=torch.float64)
    ours = gru_step(x, h, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    torch.testing.assert_close(ours, cell(x, h))


def test_additive_attention_is_the_formula():
    torch.manual_seed(0)
    part = AdditiveAttention(4).double()
    state, memory = torch.randn(1, 4).double(), torch.randn(1, 3, 4).double()
    with torch.no_grad():
        mask = torch.tensor([[True, True, False]])
        found, weights = part(state, memory, part.U(memory), mask)
        score = [
            part.v.weight[0] @ torch.tanh(part.W.weight @ state[0] + part.U.weight @ h)
            for h in memory[0, :2]
        ]
    expected = torch.stack(score).softmax(dim=0)
    torch.testing.assert_close(weights[0, :2], expected)
    assert weights[0, 2] == 0
    torch.testing.assert_close(found[0], expected @ memory[0, :2])


def test_the_longest_chain_passes_by_shortcuts():
    x = torch.ones(3, requires_grad=True)
    once = x * 2
    assert longest_chain(once) == longest_chain(x + 1) == 2  # and x itself
    assert longest_chain(once.exp().log() + once) == 5


def test_neither_the_future_nor_padding_is_seen(model, src):
    tgt, other = torch.tensor([[1, 9, 10]] * 2), torch.tensor([[1, 9, 12]] * 2)
    with torch.no_grad():
        found = model(src, tgt)
        torch.testing.assert_close(model(src, other)[:, :2], found[:, :2])
        torch.testing.assert_close(model(src[1:, :2], tgt[1:]), found[1:])


def test_a_cache_has_rows_for_each_beam_and_follows_orders(model, src):
    beam_size = 3
    with torch.no_grad():
        cache = model.start(src, beam_size)
        tokens = torch.arange(3, 3 + 2 * beam_size)
        first = model.step(tokens, cache)
        order = torch.arange(2 * beam_size).flip(0)
        cache.reorder(order)
        second = model.step(tokens[order], cache)
    rows = src.repeat_interleave(beam_size, dim=0)
    begun = torch.stack([tokens, tokens], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(second.flip(0), model(rows, begun)[:, 1])
        torch.testing.assert_close(first, model(rows, begun)[:, 0])


def test_self_attention_is_torchs_attention():
    torch.manual_seed(0)
    part, x = SelfAttention(6, 4), torch.randn(2, 5, 6)
    expected = nn.functional.scaled_dot_product_attention(
        part.W_Q(x), part.W_K(x), part.W_V(x)
    )
    torch.testing.assert_close(part(x)[0], expected)
