"""The model as a whole: equal to torch.nn, blind to the future and to padding, the same
with a cache and without.
"""

import copy
import io
import json
import math
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

import annotated_transformer
from annotated_transformer.model.attention import (
    MultiHeadAttention,
    causal_mask,
    padding_mask,
)
from annotated_transformer.model.config import BOS, EOS, PAD, TransformerConfig
from annotated_transformer.model.layers import AddNorm, DecoderLayer, EncoderLayer
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


@torch.no_grad()
def copy_layer(ours: nn.Module, theirs: nn.Module) -> None:
    """Our weights into one of torch.nn's layers; the biases we lack become zero."""
    pairs = [(ours.self_attention, theirs.self_attn)]
    if isinstance(ours, DecoderLayer):
        pairs.append((ours.source_attention, theirs.multihead_attn))
    for our, their in pairs:
        their.in_proj_weight.copy_(
            torch.cat([our.W_Q.weight, our.W_K.weight, our.W_V.weight])
        )
        their.out_proj.weight.copy_(our.W_O.weight)
        their.in_proj_bias.zero_()
        their.out_proj.bias.zero_()
    theirs.linear1.load_state_dict(ours.feed_forward.W_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.W_2.state_dict())
    norms = [part.norm for part in ours.children() if isinstance(part, AddNorm)]
    for number, norm in enumerate(norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())


def weighted_sum(y: torch.Tensor) -> torch.Tensor:
    """A random combination of outputs; a plain sum after a normalisation has no
    gradient at all.
    """
    return (y * torch.randn(y.shape, generator=torch.Generator().manual_seed(1))).sum()


def close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    return torch.allclose(ours, theirs, atol=1e-5, rtol=1e-5)


