"""Checks of one step of Adam and of the learning rate, §5.3."""

from typing import Any

import torch
from torch import Tensor

from .verdict import Part, Wrong, call, check_of, close, described, match, require

BETA_1, BETA_2, EPS, RATE = 0.9, 0.98, 1e-9, 0.1


def _average(old: Tensor, new: Tensor, beta: float) -> Tensor:
    """A running average, one update later."""
    return beta * old + (1 - beta) * new


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
    for each in gradients[:2]:
        m, v = _average(m, each, BETA_1), _average(v, each**2, BETA_2)
    g = gradients[2]
    given = (each.clone() for each in (w, g, m, v))
    new_w, new_m, new_v = _three(call("adam_step", part, *given, 3, RATE), w)
    _first_average(new_m, m, v, g)
    _second_average(new_v, v, g)
    _step((w - new_w) / RATE, m, v, g)
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


BACK = "comes back corrected; return the plain average, and correct it in the step."


def _first_average(new_m: Tensor, m: Tensor, v: Tensor, g: Tensor) -> None:
    """Raises: Wrong unless m averages the gradient."""
    right, square = _average(m, g, BETA_1), _average(v, g**2, BETA_2)
    match(
        new_m,
        {
            "m is as it was: m = β_1 m + (1 − β_1) · gradient.": m,
            "m is a sum: the gradient has the weight 1 − β_1.": BETA_1 * m + g,
            "β_1 and 1 − β_1 are exchanged: β_1 goes with the old m.": _average(
                m, g, 1 - BETA_1
            ),
            "m averages with β_2; that is for v.": _average(m, g, BETA_2),
            f"m {BACK}": right / (1 - BETA_1**3),
            "m and v are exchanged: return w, m, v.": square,
            "m averages the square; that is for v.": _average(m, g**2, BETA_1),
        },
    )
    require(close(new_m, right), "m should be β_1 m + (1 − β_1) · gradient.")


def _second_average(new_v: Tensor, v: Tensor, g: Tensor) -> None:
    """Raises: Wrong unless v averages the gradient's square."""
    right = _average(v, g**2, BETA_2)
    match(
        new_v,
        {
            "v is as it was: v = β_2 v + (1 − β_2) · gradient².": v,
            "v is a sum: the square has the weight 1 − β_2.": BETA_2 * v + g**2,
            "β_2 and 1 − β_2 are exchanged: β_2 goes with the old v.": _average(
                v, g**2, 1 - BETA_2
            ),
            "v averages with β_1; that is for m.": _average(v, g**2, BETA_1),
            "β_2 is 0.999, as in Adam's own paper; this paper has 0.98.": _average(
                v, g**2, 0.999
            ),
            f"v {BACK}": right / (1 - BETA_2**3),
            "v averages the gradient; it should be its square.": _average(v, g, BETA_2),
            "v averages the size of the gradient; it should be the square.": (
                _average(v, g.abs(), BETA_2)
            ),
        },
    )
    require(close(new_v, right), "v should be β_2 v + (1 − β_2) · gradient².")


def _ratio(m: Tensor, v: Tensor) -> Tensor:
    """The step of Adam in units of the rate."""
    return m / (v.sqrt() + EPS)


def _step(found: Tensor, m: Tensor, v: Tensor, g: Tensor) -> None:
    """What w lost, in units of the rate."""
    require(
        not found.isnan().any(),
        "w is NaN where the gradient was always zero: add ε to the root.",
    )
    match(found, _other_steps(m, v, g))
    new_m, new_v = _average(m, g, BETA_1), _average(v, g**2, BETA_2)
    right = _ratio(new_m / (1 - BETA_1**3), new_v / (1 - BETA_2**3))
    if not close(found, right, 1e-4):
        i = int((found - right).abs().argmax())
        raise Wrong(
            f"A weight should move by {right[i]:.4f} rates, m_hat / (√v_hat + ε), and "
            f"moves by {found[i]:.4f}."
        )


