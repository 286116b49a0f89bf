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

from annotated_transformer.errors import nearest
from annotated_transformer.model.attention import (
    MultiHeadAttention,
    attention,
    causal_mask,
    padding_mask,
    split_heads,
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
SHAPES = [
    (1, 1, 1, 1, 2),
    (2, 5, 7, 4, 8),
    (3, 9, 4, 2, 16),
    (2, 6, 6, 8, 4),
    (4, 3, 17, 3, 5),
]
DTYPES = {torch.float32: 1e-5, torch.float64: 1e-11}


def close(ours, theirs, tolerance):
    """Equal to an absolute and relative tolerance, with the largest error in the
    message.
    """
    torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


def random_padding(batch, keys):
    """A padding mask with 1 to `keys` real keys in each row, the first row full."""
    lengths = torch.randint(1, keys + 1, (batch,))
    lengths[0] = keys
    return padding_mask((torch.arange(keys) < lengths[:, None]).long(), pad_id=0)


def same_gradients(ours, theirs, our_leaves, their_leaves, tolerance):
    """The gradients of one scalar of each output, leaf by leaf."""
    direction = torch.randn_like(ours)
    mine = torch.autograd.grad((ours * direction).sum(), our_leaves)
    other = torch.autograd.grad((theirs * direction).sum(), their_leaves)
    for a, b in zip(mine, other, strict=True):
        close(a, b, tolerance)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# ---- attention ----


def attention_in_loops(query, key, value, mask):
    """Equation (1) for one sentence, number by number, in plain Python."""
    rows = []
    for i in range(len(query)):
        scores = [
            sum(float(a) * float(b) for a, b in zip(query[i], key[j], strict=True))
            / math.sqrt(len(query[i]))
            for j in range(len(key))
            if mask[i, j]
        ]
        allowed = [j for j in range(len(key)) if mask[i, j]]
        total = sum(math.exp(score) for score in scores)
        rows.append(
            [
                sum(
                    math.exp(s) / total * float(value[j][c])
                    for s, j in zip(scores, allowed, strict=True)
                )
                for c in range(value.shape[1])
            ]
        )
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize(
    "queries, keys, d_k, d_v", [(1, 1, 1, 1), (4, 6, 3, 5), (7, 2, 8, 1)]
)
def test_attention_equals_loops_of_plain_python(queries, keys, d_k, d_v):
    query, key, value = (
        torch.randn(queries, d_k),
        torch.randn(keys, d_k),
        torch.randn(keys, d_v),
    )
    mask = torch.rand(queries, keys) > 0.4
    mask[:, 0] = True
    close(
        attention(query, key, value, mask)[0].double(),
        attention_in_loops(query, key, value, mask),
        1e-5,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch, queries, keys, h, d", SHAPES)
@pytest.mark.parametrize("masked", [False, True])
def test_readable_equals_fused(batch, queries, keys, h, d, dtype, masked):
    shapes = [(batch, h, queries, d), (batch, h, keys, d), (batch, h, keys, d + 1)]
    inputs = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    mask = random_padding(batch, keys) if masked else None
    readable, weights = attention(*inputs, mask)
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    close(readable, theirs, DTYPES[dtype])
    close(weights.sum(-1), torch.ones(batch, h, queries, dtype=dtype), DTYPES[dtype])
    same_gradients(readable, theirs, inputs, inputs, DTYPES[dtype])


def torch_twin(ours, d_model):
    """PyTorch's module with our weights."""
    twin = nn.MultiheadAttention(
        d_model, ours.h, bias=False, batch_first=True, dtype=ours.W_Q.weight.dtype
    )
    with torch.no_grad():
        twin.in_proj_weight.copy_(
            torch.cat([ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight])
        )
        twin.out_proj.weight.copy_(ours.W_O.weight)
    return twin


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch, queries, keys, h, d", SHAPES)
def test_heads_equal_torch_under_padding(batch, queries, keys, h, d, dtype):
    ours = MultiHeadAttention(h * d, h, d, d).to(dtype)
    twin = torch_twin(ours, h * d)
    x = torch.randn(batch, queries, h * d, dtype=dtype, requires_grad=True)
    memory = torch.randn(batch, keys, h * d, dtype=dtype, requires_grad=True)
    mask = random_padding(batch, keys)
    theirs, weights = twin(
        x, memory, memory, key_padding_mask=~mask[:, 0, 0], average_attn_weights=False
    )
    close(ours(x, memory, mask), theirs, DTYPES[dtype])
    close(ours.weights(x, memory, mask), weights, DTYPES[dtype])
    direction = torch.randn_like(theirs)
    mine = torch.autograd.grad(
        (ours(x, memory, mask) * direction).sum(), [x, memory, *ours.parameters()]
    )
    grad_x, grad_memory, stacked, out = torch.autograd.grad(
        (theirs * direction).sum(),
        [x, memory, twin.in_proj_weight, twin.out_proj.weight],
    )
    for a, b in zip(mine, [grad_x, grad_memory, *stacked.chunk(3), out], strict=True):
        close(a, b, DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 9])
def test_heads_equal_torch_under_the_triangle(n, dtype):
    ours = MultiHeadAttention(24, 3, 8, 8).to(dtype)
    x = torch.randn(2, n, 24, dtype=dtype, requires_grad=True)
    theirs, _ = torch_twin(ours, 24)(x, x, x, attn_mask=~causal_mask(n))
    close(ours(x, x, causal_mask(n)), theirs, DTYPES[dtype])
    same_gradients(ours(x, x, causal_mask(n)), theirs, [x], [x], DTYPES[dtype])


@pytest.mark.parametrize(
    "d_model, h, d_k, d_v", [(12, 3, 4, 4), (12, 3, 2, 5), (10, 4, 7, 1), (8, 1, 16, 3)]
)
def test_one_matrix_is_separate_heads(d_model, h, d_k, d_v):
    ours = MultiHeadAttention(d_model, h, d_k, d_v).double()
    x, memory = torch.randn(2, 5, d_model).double(), torch.randn(2, 6, d_model).double()
    blocks = [
        layer.weight.T.chunk(h, dim=1) for layer in (ours.W_Q, ours.W_K, ours.W_V)
    ]
    heads = [
        attention(x @ q, memory @ k, memory @ v)[0]
        for q, k, v in zip(*blocks, strict=True)
    ]
    close(ours(x, memory), torch.cat(heads, -1) @ ours.W_O.weight.T, 1e-11)


def test_head_i_is_block_i():
    x = torch.arange(24).view(1, 2, 12).float()
    heads = split_heads(x, 3)
    assert heads.shape == (1, 3, 2, 4)
    assert torch.equal(heads[0, 1], x[0, :, 4:8])


def test_keys_may_be_computed_ahead_and_kept():
    ours = MultiHeadAttention(16, 4, 4, 4)
    x = torch.randn(2, 6, 16)
    full = ours(x, x, causal_mask(6))
    key, value = ours.keys_values(x)
    close(ours.attend(ours.queries(x[:, -1:]), key, value), full[:, -1:], 1e-5)
    close(
        ours.attend(ours.queries(x[:, 2:3]), key[:, :, :3], value[:, :, :3]),
        full[:, 2:3],
        1e-5,
    )


def test_attention_has_no_dropout_and_no_bias():
    ours = MultiHeadAttention(16, 4, 4, 4)
    x = torch.randn(2, 6, 16)
    assert torch.equal(ours.train()(x, x), ours.eval()(x, x))
    assert [name for name, _ in ours.named_parameters()] == [
        f"W_{letter}.weight" for letter in "QKVO"
    ]


def test_order_means_nothing_without_a_mask():
    ours = MultiHeadAttention(16, 4, 4, 4).double()
    x, order = torch.randn(2, 6, 16).double(), torch.randperm(6)
    close(ours(x[:, order], x[:, order]), ours(x, x)[:, order], 1e-12)
    close(ours(x, x[:, order]), ours(x, x), 1e-12)


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


@pytest.mark.parametrize("kind", ["padding", "causal"])
def test_a_masked_key_has_no_influence_and_no_gradient(kind):
    ours = MultiHeadAttention(16, 4, 4, 4)
    memory = torch.randn(2, 7, 16, requires_grad=True)
    x = torch.randn(2, 7, 16)
    mask = random_padding(2, 7) if kind == "padding" else causal_mask(7)
    mask = mask.expand(2, 1, 7, 7).clone()
    hidden = ~mask[:, 0]  # (batch, query, key)
    for query in range(7):
        output = ours(x, memory, mask)[:, query]
        gradient = torch.autograd.grad(output.sum(), memory)[0]
        assert (gradient[hidden[:, query]] == 0).all()
        other = torch.where(
            hidden[:, query, :, None], 1000 * torch.randn_like(memory), memory
        )
        assert torch.equal(ours(x, other, mask)[:, query], output)


def test_a_row_without_a_key():
    query, key, value = (
        torch.randn(2, 4),
        torch.randn(3, 4),
        torch.randn(3, 4, requires_grad=True),
    )
    mask = torch.tensor([[True, False, True], [False, False, False]])
    output, _ = attention(query, key, value, mask)
    assert output[1].isnan().all() and not output[0].isnan().any()
    assert torch.autograd.grad(output[0].sum(), value)[0].isnan().all()
    query, key, value = query[None], key[None], value[None]
    assert (F.scaled_dot_product_attention(query, key, value, mask)[0, 1] == 0).all()


def test_nan_leaks_through_a_masked_value():
    value = torch.ones(2, 3)
    value[1] = math.nan
    output, weights = attention(
        torch.randn(1, 3), torch.randn(2, 3), value, torch.tensor([[True, False]])
    )
    assert weights.tolist() == [[1.0, 0.0]] and output.isnan().all()


def test_the_library_aligns_its_triangle_top_left():
    """Why no code of ours says is_causal: with one query and many keys it would see the
    first key alone.
    """
    query, key, value = (
        torch.randn(1, 2, 1, 4),
        torch.randn(1, 2, 5, 4),
        torch.randn(1, 2, 5, 4),
    )
    close(
        F.scaled_dot_product_attention(query, key, value, is_causal=True),
        value[:, :, :1],
        1e-6,
    )


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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape, d_ff", [((1, 1, 2), 1), ((3, 5, 16), 64), ((2, 9, 32), 7), ((4, 8), 16)]
)
def test_feed_forward_equals_torch_layers(shape, d_ff, dtype):
    ours = FeedForward(shape[-1], d_ff).to(dtype)
    theirs = nn.TransformerEncoderLayer(
        shape[-1], 1, d_ff, dropout=0.0, batch_first=True, dtype=dtype
    )
    with torch.no_grad():
        for mine, other in ((ours.W_1, theirs.linear1), (ours.W_2, theirs.linear2)):
            other.load_state_dict(mine.state_dict())
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    expected = theirs.linear2(theirs.linear1(x).relu())
    close(ours(x), expected, DTYPES[dtype])
    others = [*theirs.linear1.parameters(), *theirs.linear2.parameters()]
    same_gradients(
        ours(x), expected, [x, *ours.parameters()], [x, *others], DTYPES[dtype]
    )