def their_gradients(
    ours: nn.Module, theirs: nn.Module
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Pairs of parameter gradients, ours and torch's, for one layer."""
    pairs = [
        (ours.feed_forward.W_1.weight.grad, theirs.linear1.weight.grad),
        (ours.feed_forward.W_2.bias.grad, theirs.linear2.bias.grad),
    ]
    attentions = [(ours.self_attention, theirs.self_attn)]
    if isinstance(ours, DecoderLayer):
        attentions.append((ours.source_attention, theirs.multihead_attn))
    for our, their in attentions:
        pairs.append(
            (
                torch.cat(
                    [our.W_Q.weight.grad, our.W_K.weight.grad, our.W_V.weight.grad]
                ),
                their.in_proj_weight.grad,
            )
        )
        pairs.append((our.W_O.weight.grad, their.out_proj.weight.grad))
    norms = [part.norm for part in ours.children() if isinstance(part, AddNorm)]
    for number, norm in enumerate(norms, start=1):
        pairs.append((norm.weight.grad, getattr(theirs, f"norm{number}").weight.grad))
    return pairs


def test_encoder_layer_equals_torch():
    torch.manual_seed(0)
    ours = EncoderLayer(SMALL)
    randomise_norms(ours)
    theirs = nn.TransformerEncoderLayer(32, 4, 48, dropout=0.0, batch_first=True)
    copy_layer(ours, theirs)
    mask = padding_mask(SRC, PAD)
    x = torch.randn(3, 5, 32, requires_grad=True)
    x2 = x.detach().clone().requires_grad_()
    y, y2 = ours(x, mask), theirs(x2, src_key_padding_mask=~mask[:, 0, 0])
    assert close(y, y2)
    weighted_sum(y).backward()
    weighted_sum(y2).backward()
    assert close(x.grad, x2.grad) and x.grad.norm() > 1
    assert all(close(a, b) for a, b in their_gradients(ours, theirs))


def test_decoder_layer_equals_torch():
    torch.manual_seed(0)
    ours = DecoderLayer(SMALL)
    randomise_norms(ours)
    theirs = nn.TransformerDecoderLayer(32, 4, 48, dropout=0.0, batch_first=True)
    copy_layer(ours, theirs)
    mask = padding_mask(SRC, PAD)
    y, memory = (
        torch.randn(3, 6, 32, requires_grad=True),
        torch.randn(3, 5, 32, requires_grad=True),
    )
    y2, memory2 = (
        y.detach().clone().requires_grad_(),
        memory.detach().clone().requires_grad_(),
    )
    out = ours(y, memory, causal_mask(6), mask)
    out2 = theirs(
        y2, memory2, tgt_mask=~causal_mask(6), memory_key_padding_mask=~mask[:, 0, 0]
    )
    assert close(out, out2)
    weighted_sum(out).backward()
    weighted_sum(out2).backward()
    assert (
        close(y.grad, y2.grad)
        and close(memory.grad, memory2.grad)
        and memory.grad.norm() > 1
    )
    assert all(close(a, b) for a, b in their_gradients(ours, theirs))


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
            copy_layer(ours, their_layer)
    return theirs


def test_whole_model_equals_torch_forward_and_gradient():
    model = random_model()
    theirs = torch_stacks(model)
    padding = ~padding_mask(SRC, PAD)[:, 0, 0]

    def reference() -> torch.Tensor:
        positions = sinusoids(16, 32)
        x = (
            F.embedding(SRC, model.tgt_embedding.weight) * math.sqrt(32)
            + positions[: SRC.size(1)]
        )
        y = (
            F.embedding(TGT, model.tgt_embedding.weight) * math.sqrt(32)
            + positions[: TGT.size(1)]
        )
        hidden = theirs(
            x,
            y,
            tgt_mask=~causal_mask(6),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return hidden @ model.tgt_embedding.weight.T

    scores, expected = model(SRC, TGT), reference()
    assert close(scores, expected)
    answer = torch.cat([TGT[:, 1:], torch.full((3, 1), EOS)], dim=1).flatten()
    ours, their_gradient = (
        torch.autograd.grad(
            F.cross_entropy(s.flatten(0, 1), answer, ignore_index=PAD),
            model.tgt_embedding.weight,
        )[0]
        for s in (scores, expected)
    )
    assert close(ours, their_gradient) and ours.norm() > 0.1


# ---- what may influence what ----


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("where", range(6))
def test_the_future_changes_nothing(positions, where):
    model = random_model(positions=positions)
    changed = TGT.clone()
    changed[0, where] = 33
    moved = (model(SRC, changed) - model(SRC, TGT))[0].abs().amax(dim=1)
    assert (moved[:where] == 0).all()
    assert (moved[where:] > 1e-4).all()


def test_no_gradient_reaches_the_future():
    model = random_model()
    memory, src_mask = model.encode(SRC)
    y = model.embed(model.tgt_embedding, TGT).detach().requires_grad_()
    weighted_sum(model.decoder(y, memory, causal_mask(6), src_mask)[:, 2]).backward()
    reach = y.grad.abs().sum(dim=(0, 2))
    assert (reach[:3] > 0).all() and (reach[3:] == 0).all()


@pytest.mark.parametrize("row", range(3))
def test_padding_and_batch_mates_change_nothing(row):
    model = random_model()
    source_length, target_length = (
        int((SRC[row] != PAD).sum()),
        int((TGT[row] != PAD).sum()),
    )
    alone = model(
        SRC[row : row + 1, :source_length], TGT[row : row + 1, :target_length]
    )
    assert torch.allclose(alone[0], model(SRC, TGT)[row, :target_length], atol=1e-5)


def test_more_padding_changes_nothing():
    model = random_model()
    wide_src, wide_tgt = F.pad(SRC, (0, 7), value=PAD), F.pad(TGT, (0, 4), value=PAD)
    assert torch.allclose(model(wide_src, wide_tgt)[:, :6], model(SRC, TGT), atol=1e-5)


def test_what_stands_under_the_padding_changes_nothing():
    model = random_model()
    memory, src_mask = model.encode(SRC)
    spoiled = torch.where(
        src_mask[:, 0, 0, :, None], memory, torch.full_like(memory, 100.0)
    )
    assert torch.equal(
        model.decode(TGT, spoiled, src_mask), model.decode(TGT, memory, src_mask)
    )


def test_the_source_matters():
    model = random_model()
    changed = SRC.clone()
    changed[0, 3] = 30
    assert ((model(changed, TGT) - model(SRC, TGT))[0].abs().amax(dim=1) > 1e-4).all()


# ---- the cache ----


def stepwise(model: Transformer, src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
    cache = model.start(src)
    scores = torch.stack([model.step(tokens, cache) for tokens in tgt.unbind(1)], dim=1)
    assert cache.length == tgt.size(1)
    return scores


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("keys", [8, 4])
def test_cached_equals_uncached(positions, keys):
    model = random_model(positions=positions, d_k=keys)
    assert torch.allclose(stepwise(model, SRC, TGT), model(SRC, TGT), atol=1e-5)


def test_cached_equals_uncached_with_two_vocabularies():
    model = random_model(shared_vocab=False, src_vocab_size=50)
    assert torch.allclose(
        stepwise(model, SRC + 9 * (SRC > 10), TGT),
        model(SRC + 9 * (SRC > 10), TGT),
        atol=1e-5,
    )


@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 0, 2], [2], [0, 1, 2]])
def test_reordered_cache_continues_as_the_reordered_batch(rows):
    model, rows = random_model(), torch.tensor(rows)
    cache = model.start(SRC)
    for tokens in TGT[:, :3].unbind(1):
        model.step(tokens, cache)
    cache.reorder(rows)
    rest = [model.step(tokens, cache) for tokens in TGT[rows, 3:].unbind(1)]
    assert torch.allclose(
        torch.stack(rest, dim=1), model(SRC, TGT)[rows, 3:], atol=1e-5
    )


