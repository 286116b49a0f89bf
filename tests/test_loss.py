"""The smoothed loss: its definition and its floor, and padding, in the readable
objective and the fast one.
"""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from annotated_transformer.data.batch import Batch
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.update import FastObjective
from annotated_transformer.training.loss import (
    Objective,
    entropy_floor,
    smoothed_cross_entropy,
)


def objective(kind, smoothing=0.1, **changes):
    torch.manual_seed(0)
    sizes = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "d_k": 8, "d_v": 8}
    config = TransformerConfig(40, 40, dropout=0.0, **sizes | changes)
    return kind(Transformer(config), smoothing)


both = pytest.mark.parametrize("kind", [Objective, FastObjective])
BATCH = Batch(
    torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]]),
    torch.tensor([[1, 8, 9], [1, 4, 0]]),
    torch.tensor([[8, 9, 2], [4, 2, 0]]),
)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_the_readable_form_is_the_definition(smoothing):
    torch.manual_seed(0)
    logits = torch.randn(37, 29, dtype=torch.float64)
    target = torch.randint(29, (37,))
    q = torch.full_like(logits, smoothing / 28)
    q.scatter_(1, target[:, None], 1 - smoothing)
    expected = -(q * logits.log_softmax(-1)).sum()
    assert torch.allclose(smoothed_cross_entropy(logits, target, smoothing), expected)


@both
def test_no_real_token_gives_zero_loss_and_zero_gradients(kind):
    module = objective(kind)
    loss = module(replace(BATCH, tgt_out=torch.zeros_like(BATCH.tgt_out)))
    loss.backward()
    assert loss == 0
    assert all(p.grad is not None and (p.grad == 0).all() for p in module.parameters())


@both
def test_padding_and_batch_mates_do_not_count(kind):
    module = objective(kind)
    together = module(BATCH)
    apart = sum(module(row) for row in BATCH.split(2))
    sides = BATCH.src, BATCH.tgt_in, BATCH.tgt_out
    padded = module(Batch(*(F.pad(side, (0, 4)) for side in sides)))
    assert torch.allclose(together, apart, rtol=1e-5) and torch.allclose(
        together, padded, rtol=1e-5
    )


@both
@pytest.mark.parametrize("vocabulary", [{}, {"shared_vocab": False}])
def test_it_is_smoothed_in_training_only(kind, vocabulary):
    module = objective(kind, 0.2, **vocabulary)
    real = BATCH.tgt_out != 0
    logits, target = module.model(BATCH.src, BATCH.tgt_in)[real], BATCH.tgt_out[real]
    smoothed = smoothed_cross_entropy(logits, target, 0.2)
    plain = F.cross_entropy(logits, target, reduction="sum")
    assert torch.allclose(module.train()(BATCH), smoothed, rtol=1e-5)
    assert torch.allclose(module.eval()(BATCH), plain, rtol=1e-5)
    with torch.no_grad():
        assert torch.allclose(module(BATCH), plain, rtol=1e-5)


def test_autocast_leaves_the_sum_in_float32():
    module = objective(Objective)
    exact = module(BATCH)
    with torch.autocast("cpu", torch.bfloat16):
        rough = module(BATCH)
    assert rough.dtype == torch.float32 and torch.allclose(rough, exact, rtol=2e-2)


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
