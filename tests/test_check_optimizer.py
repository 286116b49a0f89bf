"""The checks of Adam and of the learning rate: each mistake gets its true sentence, and
right variants pass.
"""

import math

import pytest
import torch

from annotated_transformer import check
from annotated_transformer.training.schedule import adam, noam

SOURCE = """
def adam_step(w, gradient, m, v, t, rate, beta_1=0.9, beta_2=0.98, eps=1e-9):
    m = beta_1 * m + (1 - beta_1) * gradient
    v = beta_2 * v + (1 - beta_2) * gradient**2
    m_hat = m / (1 - beta_1**t)
    v_hat = v / (1 - beta_2**t)
    return w - rate * m_hat / (v_hat.sqrt() + eps), m, v


def noam(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
"""
NEW_M, NEW_V = "(1 - beta_1) * gradient", "(1 - beta_2) * gradient**2"
ROOT, RETURN = "(v_hat.sqrt() + eps)", ", m, v\n"
# What is said of a mistake that has no reason of its own, below the numbers.
MEAN, SQUARE = "m should be β_1 m", "v should be β_2 v"
STEP, FIRST = "Weights should move by rates of", "noam(1, 64, 40) should be"
MISTAKES = [
    ("adam_step", f"m = beta_1 * m + {NEW_M}", "", MEAN),
    ("adam_step", NEW_M, "gradient", MEAN),
    ("adam_step", "beta_1 * m + (1 - beta_1)", "(1 - beta_1) * m + beta_1", MEAN),
    (
        "adam_step",
        f"beta_1 * m + {NEW_M}",
        "beta_2 * m + (1 - beta_2) * gradient",
        MEAN,
    ),
    ("adam_step", NEW_M, NEW_M + "**2", MEAN),
    ("adam_step", "m_hat = m", "m_hat = m = m", "m comes back corrected"),
    ("adam_step", RETURN, ", v, m\n", MEAN),
    ("adam_step", RETURN, "\n", "should return three tensors"),
    ("adam_step", f"v = beta_2 * v + {NEW_V}", "", SQUARE),
    ("adam_step", NEW_V, "gradient**2", SQUARE),
    ("adam_step", "beta_2 * v + (1 - beta_2)", "(1 - beta_2) * v + beta_2", SQUARE),
    (
        "adam_step",
        f"beta_2 * v + {NEW_V}",
        "beta_1 * v + (1 - beta_1) * gradient**2",
        SQUARE,
    ),
    ("adam_step", "beta_2=0.98", "beta_2=0.999", SQUARE),
    ("adam_step", "v_hat = v", "v_hat = v = v", "v comes back corrected"),
    ("adam_step", NEW_V, "(1 - beta_2) * gradient", "v averages the gradient"),
    ("adam_step", NEW_V, "(1 - beta_2) * gradient.abs()", SQUARE),
    ("adam_step", "w - rate", "w + rate", "uphill"),
    ("adam_step", "m / (1 - beta_1**t)", "m", STEP),
    ("adam_step", "v / (1 - beta_2**t)", "v", STEP),
    ("adam_step", "m_hat / (v_hat", "m / (v", "aren't corrected"),
    ("adam_step", "1 - beta_1**t", "1 - beta_1**(t - 1)", STEP),
    ("adam_step", ROOT, "(v_hat + eps)", "The root is missing"),
    ("adam_step", ROOT, "(v_hat + eps).sqrt()", "under the root"),
    ("adam_step", ROOT, "v_hat.sqrt()", "add ε to the root"),
    ("adam_step", "rate * ", "", STEP),
    ("adam_step", "rate * m_hat", "rate * gradient", STEP),
    ("noam", "min(", "max(", "the smaller one"),
    ("noam", "d_model**-0.5 * ", "", "is missing"),
    ("noam", "d_model**-0.5", "d_model**0.5", FIRST),
    ("noam", "d_model**-0.5", "d_model**-1", FIRST),
    (
        "noam",
        "min(step**-0.5, step * warmup**-1.5)",
        "step * warmup**-1.5",
        "never falls",
    ),
    ("noam", "min(step**-0.5, step * warmup**-1.5)", "step**-0.5", FIRST),
    ("noam", "warmup**-1.5", "warmup**-1", FIRST),
    ("noam", "warmup**-1.5", "warmup**-0.5", FIRST),
    ("noam", "step**-0.5", "step**-1", "noam(39, 64, 40) should be"),
    ("noam", "warmup**-1.5", "warmup**-1.4", FIRST),
    ("noam", "return ", "", "`return` missing"),
]


def verdict(part: str, source: str):
    names: dict = {}
    exec(source, names)
    return getattr(check, part)(names[part])


@pytest.mark.parametrize("part, old, new, words", MISTAKES)
def test_a_mistake_gets_its_sentence(part, old, new, words):
    assert old in SOURCE
    start = SOURCE.index(f"def {part}(")
    found = verdict(part, SOURCE[:start] + SOURCE[start:].replace(old, new, 1))
    assert not found and words in found.sentence, found
    assert found.numbers or words not in (MEAN, SQUARE, STEP)


@pytest.mark.parametrize("power", ["", "**(t - 1)"])
def test_both_corrections_have_the_power_t(power):
    found = verdict("adam_step", SOURCE.replace("**t)", f"{power})"))
    assert STEP in found.sentence and "expected" in found.numbers


def in_place(w, gradient, m, v, t, rate, beta_1=0.9, beta_2=0.98, eps=1e-9):
    """As PyTorch writes it: the averages in place, the corrections in the step."""
    m.mul_(beta_1).add_(gradient, alpha=1 - beta_1)
    v.mul_(beta_2).addcmul_(gradient, gradient, value=1 - beta_2)
    root = v.sqrt().div_(math.sqrt(1 - beta_2**t)).add_(eps)
    w -= rate / (1 - beta_1**t) * m / root
    return [w, m, v]


def torchs(w, gradient, m, v, t, rate):
    """PyTorch's own Adam, with the averages put in and taken out."""
    weight = torch.nn.Parameter(w.clone())
    module = torch.nn.Module()
    module.weight = weight
    optimizer = adam(module)
    optimizer.param_groups[0]["lr"], weight.grad = rate, gradient
    step = torch.tensor(float(t - 1))
    optimizer.state[weight] = {"step": step, "exp_avg": m, "exp_avg_sq": v}
    optimizer.step()
    state = optimizer.state[weight]
    return weight.detach(), state["exp_avg"], state["exp_avg_sq"]


def in_two_pieces(step, d_model, warmup):
    """The climb and the fall, each where it holds; a tensor."""
    peak = torch.tensor(d_model * warmup) ** -0.5
    return peak * (step / warmup if step < warmup else (warmup / step) ** 0.5)


@pytest.mark.parametrize(
    "name, part",
    [
        ("adam_step", in_place),
        ("adam_step", torchs),
        ("noam", noam),
        ("noam", in_two_pieces),
    ],
)
def test_a_right_solution_of_any_style_passes(name, part):
    found = getattr(check, name)(part)
    assert found, found


def test_the_source_itself_passes():
    assert verdict("adam_step", SOURCE) and verdict("noam", SOURCE)
