"""The small parts of the model: equal to their torch.nn counterparts, deaf to what is
masked, strict about settings.
"""

import dataclasses
import json
import math

import pytest
import torch
import torch.nn.functional as F
from jaxtyping import TypeCheckError
from torch import nn

from annotated_transformer.model.attention import (
    MultiHeadAttention,
    attention,
    causal_mask,
    padding_mask,
)
from annotated_transformer.model.config import (
    BOS,
    EOS,
    PAD,
    UNK,
    TransformerConfig,
    check_config,
    preset,
    table_3,
)
from annotated_transformer.model.embedding import Embedding
from annotated_transformer.model.feed_forward import FeedForward

# batch, queries, keys, heads, size of a head
SHAPES = [(1, 1, 1, 1, 2), (3, 9, 4, 2, 16), (4, 3, 17, 3, 5)]


def close(ours, theirs):
    """Equal but for the rounding of float64."""
    torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=1e-11)


def random_padding(batch, keys):
    """A padding mask with 1 to `keys` real keys in each row, the first row full."""
    lengths = torch.randint(1, keys + 1, (batch,))
    lengths[0] = keys
    return padding_mask((torch.arange(keys) < lengths[:, None]).long(), pad_id=0)


def same_gradients(ours, theirs, our_leaves, their_leaves):
    """The gradients of one scalar of each output, leaf by leaf."""
    direction = torch.randn_like(ours)
    mine = torch.autograd.grad((ours * direction).sum(), our_leaves)
    other = torch.autograd.grad((theirs * direction).sum(), their_leaves)
    for a, b in zip(mine, other, strict=True):
        close(a, b)


@pytest.fixture(autouse=True)
def seeded():
    """The same random numbers in each test, of 64 bits."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


# ---- attention ----


@pytest.mark.parametrize("batch, queries, keys, h, d", SHAPES)
@pytest.mark.parametrize("masked", [False, True])
def test_readable_equals_fused(batch, queries, keys, h, d, masked):
    shapes = [(batch, h, queries, d), (batch, h, keys, d), (batch, h, keys, d + 1)]
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    mask = random_padding(batch, keys) if masked else None
    readable, weights = attention(*inputs, mask)
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    close(readable, theirs)
    close(weights.sum(-1), torch.ones(batch, h, queries))
    same_gradients(readable, theirs, inputs, inputs)


def torch_twin(ours, d_model):
    """PyTorch's module with our weights."""
    twin = nn.MultiheadAttention(d_model, ours.h, bias=False, batch_first=True)
    with torch.no_grad():
        twin.in_proj_weight.copy_(
            torch.cat([ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight])
        )
        twin.out_proj.weight.copy_(ours.W_O.weight)
    return twin


@pytest.mark.parametrize("batch, queries, keys, h, d", SHAPES)
@pytest.mark.parametrize("causal", [False, True])
def test_heads_equal_torch_under_masks(batch, queries, keys, h, d, causal):
    queries = keys if causal else queries
    ours = MultiHeadAttention(h * d, h, d, d)
    twin = torch_twin(ours, h * d)
    x = torch.randn(batch, queries, h * d, requires_grad=True)
    memory = torch.randn(batch, keys, h * d, requires_grad=True)
    mask = causal_mask(keys) if causal else random_padding(batch, keys)
    hidden = ~mask.expand(batch, h, queries, keys).flatten(0, 1)
    theirs, weights = twin(
        x, memory, memory, attn_mask=hidden, average_attn_weights=False
    )
    close(ours(x, memory, mask), theirs)
    if causal:
        close(ours(x, memory, is_causal=True), theirs)
    close(ours.weights(x, memory, mask), weights)
    direction = torch.randn_like(theirs)
    mine = torch.autograd.grad(
        (ours(x, memory, mask) * direction).sum(), [x, memory, *ours.parameters()]
    )
    grad_x, grad_memory, stacked, out = torch.autograd.grad(
        (theirs * direction).sum(),
        [x, memory, twin.in_proj_weight, twin.out_proj.weight],
    )
    for a, b in zip(mine, [grad_x, grad_memory, *stacked.chunk(3), out], strict=True):
        close(a, b)


