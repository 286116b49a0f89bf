"""The command line in processes of its own that start at once, to be attacked.

A process that has imported the package is forked for each start. What runs is the real
command line, in a process with its own number and files; only the imports are shared.
"""

import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

import annotated_transformer.interop.ctranslate2

# All that a command imports late, so that no fork has to.
import annotated_transformer.interop.marian
import annotated_transformer.translation.task
import annotated_transformer.translation.translator  # noqa: F401
from annotated_transformer import cli
from annotated_transformer.files import fingerprint


@dataclass(frozen=True)
class Ended:
    """How a process ended: its status, negative for a signal, and what it said."""

    status: int
    out: str
    err: str


def fork(
    arguments: Sequence[object],
    place: Path,
    before: Callable[[], None] = lambda: None,
    environment: Mapping[str, str] = {},
) -> int:
    """Start the command line with these arguments, and return its process's number.

    What it says goes to the files out and err of `place`; `before` runs in the process.
    """
    place.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    if child := os.fork():
        return child
    status = 1
    try:
        for number, name in ((1, "out"), (2, "err")):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(place / name, flags), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = (
            os.fdopen(number, "w", encoding="utf-8", closefd=False, buffering=1)
            for number in (1, 2)
        )
        os.environ.update(environment)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        torch.set_num_threads(1)
        sys.argv = ["annotated-transformer", *map(str, arguments)]
        before()
        cli.main()
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def wait(child: int, place: Path) -> Ended:
    """Wait for a process's end."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    out, err = ((place / name).read_text(errors="replace") for name in ("out", "err"))
    return Ended(status, out, err)


def ended(child: int) -> bool:
    """Whether a process has ended; it must still be waited for."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, child, flags) is not None


def one_line(err: str) -> bool:
    """Whether an error output is the one line of a refusal, after any warnings."""
    lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
    return len(lines) == 1 and lines[0].startswith("error: ")


def write_pairs(folder: Path) -> None:
    """Seeded nonsense to train on, train and valid in en and de."""
    rng, words = random.Random(0), ["ba", "du", "ki", "lo", "me", "na"]
    sides = [[rng.choice(words) for _ in range(rng.randint(1, 7))] for _ in range(60)]
    folder.mkdir(parents=True, exist_ok=True)
    for split, some in {"train": sides, "valid": sides[:10]}.items():
        pairs = [(" ".join(side), " ".join(reversed(side))) for side in some]
        for name, texts in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            (folder / f"{split}.{name}").write_text("\n".join(texts) + "\n")


def training(folder: Path, out: Path, settings: str) -> list[object]:
    """`train` on these pairs with a model of 16 entries to a vector."""
    small = "N=1 d_model=16 d_ff=32 h=2 d_k=8 d_v=8 vocab_size=40 max_length=64 "
    small += "max_tokens=48 batch_tokens=48 warmup=4 precision=fp32 log_every=1 "
    changes = [word for each in (small + settings).split() for word in ("--set", each)]
    own = ["--src", "en", "--tgt", "de", "--valid", folder / "valid"]
    where = ["--device", "cpu", "--out", out]
    return ["train", folder / "train", *own, *where, *changes]


def losses(run: Path) -> list[tuple[str, int, float]]:
    """What a run logged, without its clocks."""
    lines = (run / "log.jsonl").read_text().splitlines()
    return [(r["event"], r["step"], r["loss"]) for r in map(json.loads, lines)]


def contents(folder: Path) -> dict[str, dict[str, object]]:
    """The hash of every file of a folder that could differ from another of its kind."""
    return {
        path.relative_to(folder).as_posix(): fingerprint(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.name != "manifest.json"
        and not any(part[0] == "." for part in path.relative_to(folder).parts)
    }


def hidden(folder: Path) -> list[str]:
    """Drafts and locks that are left in a folder."""
    return [str(path.relative_to(folder)) for path in folder.rglob(".*")]
