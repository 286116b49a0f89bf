"""Which parts of today go together, and which don't."""

from collections.abc import Iterable
from typing import Any

from ..errors import UserError, nearest


def check_parts(config: Any, known: Iterable[str], sharing: int) -> None:
    """Raises: UserError for parts of a `Since2017Config` that are unknown or don't fit;
    `sharing` heads of queries make a group.
    """
    for name in config.parts:
        if name not in known:
            raise UserError(f"unknown part {name!r}: {nearest(name, known)}")
    for one, other in (("gelu", "swiglu"), ("rotary", "alibi")):
        if one in config.parts and other in config.parts:
            raise UserError(f"{one} and {other} replace the same part: choose one")
    if "grouped-queries" in config.parts and config.h % sharing:
        raise UserError(
            f"h is {config.h}: grouped-queries puts {sharing} heads into a group, so h "
            f"must be a multiple of {sharing}"
        )
    if "rotary" in config.parts and config.d_k % 2:
        raise UserError(f"d_k is {config.d_k}: rotary turns pairs, so it must be even")
