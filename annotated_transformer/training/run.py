"""One run for models of all types: a folder, a log, checkpoints, stopping, resuming."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..devices import matmul_seconds
from ..errors import UserError, check_kind
from ..files import (
    check_no_links,
    draft_of,
    give_name,
    locked,
    new_folder,
    read_json,
    remove_folder,
    sweep,
    write_json,
)
from .checkpoint import checkpoints, read_weights, write_model
from .config import RunConfig
from .distributed import Processes, World, first_process_first, join_world
from .log import Log, Record, Report, print_line
from .meter import Meter, check_finite
from .run_state import Progress, checkpoint_of, resume, save
from .signals import stop_requests
from .task import Task
from .trainer import average_weights, train
from .update import Update

OVERWRITE = "choose another folder, or overwrite it (overwrite=True, or --overwrite)"
OWN = "run.json config.yaml log.jsonl checkpoints model data tensorboard".split()
OWN += ["curves.png"]


def check_folder(folder: Path) -> None:
    """Raises: UserError if a folder holds what no run would put there, or links."""
    check_no_links(*folder.glob("*"))
    if folder.is_dir() and not (folder / "run.json").exists():
        names = [path.name for path in folder.iterdir()]
        if any(name != "data" and not name.startswith(".") for name in names):
            lack = f"{folder} is not empty and holds no run"
            raise UserError(f"{lack}: choose another folder")


def lock_folder(folder: Path, world: World) -> AbstractContextManager[object]:
    """While the block runs, no other run writes to the folder."""
    return locked(folder) if world.first else nullcontext()


def ready_folder(folder: Path, world: World, overwrite: bool) -> None:
    """See that a run may have this folder, and clear it if that is wanted."""
    check_folder(folder)
    if overwrite and world.first:
        with lock_folder(folder, world):
            for path in [folder / name for name in OWN]:
                if path.is_dir() and not path.is_symlink():
                    remove_folder(path)
                else:
                    path.unlink(missing_ok=True)


@dataclass(repr=False)
class Run:
    """One training run: what is trained, how, where, and how far it is.

    `report` gets each record of the log, and about once a second how far it is; None
    keeps the run silent.
    """

    task: Task
    folder: Path
    world: World
    report: Report | None = print_line
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        if self.config.sharded and not self.task.shardable:
            raise UserError("sharded is for translation models: leave it out")
        task = self.task
        self.processes = Processes(task.objective, self.config, self.world)
        task.batch_loss = self.processes.batch_loss
        self.optimizer = task.optimizer()
        self.log = Log(self.folder / "log.jsonl")

    @property
    def model(self) -> nn.Module:
        """The model that is trained."""
        return self.task.model

    @property
    def config(self) -> RunConfig:
        """The settings of its training."""
        return self.task.config

    def __repr__(self) -> str:
        at = f"at update {self.progress.step:,}, on {self.world.device}"
        return f"Run({self.task} in {self.folder}, {at})"

    def write_record(self, record: Record) -> None:
        """Log and report one record; the first process alone does so."""
        if self.world.first:
            self.log.append(record)
            self.show(record)

    def show(self, record: Record) -> None:
        """Hand a record to `report`, if there is one."""
        if self.report:
            self.report(record)


def start_run(
    task: Task,
    folder: str | Path,
    device: str | torch.device | None = None,
    report: Report | None = print_line,
    overwrite: bool = False,
) -> Run:
    """A run ready for `fit`: a new one, or the one that the folder holds.

    It prints its progress line by line; another `report` gets the records of its log
    instead, and with None it is silent. `overwrite` deletes the run that is there.
    Raises: UserError for a folder that holds something else.
    """
    check_kind("task", task, Task, "a task, such as make_task('vision')")
    world, folder = join_world(task.config.timeout, device), Path(folder)
    with first_process_first(world):
        ready_folder(folder, world, overwrite)
    return Run(task, folder, world, report)


def describe(run: Run) -> dict[str, Any]:
    """What makes a run this run: all but where it ends and how the work is spread."""
    settings = run.config.to_dict()
    return {
        "architecture": run.model.config.to_dict(),
        "training": {n: v for n, v in settings.items() if n not in run.config.free},
        **run.task.describe(),
    }


def differences(stored: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Where two descriptions of a run differ, one line each; of a file, only that."""
    lines = []
    for part in dict.fromkeys([*wanted, *stored]):
        old, new = stored.get(part), wanted.get(part)
        dicts = [each for each in (old, new) if isinstance(each, dict)]
        if old == new:
            continue
        if len(dicts) == 1:
            lines.append(f"{part} is in one of them alone")
        elif dicts and "sha256" not in old:
            lines += differences(old, new)
        else:
            how = f"is {old!r:.60} there and {new!r:.60} here"
            lines.append(f"{part} {'has other content' if dicts else how}")
    return lines


def some_of(lines: list[str]) -> str:
    """The first four of some differences, and how many more there are."""
    more = len(lines) - 4
    return "; ".join(lines[:4]) + (f"; and {more} more" if more > 0 else "")


