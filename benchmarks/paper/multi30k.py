r"""Score a Multi30k run on its three test sets by every convention.

    torchrun --standalone --nproc-per-node 2 -m annotated_transformer \
        train multi30k-en-de-tiny --out runs/multi30k-en-de-tiny-ends \
        --set micro_batches=2 --set precision=fp32 --set keep=180 --set patience=0
    python -m benchmarks.paper.multi30k runs/multi30k-en-de-tiny-ends ["a note"]

The corpus is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
Scored is what the recipe would have left, the average of ten checkpoints at the end
that its patience sets. Beside it stands another system of the same run, whose end and
number of checkpoints are chosen on the validation split. There alone the length penalty
of both is chosen, too; a third system has ten checkpoints at the end and the penalty of
the published script. Takes an hour or two. Writes record.json and log.jsonl into
the folder of results/runs/ with the run's name, for nbs/translation/multi30k.ipynb.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from unittest.mock import patch

from sacrebleu.metrics import BLEU

from annotated_transformer.average import average_checkpoints
from annotated_transformer.data.pair_tokenizer import moses_tokenize
from annotated_transformer.decoding import search
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.files import read_json
from annotated_transformer.training.checkpoint import checkpoints
from annotated_transformer.training.recipes import recipe
from annotated_transformer.translation.scores import scores
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import sides
from benchmarks.record import RESULTS, command, command_line, folder, save

TESTS = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
CONVENTION = "BLEU Moses, lower-cased"
COUNTS = (1, 5, 10, 20, 40, 80)


def evaluate(translator: Translator, split: str, beam_size: int, alpha: float) -> dict:
    """All scores of one split, and the seconds that translating it took."""
    sources, targets = sides("multi30k", split)
    start, options = time.perf_counter(), SearchOptions(beam_size, alpha)
    outputs = translator.translate(sources, options)
    seconds = time.perf_counter() - start
    results = {result.name: asdict(result) for result in scores(outputs, targets, "de")}
    return {
        "sentences": len(sources),
        "seconds": round(seconds, 1),
        "scores": results,
        "interval": round(interval(outputs, targets), 4),
        "without_full_stop": {
            "outputs": without_full_stop(outputs),
            "references": without_full_stop(targets),
        },
    }


def without_full_stop(lines: list[str]) -> float:
    """The share of lines that end otherwise."""
    return sum(not line.rstrip().endswith(".") for line in lines) / len(lines)


def interval(outputs: list[str], targets: list[str]) -> float:
    """Half the width of the 95 % bootstrap interval of the main score, 1,000 draws."""
    files = [
        moses_tokenize(lines, "de", lowercase=True) for lines in (outputs, targets)
    ]
    counted = BLEU(tokenize="none", smooth_method="none", force=True)
    return counted.corpus_score(files[0], [files[1]], n_bootstrap=1_000)._ci


def step_of(checkpoint: Path) -> int:
    """The update after which a checkpoint was written."""
    return int(checkpoint.name.removeprefix("step-"))


def until(run: Path, end: int) -> list[Path]:
    """The checkpoints that a run would have left if it had ended after `end` updates,
    as far as they are there.
    """
    return [checkpoint for checkpoint in checkpoints(run) if step_of(checkpoint) <= end]


def averaged(run: Path, end: int, count: int) -> Translator:
    """The mean of the last `count` checkpoints of a run that ends at update `end`."""
    found = until(run, end)[-count:]
    with tempfile.TemporaryDirectory() as scratch:
        average_checkpoints(found, Path(scratch) / "model")
        return Translator.from_pretrained(Path(scratch) / "model", engine="torch")


def end_by_patience(log: list[dict]) -> int:
    """The update at which ten validations in a row have brought nothing better."""
    losses = [(row["loss"], row["step"]) for row in log if row["event"] == "validation"]
    for place in range(10, len(losses)):
        if min(losses[: place - 9]) < min(losses[place - 9 : place + 1]):
            return losses[place][1]
    return losses[-1][1]


def on_validation(translator: Translator, alpha: float) -> float:
    """BLEU of the validation split with a beam of five."""
    return evaluate(translator, "val", 5, alpha)["scores"][CONVENTION]["value"]


def system(run: Path, end: int, count: int) -> dict:
    """One choice of checkpoints: its length penalty, chosen on the validation split,
    and its scores.
    """
    translator = averaged(run, end, count)
    grid = {
        alpha: on_validation(translator, alpha)
        for alpha in (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
    }
    best = max(grid, key=lambda alpha: grid[alpha])
    return {
        "end": end,
        "checkpoints": count,
        "search": {"beam_size": 5, "alpha": best, "chosen_on": "val"},
        "validation_grid": [
            {"beam_size": 5, "alpha": alpha, "bleu": value}
            for alpha, value in grid.items()
        ],
        "tests": {split: evaluate(translator, split, 5, best) for split in TESTS},
    }


def as_published(run: Path, end: int) -> dict:
    """The scores of ten checkpoints if the log-probability is divided by the number of
    tokens.

    That is what the published scores' toolkit does unless it is told otherwise, and
    their script tells it nothing.
    """
    translator = averaged(run, end, 10)
    with patch.object(search, "length_penalty", lambda length, alpha: length**alpha):
        return {
            "end": end,
            "checkpoints": 10,
            "tests": {split: evaluate(translator, split, 5, 1.0) for split in TESTS},
        }


def own_settings(training: dict) -> str:
    """The settings of a run that are not its recipe's, as options of `train`."""
    plan = recipe("multi30k-en-de-tiny").training.to_dict()
    return " ".join(
        f"--set {name}={value}"
        for name, value in training.items()
        if value != plan[name]
    )


