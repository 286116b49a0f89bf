"""What the Transformer in a hundred lines learns, and how long one thread takes.

    python -m benchmarks.paper.my_transformer

Trains nbs/my_transformer.py to reverse words and to translate the phrasebook's dates.
"""

import time
from collections.abc import Sequence

import torch

from annotated_transformer.check.file import import_file
from benchmarks import record

FILE = record.ROOT / "nbs" / "my_transformer.py"
RECORD = "paper/my_transformer.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train both, one after the other, from the file's own seeds."""
    record.command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    module = import_file(FILE)
    found = {}
    for name in ("reverse_words", "translate_dates"):
        start = time.process_time()
        accuracy = getattr(module, name)()
        seconds = round(time.process_time() - start)
        found[name] = {"accuracy": accuracy, "processor_seconds": seconds}
        print(name, found[name], flush=True)
    record.save(RECORD, found, "torch")


if __name__ == "__main__":
    main()
