"""What a user can mend: one kind of error, and the end of its message."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """Something that the user can put right; its message names the thing and the remedy.

    The command line prints it as one line and ends with status 2. Any other error is a
    fault of the package.
    """


def nearest(name: object, options: Iterable[str]) -> str:
    """The end of a message about an unknown name: the closest option, or all of them."""
    known = sorted(options)
    close = get_close_matches(str(name), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"choose one of: {', '.join(known)}"
