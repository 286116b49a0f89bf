"""Measure a trained phrasebook model on 1,000 held-out pairs, and ship it.

    annotated-transformer train phrasebook --out runs/phrasebook
    python -m benchmarks.paper.phrasebook runs/phrasebook

Takes a minute. Writes results/runs/phrasebook-en-de/record.json and log.jsonl, and
annotated_transformer/models/phrasebook-en-de with its weights in float16. What is
measured is what is shipped. The model's card stays as it was.
"""

import json
import shutil
import time
from collections.abc import Sequence

import torch

from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.files import read_json, remove_folder, write_manifest
from annotated_transformer.model_names import find_folder
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import sides
from benchmarks.record import RESULTS, command, command_line, folder, save

SHIPPED = find_folder("phrasebook-en-de")


def exact(translator: Translator, split: str, beam_size: int) -> dict:
    """The share of a split's pairs whose translation is the reference, letter by
    letter.
    """
    (sources, targets), start = sides("phrasebook", split), time.perf_counter()
    outputs = translator.translate(sources, SearchOptions(beam_size))
    right = sum(a == b for a, b in zip(outputs, targets, strict=True))
    return {
        "beam_size": beam_size,
        "pairs": len(sources),
        "exact": right / len(sources),
        "seconds": round(time.perf_counter() - start, 2),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Ship the model in float16, measure what was shipped, write the record."""
    parser = command_line(__doc__)
    parser.add_argument("run", type=folder, help="the folder that the training wrote")
    run = parser.parse_args(argv).run
    card = (SHIPPED / "card.md").read_bytes()
    remove_folder(SHIPPED)
    trained = Translator.from_pretrained(run / "model", device="cpu", engine="plain")
    trained.save_pretrained(SHIPPED, torch.float16)
    (SHIPPED / "card.md").write_bytes(card)
    write_manifest(SHIPPED, "benchmarks.paper.phrasebook")
    translator = Translator.from_pretrained(SHIPPED, engine="torch")
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    last = json.loads(lines[-1])
    found = {
        "command": f"annotated-transformer train phrasebook --out {run}; {command()}",
        "run": read_json(run / "run.json"),
        "updates": last["step"],
        "seconds": last["seconds"],
        "held_out": [exact(translator, "test", beam_size) for beam_size in (1, 4)],
        "bytes": sum(file.stat().st_size for file in SHIPPED.iterdir()),
    }
    save("runs/phrasebook-en-de/record.json", found, "tokenizers")
    shutil.copy(run / "log.jsonl", RESULTS / "runs" / "phrasebook-en-de" / "log.jsonl")
    print(found["held_out"], found["bytes"], found["seconds"])


if __name__ == "__main__":
    main()
