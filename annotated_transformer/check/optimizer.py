"""Checks of one step of Adam and of the learning rate, §5.3."""

from typing import Any

import torch
from torch import Tensor

from .assertions import close, expect, require
from .parts import Part, check_of, described

BETA_1, BETA_2, EPS, RATE = 0.9, 0.98, 1e-9, 0.1


@check_of("adam_step")
def adam_step(part: Part) -> str:
    """`adam_step(w, gradient, m, v, t, rate, beta_1=0.9, beta_2=0.98, eps=1e-9)`.

    It returns the new w, m and v; t is the number of this update, from 1. The two
    averages come back as they are, and the step is made with the corrected ones.
    """
    gradients = 1 + 2 * torch.randn(3, 6, dtype=torch.float64)
    gradients[:, 4], gradients[:, 5] = 1e-6, 0.0  # a tiny one, and none at all
    w = torch.randn(6, dtype=torch.float64)
    m, v = torch.zeros_like(w), torch.zeros_like(w)
    for g in gradients:
        old = m, v
        m, v = m.lerp(g, 1 - BETA_1), v.lerp(g**2, 1 - BETA_2)
    given = (each.clone() for each in (w, g, *old))
    new_w, new_m, new_v = _three(part(*given, 3, RATE), w)
    back = "comes back corrected; return the plain average, and correct it in the step."
    corrected = {f"m {back}": m / (1 - BETA_1**3)}
    sentence = "m should be β_1 m + (1 − β_1) · gradient."
    expect(new_m, m, sentence, corrected, tolerance=2e-5)
    mistakes = {
        f"v {back}": v / (1 - BETA_2**3),
        "v averages the gradient; it should be its square.": (
            old[1].lerp(g, 1 - BETA_2)
        ),
    }
    sentence = "v should be β_2 v + (1 − β_2) · gradient²."
    expect(new_v, v, sentence, mistakes, tolerance=2e-5)
    _step((w - new_w) / RATE, m, v)
    return "two corrected averages, and their ratio times the rate"


def _three(found: Any, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The new w, m and v. Raises: Wrong for anything else."""
    three = isinstance(found, tuple | list) and len(found) == 3
    require(
        three and all(isinstance(x, Tensor) and x.shape == w.shape for x in found),
        "adam_step should return three tensors, the new w, m and v, and returns "
        f"{', '.join(map(described, found)) if three else described(found)}.",
    )
    new_w, new_m, new_v = (each.double() for each in found)
    return new_w, new_m, new_v


def _step(found: Tensor, m: Tensor, v: Tensor) -> None:
    """What w lost, in units of the rate."""
    require(
        not found.isnan().any(),
        "w is NaN where the gradient was always zero: add ε to the root.",
    )
    m_hat, v_hat = m / (1 - BETA_1**3), v / (1 - BETA_2**3)
    right = m_hat / (v_hat.sqrt() + EPS)
    mistakes = {
        "The step goes uphill: subtract it.": -right,
        "The averages aren't corrected for their start at zero: divide m by 1 − β_1^t "
        "and v by 1 − β_2^t.": m / (v.sqrt() + EPS),
        "The root is missing: divide by √v_hat + ε.": m_hat / (v_hat + EPS),
        "ε stands under the root; add it to the root.": m_hat / (v_hat + EPS).sqrt(),
    }
    sentence = (
        "Weights should move by rates of m_hat / (√v_hat + ε), with m_hat = m / "
        "(1 − β_1^t) and v_hat = v / (1 − β_2^t)."
    )
    expect(found, right, sentence, mistakes)


@check_of("noam")
def noam(part: Part) -> str:
    """`noam(step, d_model, warmup)`: the learning rate of update `step`, equation (3).

    Steps count from 1.
    """
    d_model, warmup = 64, 40
    steps = torch.tensor([1, 10, 39, 40, 41, 100, 400])
    rates = [part.number(step, d_model, warmup) for step in steps.tolist()]
    found = torch.stack(rates)
    width, fall, climb = d_model**-0.5, steps**-0.5, steps * warmup**-1.5
    mistakes = {
        "It takes the larger of the two; the rate is the smaller one.": (
            width * torch.maximum(fall, climb)
        ),
        "The factor d_model^−0.5 is missing.": torch.minimum(fall, climb),
        "It climbs and never falls: take the minimum with step^−0.5.": width * climb,
    }
    for sentence, wrong in mistakes.items():
        require(not close(found / wrong, found**0), sentence)
    right = width * torch.minimum(fall, climb)
    for step, rate, wanted in zip(steps, found, right, strict=True):
        require(
            abs(rate / wanted - 1) < 1e-4,
            f"noam({step}, {d_model}, {warmup}) should be {wanted:.6f} and is "
            f"{rate:.6f}: d_model^−0.5 · min(step^−0.5, step · warmup^−1.5).",
        )
    return "a straight climb to step warmup, then down with the root of the step"
