"""Measure a trained phrasebook model on 1,000 held-out pairs, record it, and ship it in
the package.

    annotated-transformer train phrasebook --out runs/phrasebook
    python -m benchmarks.paper.phrasebook runs/phrasebook

Writes results/runs/phrasebook-en-de/record.json and log.jsonl, and
annotated_transformer/pretrained/phrasebook-en-de with its weights in float16. What is
measured is what is shipped.
"""

import json
import os
import platform
import shutil
import time
from importlib.metadata import version
from pathlib import Path

import torch

from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.training.checkpoint import load_model, save_model
from annotated_transformer.translation.translator import Translator
from benchmarks.record import RESULTS, ROOT, arguments, folder

OUT, SHIPPED = (
    RESULTS / "runs" / "phrasebook-en-de",
    ROOT / "annotated_transformer" / "pretrained" / "phrasebook-en-de",
)


def exact(translator: Translator, split: str, beam_size: int) -> dict:
    """The share of a split's pairs whose translation is the reference, letter by
    letter.
    """
    pairs = load_corpus("phrasebook", split, "en", "de")
    start = time.perf_counter()
    outputs = translator.translate([source for source, _ in pairs], beam_size=beam_size)
    right = sum(
        output == target for output, (_, target) in zip(outputs, pairs, strict=True)
    )
    return {
        "beam_size": beam_size,
        "pairs": len(pairs),
        "exact": right / len(pairs),
        "seconds": round(time.perf_counter() - start, 2),
    }


def main(run: Path) -> None:
    """Ship the model in float16, measure what was shipped, write the record."""
    SHIPPED.parent.mkdir(exist_ok=True)
    save_model(SHIPPED, *load_model(run / "model"), dtype=torch.float16)
    translator = Translator.from_pretrained(SHIPPED)
    log = [
        json.loads(line)
        for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    record = {
        "commands": [
            "annotated-transformer train phrasebook --out runs/phrasebook",
            "python -m benchmarks.paper.phrasebook runs/phrasebook",
        ],
        "run": json.loads((run / "run.json").read_text(encoding="utf-8")),
        "machine": f"CPU, {platform.machine()}, {os.cpu_count()} cores, "
        f"{torch.backends.cpu.get_cpu_capability()}",
        "versions": {
            "python": platform.python_version(),
            "torch": version("torch"),
            "tokenizers": version("tokenizers"),
        },
        "updates": log[-1]["step"],
        "seconds": log[-1]["seconds"],
        "held_out": [exact(translator, "test", beam_size) for beam_size in (1, 4)],
        "bytes": sum(file.stat().st_size for file in SHIPPED.iterdir()),
    }
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "record.json").write_text(
        json.dumps(record, indent=1) + "\n", encoding="utf-8"
    )
    shutil.copy(run / "log.jsonl", OUT / "log.jsonl")
    print(record["held_out"], record["bytes"], record["seconds"])


if __name__ == "__main__":
    main(*arguments(__doc__, run=folder))
