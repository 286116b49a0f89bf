"""The smoothed loss: its definition, the sliced form and both gradients, padding, and
what it is divided by.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.loss import (
    Objective,
    SlicedLoss,
    entropy_floor,
    smoothed_cross_entropy,
)


def inputs(dtype, tokens=37, width=12, vocab=29):
    torch.manual_seed(0)
    hidden = torch.randn(tokens, width, dtype=dtype, requires_grad=True)
    weight = torch.randn(vocab, width, dtype=dtype, requires_grad=True)
    return hidden, weight, torch.randint(0, vocab, (tokens,))


def objective(smoothing=0.1, **changes):
    torch.manual_seed(0)
    config = TransformerConfig(
        30, 30, N=1, d_model=16, d_ff=32, h=2, d_k=8, d_v=8, dropout=0.0, **changes
    )
    return Objective(Transformer(config), smoothing)


BATCH = (
    torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]]),
    torch.tensor([[1, 8, 9], [1, 4, 0]]),
    torch.tensor([[8, 9, 2], [4, 2, 0]]),
)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_the_readable_form_is_the_definition(smoothing):
    hidden, weight, target = inputs(torch.float64)
    logits = hidden @ weight.T
    q = torch.full_like(logits, smoothing / 28).scatter_(
        1, target[:, None], 1 - smoothing
    )
    expected = -(q * logits.log_softmax(-1)).sum()
    assert torch.allclose(smoothed_cross_entropy(logits, target, smoothing), expected)


@pytest.mark.parametrize("rows", [1, 8, 37, 512])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)]
)
def test_the_sliced_form_equals_it_in_value_and_gradients(
    dtype, tolerance, smoothing, rows
):
    hidden, weight, target = inputs(dtype)
    readable = smoothed_cross_entropy(hidden @ weight.T, target, smoothing)
    sliced = SlicedLoss.apply(hidden, weight, target, smoothing, rows)
    assert sliced.dtype == dtype and torch.allclose(sliced, readable, rtol=tolerance)
    expected = torch.autograd.grad(3 * readable, (hidden, weight))
    for ours, theirs in zip(
        torch.autograd.grad(3 * sliced, (hidden, weight)), expected, strict=True
    ):
        assert (ours - theirs).abs().max() <= tolerance * theirs.abs().max()


def test_the_gradients_are_those_of_small_differences():
    hidden, weight, target = inputs(torch.float64, tokens=5, width=3, vocab=6)
    assert torch.autograd.gradcheck(
        lambda h, w: SlicedLoss.apply(h, w, target, 0.1, 2), (hidden, weight)
    )


def test_bf16_autocast_stays_close_and_keeps_float32_outside():
    hidden, weight, target = inputs(torch.float32)
    exact = SlicedLoss.apply(hidden, weight, target, 0.1, 8)
    gradients = torch.autograd.grad(exact, (hidden, weight))
    with torch.autocast("cpu", torch.bfloat16):
        rough = SlicedLoss.apply(hidden, weight, target, 0.1, 8)
    rough_gradients = torch.autograd.grad(rough, (hidden, weight))
    assert rough.dtype == torch.float32 and torch.allclose(rough, exact, rtol=1e-2)
    for ours, theirs in zip(rough_gradients, gradients, strict=True):
        assert (
            ours.dtype == torch.float32
            and (ours - theirs).abs().max() < 0.03 * theirs.abs().max()
        )


def test_large_scores_do_not_overflow():
    hidden = torch.full((2, 1), 1e4, requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0], [0.5]], requires_grad=True)
    loss = SlicedLoss.apply(hidden, weight, torch.tensor([0, 1]), 0.0, 1)
    loss.backward()
    assert loss == 2e4 and hidden.grad.isfinite().all()


def test_no_real_token_gives_zero_loss_and_zero_gradients():
    module = objective()
    loss = module(BATCH[0], BATCH[1], torch.zeros_like(BATCH[2]))
    loss.backward()
    assert loss == 0
    assert all(p.grad is not None and (p.grad == 0).all() for p in module.parameters())


def test_padding_and_batch_mates_do_not_count():
    module = objective()
    together = module(*BATCH)
    apart = sum(module(*(side[i : i + 1] for side in BATCH)) for i in range(2))
    padded = module(*(F.pad(side, (0, 4)) for side in BATCH))
    assert torch.allclose(together, apart, rtol=1e-5) and torch.allclose(
        together, padded, rtol=1e-5
    )


def test_places_change_neither_loss_nor_gradients():
    module = objective()
    losses = module(*BATCH), module(*BATCH, torch.tensor([0, 1, 2, 3, 4]))
    looked, given = (
        torch.autograd.grad(loss, list(module.parameters())) for loss in losses
    )
    assert losses[0] == losses[1] and all(map(torch.equal, looked, given))


def test_it_is_smoothed_in_training_only():
    module = objective(0.2)
    logits = module.model(BATCH[0], BATCH[1])[BATCH[2] != 0]
    target = BATCH[2][BATCH[2] != 0]
    assert torch.allclose(
        module.train()(*BATCH), smoothed_cross_entropy(logits, target, 0.2), rtol=1e-5
    )
    assert torch.allclose(
        module.eval()(*BATCH),
        F.cross_entropy(logits, target, reduction="sum"),
        rtol=1e-5,
    )


def test_separate_vocabularies_use_the_targets_matrix():
    torch.manual_seed(0)
    config = TransformerConfig(
        40,
        30,
        shared_vocab=False,
        N=1,
        d_model=16,
        d_ff=32,
        h=2,
        d_k=8,
        d_v=8,
        dropout=0.0,
    )
    module = Objective(Transformer(config), 0.1)
    logits = module.model(BATCH[0], BATCH[1])[BATCH[2] != 0]
    assert torch.allclose(
        module(*BATCH),
        smoothed_cross_entropy(logits, BATCH[2][BATCH[2] != 0], 0.1),
        rtol=1e-5,
    )


@pytest.mark.parametrize("vocab", [5, 37_000])
def test_the_floor_is_reached_by_the_target_itself_and_by_nothing_better(vocab):
    scores = torch.zeros(1, vocab, dtype=torch.float64)
    scores[0, 0] = math.log(0.9 * (vocab - 1) / 0.1)
    at_best = smoothed_cross_entropy(scores, torch.tensor([0]), 0.1).item()
    assert at_best == pytest.approx(entropy_floor(vocab, 0.1))
    for change in (-0.1, 0.1):
        scores[0, 0] += change
        assert smoothed_cross_entropy(scores, torch.tensor([0]), 0.1) > at_best
        scores[0, 0] -= change
    assert entropy_floor(vocab, 0.0) == 0


def test_a_second_derivative_of_the_sliced_loss_is_refused():
    """It would be wrong, for the stored gradients know nothing of what they were made
    of.
    """
    hidden, weight = (torch.randn(n, 8, requires_grad=True) for n in (5, 7))
    loss = SlicedLoss.apply(hidden, weight, torch.arange(5), 0.1, 2)
    (slope,) = torch.autograd.grad(loss.square(), hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.square().sum().backward()
