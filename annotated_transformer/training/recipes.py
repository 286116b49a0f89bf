"""§5: corpus, vocabulary, architecture and training of a whole run, by name."""

from dataclasses import dataclass, replace
from importlib import resources
from numbers import Real
from typing import Any

import yaml

from ..errors import UserError, check_integer, check_kind, nearest
from ..model.config import BOS, EOS, PAD, TransformerConfig, table_3
from .config import TrainingConfig


@dataclass(frozen=True)
class Recipe:
    """All that a training run needs to know: corpus, vocabulary, model and training.

    Raises: UserError for max_tokens, vocab_size or bpe_dropout out of range, or special
    ids that are not the tokenizer's.
    """

    corpus: str
    src: str
    tgt: str
    architecture: TransformerConfig
    training: TrainingConfig
    vocab_size: int = 37_000
    joint: bool = True
    moses: bool = False
    lowercase: bool = False
    normalize: bool = False
    bpe_dropout: float = 0.0
    train_split: str = "train"
    valid_split: str = "val"
    max_tokens: int = 256

    def __post_init__(self) -> None:
        batch = self.training.batch_tokens // self.training.micro_batches
        longest = self.architecture.max_length
        limits = {"max_length": longest, "batch_tokens / micro_batches": batch}
        check_kind("max_tokens", self.max_tokens, int, "a whole number")
        check_kind("bpe_dropout", self.bpe_dropout, Real, "a number")
        for name, limit in limits.items():
            if not 0 < self.max_tokens <= limit:
                raise UserError(
                    f"max_tokens is {self.max_tokens}: it must be at least 1 and at "
                    f"most {name}, {limit}"
                )
        check_integer(self, "vocab_size", below=2**24)
        if not 0 <= self.bpe_dropout <= 1:
            raise UserError(
                f"bpe_dropout is {self.bpe_dropout}: it is a probability, from 0 to 1"
            )
        model = self.architecture
        if (model.pad_id, model.bos_id, model.eos_id) != (PAD, BOS, EOS):
            raise UserError(
                f"pad_id, bos_id and eos_id must be {PAD}, {BOS} and {EOS}, as the "
                "tokenizer has them"
            )


def recipes() -> dict[str, Recipe]:
    """The named recipes, as recipes.yaml has them."""
    table = resources.files("annotated_transformer.training") / "recipes.yaml"
    known = yaml.safe_load(table.read_text("utf-8"))
    return {name: _recipe(**parts) for name, parts in known.items()}


def _recipe(
    text: dict[str, Any],
    training: dict[str, Any],
    model: dict[str, Any] | None = None,
    preset: str = "base",
) -> Recipe:
    architecture = replace(table_3()[preset], **model or {})
    return Recipe(
        architecture=architecture, training=TrainingConfig(**training), **text
    )


def recipe(name: str) -> Recipe:
    """The recipe of that name. Raises: UserError naming the nearest one."""
    known = recipes()
    if name not in known:
        raise UserError(f"unknown recipe {name!r}: {nearest(name, list(known))}")
    return known[name]


def own_text(pairs: int) -> Recipe:
    """The settings for so many pairs of one's own, from nothing: those of the run on
    the nearest number, 29,000 or 164,000.
    """
    return recipe("multi30k-en-de-tiny" if pairs < 100_000 else "tatoeba-en-de")