def _other_steps(old_m: Tensor, old_v: Tensor, g: Tensor) -> dict[str, Tensor]:
    """What comes of the usual mistakes."""
    m, v = _average(old_m, g, BETA_1), _average(old_v, g**2, BETA_2)
    one, two = 1 - BETA_1**3, 1 - BETA_2**3
    right = _ratio(m / one, v / two)
    correct = "divide m by 1 − β_1^t and v by 1 − β_2^t"
    return {
        "The step goes uphill: subtract it.": -right,
        f"The averages aren't corrected for their start at zero: {correct}.": (
            _ratio(m, v)
        ),
        f"m alone is corrected: {correct}.": _ratio(m / one, v),
        f"v alone is corrected: {correct}.": _ratio(m, v / two),
        f"The correction has no power t: {correct}.": _ratio(
            m / (1 - BETA_1), v / (1 - BETA_2)
        ),
        f"The correction is that of update t − 1: {correct}.": _ratio(
            m / (1 - BETA_1**2), v / (1 - BETA_2**2)
        ),
        f"The correction multiplies: {correct}.": _ratio(m * one, v * two),
        "The root is missing: divide by √v_hat + ε.": m / one / (v / two + EPS),
        "ε stands under the root; add it to the root.": (
            m / one / (v / two + EPS).sqrt()
        ),
        "The step isn't multiplied by the rate.": right / RATE,
        "The gradient itself is divided; it should be m_hat.": _ratio(g, v / two),
        "The step uses the averages from before this gradient.": _ratio(
            old_m / one, old_v / two
        ),
    }


@check_of("noam")
def noam(part: Part) -> str:
    """`noam(step, d_model, warmup)`: the learning rate of update `step`, equation (3).

    Steps count from 1.
    """
    d_model, warmup = 64, 40
    steps = torch.tensor([1.0, 10, 39, 40, 41, 100, 400], dtype=torch.float64)
    rates = [_rate(part, int(step), d_model, warmup) for step in steps]
    found = torch.tensor(rates, dtype=torch.float64)
    right = d_model**-0.5 * torch.minimum(steps**-0.5, steps * warmup**-1.5)
    match(found, _other_rates(steps, d_model, warmup), tolerance=1e-6)
    for step, rate, wanted in zip(steps, found, right, strict=True):
        require(
            abs(rate / wanted - 1) < 1e-4,
            f"noam({int(step)}, {d_model}, {warmup}) should be {wanted:.6f} and is "
            f"{rate:.6f}.",
        )
    return "a straight climb to step warmup, then down with the root of the step"


def _other_rates(steps: Tensor, d_model: int, warmup: int) -> dict[str, Tensor]:
    """What comes of the usual mistakes."""
    fall, climb, width = steps**-0.5, steps * warmup**-1.5, d_model**-0.5
    right = width * torch.minimum(fall, climb)
    return {
        "It takes the larger of the two; the rate is the smaller one.": (
            width * torch.maximum(fall, climb)
        ),
        "The factor d_model^−0.5 is missing.": right / width,
        "It multiplies by √d_model; divide.": right / width**2,
        "It divides by d_model; by its root.": right * width,
        "It climbs and never falls: take the minimum with step^−0.5.": (width * climb),
        "It falls and never climbs: take the minimum with step · warmup^−1.5.": (
            width * fall
        ),
        "The climb has warmup^−1 and meets the fall too early: the power is −1.5.": (
            width * torch.minimum(fall, steps / warmup)
        ),
        "The climb has warmup^−0.5: the power is −1.5.": (
            width * torch.minimum(fall, steps * warmup**-0.5)
        ),
        "It falls with the step; the paper's falls with its root.": (
            width * torch.minimum(1 / steps, climb)
        ),
        "The steps count from 0; the first is 1.": width
        * torch.minimum((steps + 1) ** -0.5, (steps + 1) * warmup**-1.5),
    }


def _rate(part: Part, *arguments: int) -> float:
    """One learning rate. Raises: Wrong for what is no number."""
    found = call("noam", part, *arguments)
    try:
        return float(found)
    except (TypeError, ValueError):
        raise Wrong(
            f"noam should return one number and returns {described(found)}."
        ) from None
