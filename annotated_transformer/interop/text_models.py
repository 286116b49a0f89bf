"""What GPT-2 and BERT share: a configuration, and a published folder in and out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors.torch import save_file
from torch import Tensor

from ..errors import UserError, check_integer
from ..files import new_folder, write_json
from ..model.config import StackConfig
from ..pretrained import PretrainedModel, SavedModel
from ..training.checkpoint import empty_model
from .parts import check_activation
from .published import (
    CLASSES,
    Stored,
    WeightMapping,
    convert_weights,
    published_config,
    read_published,
    renamed,
)


@dataclass(frozen=True)
class TextConfig(StackConfig):
    """What both models have; the sizes are those of the smallest published ones.

    Raises: UserError as `check_stack`, or for a setting out of range.
    """

    N: int = 12
    d_model: int = 768
    d_ff: int = 3072
    h: int = 12
    vocab_size: int = 50257
    max_length: int = 1024
    activation: str = "gelu_new"
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self, "vocab_size")
        check_integer(self, "max_length", below=2**20)
        check_activation(self.activation)
        if not 0 < self.norm_eps < 1:
            raise UserError(
                f"norm_eps is {self.norm_eps!r}: it must lie between 0 and 1"
            )


@dataclass(frozen=True)
class Layout:
    """How the published checkpoints of one model type are laid out."""

    stored: Callable[[str], Stored]  # how a file holds our parameter of this name
    settings: dict[str, str]  # their names, and ours
    fixed: dict[str, Any]  # settings of which we know one value
    copies: dict[str, str]  # tensors that a file may hold twice
    skipped: tuple[str, ...]  # no weights, or parts for other tasks
    prefix: str = ""  # of all names, in some files


class PublishedTextModel(PretrainedModel):
    """A model that is read and written as `transformers` does, by its `layout`."""

    layout: ClassVar[Layout]

    @classmethod
    def read_config(cls, values: dict[str, Any], folder: Path) -> Any:
        """The configuration that their config.json describes. Raises: UserError."""
        names, path = cls.layout.settings, folder / "config.json"
        return published_config(values, names, cls.layout.fixed, cls.config_class, path)

    @classmethod
    def read_weights(cls, saved: SavedModel, config: Any) -> dict[str, Tensor]:
        """Their weights by our names. Raises: UserError for one that doesn't fit."""
        folder, layout = saved.folder, cls.layout
        published = read_published(folder, config.model_type, layout.skipped)
        older = {".gamma": ".weight", ".beta": ".bias"}
        tensors = {
            renamed(name.removeprefix(layout.prefix), older): tensor
            for name, tensor in published.items()
        }
        empty = empty_model(cls.model_class, config, tensors, folder)
        return convert_weights(tensors, layout.copies, layout.stored, empty, folder)

    def save_pretrained(
        self, folder: str | Path, dtype: torch.dtype = torch.float32
    ) -> None:
        """Write a folder that `transformers` opens too, whole or not at all.

        Raises: UserError for a folder that isn't new or empty.
        """
        config, layout = self.config, self.layout
        head = CLASSES[config.model_type]
        values = {"model_type": config.model_type, "architectures": [head]}
        values |= {
            name: getattr(config, field) for name, field in layout.settings.items()
        }
        parameters = self.model.named_parameters()
        weights = {name: each.detach().to("cpu", dtype) for name, each in parameters}
        tensors = WeightMapping(weights, layout.stored).to_published(weights)
        tensors = {f"{layout.prefix}{name}": each for name, each in tensors.items()}
        with new_folder(folder, "save_pretrained") as draft:
            write_json(draft / "config.json", values)
            save_file(tensors, draft / "model.safetensors", {"format": "pt"})
            if files := self.files():
                files.save(draft)