def test_reorder_before_the_first_step():
    model, rows = random_model(), torch.tensor([2, 2, 0])
    cache = model.start(SRC)
    cache.reorder(rows)
    assert torch.allclose(
        model.step(TGT[rows, 0], cache), model(SRC, TGT)[rows, 0], atol=1e-5
    )


@pytest.mark.parametrize("beam_size", [1, 2, 3])
def test_start_gives_each_source_neighbouring_rows(beam_size):
    model, whole = random_model(), random_model()(SRC, TGT)
    cache = model.start(SRC, beam_size)
    for place, tokens in enumerate(TGT.unbind(1)):
        rows = model.step(tokens.repeat_interleave(beam_size), cache)
        expected = whole[:, place].repeat_interleave(beam_size, dim=0)
        assert torch.allclose(rows, expected, atol=1e-5)


def test_start_of_no_sources():
    cache = random_model().start(SRC[:0], beam_size=2)
    assert random_model().step(TGT[:0, 0], cache).shape == (0, 40)


# ---- too long ----


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_longer_than_max_length_is_refused(positions):
    model = random_model(positions=positions)
    longest, longer = torch.full((1, 16), 5), torch.full((1, 17), 5)
    assert model(longest, longest).shape == (1, 16, 40)
    for src, tgt in [(longer, TGT[:1]), (SRC[:1], longer)]:
        with pytest.raises(
            ValueError,
            match="17 tokens is longer than this model's max_length of 16: split",
        ):
            model(src, tgt)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_stepping_past_max_length_is_refused(positions):
    model = random_model(positions=positions)
    cache = model.start(SRC)
    for _ in range(16):
        model.step(TGT[:, 0], cache)
    with pytest.raises(ValueError, match="17 tokens .* max_length of 16"):
        model.step(TGT[:, 0], cache)


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


def test_dot_products_of_codes_depend_on_distance_alone():
    products = sinusoids(60, 64) @ sinusoids(60, 64).T
    for distance in range(0, 60, 7):
        assert products.diagonal(distance).std(correction=0) < 1e-4


# ---- dropout, weights, first loss ----


