"""The session of nbs/translation/own_text.ipynb: two files of text, up to a score.

    nice -n 10 python -m benchmarks.training.own_text

Writes 3,000 captions of Multi30k as somebody's own two files, and gives the commands
of the page: `split`, `train --from tatoeba-en-de` for 80 updates on one thread,
`translate` and `evaluate`, the last two with the model that has seen no caption as
well. Each command is recorded with what it printed and its seconds (the processor's;
the clock's depend on what else the machine does), and the run with its log and its
bytes. The split is also made of every eighth pair of Tatoeba. One seed. About four
minutes of one core. The corpora are downloaded unless ANNOTATED_TRANSFORMER_DATA names
a folder that holds them.
Writes results/training/own-text.json.
"""

import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.near_copies import Pair
from annotated_transformer.model_names import SHIPPED
from benchmarks import record

PLACE = "training/own-text.json"
CAPTIONS, EVERY, READ = 3_000, 8, 20
SHORT = ("steps=80", "log_every=10", "save_every=20")


def write_sides(folder: Path, name: str, pairs: Iterable[Pair]) -> None:
    """Two files, line by line."""
    for lang, texts in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        path = folder / f"{name}.{lang}"
        path.write_text("".join(f"{each}\n" for each in texts), encoding="utf-8")


def run(folder: Path, line: str) -> dict[str, Any]:
    """Give a command in this folder: what it printed, and how long it took."""
    words = shlex.split(line)
    module = [sys.executable, "-m", "annotated_transformer"]
    paths = os.pathsep.join([str(record.ROOT), os.environ.get("PYTHONPATH", "")])
    variables = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    before, begun = _processor_seconds(), time.perf_counter()
    done = subprocess.run(
        module + words[1:],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    found = {
        "command": line,
        "printed": done.stdout.splitlines(),
        "warned": done.stderr.splitlines(),
        "processor_seconds": round(_processor_seconds() - before, 1),
        "clock_seconds": round(time.perf_counter() - begun, 1),
    }
    print(json.dumps(found, ensure_ascii=False)[:600], file=sys.stderr)
    return found


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def session(folder: Path) -> dict[str, Any]:
    """The commands of the page, in their order."""
    us, steps = "annotated-transformer", " ".join(f"--set {each}" for each in SHORT)
    write_sides(
        folder,
        "captions",
        islice(load_corpus("multi30k", "train", "en", "de"), CAPTIONS),
    )
    write_sides(
        folder,
        "everyday",
        islice(load_corpus("tatoeba", "all", "en", "de"), 0, None, EVERY),
    )
    cut = [
        run(folder, f"{us} split {name}.en {name}.de --out {out}")
        for name, out in (("captions", "own"), ("everyday", "other"))
    ]
    trained = run(
        folder,
        f"{us} train own/train --valid own/valid --src en --tgt de --from {SHIPPED} "
        f"--out runs/own --threads 1 {steps}",
    )
    log = (folder / "runs/own/log.jsonl").read_text("utf-8").splitlines()
    bytes_ = {each: size(folder / each) for each in ("runs/own", "runs/own/model")}
    lines = (folder / "own/test.en").read_text("utf-8").splitlines()
    twenty = "".join(f"{each}\n" for each in lines[:READ])
    (folder / "twenty.en").write_text(twenty, encoding="utf-8")
    used = {}
    for name in (SHIPPED, "runs/own"):
        test = "--source own/test.en --reference own/test.de"
        used[name] = [
            run(folder, f"{us} translate -m {name} --input twenty.en"),
            run(folder, f"{us} evaluate -m {name} {test}"),
        ]
    targets = (folder / "own/test.de").read_text("utf-8").splitlines()
    return {
        "split": cut,
        "train": trained | {"log": [json.loads(each) for each in log]},
        "bytes": bytes_,
        "twenty": list(zip(lines, targets, strict=True))[:READ],
        "models": used,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Give the commands in a folder that goes, and record them."""
    record.command_line(__doc__).parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        found = session(Path(name))
    record.save(PLACE, found, "tokenizers", "sacrebleu")


if __name__ == "__main__":
    main()
