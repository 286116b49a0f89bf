"""A reader's part: how it is called, what it answers, and the verdict on it."""

import traceback
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from math import isnan
from numbers import Real
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from .assertions import Forward, Wrong, require
from .verdict import NOT_YET, Verdict
from .weights import draw

Function = Callable[..., Any]  # the reader's, or a class
Check = Callable[[Function], Verdict]
PACKAGE = Path(__file__).parent


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


@dataclass(frozen=True)
class Part:
    """The reader's function or class, under the name that a sentence gives it."""

    name: str
    function: Function

    def words(self, arguments: tuple[object, ...]) -> str:
        """The call, with the shapes that it is called with."""
        return f"{self.name}({', '.join(map(described, arguments))})"

    def __call__(self, *arguments: object) -> Any:
        """Raises: Wrong for an error in it, or when it returns nothing;
        NotImplementedError if that is all it does.
        """
        words = self.words(arguments)
        try:
            found = self.function(*arguments)
        except (Wrong, NotImplementedError):
            raise
        except Exception as error:
            raise Wrong(f"{raised(words, error)}.") from None
        require(found is not None, f"{words} returns nothing: is its `return` missing?")
        return found

    def tensor(self, *arguments: object, shape: tuple[int, ...]) -> Tensor:
        """The tensor that it returns, alone or before others.

        Raises: Wrong for another shape, for NaN, or for no tensor at all.
        """
        found = self(*arguments)
        found = found[0] if isinstance(found, tuple) and found else found
        words = self.words(arguments)
        require(
            isinstance(found, Tensor) and found.shape == shape,
            f"{words} should return a tensor of the shape {shape}, and returns "
            f"{described(found)}.",
        )
        require(
            not found.isnan().any(),
            f"{words} is NaN in places: a softmax over nothing but −inf, a −inf that "
            "was multiplied, or a division by zero.",
        )
        return cast(Tensor, found)

    def number(self, *arguments: object) -> Tensor:
        """The one number that it returns. Raises: Wrong for anything else."""
        found = self(*arguments)
        plain = isinstance(found, Real) and not isnan(found)
        value = torch.tensor(float(found)) if plain else found
        require(
            isinstance(value, Tensor) and value.numel() == 1,
            f"{self.name} should return one number and returns {described(found)}.",
        )
        return cast(Tensor, value).reshape(()).float()

    def module(self, *sizes: object) -> nn.Module:
        """The class built, in evaluation mode, with new weights from a seed."""
        torch.manual_seed(0)
        module = self(*sizes)
        require(
            isinstance(module, nn.Module),
            f"{self.name} gives no nn.Module: write `class {self.name}(nn.Module)`.",
        )
        draw(module)
        return cast(nn.Module, module.eval())


def forward_of(module: nn.Module) -> Forward:
    """Its forward, which is to give vectors in the shape of the first ones."""
    part = Part("forward", module)

    def forward(x: Tensor, *others: object) -> Tensor:
        return part.tensor(x, *others, shape=tuple(x.shape))

    return forward


# What the check that is running has found to be otherwise than in the paper.
_departures: ContextVar[list[str]] = ContextVar("departures")


def depart(words: str) -> None:
    """Say how a part departs from the paper, without a mistake; the check goes on."""
    if words not in _departures.get():
        _departures.get().append(words)


def check_of(name: str) -> Callable[[Callable[[Part], str]], Check]:
    """Make a check of a function that returns praise or raises `Wrong`.

    It runs with its own random numbers, and leaves the reader's as they were.
    """

    def decorate(body: Callable[[Part], str]) -> Check:
        @wraps(body)
        def check(part: Function) -> Verdict:
            with torch.random.fork_rng(devices=[]), torch.enable_grad():
                torch.manual_seed(0)
                _departures.set([])
                try:
                    praise = body(Part(name, part))
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

        check.__annotations__ |= {"part": Function, "return": Verdict}
        return check

    return decorate
