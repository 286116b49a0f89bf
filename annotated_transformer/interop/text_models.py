"""What GPT-2 and BERT share: a configuration, and a published folder in and out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors.torch import save_file
from tokenizers import BertWordPieceTokenizer, Tokenizer
from torch import Tensor

from ..after.language_model import LanguageModelConfig
from ..data.tokenizer_files import (
    check_ids,
    parse_tokenizer,
    read_tokenizer,
    tokenizer_errors,
)
from ..errors import UserError, check_choice
from ..files import new_folder, read_bytes, read_json, write_json
from ..pretrained import PretrainedModel, SavedModel
from ..training.checkpoint import empty_model
from .parts import ACTIVATIONS
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
class TextConfig(LanguageModelConfig):
    """What both models have; the sizes are those of the smallest published ones.

    Raises: UserError as `LanguageModelConfig`, or for a setting out of range.
    """

    N: int = 12
    d_model: int = 768
    d_ff: int = 3072
    h: int = 12
    dropout: float = 0.1
    vocab_size: int = 50257
    max_length: int = 1024
    activation: str = "gelu_new"
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "activation", ACTIVATIONS)
        if not 0 < self.norm_eps < 1:
            raise UserError(
                f"norm_eps is {self.norm_eps!r}: it must lie between 0 and 1"
            )


class PublishedTextModel(PretrainedModel):
    """A model that is read and written as `transformers` does.

    A class says how the published checkpoints of its type are laid out.
    """

    settings: ClassVar[dict[str, str]]  # their names, and ours
    fixed: ClassVar[dict[str, Any]]  # settings of which we know one value
    copies: ClassVar[dict[str, str]]  # tensors that a file may hold twice
    skipped: ClassVar[tuple[str, ...]]  # no weights, or parts for other tasks
    prefix: ClassVar[str] = ""  # of all names, in some files

    @staticmethod
    def stored(name: str) -> Stored:
        """How a published file holds the parameter of this name."""
        raise NotImplementedError

    @classmethod
    def read_config(cls, values: dict[str, Any], folder: Path) -> Any:
        """The configuration that their config.json describes. Raises: UserError."""
        names, path = cls.settings, folder / "config.json"
        return published_config(values, names, cls.fixed, cls.config_class, path)

    @classmethod
    def read_weights(cls, saved: SavedModel, config: Any) -> dict[str, Tensor]:
        """Their weights by our names. Raises: UserError for one that doesn't fit."""
        folder = saved.folder
        published = read_published(folder, config.model_type, cls.skipped)
        older = {".gamma": ".weight", ".beta": ".bias"}
        tensors = {
            renamed(name.removeprefix(cls.prefix), older): tensor
            for name, tensor in published.items()
        }
        empty = empty_model(cls.model_class, config, tensors, folder)
        return convert_weights(tensors, cls.copies, cls.stored, empty, folder)

    def save_pretrained(
        self, folder: str | Path, dtype: torch.dtype = torch.float32
    ) -> None:
        """Write a folder that `transformers` opens too, whole or not at all.

        Raises: UserError for a folder that isn't new or empty.
        """
        config = self.config
        head = CLASSES[config.model_type]
        values = {"model_type": config.model_type, "architectures": [head]}
        values |= {
            name: getattr(config, field) for name, field in self.settings.items()
        }
        parameters = self.model.named_parameters()
        weights = {name: each.detach().to("cpu", dtype) for name, each in parameters}
        tensors = WeightMapping(weights, self.stored).to_published(weights)
        tensors = {f"{self.prefix}{name}": each for name, each in tensors.items()}
        with new_folder(folder, "save_pretrained") as draft:
            write_json(draft / "config.json", values)
            save_file(tensors, draft / "model.safetensors", {"format": "pt"})
            if files := self.files():
                files.save(draft)


def read_published_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    """The tokenizer of a published checkpoint, of tokenizer.json or a BERT's word list.

    Raises: UserError when there is none, it is damaged, takes steps that are
    not read here, or has ids that aren't below `vocab_size`.
    """
    tokenizer_path, words = folder / "tokenizer.json", folder / "vocab.txt"
    if tokenizer_path.is_file():
        tokenizer = read_tokenizer(tokenizer_path)
    elif words.is_file():
        tokenizer = parse_tokenizer(word_pieces(folder, words), words)
    else:
        raise UserError(
            f"{folder} has no tokenizer: it needs tokenizer.json, which transformers "
            "writes, or a BERT's vocab.txt"
        )
    check_ids(tokenizer, vocab_size, folder, spare=True)
    return tokenizer


def word_pieces(folder: Path, words: Path) -> str:
    """BERT's tokenizer from its word list; lower case unless the settings say no."""
    path = folder / "tokenizer_config.json"
    lower = read_json(path).get("do_lower_case", True) if path.is_file() else True
    with tokenizer_errors(words):
        lines = read_bytes(words).decode().rstrip("\n").split("\n")
        vocab = {word.rstrip("\r"): i for i, word in enumerate(lines)}
        return BertWordPieceTokenizer(vocab, lowercase=bool(lower)).to_str()