def test_dropout_sites_are_the_papers():
    model = Transformer(replace(SMALL, dropout=0.5))
    sites = [
        name for name, module in model.named_modules() if isinstance(module, nn.Dropout)
    ]
    assert len(sites) == 1 + (2 + 3) * SMALL.N and "dropout" in sites
    assert all(name == "dropout" or ".after_" in name for name in sites)
    model.train()
    assert not torch.equal(model(SRC, TGT), model(SRC, TGT))
    model.eval()
    assert torch.equal(model(SRC, TGT), model(SRC, TGT))


def test_dropout_acts_on_the_embedded_sum_and_on_each_sublayer():
    torch.manual_seed(0)
    model = Transformer(replace(SMALL, dropout=0.5)).train()
    embedded = model.embed(model.tgt_embedding, TGT)
    assert 0.4 < (embedded == 0).float().mean() < 0.6
    whole = model.positions(model.tgt_embedding(TGT))
    kept = embedded != 0
    assert torch.allclose(embedded[kept], 2 * whole[kept])
    x, add_norm = torch.randn(2, 3, 32), model.encoder.layers[0].after_attention
    zeros = torch.zeros(2, 3, 32)
    assert torch.allclose(add_norm(x, zeros), F.layer_norm(x, (32,)), atol=1e-6), (
        "dropout must not touch the sum"
    )


def test_shared_embedding_is_one_parameter():
    assert (
        sum("embedding" in name for name, _ in Transformer(SMALL).named_parameters())
        == 1
    )
    apart = Transformer(replace(SMALL, shared_vocab=False, src_vocab_size=50))
    assert apart.src_embedding.weight.shape == (
        50,
        32,
    ) and apart.tgt_embedding.weight.shape == (40, 32)


def test_first_weights_have_the_variance_of_their_rule():
    torch.manual_seed(0)
    model = Transformer(replace(SMALL, d_model=256, d_ff=512, d_k=64, d_v=64))
    layer = model.decoder.layers[0]
    for attention in (layer.self_attention, layer.source_attention):
        for projection in (attention.W_Q, attention.W_K, attention.W_V):
            assert math.isclose(
                projection.weight.var().item() * 512, 1.0, rel_tol=0.03
            ), "half of Glorot's"
        assert math.isclose(attention.W_O.weight.var().item() * 512, 2.0, rel_tol=0.03)
    assert math.isclose(
        layer.feed_forward.W_1.weight.var().item() * (256 + 512), 2.0, rel_tol=0.03
    )
    assert math.isclose(
        model.tgt_embedding.weight.var().item() * 256, 1.0, rel_tol=0.03
    )
    assert not layer.feed_forward.W_1.bias.any()


def test_first_loss_is_that_of_a_model_that_knows_nothing():
    torch.manual_seed(0)
    config = TransformerConfig(
        src_vocab_size=1000,
        tgt_vocab_size=1000,
        N=6,
        d_model=256,
        d_ff=256,
        h=4,
        d_k=64,
        d_v=64,
        dropout=0.0,
    )
    src, tgt, answer = torch.randint(4, 1000, (3, 16, 20))
    with torch.no_grad():
        loss = F.cross_entropy(
            Transformer(config)(src, tgt).flatten(0, 1), answer.flatten()
        )
    assert abs(loss.item() - math.log(1000) - 0.5) < 0.15