def averages(run: Path, ends: Sequence[int]) -> dict[tuple[int, int], float]:
    """BLEU on the validation split by end and number of averaged checkpoints."""
    choices = [
        (end, count)
        for end in sorted(set(ends))
        for count in COUNTS
        if len(until(run, end)) >= count
    ]
    return {choice: on_validation(averaged(run, *choice), 1.0) for choice in choices}


def systems(run: Path, log: list[dict]) -> dict:
    """Every system of the run, each with its scores."""
    patient, last = end_by_patience(log), step_of(checkpoints(run)[-1])
    whole = min(8_000, last)
    found = averages(run, (patient, whole, last))
    rows = [{"end": e, "checkpoints": n, "bleu": b} for (e, n), b in found.items()]
    return {
        "updates": last,
        "averages": rows,
        "chosen": system(run, *max(found, key=lambda choice: found[choice])),
        "as_published": as_published(run, whole),
    } | system(run, patient, 10)


def main(argv: Sequence[str] | None = None) -> None:
    """Choose on the validation split, score the tests, write the record."""
    parser = command_line(__doc__)
    parser.add_argument("run", type=folder, help="the folder that the training wrote")
    parser.add_argument("note", nargs="?", default="", help="for the record")
    given = parser.parse_args(argv)
    run = given.run
    if not (run / "run.json").exists():
        parser.error(f"no run in {run}: give the folder that `train --out` wrote")
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    log, described = [json.loads(line) for line in lines], read_json(run / "run.json")
    _, german = sides("multi30k", "train")
    found = systems(run, log)
    trained = (
        "torchrun --standalone --nproc-per-node 2 -m annotated_transformer train "
        f"multi30k-en-de-tiny --out {run} {own_settings(described['training'])} "
        f"--set patience=0 --set steps={found['updates']}"
    )
    record = {
        "command": f"{trained}; {command()}",
        "run": described,
        "note": given.note,
        "seconds": log[-1]["seconds"],
        "train_without_full_stop": without_full_stop(german),
    } | found
    packages = ("tokenizers", "sacrebleu", "sacremoses")
    save(f"runs/{run.name}/record.json", record, *packages)
    shutil.copy(run / "log.jsonl", RESULTS / "runs" / run.name / "log.jsonl")
    for split, result in found["tests"].items():
        values = {name: round(s["value"], 2) for name, s in result["scores"].items()}
        print(split, values)


if __name__ == "__main__":
    main()
