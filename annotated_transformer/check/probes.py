"""A reader's layer or stack as a function of vectors, whose sub-layers can be off.

Names tell nothing here: a sub-layer is found by what is lost without its weights.
"""

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import permutations

import torch.nn.functional as F
from torch import Tensor, nn

from .assertions import Forward, changed, close, disturb, expect, require
from .parts import depart
from .weights import Weights, needed_weights, without

SELF, SOURCE, NETWORK = "self-attention", "source attention", "feed-forward"


def normalised(vectors: Tensor) -> Tensor:
    """Mean 0 and variance 1 at each position, as a norm leaves them."""
    return F.layer_norm(vectors, vectors.shape[-1:])


@dataclass
class Probe:
    """A layer or a stack: its function of vectors, and the weights inside."""

    module: nn.Module
    forward: Forward
    weights: Weights
    inputs: list[Tensor]  # x, and for a decoder the memory
    sublayers: dict[str, Weights] = field(default_factory=dict)
    chains: bool = True  # what it gives can be given to a next one; not below a norm

    def output(self) -> Tensor:
        """What it gives for its inputs."""
        return self.forward(*self.inputs)

    def drops(self) -> bool:
        """Whether it gives something else each time."""
        return not close(self.output(), self.output(), 1e-3)

    def check_norms(self, stack: bool) -> None:
        """Name departures of its norms, and give its inputs the size that they leave.

        Raises: Wrong for vectors that leave without any norm.
        """
        found, d_model = self.output(), self.inputs[0].size(-1)
        size = math.sqrt((d_model - 1) / d_model)
        ends = close(found, normalised(found), 1e-2)
        unbiased = not ends and close(found, size * normalised(found), 1e-2)
        if unbiased:
            depart("the norm's standard deviation is PyTorch's std, with d_model − 1")
        if self.is_pre_norm():
            self.chains = not (ends or unbiased)
            depart(
                "pre-norm, x + sublayer(norm(x)), as GPT-2 has it; the paper's norm "
                "comes after the sum (post-norm)"
                + ", and no norm at the stack's end"
                * (stack and self.chains)
            )
        elif not unbiased:
            sentence = (
                "Each position should leave with mean 0 and variance 1, but the first "
                f"has {found[0, 0].mean():.2f} and "
                f"{found[0, 0].var(unbiased=False):.2f}: the paper's norm comes after "
                "the sum (post-norm), not before the sub-layer."
            )
            expect(found, normalised(found), sentence, tolerance=1e-2)
        if unbiased:
            self.inputs = [size * each for each in self.inputs]

    def is_pre_norm(self) -> bool:
        """Whether sub-layers read what is normalised, and x goes by them as it is.

        Then what they add doesn't grow with x, and is lost beside a large one; and it
        shrinks with their weights, as what a norm of their output gave wouldn't.
        """
        x, *memory = self.inputs
        far = self.forward(1e4 * x, *memory)
        if not close(normalised(far), normalised(x), 1e-2):
            return False
        with without(self.weights):
            alone = self.output()
        added = (self.output() - alone).norm()
        with without(self.weights, keep=0.3):
            less = (self.output() - alone).norm()
        return bool(less < 0.5 * added)

    def alone(self, name: str) -> AbstractContextManager[None]:
        """A while in which of all sub-layers this one works."""
        others = [each for other, each in self.sublayers.items() if other != name]
        return without(weight for weights in others for weight in weights)

    def find_sublayers(self) -> None:
        """Find the weights without which a sub-layer does nothing, by its name.

        Raises: Wrong when two of them can't be told apart.
        """
        x, *memory = self.inputs
        last = x.size(1) - 1

        def mixes() -> bool:
            after = self.forward(disturb(x, 0), *memory)
            return last in changed(self.output(), after)

        def asks() -> list[int]:
            after = self.forward(x, disturb(memory[0], 0))
            return changed(self.output(), after)

        found = {SELF: needed_weights(self.weights, mixes)}
        if memory:
            found[SOURCE] = needed_weights(self.weights, asks)
        attentions = [weight for weights in found.values() for weight in weights]
        require(
            len({id(weight) for weight in attentions}) == len(attentions),
            "One attention module serves as both of the decoder's, so neither can "
            "learn its own task: make two MultiHeadAttentions.",
        )
        with without(attentions):
            before = self.output()
            found[NETWORK] = needed_weights(
                self.weights, lambda: not changed(before, self.output())
            )
        require(
            found[NETWORK],
            "Without the feed-forward network attention is lost, too: each residual "
            "should carry on what the sub-layer before it gave.",
        )
        self.sublayers = found

    def one_by_one(self, order: Iterable[str]) -> Tensor:
        """What its sub-layers give one after the other, in some order."""
        y, *memory = self.inputs
        for name in order:
            with self.alone(name):
                y = self.forward(y, *memory)
        return y

    def check_order(self) -> None:
        """Raises: Wrong unless all sub-layers do together what they do one by one."""
        paper = ", ".join(self.sublayers)
        mistakes = {
            f"The order is {', '.join(order)}; in the paper it is {paper}.": (
                self.one_by_one(order)
            )
            for order in permutations(self.sublayers)
        }
        sentence = (
            "Together the sub-layers give other numbers than one after the other, "
            f"{paper}: each should read, and add to, what the one before it gave."
        )
        right = self.one_by_one(self.sublayers)
        expect(self.output(), right, sentence, mistakes, tolerance=1e-3)