def claim_folder(folder: Path, description: dict[str, Any]) -> None:
    """Write run.json, or see that it describes this very run.

    Raises: UserError when the folder holds another run.
    """
    path = folder / "run.json"
    check_folder(folder)
    if not path.exists():
        write_json(path, description)
    if lines := differences(read_json(path), description):
        other = f"{folder} holds another run ({some_of(lines)})"
        raise UserError(f"{other}: {OVERWRITE}")


def fit(run: Run) -> str:
    """Train to the last step, from the last checkpoint if there is one.

    The average of the last checkpoints, or the best one, ends up in the folder `model`.
    Returns "finished", "stopped early" (no better validation for `patience` of them) or
    "interrupted" (a signal).
    """
    check_kind("run", run, Run, "what prepare, fine_tune or start_run returned")
    with lock_folder(run.folder, run.world):
        begin(run)
        progress, processes, meter = run.progress, run.processes, Meter(run)
        source = run.task.batches((progress.epoch, progress.position))
        loop = processes.objective, source, run.optimizer, run.task.schedule
        updates = train(*loop, run.config, progress.step, processes.gradient)
        with stop_requests() as requests:
            while not over(run):
                if after_update(run, meter, next(updates), requests):
                    return "interrupted"
        if run.world.first:
            write_final_model(run)
        run.world.wait()
    return "finished" if progress.step >= run.config.steps else "stopped early"


def begin(run: Run) -> None:
    """Take the folder, and go on from its last checkpoint, if there is one."""
    with first_process_first(run.world):
        claim_folder(run.folder, describe(run))
    if run.world.first:  # what a killed process left
        sweep(run.folder)
        sweep(run.folder / "checkpoints")
    resume(run)
    choose_precision(run)
    if run.progress.step == 0:
        if notes := run.task.notes():
            run.write_record({"event": "data", "step": 0} | notes)
        if run.task.fine_tunes:
            log_validation(run)  # what the updates have to better


def over(run: Run) -> bool:
    """Whether all steps are made, or patience is at an end."""
    patience, waited = run.config.patience, run.progress.validations_since_best
    return run.progress.step >= run.config.steps or 0 < patience <= waited


def after_update(
    run: Run, meter: Meter, update: Update, requests: Sequence[str]
) -> bool:
    """Log, validate and save what is due after an update; whether the run is to stop,
    since a process was requested to.
    """
    progress, config = run.progress, run.config
    progress.step, (progress.epoch, progress.position) = update.step, update.position
    meter.add(update)
    meter.log() if update.step % config.log_every == 0 else meter.show()
    stopping = run.world.total(float(len(requests))) > 0
    due = update.step == config.steps or update.step % config.save_every == 0
    if due or stopping:
        meter.store()
        if due:
            validate(run)
        save(run)
        meter.pause()
    return stopping and not over(run)


def choose_precision(run: Run) -> None:
    """Where the settings leave it open, take the number format that is faster here.

    The first process decides for all. A run that goes on changes its format only where
    the other is now twice as fast, as on another machine.
    """
    if run.config.precision != "auto" or run.progress.step >= run.config.steps:
        return
    chosen = "fp32"
    if run.world.first:
        limit = 1.0
        for record in run.log.records():
            if record["event"] == "precision":
                limit = {"fp32": 0.5, "bf16": 2.0}[record["precision"]]
        seconds = matmul_seconds(run.world.device)
        ratio = seconds["bf16"] / seconds["fp32"]
        chosen = "bf16" if ratio < limit else "fp32"
        measured = {"precision": chosen, "bf16_over_fp32": round(ratio, 3)}
        run.write_record({"event": "precision", "step": run.progress.step, **measured})
    half = run.world.total(float(chosen == "bf16")) > 0
    run.processes.mixed.precision = "bf16" if half else "fp32"


def write_final_model(run: Run) -> None:
    """Write the folder `model`, of which an older one goes when the new one is whole.

    A kill between the two leaves none: the checkpoints make it again.
    """
    if run.config.select == "average":
        last = checkpoints(run.folder)[-run.config.keep :]
        weights = average_weights(map(read_weights, last))
    else:
        weights = read_weights(checkpoint_of(run.folder, run.progress.best_step))
    model = run.folder / "model"
    with new_folder(draft := draft_of(model), "fit") as target:
        write_model(target, weights, run.model.config, run.task.tokenizer)
    if model.exists():
        remove_folder(model)
    give_name(draft, model)


def validate(run: Run) -> None:
    """Measure, log, and remember whether it is the best."""
    progress, loss = run.progress, log_validation(run)
    progress.validations_since_best += 1
    if progress.best_loss is None or loss < progress.best_loss:
        progress.best_loss, progress.best_step = loss, progress.step
        progress.validations_since_best = 0


def log_validation(run: Run) -> float:
    """What the best validation is lowest in, after all figures were logged."""
    progress = run.progress
    run.processes.objective.eval()
    figures = run.task.evaluate()
    check_finite(figures["loss"], progress.step)
    record = {"event": "validation", "step": progress.step, **figures}
    run.write_record(record | {"seconds": round(progress.seconds, 2)})
    if run.world.first and progress.step == 0:
        run.task.inspect_start(figures)
    # the first process's, since others may translate otherwise by a rounding
    return run.world.total(run.task.criterion(figures) if run.world.first else 0.0)
