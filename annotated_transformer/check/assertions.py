"""What should hold of a part's answers, and the sentence where it doesn't."""

from collections.abc import Callable, Sequence
from operator import eq
from typing import Any

import torch
from torch import Tensor

Forward = Callable[..., Tensor]
TOLERANCE = 2e-5  # of float32: what differs by less is the same


class Wrong(Exception):
    """Ends a check with the sentence that the reader gets, perhaps below numbers."""

    def __init__(self, sentence: str, numbers: str = ""):
        super().__init__(sentence)
        self.numbers = numbers


def require(condition: object, sentence: str) -> None:
    """Raises: Wrong with the sentence unless the condition holds."""
    if not condition:
        raise Wrong(sentence)


def side_by_side(expected: Tensor, found: Tensor) -> str:
    """A few rows of two tensors of one shape, around the first place that differs."""
    if found.dim() < 2:
        expected, found = expected.reshape(1, -1), found.reshape(1, -1)
    far = (expected.double() - found.double()).abs() > 1e-3
    place = (far.nonzero().tolist() or [[0] * far.dim()])[0]
    row, column = (
        max(0, min(at - 1, size - most))
        for at, size, most in zip(place[-2:], far.shape[-2:], (3, 4), strict=True)
    )
    digits = (4 if found.numel() == 1 else 2) * expected.is_floating_point()

    def lines(head: str, numbers: Tensor) -> list[str]:
        few = numbers[tuple(place[:-2])][row : row + 3, column : column + 4].tolist()
        return [head, *("".join(f"{x:8.{digits}f}" for x in line) for line in few)]

    left, right = lines("  expected", expected), lines("   found", found)
    width = max(map(len, left))
    pairs = zip(left, right, strict=True)
    return "\n".join(f"{one:{width}}  |{other}" for one, other in pairs)


def close(one: Tensor, other: Tensor, tolerance: float = TOLERANCE) -> bool:
    """The same shape, and the same numbers to rounding."""
    same_shape = one.shape == other.shape
    return same_shape and torch.allclose(one, other, rtol=tolerance, atol=tolerance)


def reason(
    found: Any, mistakes: dict[str, Any], same: Callable[[Any, Any], bool] = eq
) -> str:
    """What is said of the first mistake that gives what was found, or nothing."""
    words = (f": {text}" for text, wrong in mistakes.items() if same(found, wrong))
    return next(words, "")


def expect(
    found: Tensor,
    right: Tensor,
    sentence: str,
    mistakes: dict[str, Tensor] | None = None,
    tolerance: float = 1e-4,
) -> None:
    """Raises: Wrong with both unless what was found is right.

    It says the sentence, or of mistakes the first one that gives what was found.
    """
    if close(found, right, tolerance):
        return
    for mistake, numbers in (mistakes or {}).items():
        if close(found, numbers, tolerance):
            raise Wrong(mistake, side_by_side(right, found))
    raise Wrong(sentence, side_by_side(right, found))


def expect_touched(
    forward: Forward, given: Tensor, position: int, wanted: Sequence[int], hint: str
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
    forward: Forward, given: Tensor, mask: str, own: bool = False
) -> None:
    """Raises: Wrong unless the mask in forward hides the last position, and no other.

    With `own`, a vector may still change the output at its own position.
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
