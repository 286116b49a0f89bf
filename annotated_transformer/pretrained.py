"""One contract for every model: open it by its name, save it, share it, move it.

Not built on huggingface_hub's ModelHubMixin: its `from_pretrained` asks the network for
whatever is no folder here, a mistyped path too, and its `save_pretrained` deletes
config.json before it writes. The Hub's public functions do the transfers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

import torch
from torch import nn

from .devices import find_device
from .errors import UserError, escaped, nearest
from .files import read_json, write_file
from .model_names import SHIPPED, find_folder, hub_errors
from .registry import HOMES, SUMMARIES, model_type
from .training.checkpoint import Savable, build_model, read_weights, save_model

PretrainedT = TypeVar("PretrainedT", bound="PretrainedModel")


class PretrainedModel:
    """A trained model with all that it takes to use it.

    A class has its `config_class` and `model_class`, `read_files` and `files` if more
    lies beside the weights than config.json, `evaluate(data, root)` if its type is to
    have that command, and a record that `model_types` names.
    """

    config_class: ClassVar[Any]
    model_class: ClassVar[Callable[[Any], nn.Module]]
    hub_task: ClassVar[str]  # what the Hub calls it
    dtypes: ClassVar[tuple[str, ...]] = ("float32",)

    def __init__(self, model: nn.Module, tokenizer: Any = None):
        self.model: Any = model.eval()
        self.tokenizer = tokenizer
        self.source = "memory"  # or the name that it was opened by

    @property
    def config(self) -> Any:
        """The model's configuration."""
        return self.model.config

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return next(self.model.parameters()).device

    @classmethod
    def from_pretrained(
        cls: type[PretrainedT],
        name: str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        **options: Any,
    ) -> PretrainedT:
        """Open a model by a name that `find_folder` knows; `load` says the rest.

        `options` are those of the class. Raises: UserError naming what is missing,
        damaged, foreign or unknown, or a model of another class.
        """
        target, saved = find_device(device), find_model(name, revision)
        owner = saved.owner
        if not issubclass(owner, cls):
            kinds = (each for each in map(model_type, SUMMARIES) if each.commands)
            own = (each for each in kinds if issubclass(owner, each.model))
            uses = (f"{each.name} {[*each.commands][0]}" for each in own)
            raise UserError(
                f"{name} holds a model of type {saved.model_type!r}, which is no "
                f"{cls.__name__}: open it with {owner.__name__}.from_pretrained, or by "
                f"the command {next(uses, 'translate')!r}"
            )
        known = owner.dtypes
        if dtype is not None and dtype not in known:
            raise UserError(
                f"dtype is {dtype!r}, and a model of type {saved.model_type!r} has "
                f"{' or '.join(known)}"
            )
        model = owner.open(saved, target, dtype or known[0], **options)
        model.source = str(name)
        return model

    @classmethod
    def open(
        cls: type[PretrainedT],
        saved: "SavedModel",
        device: torch.device,
        dtype: str,
        **options: Any,
    ) -> PretrainedT:
        """The model of a folder. Raises: UserError as `from_pretrained`."""
        if options:
            raise UserError(
                f"a model of type {saved.model_type!r} has no option "
                f"{min(options)!r}: leave it out"
            )
        return cls(*cls.read(saved)).to(device)

    @classmethod
    def read(cls, saved: "SavedModel") -> tuple[Any, ...]:
        """What the class is made of: the model, and what lies beside its weights."""
        config = saved.config()
        beside = cls.read_files(saved.folder, config)
        weights = cls.read_weights(saved, config)
        return build_model(cls.model_class, config, weights, saved.folder), *beside

    @classmethod
    def read_weights(cls, saved: "SavedModel", config: Any) -> dict[str, Any]:
        """The weights by our names. Raises: UserError for a damaged file."""
        return read_weights(saved.folder)

    @classmethod
    def read_config(cls, values: dict[str, Any], folder: Path) -> Any:
        """The configuration that config.json describes.

        Raises: UserError for an unknown field or one out of range.
        """
        try:
            return cls.config_class.from_dict(values)
        except (TypeError, ValueError) as error:
            raise UserError(f"{folder / 'config.json'}: {error}") from None

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[Any, ...]:
        """What lies in the folder besides; a tokenizer mostly. Raises: UserError."""
        return ()

    def files(self) -> Savable | None:
        """What writes the files that `read_files` reads."""
        return self.tokenizer

    def save_pretrained(
        self, folder: str | Path, dtype: torch.dtype = torch.float32
    ) -> None:
        """Write a folder for `from_pretrained`, whole or not at all.

        Raises: UserError if it can't be written, or holds something else.
        """
        save_model(folder, self.model, self.files(), dtype)

    def push_to_hub(
        self,
        repository: str,
        *,
        private: bool | None = None,
        revision: str | None = None,
    ) -> str:
        """Upload the model to the Hugging Face Hub; the address of the commit.

        Raises: UserError when the Hub can't be reached or refuses.
        """
        with TemporaryDirectory() as scratch, hub_errors(repository):
            from huggingface_hub import HfApi

            folder = Path(scratch) / "model"
            self.save_pretrained(folder)
            write_file(folder / "README.md", hub_card(self).encode())
            api = HfApi()
            api.create_repo(repository, private=private, exist_ok=True)
            return api.upload_folder(
                repo_id=repository, folder_path=folder, revision=revision
            )

    def to(self: PretrainedT, device: str | torch.device) -> PretrainedT:
        """Move the model to a device; returns itself. Raises: UserError."""
        self.model.to(find_device(device))
        return self

    def __repr__(self) -> str:
        count = sum(each.numel() for each in self.model.parameters())
        words = ", ".join([f"from {self.source}", f"on {self.device}", *self.about()])
        title = f"{type(self).__name__}({self.config.model_type}, {count:,} parameters)"
        return f"{title}\n  {escaped(words)}"

    def about(self) -> list[str]:
        """What else `repr` says of it."""
        return []


