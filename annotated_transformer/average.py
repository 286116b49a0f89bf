"""The average of checkpoints as a model folder, whatever the type of the model."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from .errors import UserError
from .files import read_json
from .pretrained import SavedModel, find_model
from .training.checkpoint import MADE_BY, check_shapes, copy_weights
from .training.trainer import average_weights

BESIDE = {"manifest.json", "progress.json"}  # they differ in each checkpoint


def average_checkpoints(folders: Sequence[str | Path], out: str | Path) -> None:
    """Save the average of some checkpoints or models (§6.1) as a model folder.

    Raises: UserError when they don't belong together, or when the folder exists.
    """
    if not folders:
        raise UserError("no checkpoint to average: name at least one folder")
    if Path(out).exists():
        raise UserError(f"{out} exists already: choose another folder")
    first, *others = models = [find_model(Path(folder)) for folder in folders]
    for other in others:
        check_same(other.folder, first.folder)
    model = first.owner(*first.owner.read(first))
    parameters = dict(model.model.named_parameters())
    weights = average_weights(weights_like(parameters, each) for each in models)
    copy_weights(model.model, weights, first.folder)
    model.save_pretrained(out)


def weights_like(wanted: dict[str, Tensor], saved: SavedModel) -> dict[str, Tensor]:
    """The weights of a folder. Raises: UserError for others than those wanted."""
    weights = saved.owner.read_weights(saved, saved.config())
    check_shapes(wanted, weights, saved.folder)
    return weights


def check_same(folder: Path, first: Path) -> None:
    """Raises: UserError unless the configuration and the files of the tokenizer are the
    same in both folders: models may agree in every shape and not belong together.
    """
    for name in sorted({path.name for path in first.glob("*.json")} - BESIDE):
        one, other = read_json(first / name), read_json(folder / name)
        if one | {MADE_BY: ""} != other | {MADE_BY: ""}:
            both = f"{folder} and {first} differ in {name}"
            raise UserError(f"{both} and can't be averaged")