def test_feed_forward_is_two_convolutions_and_one_position_at_a_time():
    ours = FeedForward(6, 10).double()
    x = torch.randn(2, 5, 6).double()
    hidden = F.conv1d(
        x.transpose(1, 2), ours.W_1.weight[:, :, None], ours.W_1.bias
    ).relu()
    close(
        F.conv1d(hidden, ours.W_2.weight[:, :, None], ours.W_2.bias).transpose(1, 2),
        ours(x),
        1e-12,
    )
    close(torch.stack([ours(x[:, i]) for i in range(5)], 1), ours(x), 1e-12)
    assert [name for name, _ in ours.named_parameters()] == [
        "W_1.weight",
        "W_1.bias",
        "W_2.weight",
        "W_2.bias",
    ]


# ---- embedding ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "vocab, d_model, batch, n", [(5, 4, 1, 1), (50, 16, 3, 7), (11, 64, 2, 20)]
)
def test_embedding_equals_torch_both_ways(vocab, d_model, batch, n, dtype):
    ours = Embedding(vocab, d_model).to(dtype)
    way_in = nn.Embedding(vocab, d_model, dtype=dtype)
    way_out = nn.Linear(d_model, vocab, bias=False, dtype=dtype)
    with torch.no_grad():
        way_in.weight.copy_(ours.weight)
        way_out.weight.copy_(ours.weight)
    ids = torch.randint(vocab, (batch, n))
    close(ours(ids), way_in(ids) * math.sqrt(d_model), DTYPES[dtype])
    mine = ours.logits(ours(ids).tanh())
    theirs = way_out((way_in(ids) * math.sqrt(d_model)).tanh())
    close(mine, theirs, DTYPES[dtype])
    direction = torch.randn_like(mine)
    tied = torch.autograd.grad((mine * direction).sum(), ours.weight)[0]
    apart = torch.autograd.grad(
        (theirs * direction).sum(), [way_in.weight, way_out.weight]
    )
    assert all(gradient.abs().sum() > 0 for gradient in apart)
    close(tied, apart[0] + apart[1], DTYPES[dtype])


