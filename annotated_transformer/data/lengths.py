"""Which lengths of pairs can be cut into batches."""

import numpy as np

from ..errors import UserError


def check_lengths(longer: np.ndarray, max_tokens: int, names: np.ndarray) -> None:
    """Raises: UserError if there are no pairs or no budget, or with the name of a pair
    that has no tokens or alone exceeds the budget.
    """
    if len(longer) == 0:
        raise UserError("no pairs to make batches of")
    if not max_tokens >= 1:
        raise UserError(f"max_tokens is {max_tokens}: it must be 1 or more")
    if longer.min() < 1:
        raise UserError(f"pair {names[longer.argmin()]} has no tokens: leave it out")
    worst = int(longer.argmax())
    if longer[worst] > max_tokens:
        raise UserError(
            f"pair {names[worst]} has {longer[worst]} tokens, more than the "
            f"{max_tokens} of a whole batch: raise max_tokens, or leave it out with "
            "max_length"
        )
