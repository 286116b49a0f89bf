"""What all checks are made of: calls of a reader's part, and what they should give."""

import traceback
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import wraps
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn

from .verdict import NOT_YET, Verdict

Part: TypeAlias = Callable[..., Any]  # the reader's function or class
TOLERANCE = 2e-5  # of float32: what differs by less is the same
PACKAGE = Path(__file__).parent


# What the check that is running has found to be otherwise than in the paper.
_departures: ContextVar[list[str]] = ContextVar("departures")


def depart(words: str) -> None:
    """Say how a part departs from the paper, without a mistake; the check goes on."""
    if words not in _departures.get():
        _departures.get().append(words)


class Wrong(Exception):
    """Ends a check with the sentence that the reader gets, perhaps below numbers."""

    def __init__(self, sentence: str, numbers: str = ""):
        super().__init__(sentence)
        self.numbers = numbers


def side_by_side(expected: Tensor, found: Tensor) -> str:
    """A few rows of two tensors of one shape, around the first place that differs."""
    if found.dim() < 2:
        expected, found = expected.reshape(1, -1), found.reshape(1, -1)
    far = (expected.double() - found.double()).abs() > 1e-3
    place = (far.nonzero().tolist() or [[0] * far.dim()])[0]
    rows, columns = (
        slice(max(0, min(at - 1, size - most)), max(most, min(at - 1 + most, size)))
        for at, size, most in zip(place[-2:], far.shape[-2:], (3, 4), strict=True)
    )
    small = [
        each[tuple(place[:-2])][rows, columns].tolist() for each in (expected, found)
    ]
    digits = (4 if found.numel() == 1 else 2) * expected.is_floating_point()
    lines = [
        ["".join(f"{number:8.{digits}f}" for number in row) for row in each]
        for each in small
    ]
    width = max(map(len, ["  expected", *lines[0]]))
    pairs = [("  expected", "   found"), *zip(*lines, strict=True)]
    return "\n".join(f"{one:{width}}  |{other}" for one, other in pairs)


def check_of(name: str) -> Callable[[Callable[[Part], str]], Callable[[Part], Verdict]]:
    """Make a check of a function that returns praise or raises `Wrong`.

    It runs with its own random numbers, and leaves the reader's as they were.
    """

    def decorate(body: Callable[[Part], str]) -> Callable[[Part], Verdict]:
        @wraps(body)
        def check(part: Part) -> Verdict:
            with torch.random.fork_rng(devices=[]), torch.enable_grad():
                torch.manual_seed(0)
                _departures.set([])
                try:
                    praise = body(part)
                    if found := _departures.get():
                        words = f"≈ {name} departs from the paper: {'; '.join(found)}."
                        return Verdict(words, departs=True)
                    return Verdict(f"{name} is right: {praise}.", right=True)
                except Wrong as wrong:
                    return Verdict(str(wrong), numbers=wrong.numbers)
                except NotImplementedError as error:
                    # PyTorch's own says that a kernel is "not implemented for" a type.
                    if "not implemented for" not in str(error):
                        return NOT_YET
                    return Verdict(f"{raised(name, error)}.")

        check.__annotations__["return"] = Verdict
        return check

    return decorate


def require(condition: object, sentence: str) -> None:
    """Raises: Wrong with the sentence unless the condition holds."""
    if not condition:
        raise Wrong(sentence)


def described(value: object) -> str:
    """An argument in a sentence: a tensor's shape, a plain value, or what it is."""
    if isinstance(value, Tensor):
        return str(tuple(value.shape))
    if isinstance(value, nn.Module):
        return "model"
    if hasattr(value, "param_groups"):
        return "optimizer"
    if isinstance(value, int | float | str | None):
        return repr(value)
    return type(value).__name__


def raised(call: str, error: BaseException) -> str:
    """What was called, the error's last line, and the reader's line that it came from.

    Lines of PyTorch and of this package are passed over.
    """
    last = " ".join(traceback.format_exception_only(error)[-1].split())
    frames = traceback.extract_tb(error.__traceback__)
    foreign = (str(PACKAGE), str(Path(torch.__file__).parent), "<@")
    own = [frame for frame in frames if not frame.filename.startswith(foreign)]
    line = f", in the line `{own[-1].line}`" if own and own[-1].line else ""
    return f"{call} raised {last[:200].rstrip('.')}{line}"


def call(name: str, function: Part, *arguments: object) -> Any:
    """What the reader's function returns.

    Raises: Wrong for an error in it, with the shapes that it was called with, or when
    it returns nothing; NotImplementedError if that is all it does.
    """
    words = f"{name}({', '.join(map(described, arguments))})"
    try:
        found = function(*arguments)
    except (Wrong, NotImplementedError):
        raise
    except Exception as error:
        raise Wrong(f"{raised(words, error)}.") from None
    require(found is not None, f"{words} returns nothing: is its `return` missing?")
    return found


