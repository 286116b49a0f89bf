"""Where a layer or a stack has its norms, told from numbers alone."""

import math

from .assertions import close, expect
from .parts import depart
from .probes import Probe, normalised
from .weights import without

PRE_NORM = (
    "pre-norm, x + sublayer(norm(x)), as GPT-2 has it; the paper's norm comes after "
    "the sum (post-norm)"
)


def check_norms(probe: Probe, stack: bool) -> None:
    """Name its departures; its inputs get the size that its norm leaves.

    Raises: Wrong for vectors that leave without any norm.
    """
    found, d_model = probe.output(), probe.inputs[0].size(-1)
    size = math.sqrt((d_model - 1) / d_model)
    ends = close(found, normalised(found), 1e-2)
    unbiased = not ends and close(found, size * normalised(found), 1e-2)
    if unbiased:
        depart("the norm's standard deviation is PyTorch's std, with d_model − 1")
    if _is_pre_norm(probe):
        probe.chains = not (ends or unbiased)
        depart(PRE_NORM + ", and no norm at the stack's end" * (stack and probe.chains))
    elif not unbiased:
        sentence = (
            "Each position should leave with mean 0 and variance 1, but the first has "
            f"{found[0, 0].mean():.2f} and {found[0, 0].var(unbiased=False):.2f}: the "
            "paper's norm comes after the sum (post-norm), not before the sub-layer."
        )
        expect(found, normalised(found), sentence, tolerance=1e-2)
    if unbiased:
        probe.inputs = [size * each for each in probe.inputs]


def _is_pre_norm(probe: Probe) -> bool:
    """Whether sub-layers read what is normalised, and x goes by them as it is.

    Then what they add doesn't grow with x, and is lost beside a large one; and it
    shrinks with their weights, as what a norm of their output gave wouldn't.
    """
    x, *memory = probe.inputs
    far = probe.forward(1e4 * x, *memory)
    if not close(normalised(far), normalised(x), 1e-2):
        return False
    with without(probe.weights):
        alone = probe.output()
    added = (probe.output() - alone).norm()
    with without(probe.weights, keep=0.3):
        less = (probe.output() - alone).norm()
    return bool(less < 0.5 * added)
