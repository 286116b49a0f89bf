"""Published checkpoints: settings and weights under other names, mapped both ways."""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UserError
from ..training.checkpoint import check_shapes, read_weights

# The class of `transformers` that opens a checkpoint of each model type.
CLASSES = {
    "marian": "MarianMTModel",
    "gpt2": "GPT2LMHeadModel",
    "bert": "BertForMaskedLM",
}


def published_config(
    published: dict[str, Any],
    names: dict[str, str],
    fixed: dict[str, Any],
    config_class: Any,
    path: Path,
) -> Any:
    """The configuration that a published config.json describes.

    `names` gives our name of each of their settings, `fixed` those of which this
    package knows one value. Raises: UserError for another value, where two names of
    theirs that are one of ours differ, and for what the configuration refuses.
    """
    published = {name: value for name, value in published.items() if value is not None}
    for name, value in fixed.items():
        if published.get(name, value) != value:
            raise UserError(
                f"{path}: {name} is {published[name]!r}, and this package knows only "
                f"{value}"
            )
    settings: dict[str, Any] = {}
    for name in names.keys() & published.keys():
        if settings.setdefault(names[name], published[name]) != published[name]:
            pair = " and ".join(each for each in names if names[each] == names[name])
            raise UserError(f"{path}: {pair} differ, and this package knows one value")
    try:
        return config_class(**settings)
    except (TypeError, UserError) as error:
        raise UserError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Stored:
    """How a published file holds one of our tensors.

    `third` says which of three that lie side by side, `transposed` that the file has
    inputs × outputs.
    """

    name: str
    third: int | None = None
    transposed: bool = False


def renamed(name: str, table: dict[str, str]) -> str:
    """A name with its parts replaced one by one; a longer part stands first."""
    for old, new in table.items():
        name = name.replace(old, new)
    return name


class WeightMapping(dict[str, Stored]):
    """For each of our tensors, how a published file holds it; one table, both ways."""

    def __init__(self, names: Iterable[str], stored: Callable[[str], Stored]):
        super().__init__({name: stored(name) for name in names})

    def from_published(
        self, published: dict[str, Tensor], folder: Path
    ) -> dict[str, Tensor]:
        """Our tensors, taken from theirs.

        Raises: UserError naming the first that is missing or unknown.
        """
        known = {stored.name for stored in self.values()}
        for name in sorted(known ^ published.keys()):
            if name in known:
                raise UserError(
                    f"{folder} lacks the tensor {name!r}: download it again"
                )
            raise UserError(
                f"{folder}: this architecture has no place for the tensor {name!r}"
            )
        converted = {}
        for name, stored in self.items():
            tensor = published[stored.name]
            if stored.third is not None:
                tensor = torch.atleast_1d(tensor).tensor_split(3, -1)[stored.third]
            converted[name] = tensor.transpose(0, -1) if stored.transposed else tensor
        return converted

    def to_published(self, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """Their tensors, put together from ours."""
        parts: dict[str, list[Tensor]] = {}
        for name, stored in self.items():  # the thirds of one tensor come in order
            tensor = parameters[name]
            tensor = tensor.transpose(0, -1) if stored.transposed else tensor
            parts.setdefault(stored.name, []).append(tensor)
        return {name: torch.cat(each, -1).contiguous() for name, each in parts.items()}


def read_published(
    folder: Path, model_type: str, skipped: tuple[str, ...] = ()
) -> dict[str, Tensor]:
    """The tensors of a published model.safetensors, but those that are `skipped`.

    Raises: UserError when they are missing, damaged, of an odd type or not finite.
    """
    pickled = folder / "pytorch_model.bin"
    if pickled.exists() and not (folder / "model.safetensors").exists():
        home = str(folder)
        convert = f"from transformers import {CLASSES[model_type]} as M; "
        convert += f"M.from_pretrained({home!r}).save_pretrained({home!r})"
        raise UserError(
            f"{folder} has its weights in pytorch_model.bin, and only safetensors are "
            f"read here: convert them with python -c {shlex.quote(convert)}"
        )
    return read_weights(folder, skipped)


def convert_weights(
    tensors: dict[str, Tensor],
    copies: dict[str, str],
    stored: Callable[[str], Stored],
    empty: nn.Module,
    folder: Path,
) -> dict[str, Tensor]:
    """A published file's tensors under our names, those of a model on `meta`.

    `copies` are the second names that a file may have for a matrix.
    Raises: UserError naming a tensor that is missing, unknown or of another shape, or
    for copies that differ, which the architecture ties together.
    """
    published = dict(tensors)
    for copy, name in copies.items():
        tensor = published.pop(copy, None)
        if tensor is not None and not torch.equal(
            tensor, published.setdefault(name, tensor)
        ):
            raise UserError(
                f"{folder}: {copy} differs from {name}, and this package knows only "
                "tied matrices"
            )
    parameters = dict(empty.named_parameters())
    converted = WeightMapping(parameters, stored).from_published(published, folder)
    check_shapes(parameters, converted, folder)
    return converted
