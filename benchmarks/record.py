"""What every benchmark shares: its command line, its machine, and writing a record."""

import argparse
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"


def arguments(documentation: str | None, **kinds: Callable) -> list:
    """The values of these positional arguments; `--help` shows the documentation, and a
    wrong one ends the program.
    """
    parser = argparse.ArgumentParser(
        description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, kind in kinds.items():
        parser.add_argument(name, type=kind)
    return list(vars(parser.parse_args()).values())


def folder(text: str) -> Path:
    """A folder that must be there."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return Path(text)