def output(
    name: str, function: Part, *arguments: object, shape: tuple[int, ...]
) -> Tensor:
    """The tensor that it returns, alone or before others, seen to have a shape.

    Raises: Wrong for another shape, for NaN, or for no tensor at all.
    """
    found = call(name, function, *arguments)
    found = found[0] if isinstance(found, tuple) and found else found
    words = f"{name}({', '.join(map(described, arguments))})"
    require(
        isinstance(found, Tensor) and found.shape == shape,
        f"{words} should return a tensor of the shape {shape}, and returns "
        f"{described(found)}.",
    )
    require(
        not found.isnan().any(),
        f"{words} is NaN in places: a softmax over nothing but −inf, a −inf that was "
        "multiplied, or a division by zero.",
    )
    return cast(Tensor, found)


def forward_of(module: nn.Module) -> Callable[..., Tensor]:
    """Its forward, which is to give vectors in the shape of the first ones."""

    def forward(x: Tensor, *others: object) -> Tensor:
        return output("forward", module, x, *others, shape=tuple(x.shape))

    return forward


def number(name: str, function: Part, *arguments: object) -> Tensor:
    """The one number that it returns, without axes. Raises: Wrong for anything else."""
    found = call(name, function, *arguments)
    found = torch.tensor(float(found)) if isinstance(found, Real) else found
    require(
        isinstance(found, Tensor) and found.numel() == 1,
        f"{name} should return one number and returns {described(found)}.",
    )
    return cast(Tensor, found).reshape(()).float()


def new_part(name: str, part: Part, *sizes: int | float) -> nn.Module:
    """The reader's class built, in evaluation mode, with new weights from a seed.

    The weights are drawn anew so that no start, however small, hides an effect; what
    starts as ones, such as the gain of a norm, stays.
    """
    torch.manual_seed(0)
    module = call(name, part, *sizes)
    require(
        isinstance(module, nn.Module),
        f"{name} gives no nn.Module: write `class {name}(nn.Module)`.",
    )
    with torch.no_grad():
        for weight in matrices_of(module):
            weight.normal_(std=weight.size(-1) ** -0.5)
    return module.eval()


def matrices_of(module: nn.Module) -> list[nn.Parameter]:
    """The parameters of two axes or more that aren't all ones."""
    return [p for p in module.parameters() if p.dim() > 1 and not (p == 1).all()]


def size_of(weights: Iterable[Tensor]) -> int:
    """How many numbers there are in all."""
    return sum(weight.numel() for weight in weights)


@torch.no_grad()
def fill_matrices(module: nn.Module, value: float) -> None:
    """One value in all matrices, zero in all vectors but the gains of norms."""
    for weight in matrices_of(module):
        weight.fill_(value)
    silence(module)


@torch.no_grad()
def silence(module: nn.Module) -> None:
    """Zero in all vectors but the gains of norms: no bias says anything."""
    for vector in module.parameters():
        if vector.dim() == 1 and not (vector == 1).all():
            vector.zero_()


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


def close(one: Tensor, other: Tensor, tolerance: float = TOLERANCE) -> bool:
    """The same shape, and the same numbers to rounding."""
    same_shape = one.shape == other.shape
    return same_shape and torch.allclose(one, other, rtol=tolerance, atol=tolerance)


def expect(
    found: Tensor,
    right: Tensor,
    sentence: str,
    mistakes: dict[str, Tensor] | None = None,
    tolerance: float = 1e-4,
) -> None:
    """Compare what was found with what is right.

    Raises: Wrong with both, and with the sentence of the first mistake that gives what
    was found, or else with the one for all others.
    """
    if close(found, right, tolerance):
        return
    for mistake, numbers in (mistakes or {}).items():
        if close(found, numbers, tolerance):
            sentence = mistake
            break
    raise Wrong(sentence, side_by_side(right, found))


def expect_touched(
    forward: Callable[[Tensor], Tensor],
    given: Tensor,
    position: int,
    wanted: Sequence[int],
    hint: str,
) -> None:
    """Raises: Wrong, with a row of 1s at the positions that change, for other ones."""
    before = forward(given)
    found = changed(before, forward(disturb(given, position)))
    marks = torch.zeros(2, before.size(1), dtype=torch.int)
    marks[0, found], marks[1, list(wanted)] = 1, 1
    sentence = (
        f"Another vector at position {position} should change the output at "
        f"{list(wanted)}, and changes it at {found}: {hint}."
    )
    expect(marks[0], marks[1], sentence)


def expect_masked(
    forward: Callable[[Tensor], Tensor], given: Tensor, mask: str, own: bool = False
) -> None:
    """Call forward with other first and last vectors; its mask hides the last.

    Raises: Wrong for a mask without its effect, apart from a vector's own position.
    """
    before = forward(given)
    hidden, seen = (
        [i for i in changed(before, forward(disturb(given, at))) if not own or i != at]
        for at in (given.size(1) - 1, 0)
    )
    require(
        seen,
        f"{mask} is inverted: what it shows changes nothing; True means “may attend”.",
    )
    require(
        not hidden,
        f"Padding that {mask} hides still changes the output at {hidden}: hand it on, "
        "in each layer.",
    )


def disturb(x: Tensor, position: int) -> Tensor:
    """The same rows with other numbers at one position."""
    x = x.clone()
    x[:, position] = torch.randn_like(x[:, position])
    return x


def changed(before: Tensor, after: Tensor) -> list[int]:
    """The positions, along the second axis, at which two results differ."""
    far = (before - after).abs() > TOLERANCE
    return [i for i in range(before.size(1)) if far[:, i].any()]
