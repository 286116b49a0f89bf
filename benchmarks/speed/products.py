"""How much of a translation is matrix products, here and in CTranslate2: MKL, which
multiplies for both, keeps a log.

    python -m benchmarks.speed.products

Needs ANNOTATED_TRANSFORMER_DATA, the extra `bench`, and an x86-64 processor. One batch
of 64 sentences of Multi30k, greedy, 24 tokens each, random weights, float32, one
thread, at base size and at that of the recipe. Each engine runs in processes of its
own: some times to be timed, and in turn as often with MKL's log, in which products with
weights are told from those of attention by their size; medians count. CTranslate2 takes
MKL by itself on Intel's processors only, so it is told to. Writes
results/speed/products.json, which nbs/translation/speed.ipynb shows.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.tokenizer import PairTokenizer
from annotated_transformer.engine.ctranslate2 import export_ctranslate2
from annotated_transformer.files import write_whole
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.recipes import recipe
from benchmarks.record import RESULTS, arguments
from benchmarks.speed.translation import (
    FORCED,
    ctranslate,
    describe,
    in_batches,
    ours,
    untrained,
)

OUT = RESULTS / "speed" / "products.json"
ENGINES, SIZES, ROUNDS = ("ours", "CTranslate2"), ("base", "small"), 5
LINE = re.compile(
    r"MKL_VERBOSE (SGEMM|SGEMM_COMPUTE)\((\w),(\w),(\d+),(\d+),(\d+),.*?\) ([\d.]+)(ns|us|ms|s) "
)
UNITS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}


def run(engine: str, size: str, vocabulary: str) -> None:
    """One batch, twice: the first warms up, the second stands between two marks with
    its processor milliseconds.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = PairTokenizer.load(vocabulary)
    sizes = dict.fromkeys(
        ("src_vocab_size", "tgt_vocab_size"), tokenizer.src_vocab_size
    )
    architecture = (
        recipe("multi30k-en-de-tiny").architecture
        if size == "small"
        else TransformerConfig()
    )
    model = Transformer(replace(architecture, **sizes)).eval()
    pairs = list(load_corpus("multi30k", "test_2016_flickr", "en", "de"))
    rows = sorted(
        tokenizer.encode_source([source for source, _ in pairs[:192]]), key=len
    )[::3]
    with tempfile.TemporaryDirectory() as folder:
        if engine == "ours":
            runner = ours(model, "float32", forced=True)
        else:
            export_ctranslate2(model, tokenizer, Path(folder) / "ct2")
            runner = ctranslate(
                Path(folder) / "ct2", tokenizer, "float32", 1, forced=True
            )
    in_batches(runner, rows, len(rows), 1)
    print("BEGIN", flush=True)
    print("END", 1000 * in_batches(runner, rows, len(rows), 1)[2], flush=True)


def child(engine: str, size: str, vocabulary: str, verbose: bool) -> list[str]:
    """The lines of such a process from mark to mark."""
    environment = os.environ | {
        "MKL_VERBOSE": str(int(verbose)),
        "CT2_USE_MKL": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [
        sys.executable,
        "-m",
        "benchmarks.speed.products",
        engine,
        size,
        vocabulary,
    ]
    output = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout
    lines = output.splitlines()
    return lines[lines.index("BEGIN") + 1 :]


def logged(lines: list[str]) -> dict:
    """Milliseconds of the products with weights in a log, their operations, and the
    number of all single products.
    """
    found: Counter = Counter()
    for match in filter(None, map(LINE.match, lines)):
        outputs, rows, inputs = (int(number) for number in match.group(4, 5, 6))
        found["calls"] += 1
        if outputs * inputs >= 2**14:
            found["milliseconds"] += float(match[7]) * UNITS[match[8]]
            found["operations"] += 2 * outputs * rows * inputs
    return dict(found)


def main() -> None:
    """Both engines in turn, at both sizes."""
    model, tokenizer = untrained()
    record: dict = describe(model.config) | {
        "command": "python -m benchmarks.speed.products",
        "tokens": 64 * FORCED,
    }
    record["amx"] = torch.cpu._is_amx_tile_supported()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        for size in SIZES:
            whole, logs = ({engine: [] for engine in ENGINES} for _ in range(2))
            for _ in range(ROUNDS):
                for engine in ENGINES:
                    whole[engine].append(
                        float(child(engine, size, folder, verbose=False)[-1].split()[1])
                    )
                    logs[engine].append(
                        logged(child(engine, size, folder, verbose=True))
                    )
            record[size] = {
                engine: {
                    "whole": median(whole[engine]),
                    "calls": logs[engine][0]["calls"],
                    "operations": logs[engine][0]["operations"],
                    "products": median(log["milliseconds"] for log in logs[engine]),
                }
                for engine in ENGINES
            }
            print(size, record[size], whole, logs, flush=True)
    write_whole(OUT, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    if len(sys.argv) == 4:  # a process of an engine
        run(*sys.argv[1:])
    else:
        arguments(__doc__)
        main()