@pytest.mark.parametrize("d_model, h, d_k, d_v", [(12, 3, 4, 4), (10, 4, 7, 1)])
def test_one_matrix_is_separate_heads(d_model, h, d_k, d_v):
    ours = MultiHeadAttention(d_model, h, d_k, d_v)
    x, memory = torch.randn(2, 5, d_model), torch.randn(2, 6, d_model)
    blocks = [
        layer.weight.T.chunk(h, dim=1) for layer in (ours.W_Q, ours.W_K, ours.W_V)
    ]
    heads = [
        attention(x @ q, memory @ k, memory @ v)[0]
        for q, k, v in zip(*blocks, strict=True)
    ]
    close(ours(x, memory), torch.cat(heads, -1) @ ours.W_O.weight.T)


# ---- masks ----


def test_masks_say_may_attend():
    ids = torch.tensor([[5, 6, EOS, PAD], [5, EOS, PAD, PAD]])
    mask = padding_mask(ids, PAD)
    assert mask.dtype == torch.bool and mask.shape == (2, 1, 1, 4)
    assert mask[:, 0, 0].tolist() == [
        [True, True, True, False],
        [True, True, False, False],
    ]
    assert causal_mask(3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert causal_mask(1).tolist() == [[True]]


def test_a_masked_key_has_no_influence_and_no_gradient():
    ours = MultiHeadAttention(16, 4, 4, 4)
    memory = torch.randn(2, 7, 16, requires_grad=True)
    x = torch.randn(2, 7, 16)
    mask = random_padding(2, 7) & causal_mask(7)
    hidden = ~mask[:, 0]  # (batch, query, key)
    for query in range(7):
        output = ours(x, memory, mask)[:, query]
        gradient = torch.autograd.grad(output.sum(), memory)[0]
        assert (gradient[hidden[:, query]] == 0).all()
        other = torch.where(
            hidden[:, query, :, None], 1000 * torch.randn_like(memory), memory
        )
        assert torch.equal(ours(x, other, mask)[:, query], output)


@pytest.mark.parametrize(
    "query, key, value",
    [
        ((2, 3, 4), (2, 5, 3), (2, 5, 4)),  # sizes of query and key differ
        ((2, 3, 4), (2, 5, 4), (2, 6, 4)),  # a key without a value
    ],
)
def test_shapes_that_do_not_fit_are_named(query, key, value):
    with pytest.raises(TypeCheckError):
        attention(torch.randn(query), torch.randn(key), torch.randn(value))


# ---- feed-forward ----


@pytest.mark.parametrize("shape, d_ff", [((3, 5, 16), 64), ((4, 8), 16)])
def test_feed_forward_equals_torch_layers(shape, d_ff):
    ours = FeedForward(shape[-1], d_ff)
    theirs = nn.TransformerEncoderLayer(
        shape[-1], 1, d_ff, dropout=0.0, batch_first=True
    )
    with torch.no_grad():
        for mine, other in ((ours.W_1, theirs.linear1), (ours.W_2, theirs.linear2)):
            other.load_state_dict(mine.state_dict())
    x = torch.randn(shape, requires_grad=True)
    expected = theirs.linear2(theirs.linear1(x).relu())
    close(ours(x), expected)
    others = [*theirs.linear1.parameters(), *theirs.linear2.parameters()]
    same_gradients(ours(x), expected, [x, *ours.parameters()], [x, *others])


# ---- embedding ----


@pytest.mark.parametrize("vocab, d_model, batch, n", [(5, 4, 1, 1), (50, 16, 3, 7)])
def test_embedding_equals_torch_both_ways(vocab, d_model, batch, n):
    ours = Embedding(vocab, d_model)
    way_in = nn.Embedding(vocab, d_model)
    way_out = nn.Linear(d_model, vocab, bias=False)
    with torch.no_grad():
        way_in.weight.copy_(ours.weight)
        way_out.weight.copy_(ours.weight)
    ids = torch.randint(vocab, (batch, n))
    close(ours(ids), way_in(ids) * math.sqrt(d_model))
    mine = ours.logits(ours(ids).tanh())
    theirs = way_out((way_in(ids) * math.sqrt(d_model)).tanh())
    close(mine, theirs)
    direction = torch.randn_like(mine)
    tied = torch.autograd.grad((mine * direction).sum(), ours.weight)[0]
    apart = torch.autograd.grad(
        (theirs * direction).sum(), [way_in.weight, way_out.weight]
    )
    assert all(gradient.abs().sum() > 0 for gradient in apart)
    close(tied, apart[0] + apart[1])


# ---- configuration ----


SIZES = "src_vocab_size tgt_vocab_size N d_model d_ff h d_k d_v max_length".split()
IDS = ["pad_id", "bos_id", "eos_id"]


def named(names, values, *words):
    """Each setting of these names with each of these values, and what an error says."""
    return [({n: v}, [n, repr(v), *words]) for n in names for v in values]


WRONG = [
    *named(SIZES, [0, 2.0, "8", True], "whole number"),
    *named(["d_model"], [513], "even"),
    *named(["dropout"], [-0.1, 1.0, math.nan, "0.1", None], "at least 0 and below 1"),
    *named(["positions"], ["learnt"], "did you mean 'learned'"),
    *named(["positions"], [None], "learned, sinusoidal"),
    *named(["src_vocab_size"], [100], "shared", "37000", "shared_vocab=False"),
    *named(["shared_vocab"], ["false"], "True or False"),
    *named(IDS, [-1, 37000, 1.0], "36999"),
    (
        {"src_vocab_size": 10, "shared_vocab": False, "bos_id": 10},
        ["bos_id", "10", "0 to 9"],
    ),
    ({"eos_id": PAD}, ["pad_id", "eos_id", "differ"]),
    ({"eos_id": BOS}, ["bos_id", "eos_id", "differ"]),
]


def unchecked(settings):
    """A configuration made without its constructor: while tests run, that refuses wrong
    types before we can.
    """
    config = object.__new__(TransformerConfig)
    for name, value in {**TransformerConfig().to_dict(), **settings}.items():
        object.__setattr__(config, name, value)
    return config


@pytest.mark.parametrize("settings, words", WRONG, ids=lambda value: str(value)[:40])
def test_each_wrong_setting_is_named_with_its_remedy(settings, words):
    with pytest.raises(ValueError) as caught:
        check_config(unchecked(settings))
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: TransformerConfig.from_dict({"d_modle": 1}), "'d_modle'.*'d_model'"),
        (lambda: TransformerConfig.from_dict({"n": 1}), "setting 'n'.*N"),
        (lambda: preset("bas"), "unknown preset 'bas': did you mean 'base'"),
        (lambda: preset("enormous"), "choose one of: A-1-head, .*big"),
    ],
)
def test_misspelt_names_get_the_nearest_or_all(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_configuration_is_a_value():
    config = preset("big")
    assert (
        TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    )
    assert hash(config) == hash(preset("big")) and config != preset("base")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.N = 1
    with pytest.raises(ValueError, match="N is 0"):
        dataclasses.replace(config, N=0)


def test_begin_may_be_padding_but_end_may_not():
    """Some published models start their decoder with the padding id."""
    assert TransformerConfig(bos_id=PAD).bos_id == PAD
    assert len({PAD, BOS, EOS, UNK}) == 4


def test_the_rows_are_the_papers():
    """What each row of Table 3 changes, as it is printed there."""
    rows = table_3()
    assert len(rows) == 20
    base = rows["base"]
    assert (base.N, base.d_model, base.d_ff, base.h) == (6, 512, 2048, 8)
    assert (base.d_k, base.d_v, base.dropout) == (64, 64, 0.1)
    changes = {
        "A-1-head": {"h": 1, "d_k": 512, "d_v": 512},
        "A-4-heads": {"h": 4, "d_k": 128, "d_v": 128},
        "A-16-heads": {"h": 16, "d_k": 32, "d_v": 32},
        "A-32-heads": {"h": 32, "d_k": 16, "d_v": 16},
        "B-16-keys": {"d_k": 16},
        "B-32-keys": {"d_k": 32},
        **{f"C-{n}-layers": {"N": n} for n in (2, 4, 8)},
        "C-256-model": {"d_model": 256, "d_k": 32, "d_v": 32},
        "C-1024-model": {"d_model": 1024, "d_k": 128, "d_v": 128},
        **{f"C-{n}-ff": {"d_ff": n} for n in (1024, 4096)},
        "D-no-dropout": {"dropout": 0.0},
        "D-dropout-0.2": {"dropout": 0.2},
        "E-learned-positions": {"positions": "learned"},
        "big": {"d_model": 1024, "d_ff": 4096, "h": 16, "dropout": 0.3},
    }
    for name, row in rows.items():
        assert row == dataclasses.replace(base, **changes.get(name, {})), name
