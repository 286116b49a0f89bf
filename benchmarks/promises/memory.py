"""How much memory a training process takes in bfloat16 and in float32, on a CPU.

    python -m benchmarks.promises.memory
    python -m benchmarks.promises.memory --updates 8000 --bounds 64

Trains 2 + 2 layers with d_model 128 on the first 20,000 pairs of Tatoeba, 2,048 tokens
a batch, in processes of their own: in float32; in bfloat16 with oneDNN's own bound of
1,024 compiled products, one for each shape that it met; and with the bounds 64, which
training sets, and 16. Peak memory and processor time are those of so many updates,
after the data is made. The corpus is downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
Writes results/promises/memory-200.json and memory-8000.json, for
nbs/training/distributed.ipynb.
The first takes five minutes, the second an hour and a half.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import record

BOUND = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
UNBOUND = 1024  # oneDNN's own


def train(precision: str, updates: int, folder: Path) -> dict[str, Any]:
    """Train so many updates here; megabytes and seconds."""
    from annotated_transformer.data.corpora import load_corpus
    from annotated_transformer.training.recipes import recipe
    from annotated_transformer.training.run import fit
    from annotated_transformer.translation.task import FirstPairs, prepare

    plan = recipe("tatoeba-en-de")
    splits = plan.train_split, plan.valid_split
    corpora = (load_corpus(plan.corpus, each, plan.src, plan.tgt) for each in splits)
    few = [
        FirstPairs(each, count)
        for each, count in zip(corpora, (20_000, 20), strict=True)
    ]
    sizes = {"N": 2, "d_model": 128, "d_ff": 512, "h": 4, "d_k": 32, "d_v": 32}
    settings = {"steps": updates, "batch_tokens": 2_048, "micro_batches": 1, "keep": 1}
    settings |= {"log_every": updates, "save_every": updates, "precision": precision}
    plan = replace(
        plan,
        vocab_size=4_000,
        architecture=replace(plan.architecture, **sizes),
        training=replace(plan.training, **settings),
    )
    run = prepare(plan, folder, *few, device="cpu")
    begun = time.process_time()
    fit(run)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.process_time() - begun
    return {"peak_megabytes": round(most), "seconds": round(seconds, 1)}


def measure(precision: str, bound: int, updates: int, folder: Path) -> dict[str, Any]:
    """The same in a process of its own, with this bound for oneDNN."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.promises.memory",
        "--folder",
        str(folder),
    ]
    words += ["--precision", precision, "--updates", str(updates)]
    environment = os.environ | {BOUND: str(bound), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    return {"precision": precision, "bound": bound, **found}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all ways and write the record, or one of them for `measure`."""
    parser = record.command_line(__doc__)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--bounds", type=int, nargs="+", default=[UNBOUND, 64, 16])
    parser.add_argument("--precision", help="train here, and print what it took")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.precision:
        print(json.dumps(train(chosen.precision, chosen.updates, chosen.folder)))
        return
    runs, ways = [], [("fp32", UNBOUND), *(("bf16", each) for each in chosen.bounds)]
    with tempfile.TemporaryDirectory() as name:
        for precision, bound in ways:
            folder = Path(name) / f"{precision}-{bound}"
            runs.append(measure(precision, bound, chosen.updates, folder))
            print(runs[-1], flush=True)
    place = f"promises/memory-{chosen.updates}.json"
    record.save(place, {"updates": chosen.updates, "runs": runs})


if __name__ == "__main__":
    main()
