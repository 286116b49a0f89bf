"""The model as a whole: equal to torch.nn, blind to the future and to padding, the same
with a cache and without.
"""

import copy
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from annotated_transformer.model.attention import (
    MultiHeadAttention,
    causal_mask,
    padding_mask,
)
from annotated_transformer.model.config import BOS, EOS, PAD, TransformerConfig
from annotated_transformer.model.layers import AddNorm, DecoderLayer, KVCache
from annotated_transformer.model.position import (
    LearnedPositions,
    SinusoidalPositions,
    sinusoids,
)
from annotated_transformer.model.transformer import Transformer

SIZES = dict(N=3, d_model=32, d_ff=48, h=4, d_k=8, d_v=8, max_length=16)
SMALL = TransformerConfig(src_vocab_size=40, tgt_vocab_size=40, dropout=0.0, **SIZES)
SRC = torch.tensor(
    [[5, 6, 7, 8, EOS], [9, 10, EOS, PAD, PAD], [11, EOS, PAD, PAD, PAD]]
)
TGT = torch.tensor(
    [
        [BOS, 20, 21, 22, 23, 24],
        [BOS, 25, 26, 27, PAD, PAD],
        [BOS, 28, 29, PAD, PAD, PAD],
    ]
)


def random_model(**changes) -> Transformer:
    """A small model in evaluation whose norms have random gains and biases, so that
    none of them is a bystander.
    """
    torch.manual_seed(0)
    model = Transformer(replace(SMALL, **changes)).eval()
    randomise_norms(model)
    return model


def randomise_norms(module: nn.Module) -> None:
    with torch.no_grad():
        for norm in (m for m in module.modules() if isinstance(m, nn.LayerNorm)):
            norm.weight.add_(0.3 * torch.randn_like(norm.weight))
            norm.bias.add_(0.3 * torch.randn_like(norm.bias))


@pytest.fixture(autouse=True)
def no_fast_path():
    """torch.nn's inference fast path has changed outputs under padding; the reference
    is the plain path.
    """
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(before)


# ---- equal to torch.nn ----


def twins(ours: nn.Module, theirs: nn.Module) -> Iterator[tuple[list, nn.Parameter]]:
    """Our parameters beside that of torch.nn's layer which holds them all."""
    pairs = [(ours.self_attention, theirs.self_attn)]
    if isinstance(ours, DecoderLayer):
        pairs.append((ours.source_attention, theirs.multihead_attn))
    for our, their in pairs:
        yield [our.W_Q.weight, our.W_K.weight, our.W_V.weight], their.in_proj_weight
        yield [our.W_O.weight], their.out_proj.weight
    norms = [part.norm for part in ours.children() if isinstance(part, AddNorm)]
    others = [getattr(theirs, f"norm{n}") for n in range(1, len(norms) + 1)]
    layers = [*norms, ours.feed_forward.W_1, ours.feed_forward.W_2]
    for our, their in zip(
        layers, [*others, theirs.linear1, theirs.linear2], strict=True
    ):
        yield [our.weight], their.weight
        yield [our.bias], their.bias


