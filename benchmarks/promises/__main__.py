"""Attack what the package promises of folders, files and runs, and count by family.

    python -m benchmarks.promises [--attacks N] [--seed S] [--only FAMILY …]

damage: every file of every kind of folder is damaged at random, and the folder opened:
it must answer or refuse in one UserError, within 30 seconds; pipes, devices and
sparse files stand in a file's place, too. links: links to a file of
the user's lie where a folder is locked, read or written. faults: one operation on a
file fails while a model is written. kills: a training is killed or interrupted at
random moments, and goes on to the same weights.
Writes results/promises/attacks.json, for nbs/promises.md; status 1 after a
broken promise.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks import record
from benchmarks.promises import faults, fuzz, kills, links

# How much each takes of the attacks that are asked for.
FAMILIES = {
    "damage": (1.0, fuzz.attacks),
    "links": (0.2, links.attacks),
    "faults": (0.2, faults.attacks),
    "kills": (0.02, kills.attacks),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack, count and write the record."""
    parser = record.command_line(__doc__)
    parser.add_argument("--attacks", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=FAMILIES, nargs="+", default=list(FAMILIES))
    parser.add_argument("--no-record", action="store_true", help="write nothing")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    counts: dict[str, dict[str, Counter[str]]] = {}
    failures: list[str] = []
    for family in chosen.only:
        share, attacks = FAMILIES[family]
        with tempfile.TemporaryDirectory() as name:
            home, found = Path(os.path.realpath(name)), counts.setdefault(family, {})
            for each in attacks(max(1, int(chosen.attacks * share)), home, chosen.seed):
                found.setdefault(each.kind, Counter())[each.outcome] += 1
                if each.outcome == "failed":
                    failures.append(f"{each.kind}: {each.done}: {each.said[-1500:]}")
                    print(failures[-1], file=sys.stderr)
        for kind, outcomes in counts[family].items():
            print(f"{kind}: {dict(outcomes)}", flush=True)
    print(f"{len(failures)} broken promises")
    if not chosen.no_record:
        about = {"seed": chosen.seed, "counts": counts, "failures": failures[:50]}
        record.save("promises/attacks.json", about, "tokenizers")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
