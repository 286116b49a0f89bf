"""The session of nbs/translation/own_text.ipynb: two files of text, up to a score.

    nice -n 10 python -m benchmarks.training.own_text

Writes 3,000 captions of Multi30k as somebody's own two files, and gives the commands
of the page: `doctor` (once more with a line lost from either file), `split`,
`train --from tatoeba-en-de` by its defaults on one thread until it ends by itself, the
same with another rate, which is refused, `translate` and `evaluate`, the last two with
the model that has seen no caption as well. What is read are held-out captions of valid;
the test is only scored. Each command is recorded with what it printed and its seconds
(the processor's; the clock's depend on what else the machine does), and the run with
its log and its bytes. The split is also made of every eighth pair of Tatoeba. One seed.
`--words` only counts some words of the training captions, and their German. About
fifteen minutes of one core. The corpora are downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds them.
Writes results/training/own-text.json.
"""

import json
import os
import re
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
from annotated_transformer.data.own_split import split_own
from annotated_transformer.model_names import SHIPPED
from benchmarks import record

PLACE = "training/own-text.json"
CAPTIONS, EVERY, READ = 3_000, 8, 20
WORDS = ("toddler", "stroller", "sweater", "slide", "walkway", "vendor", "bowling")
GERMAN = {"stroller": "Sportwagen", "sweater": "Pullover", "walkway": "Gehweg"}
LOST = 1_000, 2_000  # the lines that the two sides of a spoilt copy lack


def write_sides(folder: Path, name: str, pairs: Iterable[Pair]) -> None:
    """Two files, line by line."""
    for lang, texts in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        path = folder / f"{name}.{lang}"
        path.write_text("".join(f"{each}\n" for each in texts), encoding="utf-8")


def write_spoilt(folder: Path) -> None:
    """The captions once more, with a line lost from either file."""
    for lang, lost in zip(("en", "de"), LOST, strict=True):
        lines = (folder / f"captions.{lang}").read_text("utf-8").splitlines(True)
        del lines[lost - 1]
        (folder / f"spoilt.{lang}").write_text("".join(lines), encoding="utf-8")


def counted() -> dict[str, Any]:
    """The captions of own/train.en with each of `WORDS`, or several of them, and of
    these the captions whose German has what `GERMAN` says.
    """
    captions = islice(load_corpus("multi30k", "train", "en", "de"), CAPTIONS)
    train = split_own(captions, ("en", "de"), CAPTIONS // 10).parts["train"]
    having = {}
    for word in WORDS:
        form = re.compile(rf"\b{word}s?\b", re.IGNORECASE)
        having[word] = [german for english, german in train if form.search(english)]
    said = {
        word: {german: sum(german in text for text in having[word])}
        for word, german in GERMAN.items()
    }
    return {"words": {word: len(texts) for word, texts in having.items()}, "said": said}


def run(folder: Path, line: str, status: int = 0) -> dict[str, Any]:
    """Give a command in this folder: what it printed, and how long it took.

    Raises: RuntimeError when it ends with another status.
    """
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
    )
    if done.returncode != status:
        raise RuntimeError(f"{line}: {done.returncode}: {done.stderr}")
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


def score(folder: Path, name: str) -> list[dict[str, Any]]:
    """Twenty captions of valid, and the score on the test, by one model."""
    us, test = "annotated-transformer", "--source own/test.en --reference own/test.de"
    return [
        run(folder, f"{us} translate -m {name} --input twenty.en"),
        run(folder, f"{us} evaluate -m {name} {test}"),
    ]


def session(folder: Path) -> dict[str, Any]:
    """The commands of the page, in their order."""
    us = "annotated-transformer"
    captions = islice(load_corpus("multi30k", "train", "en", "de"), CAPTIONS)
    everyday = islice(load_corpus("tatoeba", "all", "en", "de"), 0, None, EVERY)
    write_sides(folder, "captions", captions)
    write_sides(folder, "everyday", everyday)
    write_spoilt(folder)
    examined = [
        run(folder, f"{us} doctor {name} --src en --tgt de", status)
        for name, status in (("captions", 0), ("spoilt", 1))
    ]
    cut = [
        run(folder, f"{us} split {name}.en {name}.de --out {out}")
        for name, out in (("captions", "own"), ("everyday", "other"))
    ]
    train = (
        f"{us} train own/train --valid own/valid --src en --tgt de --from {SHIPPED} "
        "--out runs/own --threads 1"
    )
    trained = run(folder, train)
    refused = run(folder, f"{train} --set peak=0.0001", 2)
    log = (folder / "runs/own/log.jsonl").read_text("utf-8").splitlines()
    bytes_ = {each: size(folder / each) for each in ("runs/own", "runs/own/model")}
    held = [(folder / f"own/valid.{lang}").read_text("utf-8") for lang in ("en", "de")]
    lines, targets = (side.splitlines()[:READ] for side in held)
    twenty = "".join(f"{each}\n" for each in lines)
    (folder / "twenty.en").write_text(twenty, encoding="utf-8")
    sure = f"{us} translate -m runs/own --show-confidence --input own/valid.en"
    return {
        "doctor": examined,
        "split": cut,
        "train": trained | {"log": [json.loads(each) for each in log]},
        "refused": refused,
        "bytes": bytes_,
        "twenty": list(zip(lines, targets, strict=True)),
        "models": {name: score(folder, name) for name in (SHIPPED, "runs/own")},
        "sure": run(folder, sure),
        **counted(),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Give the commands in a folder that goes, and record them."""
    parser = record.command_line(__doc__)
    parser.add_argument("--words", action="store_true", help="only count the words")
    if parser.parse_args(argv).words:
        record.save(PLACE, record.load(PLACE) | counted())
        return
    with tempfile.TemporaryDirectory() as name:
        found = session(Path(name))
    record.save(PLACE, found, "tokenizers", "sacrebleu")


if __name__ == "__main__":
    main()
