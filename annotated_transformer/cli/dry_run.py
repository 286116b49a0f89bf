"""A recipe in small: three updates, then all that comes after them."""

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..locks import in_use
from .opening import open_translator
from .options import console
from .plan import Pairs
from .progress import Record

if TYPE_CHECKING:
    from ..engine.runs import Run, Start
    from ..training.recipes import Recipe

Findings = dict[str, int | float | str]


def show(found: Findings) -> None:
    """Print what a dry run found, a line each."""
    for name, value in found.items():
        text = f"{value:,}" if isinstance(value, int) else value
        console.print(f"{name}: {text}", soft_wrap=True)


@contextmanager
def passing_folder(folder: Path) -> Iterator[None]:
    """A folder for the first process to use and then to remove, its parent too if it
    wasn't there.
    """
    new, first = not folder.parent.exists(), os.environ.get("RANK", "0") == "0"
    try:
        with in_use(folder) if first else nullcontext():
            try:
                if first:
                    shutil.rmtree(folder, ignore_errors=True)
                yield
            finally:
                if first:
                    shutil.rmtree(folder, ignore_errors=True)
    finally:
        if new:
            with suppress(OSError):  # another process may be at work in it
                folder.parent.rmdir()


def rehearse(
    plan: "Recipe",
    folder: Path,
    train: Pairs,
    valid: Pairs,
    device: str | None = None,
    start: "Start | None" = None,
    pairs: int = 50_000,
) -> Findings:
    """A recipe in small, up to the translation of one sentence: what was found.

    The model and the batches are the recipe's; the vocabulary is made from the first
    `pairs` of the corpus. Leaves no file. The first process alone has findings.
    """
    from ..engine.runs import FirstPairs, dry, fit, prepare

    records: list[Record] = []
    few, some = FirstPairs(train, pairs), FirstPairs(valid, 20)
    with passing_folder(folder):
        run = prepare(dry(plan), folder, few, some, records.append, device, start)
        outcome = fit(run)
        if outcome == "interrupted":
            raise KeyboardInterrupt
        if not run.accelerator.is_main_process:
            return {}
        sentence = next(iter(some))[0]
        translation = translate_one(folder / "model", sentence)
        return {
            "outcome": outcome,
            **findings(plan, run, records),
            "sentence": sentence,
            "translation": translation,
        }


def translate_one(model: Path, sentence: str) -> str:
    """A sentence in the words of a model after three updates, which seldom ends one."""
    with warnings.catch_warnings(action="ignore"):
        translator = open_translator(model, "cpu")
        return translator.translate(sentence, split=True)


def findings(plan: "Recipe", run: "Run", records: list[Record]) -> Findings:
    """What a dry run tells of the whole one: sizes in bytes, and the losses."""
    import torch

    from ..training.checkpoint import checkpoints

    device = run.accelerator.device
    memory = peak_memory()
    if device.type == "cuda":
        memory = torch.cuda.max_memory_allocated(device)
    disk = sum(path.stat().st_size for path in checkpoints(run.folder)[-1].iterdir())

    def noted(event: str, name: str, digits: int) -> str:
        of_kind = (record[name] for record in records if record["event"] == event)
        return " ".join(f"{value:.{digits}f}" for value in of_kind)

    return {
        "device": f"{run.accelerator.num_processes} × {device.type}",
        "vocabulary": f"{run.tokenizer.tgt_vocab_size:,} of {plan.vocab_size:,}",
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "peak memory, bytes": memory,
        "a checkpoint, bytes": disk,
        "all that the run keeps, bytes": disk * plan.training.keep,
        "losses": noted("update", "loss", 3),
        "perplexity": noted("validation", "perplexity", 0),
    }


def peak_memory() -> int:
    """The most bytes of memory this process has had; 0 if the system doesn't tell."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
