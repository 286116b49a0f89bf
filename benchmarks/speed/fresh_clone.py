"""How long a newcomer waits: the README's commands in a fresh clone.

    python -m benchmarks.speed.fresh_clone

Clones the last commit into a temporary folder and runs there, one after the other: make
book, make test, both once more, make book after the code of one chapter was changed,
that chapter by itself, and, from the wheel in an environment of its own, translate and
train phrasebook. Packages come from pip's own cache where it has them. Tests on real
corpora run where ANNOTATED_TRANSFORMER_DATA names a folder that holds them. Takes about
45 minutes and writes results/speed/fresh-clone.json.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.record import ROOT, command_line, save

CHAPTER = "nbs/translation/multi30k.ipynb"  # no other chapter imports it
SENTENCE = "the twenty-first of March"


def timed(command: str, clone: Path) -> dict:
    """Seconds, exit status and the last line of a shell command, run as a newcomer's
    shell would.
    """
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "OMP_NUM_THREADS")
    environment = {
        name: value for name, value in os.environ.items() if name not in hidden
    }
    places = environment["PATH"].split(os.pathsep)
    environment["PATH"] = os.pathsep.join(
        place for place in places if Path(place).parent != Path(sys.prefix)
    )
    start = time.perf_counter()
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
    )
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    row = {
        "command": command,
        "seconds": round(time.perf_counter() - start, 1),
        "status": done.returncode,
        "last_line": lines[-1].replace(str(clone), ".") if lines else "",
    }
    print(json.dumps(row), flush=True)
    return row


def add_line(path: Path) -> None:
    """A change to a chapter's code, after which it has to run again."""
    chapter = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in chapter["cells"] if cell["cell_type"] == "code"]
    code[-1]["source"] += ["\n", "# One more line."]
    path.write_text(
        json.dumps(chapter, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def measure(clone: Path) -> dict:
    """Every step, by name."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    found = {
        "book, cold": timed("make book", clone),
        "test, cold": timed("make test", clone),
        "book, again": timed("make book", clone),
        "test, again": timed("make test", clone),
    }
    add_line(clone / CHAPTER)
    found["book, one chapter edited"] = timed("make book", clone)
    found["that chapter alone"] = timed(f".venv/bin/nbdev_test --path {CHAPTER}", clone)
    found["wheel, installed"] = timed(
        "make wheel && python3 -m venv at && at/bin/pip install dist/*.whl", clone
    )
    for number in range(1, 6):
        found[f"translate, {number}"] = timed(
            f'at/bin/annotated-transformer translate "{SENTENCE}"', clone
        )
    found["train phrasebook"] = timed(
        "at/bin/annotated-transformer train phrasebook", clone
    )
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, write the record, and fail if a step failed."""
    command_line(__doc__).parse_args(argv)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True
    )
    with tempfile.TemporaryDirectory() as scratch:
        steps = measure(Path(scratch) / "clone")
    found = {
        "commit": head.stdout.decode().strip(),
        "real_corpora": "ANNOTATED_TRANSFORMER_DATA" in os.environ,
        "steps": steps,
    }
    save("speed/fresh-clone.json", found)
    sys.exit(any(step["status"] for step in steps.values()))


if __name__ == "__main__":
    main()