@pytest.mark.parametrize("d_model", [32, 512])
@pytest.mark.parametrize("vocab", [500, 5000])
def test_size_of_token_vectors_depends_on_neither_vocabulary_nor_model(vocab, d_model):
    embedding = Embedding(vocab, d_model)
    assert abs(embedding(torch.arange(vocab)[None]).std().item() - 1) < 0.02
    hidden = F.layer_norm(torch.randn(200, d_model), (d_model,))
    assert abs(embedding.logits(hidden).std().item() - 1) < 0.05


# ---- configuration ----


SIZES = [
    "src_vocab_size",
    "tgt_vocab_size",
    "N",
    "d_model",
    "d_ff",
    "h",
    "d_k",
    "d_v",
    "max_length",
]
OUT_OF_RANGE = (
    [
        ({name: value}, [name, repr(value), "whole number"])
        for name in SIZES
        for value in (0, -1)
    ]
    + [({"d_model": 513}, ["d_model", "513", "even"])]
    + [
        ({"dropout": value}, ["dropout", repr(value), "at least 0 and below 1"])
        for value in (-0.1, 1.0, math.nan)
    ]
    + [({"positions": "learnt"}, ["positions", "'learnt'", "did you mean 'learned'"])]
    + [
        (
            {"src_vocab_size": 100},
            ["shared vocabulary", "100", "37000", "shared_vocab=False"],
        )
    ]
    + [
        ({name: value}, [name, repr(value), "36999"])
        for name in ("pad_id", "bos_id", "eos_id")
        for value in (-1, 37000)
    ]
    + [
        (
            {"src_vocab_size": 10, "shared_vocab": False, "bos_id": 10},
            ["bos_id", "10", "0 to 9"],
        )
    ]
    + [
        ({"eos_id": PAD}, ["pad_id", "eos_id", "differ"]),
        ({"eos_id": BOS}, ["bos_id", "eos_id", "differ"]),
    ]
)
WRONG_TYPE = (
    [
        ({name: value}, [name, repr(value), "whole number"])
        for name in SIZES
        for value in (2.0, "8", None, True)
    ]
    + [
        ({"dropout": value}, ["dropout", repr(value), "at least 0 and below 1"])
        for value in ("0.1", None)
    ]
    + [({"positions": None}, ["positions", "None", "learned, sinusoidal"])]
    + [({name: 1.0}, [name, "1.0", "36999"]) for name in ("pad_id", "bos_id", "eos_id")]
    + [({"shared_vocab": "false"}, ["shared_vocab", "'false'", "True or False"])]
)


