"""How to search, and what a search is given."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..errors import UserError, check_integer, check_kind, nearest

if TYPE_CHECKING:
    import torch

# The least and the most of each whole number.
BOUNDS = {
    "beam_size": (1, 1_000),
    "n_best": (1, 10_000),
    "max_length": (1, 10**9),
    "top_k": (1, 10**9),
    "seed": (0, 2**63 - 1),
    "batch_tokens": (1, 10**9),
}


@dataclass(frozen=True)
class SearchOptions:
    """How to search: the paper's beam of four, unless told otherwise (§6.1).

    A `temperature` asks for samples instead of a beam; `top_k`, `top_p` and `seed` are
    for samples alone. `max_length` counts the end token; None is the source's length
    + 50. `batch_tokens` bounds a batch of sources, padding included.

    Raises: UserError naming the option that is out of range.
    """

    beam_size: int = 4
    alpha: float = 0.6
    n_best: int = 1
    max_length: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    batch_tokens: int = 4096

    def __post_init__(self) -> None:
        for name, (least, most) in BOUNDS.items():
            optional = name in ("max_length", "top_k", "seed")
            if not optional or getattr(self, name) is not None:
                check_integer(self, name, least, most + 1)
        real = {"alpha": Real, "top_p": Real, "temperature": Real | None}
        for name, kind in real.items():
            check_kind(name, getattr(self, name), kind, "a number")
        if not abs(self.alpha) <= 10:
            raise UserError(
                f"alpha is {self.alpha}: the length penalty needs a number from -10 to "
                "10; 0 means no penalty"
            )
        if not 0 < self.top_p <= 1:
            raise UserError(
                f"top_p is {self.top_p}: it is the share of probability to draw from, "
                "above 0 and at most 1"
            )
        if self.temperature is None:
            if self.top_k is not None or self.top_p < 1 or self.seed is not None:
                raise UserError(
                    "top_k, top_p and seed are for samples: give a temperature too (1 "
                    "is the model's own distribution)"
                )
            if self.n_best > self.beam_size:
                raise UserError(
                    f"n_best is {self.n_best}: it must be at most the beam_size of "
                    f"{self.beam_size}"
                )
        elif not 1e-38 < self.temperature < 1e38:
            raise UserError(
                f"temperature is {self.temperature}: take one between 0 and 1e38, or "
                "none to search with a beam"
            )


def search_options(
    options: SearchOptions | None, keywords: dict[str, Any], **fixed: Any
) -> SearchOptions:
    """The options with keywords changed; a beam that isn't named is as wide as n_best.

    Raises: UserError for an unknown keyword, or as `SearchOptions`.
    """
    check_kind("options", options, SearchOptions | None, "SearchOptions, or keywords")
    known = [field.name for field in fields(SearchOptions)]
    for name in keywords:
        if name not in known:
            raise UserError(f"unknown option {name!r}: {nearest(name, known)}")
    count = keywords.get("n_best")
    beam = "beam_size" not in keywords and "temperature" not in keywords
    if options is None and beam and type(count) is int:
        fixed = {"beam_size": max(SearchOptions.beam_size, count)} | fixed
    return replace(options or SearchOptions(), **keywords | fixed)


def random_numbers(
    options: SearchOptions, device: "torch.device"
) -> "torch.Generator | None":
    """The generator that a seed asks for; None is PyTorch's own."""
    import torch  # here, since the command line reads the options without it

    if options.seed is None:
        return None
    return torch.Generator(device).manual_seed(options.seed)


def length_batches(lengths: list[int], batch_tokens: int) -> Iterator[list[int]]:
    """Places of the rows, longest first, in batches of `batch_tokens` with padding.

    A batch has one row at least. Raises: UserError for a budget that is none.
    """
    if type(batch_tokens) is not int or batch_tokens < 1:
        raise UserError(f"batch_tokens is {batch_tokens}: it must be 1 or more")
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while order:
        count = max(1, batch_tokens // max(1, lengths[order[0]]))
        yield order[:count]
        order = order[count:]