# ---- an ordinary PyTorch module ----


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """One update on the example; the loss before it."""
    answer = torch.cat([TGT[:, 1:], torch.full((3, 1), EOS)], dim=1).flatten()
    scores = model(SRC, TGT).flatten(0, 1)
    loss = F.cross_entropy(scores, answer, ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


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


def test_compiled_whole_it_equals_eager_forward_and_backward():
    """In a process of its own: the compiler can't trace the tests' checks of shapes."""
    subprocess.run([sys.executable, "-c", COMPILED], check=True, timeout=300)


def attentions(model: nn.Module) -> list[MultiHeadAttention]:
    return [m for m in model.modules() if isinstance(m, MultiHeadAttention)]


def test_hooks_on_projections_are_called_in_a_pass_and_in_a_step():
    model, called = random_model(), []
    for number, attention in enumerate(attentions(model)):
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            attention.get_submodule(name).register_forward_hook(
                lambda *_, key=(number, name): called.append(key)
            )
    every = [(i, f"W_{letter}") for i in range(3 + 2 * 3) for letter in "KOQV"]
    model(SRC, TGT)
    assert sorted(called) == every
    called.clear()
    cache = model.start(SRC)
    model.step(TGT[:, 0], cache)
    assert sorted(called) == every
    called.clear()
    model.step(TGT[:, 1], cache)
    assert len(called) == 3 * (4 + 2), "the source's keys and values are kept"


class LowRank(nn.Module):
    """W x + B A x: a LoRA adapter around a linear layer, by hand."""

    def __init__(self, linear: nn.Linear, rank: int):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.A = nn.Linear(linear.in_features, rank, bias=False)
        self.B = nn.Linear(rank, linear.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + self.B(self.A(x))


def test_an_adapter_acts_alike_in_a_pass_and_in_steps_and_learns():
    model = random_model().requires_grad_(False)
    plain, merged = model(SRC, TGT), copy.deepcopy(model)
    for attention in attentions(model):
        attention.W_Q = LowRank(attention.W_Q, rank=2)
        attention.W_V = LowRank(attention.W_V, rank=2)
    adapted = model(SRC, TGT)
    assert (adapted - plain).abs().max() > 0.01
    assert torch.allclose(stepwise(model, SRC, TGT), adapted, atol=1e-5)
    trained = [p for p in model.parameters() if p.requires_grad]
    assert len(trained) == 2 * 2 * len(attentions(model))
    optimizer = torch.optim.Adam(trained, lr=0.01)
    losses = [train_step(model, optimizer) for _ in range(10)]
    assert losses[-1] < losses[0]
    with torch.no_grad():
        for ours, other in zip(attentions(model), attentions(merged), strict=True):
            for name in ("W_Q", "W_V"):
                lora = ours.get_submodule(name)
                other.get_submodule(name).weight += lora.B.weight @ lora.A.weight
    assert torch.allclose(merged(SRC, TGT), model(SRC, TGT), atol=1e-5)


def test_pefts_lora_on_queries_and_values():
    peft = pytest.importorskip("peft")
    model = random_model()
    plain = model(SRC, TGT)
    wrapped = peft.get_peft_model(
        model, peft.LoraConfig(r=2, target_modules=["W_Q", "W_V"])
    )
    assert torch.equal(wrapped(SRC, TGT), plain), "LoRA starts at zero"
    trained = [p for p in wrapped.parameters() if p.requires_grad]
    assert len(trained) == 2 * 2 * len(attentions(model))
    optimizer = torch.optim.Adam(trained, lr=0.05)
    losses = [train_step(wrapped, optimizer) for _ in range(10)]
    assert losses[-1] < losses[0]
    wrapped.eval()
    adapted = wrapped(SRC, TGT)
    assert (adapted - plain).abs().max() > 0.01
    assert torch.allclose(stepwise(model, SRC, TGT), adapted, atol=1e-5)
    merged = wrapped.merge_and_unload()
    assert torch.allclose(merged(SRC, TGT), adapted, atol=1e-5)


VOCABULARIES = pytest.mark.parametrize(
    "changes", [{}, {"shared_vocab": False, "src_vocab_size": 50}]
)


@VOCABULARIES
def test_a_saved_file_loads_strictly(tmp_path, changes):
    model, other = random_model(**changes), Transformer(replace(SMALL, **changes))
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    tensors = load_file(tmp_path / "model.safetensors")
    assert list(tensors) == sorted(name for name, _ in model.named_parameters())
    assert not any(other.load_state_dict(tensors))
    assert torch.equal(other.eval()(SRC, TGT), model(SRC, TGT))


def test_the_shipped_model_loads_strictly():
    folder = Path(annotated_transformer.__file__).parent / "pretrained/phrasebook-en-de"
    about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = Transformer(TransformerConfig.from_dict(about["architecture"]))
    assert not any(model.load_state_dict(load_file(folder / "model.safetensors")))


@VOCABULARIES
def test_a_model_without_memory_is_filled_from_a_file(changes):
    model = random_model(**changes)
    with torch.device("meta"):
        other = Transformer(replace(SMALL, **changes))
    other.to_empty(device="cpu")
    other.positions.table.fill_(math.nan)  # what stands in fresh memory may be anything
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.eval()(SRC, TGT), model(SRC, TGT))


@VOCABULARIES
@pytest.mark.parametrize("way", ["deepcopy", "pickle", "torch.save"])
def test_a_copy_is_whole_and_apart(way, changes):
    model = random_model(**changes)
    before = model(SRC, TGT)
    if way == "torch.save":
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        other = torch.load(file, weights_only=False)
    else:
        other = (
            copy.deepcopy(model)
            if way == "deepcopy"
            else pickle.loads(pickle.dumps(model))
        )
    assert torch.equal(other(SRC, TGT), before)
    shared = model.config.shared_vocab
    assert (other.src_embedding is other.tgt_embedding) == shared
    train_step(other, torch.optim.SGD(other.parameters(), lr=0.1))
    other.load_state_dict(other.state_dict())
    assert torch.equal(model(SRC, TGT), before)
    assert not torch.equal(other(SRC, TGT), before)


@VOCABULARIES
def test_to_moves_everything(changes):
    model = random_model(**changes)
    single = model(SRC, TGT)
    assert model.to("cpu") is model
    double = model.to(torch.float64)(SRC, TGT)
    assert double.dtype == torch.float64
    assert torch.allclose(double.float(), single, atol=1e-5)
    assert stepwise(model, SRC, TGT).dtype == torch.float64
    on_meta = model.to("meta")
    tensors = [*on_meta.parameters(), *on_meta.buffers(), on_meta.src_embedding.weight]
    assert all(tensor.is_meta for tensor in tensors)
    assert on_meta(SRC.to("meta"), TGT.to("meta")).is_meta


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_autocast_does_the_rest(positions):
    model = random_model(positions=positions)
    exact = model(SRC, TGT)
    with torch.autocast("cpu", torch.bfloat16):
        assert model.embed(model.tgt_embedding, TGT).dtype == torch.float32
        rounded, steps = model(SRC, TGT), stepwise(model, SRC, TGT)
    assert rounded.dtype == steps.dtype == torch.bfloat16
    for scores in (rounded, steps):
        assert (scores.float() - exact).abs().max() < 0.1
    weighted_sum(rounded.float()).backward()
    grads = [parameter.grad for parameter in model.parameters()]
    assert all(g.dtype == torch.float32 and g.isfinite().all() for g in grads)


def test_saved_tensors_keep_their_names():
    """A change here would make every saved model unreadable."""
    attention, norm = [f"W_{letter}.weight" for letter in "QKVO"], ["weight", "bias"]
    network = [f"W_{i}.{kind}" for i in (1, 2) for kind in norm]
    layers = {
        "encoder.layers.0": ["self_attention"],
        "decoder.layers.0": ["self_attention", "source_attention"],
    }
    expected = {"src_embedding.weight", "tgt_embedding.weight", "positions.table"}
    for layer, kinds in layers.items():
        after = ["attention"] if len(kinds) == 1 else kinds
        expected |= {f"{layer}.{kind}.{name}" for kind in kinds for name in attention}
        expected |= {f"{layer}.feed_forward.{name}" for name in network}
        expected |= {
            f"{layer}.after_{kind}.norm.{name}"
            for kind in [*after, "feed_forward"]
            for name in norm
        }
    model = random_model(N=1, positions="learned", shared_vocab=False)
    assert set(model.state_dict()) == expected
    shared = random_model(N=1, positions="learned")
    assert set(shared.state_dict()) == expected - {"src_embedding.weight"}