def close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    return torch.allclose(ours, theirs, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def torch_stacks(model: Transformer) -> nn.Transformer:
    """nn.Transformer with our weights and without the final norms that post-norm
    doesn't have.
    """
    theirs = nn.Transformer(32, 4, 3, 3, 48, dropout=0.0, batch_first=True)
    theirs.encoder.norm = theirs.decoder.norm = None
    theirs.encoder.enable_nested_tensor = False
    for our_stack, their_stack in [
        (model.encoder, theirs.encoder),
        (model.decoder, theirs.decoder),
    ]:
        for ours, their_layer in zip(our_stack.layers, their_stack.layers, strict=True):
            for parts, whole in twins(ours, their_layer):
                whole.copy_(torch.cat(parts))
            for name, bias in their_layer.named_parameters():
                if name.endswith(("in_proj_bias", "out_proj.bias")):
                    bias.zero_()  # we have none
    return theirs


def test_the_model_equals_torch_forward_and_in_every_gradient():
    model = random_model()
    theirs = torch_stacks(model)
    padding = ~padding_mask(SRC, PAD)[:, 0, 0]

    weight, codes = model.tgt_embedding.weight, sinusoids(16, 32)
    x, y = (
        F.embedding(ids, weight) * math.sqrt(32) + codes[: ids.size(1)]
        for ids in (SRC, TGT)
    )
    hidden = theirs(
        x,
        y,
        tgt_mask=~causal_mask(6),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    answer = torch.cat([TGT[:, 1:], torch.full((3, 1), EOS)], dim=1).flatten()
    found = []
    for scores in (model(SRC, TGT), hidden @ weight.T):
        loss = F.cross_entropy(scores.flatten(0, 1), answer, ignore_index=PAD)
        loss.backward()
        found.append((scores, weight.grad.clone()))
        weight.grad = None
    (ours, gradient), (expected, their_gradient) = found
    assert close(ours, expected)
    assert close(gradient, their_gradient) and gradient.norm() > 0.1
    for side in ("encoder", "decoder"):
        layers = (getattr(each, side).layers for each in (model, theirs))
        for our_layer, their_layer in zip(*layers, strict=True):
            for parts, whole in twins(our_layer, their_layer):
                grads = torch.cat([part.grad for part in parts])
                assert close(grads, whole.grad) and grads.norm() > 0


# ---- what may influence what ----


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("where", [0, 2, 5])
def test_the_future_changes_nothing(positions, where):
    model = random_model(positions=positions)
    changed = TGT.clone()
    changed[0, where] = 33
    moved = (model(SRC, changed) - model(SRC, TGT))[0].abs().amax(dim=1)
    assert (moved[:where] == 0).all()
    assert (moved[where:] > 1e-4).all()


def test_padding_and_batch_mates_change_nothing():
    model = random_model()
    together = model(SRC, TGT)
    for row, (src, tgt) in enumerate(zip(SRC, TGT, strict=True)):
        src, tgt = src[src != PAD], tgt[tgt != PAD]
        alone = model(src[None], tgt[None])[0]
        assert torch.allclose(alone, together[row, : len(tgt)], atol=1e-5)


# ---- the cache ----


def stepwise(model: Transformer, src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
    cache = model.start(src)
    scores = torch.stack([model.step(tokens, cache) for tokens in tgt.unbind(1)], dim=1)
    assert cache.length == tgt.size(1)
    return scores


@pytest.mark.parametrize(
    "changes",
    [{}, {"positions": "learned"}, {"d_k": 4}, {"d_v": 12}]
    + [{"shared_vocab": False, "src_vocab_size": 50}],
    ids=str,
)
def test_cached_equals_uncached(changes):
    model = random_model(**changes)
    src = SRC + 9 * (SRC > 10) * ("shared_vocab" in changes)
    assert torch.allclose(stepwise(model, src, TGT), model(src, TGT), atol=1e-5)


@pytest.mark.parametrize("rows", [[1, 1, 0, 2], [2]])
@pytest.mark.parametrize("read", [0, 3])
def test_reordered_cache_continues_as_the_reordered_batch(rows, read):
    model, rows = random_model(), torch.tensor(rows)
    cache = model.start(SRC)
    for tokens in TGT[:, :read].unbind(1):
        model.step(tokens, cache)
    cache.reorder(rows)
    rest = [model.step(tokens, cache) for tokens in TGT[rows, read:].unbind(1)]
    assert torch.allclose(
        torch.stack(rest, dim=1), model(SRC, TGT)[rows, read:], atol=1e-5
    )


def test_a_cache_keeps_what_it_read():
    keys, values = torch.randn(2, 3, 40, 8), torch.randn(2, 3, 40, 5)
    cache = KVCache(keys[:, :, :0], values[:, :, :0])
    for start, end in [(0, 3), *((n, n + 1) for n in range(3, 40))]:
        key, value = cache.update(keys[:, :, start:end], values[:, :, start:end])
        assert torch.equal(key, keys[:, :, :end])
        assert torch.equal(value, values[:, :, :end])


def test_start_gives_each_source_neighbouring_rows():
    model, whole = random_model(), random_model()(SRC, TGT)
    cache = model.start(SRC, beam_size=3)
    for place, tokens in enumerate(TGT.unbind(1)):
        rows = model.step(tokens.repeat_interleave(3), cache)
        expected = whole[:, place].repeat_interleave(3, dim=0)
        assert torch.allclose(rows, expected, atol=1e-5)


# ---- too long ----


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_longer_than_max_length_is_refused(positions):
    model = random_model(positions=positions)
    longest, longer = torch.full((1, 16), 5), torch.full((1, 17), 5)
    assert model(longest, longest).shape == (1, 16, 40)
    for whole in (model, partial(stepwise, model)):
        with pytest.raises(ValueError, match="17 tokens .* max_length of 16"):
            whole(SRC[:1], longer)
    with pytest.raises(ValueError, match="17 tokens .* max_length of 16: split"):
        model(longer, TGT[:1])


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_a_slice_with_one_row_left_is_not_broadcast(kind):
    with pytest.raises(ValueError, match="max_length of 8"):
        kind(8, 4)(torch.zeros(1, 3, 4), start=7)


# ---- positions ----


def test_sinusoids_are_the_formula():
    table = sinusoids(40, 12)
    for position in (0, 1, 17, 39):
        for i in range(6):
            angle = position / 10000 ** (2 * i / 12)
            assert math.isclose(table[position, 2 * i], math.sin(angle), abs_tol=1e-6)
            assert math.isclose(
                table[position, 2 * i + 1], math.cos(angle), abs_tol=1e-6
            )


# ---- dropout, weights, first loss ----


def test_dropout_acts_on_the_embedded_sum_and_on_each_sublayer_alone():
    torch.manual_seed(0)
    model = Transformer(replace(SMALL, dropout=0.5)).train()
    sites = sum(isinstance(module, nn.Dropout) for module in model.modules())
    assert sites == 1 + (2 + 3) * SMALL.N
    embedded = model.embed(model.tgt_embedding, TGT)
    assert 0.4 < (embedded == 0).float().mean() < 0.6
    whole = model.positions(model.tgt_embedding(TGT))
    kept = embedded != 0
    assert torch.allclose(embedded[kept], 2 * whole[kept])
    x, add_norm = torch.randn(2, 3, 32), model.encoder.layers[0].after_attention
    normed = add_norm(x, torch.zeros(2, 3, 32))
    assert torch.allclose(normed, F.layer_norm(x, (32,)), atol=1e-6)
    model.eval()
    assert torch.equal(model(SRC, TGT), model(SRC, TGT))


def test_first_weights_have_the_variance_of_their_rule():
    torch.manual_seed(0)
    model = Transformer(replace(SMALL, d_model=256, d_ff=512, d_k=64, d_v=64))
    layer, shares = model.decoder.layers[0], []
    for attention in (layer.self_attention, layer.source_attention):
        for projection in (attention.W_Q, attention.W_K, attention.W_V):
            shares.append(projection.weight.var() * 512)  # half of Glorot's
        shares.append(attention.W_O.weight.var() * 512 / 2)
    shares.append(layer.feed_forward.W_1.weight.var() * (256 + 512) / 2)
    shares.append(model.tgt_embedding.weight.var() * 256)
    assert torch.stack(shares).tolist() == pytest.approx([1.0] * 10, rel=0.03)
    assert not layer.feed_forward.W_1.bias.any()


# ---- an ordinary PyTorch module ----


COMPILED = """
import torch
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer

config = TransformerConfig(src_vocab_size=40, tgt_vocab_size=40, N=1, d_model=32,
                           d_ff=48, h=4, d_k=8, d_v=8, dropout=0.0, max_length=16)
torch.manual_seed(0)
model, src, tgt = Transformer(config), *torch.randint(4, 40, (2, 3, 6))
compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
noise, found = torch.randn(3, 6, 40), []
for run in (model, compiled):
    scores = run(src, tgt)
    gradients = torch.autograd.grad((scores * noise).sum(), model.parameters())
    found.append([scores, *gradients])
assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*found, strict=True))
"""


@pytest.mark.slow
def test_compiled_whole_it_equals_eager_forward_and_backward():
    """In a process of its own: the compiler can't trace the tests' checks of shapes."""
    subprocess.run([sys.executable, "-c", COMPILED], check=True, timeout=300)


class LowRank(nn.Module):
    """W x + B A x: a LoRA adapter around a linear layer, by hand."""

    def __init__(self, linear: nn.Linear, rank: int):
        super().__init__()
        self.linear = linear
        self.A = nn.Linear(linear.in_features, rank, bias=False)
        self.B = nn.Linear(rank, linear.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + self.B(self.A(x))


def test_an_adapter_acts_alike_in_a_pass_and_in_steps():
    model = random_model()
    plain = model(SRC, TGT)
    for module in [m for m in model.modules() if isinstance(m, MultiHeadAttention)]:
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(module, name, LowRank(module.get_submodule(name), rank=2))
    adapted = model(SRC, TGT)
    assert (adapted - plain).abs().max() > 0.01
    assert torch.allclose(stepwise(model, SRC, TGT), adapted, atol=1e-5)


@pytest.mark.parametrize(
    "changes", [{}, {"shared_vocab": False, "src_vocab_size": 50}], ids=str
)
def test_a_model_is_copied_saved_and_moved_whole(tmp_path, changes):
    model = random_model(**changes)
    before = model(SRC, TGT)
    other = copy.deepcopy(model)
    assert torch.equal(other(SRC, TGT), before)
    shared = model.config.shared_vocab
    assert (other.src_embedding is other.tgt_embedding) == shared
    with torch.no_grad():
        other.tgt_embedding.weight.zero_()
    assert torch.equal(model(SRC, TGT), before)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(other(SRC, TGT), before)
    double = model.to(torch.float64)(SRC, TGT)
    assert torch.allclose(double.float(), before, atol=1e-5)
    on_meta = model.to("meta")
    tensors = [*on_meta.parameters(), *on_meta.buffers(), on_meta.src_embedding.weight]
    assert all(tensor.is_meta for tensor in tensors)


def test_autocast_does_the_rest():
    model = random_model()
    exact = model(SRC, TGT)
    with torch.autocast("cpu", torch.bfloat16):
        rounded, steps = model(SRC, TGT), stepwise(model, SRC, TGT)
    assert rounded.dtype == steps.dtype == torch.bfloat16
    for scores in (rounded, steps):
        assert (scores.float() - exact).abs().max() < 0.1
    rounded.float().square().sum().backward()
    grads = [parameter.grad for parameter in model.parameters()]
    assert all(g.dtype == torch.float32 and g.isfinite().all() for g in grads)
