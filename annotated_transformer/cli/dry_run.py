"""A recipe in small: three updates, then all that comes after them."""

import os
import shutil
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .loading import open_translator
from .recipe import Pairs
from .streams import echo

if TYPE_CHECKING:
    from ..training.log import Record
    from ..training.recipes import Recipe
    from ..training.run import Run
    from ..translation.prepared_data import InitFrom

Findings = dict[str, int | float | str]


def show(findings: Findings) -> int:
    """Print what a dry run found, a line each; returns the command's status."""
    for name, value in findings.items():
        echo(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}")
    return 0


def try_recipe(
    plan: "Recipe",
    folder: Path,
    train: Pairs,
    valid: Pairs,
    device: str | None = None,
    start: "InitFrom | None" = None,
    pairs: int = 50_000,
) -> Findings:
    """A recipe in small, up to the translation of one sentence: what was found.

    The model and the batches are the recipe's; the vocabulary is made from the first
    `pairs` of the corpus. Works in `folder`/.dry-run and leaves no file. The first
    process alone has findings.
    """
    from ..training.run import fit
    from ..translation.task import FirstPairs, prepare, shortened

    records: list[Record] = []
    few, some = FirstPairs(train, pairs), FirstPairs(valid, 20)
    draft, new = folder / ".dry-run", not folder.exists()
    try:
        small = shortened(plan)
        run = prepare(small, draft, few, some, records.append, device, start, True)
        if fit(run) == "interrupted":
            raise KeyboardInterrupt
        if not run.world.first:
            return {}
        sentence = next(iter(some))[0]
        with warnings.catch_warnings(action="ignore"):  # it seldom ends a sentence
            translator = open_translator(draft / "model", "cpu")
            translation = translator.translate(sentence, split=True)
        examples = {"sentence": sentence, "translation": translation}
        return findings(plan, run, records) | examples
    finally:
        if os.environ.get("RANK", "0") == "0":
            shutil.rmtree(draft, ignore_errors=True)
        if new:
            with suppress(OSError):  # another process may be at work in it
                folder.rmdir()


def findings(plan: "Recipe", run: "Run", records: list["Record"]) -> Findings:
    """What a dry run tells of the whole one: sizes in bytes, and the losses."""
    import torch

    from ..training.checkpoint import checkpoints

    device = run.world.device
    memory = peak_memory()
    if device.type == "cuda":
        memory = torch.cuda.max_memory_allocated(device)
    disk = sum(path.stat().st_size for path in checkpoints(run.folder)[-1].iterdir())

    def noted(event: str, name: str, digits: int) -> str:
        of_kind = (record[name] for record in records if record["event"] == event)
        return " ".join(f"{value:.{digits}f}" for value in of_kind)

    known: Any = run.model.config
    return {
        "outcome": "finished",
        "device": f"{run.world.size} × {device.type}",
        "vocabulary": f"{known.tgt_vocab_size:,} of {plan.vocab_size:,}",
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
