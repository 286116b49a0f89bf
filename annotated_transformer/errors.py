"""What a user can mend: one kind of error, the end of its message, a check."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# What a terminal obeys instead of showing it: control characters, and those that end a
# line or turn its direction.
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class UserError(ValueError):
    """What the user can put right; its message names the thing and the remedy.

    The command line prints it as one line and ends with status 2. Any other error is a
    fault of the package.
    """


def escaped(text: str) -> str:
    """A name, or another text of one line, with control characters written out."""
    return CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def nearest(name: object, options: Iterable[str]) -> str:
    """The end of a message about an unknown name: the closest option, or all."""
    known = sorted(options)
    close = get_close_matches(str(name), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"choose one of: {', '.join(known)}"


def check_kind(name: str, value: object, kind: Any, wanted: str) -> None:
    """Raises: UserError unless the argument of that name is of a kind."""
    if not isinstance(value, kind):
        raise UserError(f"{name} is {value!r:.80}: give {wanted}")


def check_integer(owner: object, name: str, least: int = 1, below: int = 2**31) -> None:
    """Raises: UserError unless the field of that name is a whole number in range."""
    value = getattr(owner, name)
    if type(value) is not int or not least <= value < below:
        raise UserError(
            f"{name} is {value!r}: it must be a whole number of at least {least}, and "
            f"below {below}"
        )


def check_choice(owner: object, name: str, known: Iterable[str]) -> None:
    """Raises: UserError unless the field of that name has one of the known values."""
    if (value := getattr(owner, name)) not in known:
        raise UserError(f"{name} is {value!r}: {nearest(value, known)}")
