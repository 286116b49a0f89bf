"""Where a run is: what its checkpoints store, and how it goes on from the last one."""

from dataclasses import asdict, dataclass, fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from ..files import read_json, remove_folder
from .checkpoint import (
    adam_moments,
    checkpoints,
    delete_moments,
    load_checkpoint,
    write_checkpoint,
)
from .distributed import gather, shard_like

if TYPE_CHECKING:
    from .run import Run


@dataclass
class Progress:
    """All that changes while a run goes on, besides weights and Adam's averages.

    `loss_sum` and `tokens` hold what has gathered since the last line of the log, and
    `best_loss` the best validation's criterion, which is a loss or minus a score.
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    loss_sum: float = 0.0
    tokens: int = 0
    best_loss: float | None = None
    best_step: int = 0
    validations_since_best: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Raises: UserError for a value that no run can come to."""
        most = {"step": 2**53, "tokens": 2**63}  # the rest count some of the steps
        for each in fields(self):
            value, name = getattr(self, each.name), each.name
            if each.type is int:
                fine = type(value) is int and 0 <= value <= most.get(name, self.step)
            else:
                none = value is None and name == "best_loss"
                fine = none or (type(value) in (int, float) and isfinite(value))
            if not fine:
                raise UserError(f"{name} is {value!r:.50}, which no run comes to")


def checkpoint_of(folder: Path, step: int) -> Path:
    """The folder of a run's checkpoint after an update."""
    return folder / "checkpoints" / f"step-{step:08d}"


def step_of(checkpoint: Path) -> int:
    """The update after which a checkpoint was saved."""
    return int(checkpoint.name.removeprefix("step-"))


def save(run: "Run") -> None:
    """Save a checkpoint of this update, unless it has one, and delete what is too old.

    The last `keep` planned ones stay, and the best if it is what is wanted; Adam's
    averages, two thirds of a checkpoint, stay in the last two.
    """
    folder, first = checkpoint_of(run.folder, run.progress.step), run.world.first
    if run.world.total(float(first and not folder.exists())) > 0:
        weights = gather(dict(run.model.named_parameters()), keep=first)
        moments = gather(adam_moments(run.model, run.optimizer), keep=first)
        if first:
            model = weights, run.model.config, run.task.tokenizer
            write_checkpoint(folder, model, moments, asdict(run.progress))
    if first:
        _delete_old(run)
    run.world.wait()


def _delete_old(run: "Run") -> None:
    *older, newest = checkpoints(run.folder)
    planned = [each for each in older if step_of(each) % run.config.save_every == 0]
    kept = {*[*planned, newest][-run.config.keep :]}
    if run.config.select != "average":
        kept.add(checkpoint_of(run.folder, run.progress.best_step))
    for each in older:
        if each not in kept:
            remove_folder(each)
        elif each not in sorted(kept)[-2:]:
            delete_moments(each)


def resume(run: "Run") -> None:
    """Go on from the last checkpoint, if there is one; later log lines are dropped.

    Raises: UserError naming the checkpoint when it is damaged, or when the processes
    find different ones.
    """
    saved = checkpoints(run.folder)
    latest = step_of(saved[-1]) if saved else 0
    if run.world.total(float(latest)) != latest * run.world.size:
        raise UserError(
            f"{run.folder}: the processes find different checkpoints, here of update "
            f"{latest}: name a folder that all can see"
        )
    if saved:
        try:
            run.progress = Progress(**read_json(saved[-1] / "progress.json"))
            if run.progress.step != latest:
                wrong = f"progress.json is of update {run.progress.step}"
                raise UserError(f"{saved[-1]}: {wrong}")
            load_checkpoint(saved[-1], run.model, run.optimizer, latest, shard_like)
        except (ValueError, TypeError, OverflowError) as error:
            remedy = f"delete {saved[-1]} to go on from the checkpoint before it"
            raise UserError(f"{error}; {remedy}") from None
    if run.world.first:
        run.log.cut(latest)