def unchecked(settings):
    """A configuration made without its constructor: while tests run, that refuses wrong
    types before we can.
    """
    config = object.__new__(TransformerConfig)
    for name, value in {**TransformerConfig().to_dict(), **settings}.items():
        object.__setattr__(config, name, value)
    return config


def assert_named(caught, words):
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, str(caught.value)


@pytest.mark.parametrize(
    "settings, words", OUT_OF_RANGE, ids=lambda value: str(value)[:40]
)
def test_each_setting_out_of_range_is_named_with_its_remedy(settings, words):
    with pytest.raises(ValueError) as caught:
        TransformerConfig.from_dict(settings)
    assert_named(caught, words)


@pytest.mark.parametrize(
    "settings, words", WRONG_TYPE, ids=lambda value: str(value)[:40]
)
def test_each_setting_of_a_wrong_type_is_named_with_its_remedy(settings, words):
    with pytest.raises(ValueError) as caught:
        check_config(unchecked(settings))
    assert_named(caught, words)


@pytest.mark.parametrize(
    "wrong, right",
    [
        ("d_modle", "d_model"),
        ("D_model", "d_model"),
        ("droput", "dropout"),
        ("n", "N"),
        ("max_len", "max_length"),
        ("src_vocab", "src_vocab_size"),
        ("position", "positions"),
    ],
)
def test_misspelt_settings_get_the_nearest_name(wrong, right):
    with pytest.raises(
        ValueError, match=f"unknown architecture setting '{wrong}'"
    ) as caught:
        TransformerConfig.from_dict({wrong: 1})
    assert right in str(caught.value)


