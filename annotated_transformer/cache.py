"""What a model keeps between two steps of a search."""

from typing import TYPE_CHECKING, Any

from torch import Tensor


class Cache:
    """A model's state by name, as in `Cache(memory=memory, state=state)`.

    A tensor and a list have a row for each hypothesis, and a tuple holds further parts;
    `length` tokens have been read so far.
    """

    def __init__(self, **parts: Any):
        self.length = 0
        vars(self).update(parts)

    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may occur more than once."""
        for name, part in vars(self).items():
            vars(self)[name] = reordered(part, rows)

    if TYPE_CHECKING:  # its parts have any names

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


def reordered(part: Any, rows: Tensor) -> Any:
    """One part of a cache with these rows; a cache within it sees to itself."""
    if isinstance(part, Tensor):
        return part[rows]
    if isinstance(part, list):
        return [part[row] for row in rows.tolist()]
    if isinstance(part, tuple):
        return tuple(reordered(each, rows) for each in part)
    if hasattr(part, "reorder"):
        part.reorder(rows)
    return part
