"""Where a layer or a stack has its norms, told from numbers alone."""

import math

from torch import Tensor

from .assertions import close, depart, expect
from .probes import Probe, normalised, without

PRE_NORM = (
    "pre-norm, x + sublayer(norm(x)), as GPT-2 has it; the paper's norm comes after "
    "the sum (post-norm)"
)


def norm_of(probe: Probe, inputs: list[Tensor], stack: bool) -> float:
    """The size of the vectors that its norm leaves; departures are named.

    Raises: Wrong for vectors that leave without any norm.
    """
    found, d_model = probe.forward(*inputs), inputs[0].size(-1)
    size = math.sqrt((d_model - 1) / d_model)
    ends = close(found, normalised(found), 1e-2)
    unbiased = not ends and close(found, size * normalised(found), 1e-2)
    if unbiased:
        depart("the norm's standard deviation is PyTorch's std, with d_model − 1")
    if is_pre_norm(probe, inputs):
        probe.chains = not (ends or unbiased)
        depart(PRE_NORM + ", and no norm at the stack's end" * (stack and probe.chains))
    elif not unbiased:
        sentence = (
            "Each position should leave with mean 0 and variance 1, but the first has "
            f"{found[0, 0].mean():.2f} and {found[0, 0].var(unbiased=False):.2f}: the "
            "paper's norm comes after the sum (post-norm), not before the sub-layer."
        )
        expect(found, normalised(found), sentence, tolerance=1e-2)
    return size if unbiased else 1.0


def is_pre_norm(probe: Probe, inputs: list[Tensor]) -> bool:
    """Whether sub-layers read what is normalised, and x goes by them as it is.

    Then what they add doesn't grow with x, and is lost beside a large one; and it
    shrinks with their weights, as what a norm of their output gave wouldn't.
    """
    x, *memory = inputs
    far = probe.forward(1e4 * x, *memory)
    if not close(normalised(far), normalised(x), 1e-2):
        return False
    with without(probe.weights):
        alone = probe.forward(*inputs)
    added = (probe.forward(*inputs) - alone).norm()
    with without(probe.weights, keep=0.3):
        less = (probe.forward(*inputs) - alone).norm()
    return bool(less < 0.5 * added)
