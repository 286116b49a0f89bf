"""Ctrl-C and SIGTERM as wishes that a training fulfils between two updates."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_requests() -> Iterator[list[str]]:
    """Within the block SIGINT and SIGTERM no longer kill: their names gather in a list.

    A terminal is told. A SIGINT after the first request raises KeyboardInterrupt. An
    error that leaves the block carries the names as notes.
    """
    caught: list[str] = []

    def note(number: int, _: object) -> None:
        if caught and number == signal.SIGINT:
            raise KeyboardInterrupt
        caught.append(signal.Signals(number).name)
        if os.isatty(2):  # a handler may interrupt a print, and so doesn't print itself
            os.write(2, b"\nstopping after this update; Ctrl-C again: at once\n")

    previous = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, note)
    except ValueError:
        pass  # signal handlers belong to the main thread; elsewhere the caller stops us
    try:
        yield caught
    except Exception as error:
        for name in caught:
            error.add_note(name)
        raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
