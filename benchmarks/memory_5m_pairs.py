"""Tokenise, store, shuffle and batch five million generated pairs, and record the peak of resident memory.

Run: python benchmarks/memory_5m_pairs.py --record     (writes results/memory-5m-pairs.json; takes some minutes)
"""

import argparse
import json
import platform
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from annotated_transformer.data.batching import TokenizedPairs, batches, padding_share, token_batches
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer import train_tokenizer


def generated(count: int, phrases: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Pairs of one to five phrases in a row, never two lists of them in memory."""
    rng = random.Random(0)
    for _ in range(count):
        parts = rng.choices(phrases, k=rng.randint(1, 5))
        yield " ".join(src for src, _ in parts), " ".join(tgt for _, tgt in parts)


def peak_gib() -> float:
    """Highest resident memory of this process so far, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 2**30


def measure(count: int, folder: Path) -> dict:
    """Processor seconds and peak memory of each stage."""
    phrases = phrasebook("en", "de", "train", 5_000)
    tokenizer = train_tokenizer(phrases, "en", "de", 4000)
    found: dict = {"pairs": count, "peak_gib_before": round(peak_gib(), 2)}
    start = time.process_time()
    pairs = TokenizedPairs.build(generated(count, phrases), tokenizer, folder / "pairs")
    found["build_cpu_seconds"] = round(time.process_time() - start, 1)
    found["peak_gib_after_build"] = round(peak_gib(), 2)
    start = time.process_time()
    plan = token_batches(pairs.src_lengths, pairs.tgt_lengths, 25_000)
    found["plan_cpu_seconds"] = round(time.process_time() - start, 1)
    found["batches"] = len(plan)
    found["padding_share"] = round(padding_share(pairs.src_lengths, pairs.tgt_lengths, plan), 4)
    start, tokens = time.process_time(), 0
    for _, batch in islice(batches(pairs, 25_000, seed=1), len(plan)):
        tokens += batch.tokens
    found["epoch_cpu_seconds"] = round(time.process_time() - start, 1)
    found |= {"target_tokens": tokens, "source_tokens": int(pairs.src_lengths.sum()), "peak_gib": round(peak_gib(), 2)}
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, help="where the tokens go; a temporary directory by default")
    parser.add_argument("--record", action="store_true", help="write results/memory-5m-pairs.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        result = measure(options.pairs, Path(scratch))
    if options.record:
        about = {"command": "python benchmarks/memory_5m_pairs.py --record", "machine": f"{platform.machine()}, CPU"}
        path = Path(__file__).parents[1] / "results" / "memory-5m-pairs.json"
        path.write_text(json.dumps(about | result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result))
