"""`--set NAME=VALUE`: text as values of the dataclasses that have such a field."""

import warnings
from collections.abc import Sequence
from typing import Any

from ..errors import UserError


def parse_settings(settings: Sequence[str], *parts: Any) -> dict[str, Any]:
    """The values of NAME=VALUE settings, each of the type that its field has.

    An unknown name keeps its text. Raises: UserError for what is no such value.
    """
    from ..training.config import setting_owners

    owners, values = setting_owners(parts), {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: write NAME=VALUE")
        like = getattr(parts[owners[name]], name) if name in owners else text
        values[name] = parse_value(text, like, name)
    return values


def parse_value(text: str, like: Any, name: str) -> Any:
    """A setting's text as a value of the type it had.

    Raises: UserError naming the setting and the type.
    """
    if isinstance(like, bool):
        if text.lower() not in ("true", "false"):
            raise UserError(f"{name} is {text!r}: write true or false")
        return text.lower() == "true"
    if not isinstance(like, int | float):
        return text
    try:
        return type(like)(text)
    except ValueError:
        wanted = "a whole number" if isinstance(like, int) else "a number"
        raise UserError(f"{name} is {text!r}: write {wanted}") from None


def warn_of_rate(before: float, after: float) -> None:
    """Warn when settings move the highest learning rate more than threefold."""
    if not 1 / 3 <= after / before <= 3:
        warnings.warn(
            f"the highest learning rate becomes {after:.2g}, and was {before:.2g}: "
            "--set peak=… sets it",
            stacklevel=2,
        )
