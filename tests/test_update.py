"""The fast objective is the readable one in other words: value, gradients, and a model
that stays as it was.
"""

import copy
import platform
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from annotated_transformer.data.batch import Batch
from annotated_transformer.errors import UserError
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.update import (
    CPUFunctions,
    FastObjective,
    SlicedLoss,
    dropout_mask,
    fast_training,
)
from annotated_transformer.training.loss import Objective, smoothed_cross_entropy
from annotated_transformer.training.schedule import adam


def inputs(tokens=37, width=12, vocab=29):
    torch.manual_seed(0)
    hidden = torch.randn(tokens, width, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(vocab, width, dtype=torch.float64, requires_grad=True)
    return hidden, weight, torch.randint(0, vocab, (tokens,))


def plain(weight):
    """The loss without smoothing of some rows, for scores by this matrix."""
    return lambda some, gold: smoothed_cross_entropy(some @ weight.T, gold, 0.0)


def small_model(dropout=0.0, **changes):
    torch.manual_seed(0)
    sizes = {"N": 2, "d_model": 32, "d_ff": 64, "h": 4, "d_k": 8, "d_v": 8}
    return Transformer(TransformerConfig(50, 50, dropout=dropout, **sizes | changes))


def random_batch(rows=6):
    """A batch in which a tenth of the ids are padding, behind the others."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, 50, (3, rows, 10), generator=generator)
    ids[:, ::2, -2:] = 0
    return Batch(*ids)


def close(ours, theirs, tolerance):
    """Entries differ by at most this share of the largest."""
    return (ours - theirs).abs().max() <= tolerance * theirs.abs().max()


@pytest.mark.parametrize(
    ("rows", "smoothing"), [(1, 0.1), (8, 0.0), (8, 0.1), (512, 0.1)]
)
def test_the_sliced_form_equals_it_in_value_and_gradients(rows, smoothing):
    hidden, weight, target = inputs()

    def loss(some, gold):
        return smoothed_cross_entropy(some @ weight.T, gold, smoothing)

    readable = loss(hidden, target)
    sliced = SlicedLoss.apply(loss, rows, hidden, target, weight)
    assert torch.allclose(sliced, readable, rtol=1e-12)
    forms = readable, sliced
    grads = [torch.autograd.grad(3 * each, (hidden, weight)) for each in forms]
    assert all(close(*pair, 1e-12) for pair in zip(*grads, strict=True))


def test_large_scores_do_not_overflow():
    hidden = torch.full((2, 1), 1e4, requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0], [0.5]], requires_grad=True)
    loss = SlicedLoss.apply(plain(weight), 1, hidden, torch.tensor([0, 1]), weight)
    loss.backward()
    assert loss == 2e4 and hidden.grad.isfinite().all()


def test_a_second_derivative_of_the_sliced_loss_is_refused():
    """It would be wrong, for the stored gradients know nothing of what they were made
    of.
    """
    hidden, weight = (torch.randn(n, 8, requires_grad=True) for n in (5, 7))
    loss = SlicedLoss.apply(plain(weight), 2, hidden, torch.arange(5), weight)
    (slope,) = torch.autograd.grad(loss.square(), hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.square().sum().backward()


# -- the objective -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "tolerance", "shared", "positions"),
    [
        (torch.float64, 1e-12, True, "sinusoidal"),
        (torch.float64, 1e-12, False, "learned"),
        (torch.float32, 1e-5, True, "sinusoidal"),
    ],
)
def test_value_and_gradients_are_the_readable_ones(dtype, tolerance, shared, positions):
    model = small_model(shared_vocab=shared, positions=positions).to(dtype)
    losses = [form(model, 0.1)(random_batch()) for form in (Objective, FastObjective)]
    assert close(*losses, tolerance)
    gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    for ours, theirs in zip(*gradients, strict=True):
        assert close(ours, theirs, tolerance)


def test_under_bfloat16_autocast_it_is_as_near_to_float32_as_the_readable_one():
    model, batch = small_model(), random_batch(rows=20)
    parameters = list(model.parameters())
    exact = torch.autograd.grad(Objective(model, 0.1)(batch), parameters)
    distance = {}
    for form in (Objective, FastObjective):
        with torch.autocast("cpu", torch.bfloat16):
            loss = form(model, 0.1)(batch)
        assert loss.dtype == torch.float32
        assert torch.allclose(loss, Objective(model, 0.1)(batch), rtol=1e-2)
        found = torch.autograd.grad(loss, parameters)
        assert all(gradient.dtype == torch.float32 for gradient in found)
        pairs = zip(found, exact, strict=True)
        distance[form] = sum(((a - b).norm() / b.norm()).item() for a, b in pairs)
    assert distance[FastObjective] < 1.5 * distance[Objective]
    assert distance[FastObjective] < 0.1 * len(parameters)


def test_the_model_stays_as_it_is():
    model = small_model(dropout=0.3)
    before = copy.deepcopy(model.state_dict())
    objective = FastObjective(model, 0.1)
    ours, theirs = list(objective.parameters()), list(model.parameters())
    assert all(a is b for a, b in zip(ours, theirs, strict=True))
    objective(random_batch()).backward()
    assert all(parameter.grad is not None for parameter in theirs)
    assert all(torch.equal(before[name], x) for name, x in model.state_dict().items())


def test_hooks_of_the_model_take_part():
    model = small_model()
    layer = model.encoder.layers[0].self_attention.W_Q
    before = FastObjective(model, 0.1)(random_batch())
    layer.register_forward_hook(lambda module, inputs, output: output * 3)
    fast, plain = (
        form(model, 0.1)(random_batch()) for form in (FastObjective, Objective)
    )
    assert torch.allclose(fast, plain) and not torch.allclose(fast, before)


def test_a_model_with_parts_of_its_own_gets_the_readable_objective():
    class Shifted(Transformer):
        def logits(self, hidden):
            return super().logits(hidden) + 1

    own = Shifted(small_model().config)
    assert type(fast_training(own, 0.1)) is Objective
    assert type(fast_training(small_model(), 0.1)) is FastObjective
    with pytest.raises(UserError, match="Shifted.*training.loss.Objective"):
        FastObjective(own, 0.1)


def test_fused_adam_is_adam():
    models = small_model(), small_model()
    optimizers = adam(models[0]), adam(models[1], fused=True)
    assert optimizers[1].defaults["fused"]
    for model, optimizer in zip(models, optimizers, strict=True):
        optimizer.param_groups[0]["lr"] = 1e-2
        for _ in range(3):
            FastObjective(model, 0.1)(random_batch()).backward()
            optimizer.step()
            optimizer.zero_grad()
    pairs = zip(*(model.parameters() for model in models), strict=True)
    assert all(torch.allclose(*pair, atol=1e-4) for pair in pairs)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_freed_memory_is_kept_and_not_fetched_again():
    code = """
import resource, torch
from annotated_transformer.devices import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(9):
        tables = [torch.ones(12_000_000) for _ in range(3)]
        del tables
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
keep_freed_memory()
faults()
print(given_back, faults())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    given_back, kept = map(int, done.stdout.split())
    assert given_back > 10_000 and kept < given_back / 100


# -- dropout and attention on a CPU ------------------------------------------------


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_zeroes_its_share_and_keeps_the_mean(p):
    torch.manual_seed(0)
    mask = dropout_mask(torch.empty(1_000_003), p)
    kept = mask != 0
    assert abs(kept.float().mean() - (1 - p)) < 3e-3
    assert torch.allclose(mask[kept], torch.tensor(1 / (1 - p)), rtol=1e-3)
    for lag in (1, 2, 3, 4):  # four entries come from one random number
        together = (kept[lag:] & kept[:-lag]).float().mean()
        assert abs(together - (1 - p) ** 2) < 4e-3


def test_the_functions_are_others_within_the_block_only():
    x = torch.ones(1000)
    torch.manual_seed(0)
    plain = F.dropout(x, 0.1)
    torch.manual_seed(0)
    with CPUFunctions():
        other = F.dropout(x, 0.1)
    torch.manual_seed(0)
    assert torch.equal(plain, F.dropout(x, 0.1)) and not torch.equal(plain, other)
    with CPUFunctions():
        assert torch.equal(F.dropout(x, 0.1, training=False), x)
        assert torch.equal(F.dropout(x, 0.0), x) and not F.dropout(x, 1.0).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_is_the_same_within_the_block(dtype):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 5, 8).to(dtype)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    outside = F.scaled_dot_product_attention(query, key, value, mask)
    with CPUFunctions():
        inside = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert inside.dtype == dtype
    assert close(inside, outside, 0.03 if dtype == torch.bfloat16 else 1e-6)


@pytest.mark.slow
def test_the_compiler_gets_pytorchs_dropout():
    """It can't trace how ours draws, and would raise, since no graph may break."""
    compiled = torch.compile(
        lambda x: F.dropout(x, 0.5), backend="eager", fullgraph=True
    )
    with CPUFunctions():
        assert (compiled(torch.ones(100)) == 0).any()