def hub_card(model: PretrainedModel) -> str:
    """A model's card under the metadata by which the Hub finds it."""
    from huggingface_hub import ModelCardData

    text = model.tokenizer
    sides = (getattr(text, f"{side}_lang", None) for side in ("src", "tgt"))
    facts = ModelCardData(
        language=[each for each in sides if each] or None,
        library_name="annotated-transformer",
        pipeline_tag=model.hub_task,
    )
    card = getattr(text, "card", "") or f"```\n{model}\n```\n"
    return f"---\n{facts.to_yaml()}\n---\n{card}"


@dataclass(frozen=True)
class SavedModel:
    """A model that lies in a folder, before its weights are read."""

    folder: Path
    json: dict[str, Any]

    @property
    def model_type(self) -> str:
        """What config.json says that it is."""
        return self.json["model_type"]

    @property
    def owner(self) -> type[PretrainedModel]:
        """The class that opens it."""
        return model_type(self.model_type).model

    def config(self) -> Any:
        """Its configuration. Raises: UserError for a damaged config.json."""
        return self.owner.read_config(self.json, self.folder)

    def parameters(self) -> dict[str, int]:
        """The trained values of each of the model's parts; no memory is taken."""
        with torch.device("meta"):
            model = self.owner.model_class(self.config())
        counts: dict[str, int] = {}
        for name, each in model.named_parameters():
            part = name.partition(".")[0]
            counts[part] = counts.get(part, 0) + each.numel()
        return counts


# A file of a folder that was exported, and what opens it.
EXPORTS = {"encoder_model.onnx": "programs that run ONNX"}
EXPORTS["model.bin"] = "CTranslate2"


def find_model(name: str | Path, revision: str | None = None) -> SavedModel:
    """The model that a name stands for, and what its config.json says.

    Raises: UserError as `find_folder`, or for a folder without a model, or of one that
    was exported for another program.
    """
    folder = find_folder(name, revision)
    if not (folder / "config.json").exists():
        raise UserError(
            f"{name} holds no model: name a folder with a config.json and its weights, "
            "or a run's folder"
        )
    for file, program in EXPORTS.items():
        if (folder / file).exists() and not (folder / "model.safetensors").exists():
            raise UserError(
                f"{name} holds {file}, an export for {program}: open the folder of the "
                "model that it was made from"
            )
    config = read_json(folder / "config.json")
    model_type = config.get("model_type")
    if model_type is None:
        raise UserError(
            f"{folder / 'config.json'} names no model_type: it is no model's, or that "
            "of an earlier version"
        )
    if str(model_type) not in HOMES:
        raise UserError(
            f"{folder} holds a model of type {model_type!r}: "
            f"{nearest(model_type, HOMES)}"
        )
    return SavedModel(folder, config)


def load(
    name: str | Path = SHIPPED,
    *,
    device: str | torch.device | None = None,
    dtype: str | None = None,
    engine: str = "auto",
    revision: str | None = None,
) -> Any:
    """The model of a name, as the class that its model type has by its record.

    `name` is that of a model which comes with the package, a model's or a run's folder,
    a downloaded Marian, GPT-2 or BERT, or "hf:owner/name" on the Hugging Face Hub, at
    `revision` if it is given. `device` None is a GPU where there is one, else the CPU.
    `dtype` is "float32" or, for a translator, "bfloat16", and "int8" with CTranslate2.
    `engine` is what searches for a translator: "auto", "torch", "plain" or
    "ctranslate2".

    Raises: UserError naming what is missing, damaged, foreign or unknown.
    """
    options = {} if engine == "auto" else {"engine": engine}
    return PretrainedModel.from_pretrained(
        name, device=device, dtype=dtype, revision=revision, **options
    )
