"""Equation (3) and Adam with the paper's constants."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from annotated_transformer.training.schedule import adam, noam
from benchmarks.training import warm_up


@pytest.mark.parametrize(
    ("step", "rate"),
    [(1, 1.7469281e-07), (4_000, 6.9877124e-04), (100_000, 1.3975425e-04)],
)
def test_values_of_the_base_model(step, rate):
    assert noam(step, 512, 4_000) == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize(
    ("d_model", "warmup"), [(512, 4_000), (1_024, 4_000), (128, 10), (64, 1)]
)
def test_the_peak_is_at_the_warm_up_and_nowhere_else(d_model, warmup):
    rates = [noam(step, d_model, warmup) for step in range(1, 3 * warmup + 2)]
    assert rates.index(max(rates)) + 1 == warmup and rates.count(max(rates)) == 1
    assert max(rates) == pytest.approx(1 / math.sqrt(d_model * warmup))


@pytest.mark.parametrize(("step", "warmup"), [(0, 4_000), (-1, 4_000), (1, 0)])
def test_counting_from_zero_is_refused(step, warmup):
    with pytest.raises(ValueError, match="count updates from 1"):
        noam(step, 512, warmup)


def test_adam_has_the_papers_constants_and_follows_its_formula():
    layer = nn.Linear(3, 2, bias=False).double()
    optimizer = adam(layer)
    assert (
        optimizer.defaults["betas"] == (0.9, 0.98) and optimizer.defaults["eps"] == 1e-9
    )
    w, m, v = layer.weight.detach().clone(), 0, 0
    for t in range(1, 6):
        gradient = torch.randn(2, 3).double()
        m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
        w -= 0.01 * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-9)
        optimizer.param_groups[0]["lr"], layer.weight.grad = 0.01, gradient
        optimizer.step()
    assert torch.allclose(w, layer.weight, atol=1e-12)


def test_stacked_runs_are_those_of_one_model():
    """Each goes its own rate, as if it were alone."""
    peak, way, seed = run = 0.003, "without", 1
    losses, right = warm_up.learn([(0.01, "with", 1), run], updates=3)
    model, draw = warm_up.fresh(seed), torch.Generator().manual_seed(seed)
    optimizer, found = adam(model), []
    for step in range(1, 4):
        src = torch.randint(4, 14, (32, 5), generator=draw)
        tgt = src.flip(1)
        scores = model(src, F.pad(tgt[:, :-1], (1, 0), value=1))
        loss = F.cross_entropy(scores.flatten(0, 1), tgt.flatten())
        optimizer.param_groups[0]["lr"] = warm_up.rate(step, peak, way)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert losses[1].tolist() == pytest.approx(found, rel=1e-3)
    assert losses[0, 1] != pytest.approx(found[1], rel=1e-3) and right.shape == (2, 3)
