"""The weights of what a reader's class built, under whatever names."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .assertions import Wrong, require

Weights = list[nn.Parameter]


def matrices_of(module: nn.Module) -> Weights:
    """The parameters of two axes or more that aren't all ones."""
    return [p for p in module.parameters() if p.dim() > 1 and not (p == 1).all()]


def size_of(weights: Iterable[Tensor]) -> int:
    """How many numbers there are in all."""
    return sum(weight.numel() for weight in weights)


def draw(module: nn.Module) -> None:
    """New numbers in all matrices, so that no start, however small, hides an effect."""
    for weight in matrices_of(module):
        weight.detach().normal_(std=weight.size(-1) ** -0.5)


def fill_matrices(module: nn.Module, value: float) -> None:
    """One value in all matrices, zero in all vectors but the gains of norms."""
    for weight in matrices_of(module):
        weight.detach().fill_(value)
    silence(module)


def silence(module: nn.Module) -> None:
    """Zero in all vectors but the gains of norms: no bias says anything."""
    for vector in module.parameters():
        if vector.dim() == 1 and not (vector == 1).all():
            vector.detach().zero_()


def require_gradients(module: nn.Module, result: Tensor) -> None:
    """Raises: Wrong for a module without weights, or that names one never used."""
    named = dict(module.named_parameters())
    require(
        named,
        "It has no parameters: keep weights in nn.Linear or nn.Parameter, and layers "
        "in nn.ModuleList, not in a plain list.",
    )
    module.zero_grad()
    if result.requires_grad:
        (result * torch.randn_like(result)).sum().backward()
    for name, parameter in named.items():
        gradient = parameter.grad
        if gradient is None:
            raise Wrong(
                f"The gradient never reaches `{name}`: forward doesn't use it, or what "
                "it gives is overwritten."
            )
        require(
            parameter.dim() == 1 or gradient.any(),
            f"The gradient of `{name}` is zero: what it gives is lost on the way.",
        )


@contextmanager
def without(weights: Iterable[nn.Parameter], keep: float = 0.0) -> Iterator[None]:
    """Zeros in some weights, or a part of them, for a while."""
    kept = [(weight, weight.detach().clone()) for weight in weights]
    for weight, _ in kept:
        weight.detach().mul_(keep)
    try:
        yield
    finally:
        for weight, values in kept:
            weight.detach().copy_(values)


def needed_weights(
    weights: Iterable[nn.Parameter], holds: Callable[[], object]
) -> Weights:
    """The weights without any one of which something no longer holds."""
    found = []
    for weight in weights:
        with without([weight]):
            if not holds():
                found.append(weight)
    return found
