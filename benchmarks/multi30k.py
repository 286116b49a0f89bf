"""Score a Multi30k run on its three test sets by every convention and record it beside its training log.

    torchrun --standalone --nproc-per-node 2 -m annotated_transformer.cli train multi30k-en-de-tiny \
        --out runs/multi30k-en-de-tiny --set keep=40
    python benchmarks/multi30k.py runs/multi30k-en-de-tiny ["a note on the run for the record"]

The corpus is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it. The last ten checkpoints are
averaged; beam width and length penalty are chosen on the validation split alone. Writes record.json and log.jsonl into
the folder of results/ that has the run's name, where the chapter nbs/translation/multi30k.ipynb finds them.
"""

import json
import platform
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import torch
from sacrebleu.metrics import BLEU

from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.tokenizer import moses_tokenize
from annotated_transformer.training.checkpoint import average_checkpoints, checkpoints
from annotated_transformer.translation.bleu import scores
from annotated_transformer.translation.translator import Translator

RESULTS = Path(__file__).resolve().parent.parent / "results"
TESTS = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
CONVENTION = "BLEU Moses, lower-cased"


def evaluate(translator: Translator, split: str, beam_size: int, alpha: float) -> dict:
    """All scores of one split, and the seconds that translating it took."""
    pairs = list(load_corpus("multi30k", split, "en", "de"))
    start = time.perf_counter()
    outputs = translator.translate([source for source, _ in pairs], beam_size=beam_size, alpha=alpha, unknown="keep")
    seconds = time.perf_counter() - start
    targets = [target for _, target in pairs]
    results = {result.name: asdict(result) for result in scores(outputs, targets, "de")}
    return {"sentences": len(pairs), "seconds": round(seconds, 1), "scores": results,
            "interval": round(interval(outputs, targets), 4)}


def interval(outputs: list[str], targets: list[str]) -> float:
    """Half the width of the 95 % bootstrap interval of the main score, 1,000 draws."""
    files = [moses_tokenize(lines, "de", lowercase=True) for lines in (outputs, targets)]
    counted = BLEU(tokenize="none", smooth_method="none", force=True)
    return counted.corpus_score(files[0], [files[1]], n_bootstrap=1_000)._ci


def averaging(run: Path, search: tuple[int, float], average: float) -> dict[str, float]:
    """BLEU on the validation split of the last checkpoint alone, beside that of the average."""
    last = Translator.from_pretrained(checkpoints(run)[-1])
    alone = evaluate(last, "val", *search)["scores"][CONVENTION]["value"]
    return {"last checkpoint": alone, "average": average}


def averaged(run: Path) -> Translator:
    """The mean of the last ten checkpoints, however many the run has kept."""
    with tempfile.TemporaryDirectory() as folder:
        average_checkpoints(checkpoints(run)[-10:], Path(folder) / "model")
        return Translator.from_pretrained(Path(folder) / "model")


def main(run: Path, note: str) -> None:
    """Choose the search on the validation split, score the tests, write the record."""
    translator = averaged(run)
    choices = [(5, alpha) for alpha in (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)]
    grid = {choice: evaluate(translator, "val", *choice)["scores"][CONVENTION]["value"] for choice in choices}
    best = max(grid, key=lambda choice: grid[choice])
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    described = json.loads((run / "run.json").read_text(encoding="utf-8"))
    record = {
        "commands": [
            "torchrun --standalone --nproc-per-node 2 -m annotated_transformer.cli train multi30k-en-de-tiny "
            f"--out {run} --set keep={described['training']['keep']}",
            f"python benchmarks/multi30k.py {run}",
        ],
        "run": described,
        "machine": f"CPU, {platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "versions": {name: version(name) for name in ("torch", "tokenizers", "sacrebleu", "sacremoses")},
        "note": note,
        "updates": int(checkpoints(run)[-1].name.removeprefix("step-")),
        "seconds": log[-1]["seconds"],
        "search": {"beam_size": best[0], "alpha": best[1], "chosen_on": "val"},
        "validation_grid": [{"beam_size": b, "alpha": a, "bleu": value} for (b, a), value in grid.items()],
        "averaging": averaging(run, best, grid[best]),
        "tests": {split: evaluate(translator, split, *best) for split in TESTS},
    }
    out = RESULTS / run.name
    out.mkdir(parents=True, exist_ok=True)
    (out / "record.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    shutil.copy(run / "log.jsonl", out / "log.jsonl")
    for split, result in record["tests"].items():
        print(split, {name: round(score["value"], 2) for name, score in result["scores"].items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]), " ".join(sys.argv[2:]))
