"""Whether a model has room in this machine's memory, asked before any is taken."""

import psutil

from ..errors import UserError
from .config import TransformerConfig
from .costs import parameter_count


def check_free(needed: int, what: str, remedy: str) -> None:
    """Raises: UserError when more bytes are needed than the system has free."""
    free = psutil.virtual_memory().available
    if needed > free:
        raise UserError(
            f"{what} takes at least {needed / 1e9:,.1f} GB of memory and "
            f"{free / 1e9:,.1f} GB are free: {remedy}"
        )


def check_memory(config: TransformerConfig, copies: int = 1) -> None:
    """See that a new model fits into memory, in float32, by the formula of its size.

    Training keeps four `copies` of each weight: itself, its gradient, Adam's averages.
    Raises: UserError as `check_free`.
    """
    needed = 4 * (copies * parameter_count(config) + config.max_length * config.d_model)
    needed += 50_000 * config.N  # Python's objects for a layer, however small it is
    remedy = "lower N, d_model, d_ff or max_length"
    check_free(needed, "a model of these sizes", remedy)