@pytest.mark.parametrize(
    "wrong, right", [("bas", "base"), ("bigg", "big"), ("C-2-layer", "C-2-layers")]
)
def test_misspelt_presets_get_the_nearest_name(wrong, right):
    with pytest.raises(
        ValueError, match=f"unknown preset '{wrong}': did you mean '{right}'"
    ):
        preset(wrong)


def test_a_name_like_no_other_gets_all_of_them():
    assert nearest("zzz", ["b", "a"]) == "choose one of: a, b"
    with pytest.raises(ValueError, match="choose one of: A-1-head, .*big"):
        preset("enormous")


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


# N, d_model, d_ff, h, d_k, d_v, P_drop: read off the paper's Table 3
BASE = (6, 512, 2048, 8, 64, 64, 0.1)
TABLE_3 = {
    "base": BASE,
    "A-1-head": (6, 512, 2048, 1, 512, 512, 0.1),
    "A-4-heads": (6, 512, 2048, 4, 128, 128, 0.1),
    "A-16-heads": (6, 512, 2048, 16, 32, 32, 0.1),
    "A-32-heads": (6, 512, 2048, 32, 16, 16, 0.1),
    "B-16-keys": (6, 512, 2048, 8, 16, 64, 0.1),
    "B-32-keys": (6, 512, 2048, 8, 32, 64, 0.1),
    "C-2-layers": (2, 512, 2048, 8, 64, 64, 0.1),
    "C-4-layers": (4, 512, 2048, 8, 64, 64, 0.1),
    "C-8-layers": (8, 512, 2048, 8, 64, 64, 0.1),
    "C-256-model": (6, 256, 2048, 8, 32, 32, 0.1),
    "C-1024-model": (6, 1024, 2048, 8, 128, 128, 0.1),
    "C-1024-ff": (6, 512, 1024, 8, 64, 64, 0.1),
    "C-4096-ff": (6, 512, 4096, 8, 64, 64, 0.1),
    "D-no-dropout": (6, 512, 2048, 8, 64, 64, 0.0),
    "D-dropout-0.2": (6, 512, 2048, 8, 64, 64, 0.2),
    "D-no-smoothing": BASE,
    "D-smoothing-0.2": BASE,
    "E-learned-positions": BASE,
    "big": (6, 1024, 4096, 16, 64, 64, 0.3),
}


def test_the_twenty_rows_are_the_papers():
    rows = table_3()
    assert list(rows) == list(TABLE_3)
    for name, row in rows.items():
        assert (
            row.N,
            row.d_model,
            row.d_ff,
            row.h,
            row.d_k,
            row.d_v,
            row.dropout,
        ) == TABLE_3[name], name
        assert row.positions == ("learned" if name.startswith("E") else "sinusoidal")
        assert row.src_vocab_size == row.tgt_vocab_size == 37000 and row.shared_vocab
