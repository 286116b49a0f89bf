"""`python -m annotated_transformer` is the command line."""

import os
import signal


def main() -> None:
    """Run the command line; a Ctrl-C while it is imported ends it in silence, too."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from .cli import main as run

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
