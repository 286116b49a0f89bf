"""How the models after the paper are trained, and what their sizes may be."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import UserError, check_whole, nearest
from ..model.config import UNK
from ..training.config import RunConfig


@dataclass(frozen=True)
class BatchedTraining(RunConfig):
    """How to train on batches of `batch` examples."""

    batch: int = 64
    counts: ClassVar[tuple[str, ...]] = (*RunConfig.counts, "batch")


@dataclass(frozen=True)
class LanguageTraining(BatchedTraining):
    """How to train a language model; `batch` counts windows of its max_length."""

    steps: int = 2_000
    batch: int = 16
    peak: float = 2e-3


@dataclass(frozen=True)
class ClassifierTraining(BatchedTraining):
    """How to train a classifier.

    `word_dropout` is the share of tokens hidden from an update, `smoothing` that of
    label smoothing.
    """

    epochs: int = 3
    peak: float = 2e-3
    word_dropout: float = 0.3
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("word_dropout", "smoothing"):
            share = 0 <= getattr(self, name) < 1
            self.check(name, share, "must be from 0, and below 1")


@dataclass(frozen=True)
class MaskedTraining(BatchedTraining):
    """How to pretrain.

    Of all tokens a `share` is chosen to be predicted. Of the chosen, `masked` are
    replaced by [MASK], half of the others by a random token, and the other half stay.
    For the first `short_share` of the updates rows are cut into pieces of at most
    `short` tokens, and a batch has so many more of them.
    """

    steps: int = 10_000
    batch: int = 32
    peak: float = 4e-3
    share: float = 0.15
    masked: float = 0.8
    short: int = 32
    short_share: float = 0.75
    save_every: int = 500
    counts: ClassVar[tuple[str, ...]] = (*BatchedTraining.counts, "short")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check("share", 0 < self.share < 1, "must be above 0 and below 1")
        for name in ("masked", "short_share"):
            self.check(name, 0 <= getattr(self, name) <= 1, "is a share, from 0 to 1")


@dataclass(frozen=True)
class ImageTraining(BatchedTraining):
    """How to train a vision model; each image is moved by up to `shift` pixels."""

    epochs: int = 12
    batch: int = 128
    peak: float = 2e-3
    shift: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check("shift", self.shift >= 0, "must be 0 or more")


@dataclass(frozen=True)
class SeriesTraining(BatchedTraining):
    """How to train a forecaster; `batch` counts windows."""

    steps: int = 600
    batch: int = 256
    peak: float = 1e-2
    save_every: int = 50


# Each of the following raises a UserError that names the first field of a model's
# configuration that is out of range, and the remedy.

ATTENTIONS = ("none", "plain", "learned")
MOST_PATCHES = 4096


def check_classifier(config: Any) -> None:
    """The vocabulary, the longest text, the attention and the classes."""
    check_whole(config, "vocab_size", least=UNK + 1)
    check_whole(config, "max_length", below=2**20)
    if (found := config.attention) not in ATTENTIONS:
        raise UserError(f"attention is {found!r}: {nearest(found, ATTENTIONS)}")
    texts = all(isinstance(name, str) and name for name in config.classes)
    if len(set(config.classes)) < max(2, len(config.classes)) or not texts:
        raise UserError(
            f"classes is {config.classes!r}: name at least two, each once, in words"
        )


def check_vision(config: Any) -> None:
    """The size of the images, of a patch, and how many that makes."""
    for name in ("height", "width", "patch", "classes"):
        check_whole(config, name, below=2**16)
    rows, columns = config.grid
    if rows * columns > MOST_PATCHES:
        raise UserError(
            f"images of {config.height} × {config.width} pixels give "
            f"{rows * columns:,} patches of {config.patch} × {config.patch}, and more "
            f"than {MOST_PATCHES:,} are too many: take a larger patch"
        )


def check_parts(config: Any, known: Iterable[str], sharing: int) -> None:
    """The parts of a `Since2017Config`; `sharing` heads of queries make a group."""
    for name in config.parts:
        if name not in known:
            raise UserError(f"unknown part {name!r}: {nearest(name, known)}")
    for one, other in (("gelu", "swiglu"), ("rotary", "alibi")):
        if one in config.parts and other in config.parts:
            raise UserError(f"{one} and {other} replace the same part: choose one")
    if "grouped-queries" in config.parts and config.h % sharing:
        raise UserError(
            f"h is {config.h}: grouped-queries puts {sharing} heads into a group, so h "
            f"must be a multiple of {sharing}"
        )
    if "rotary" in config.parts and config.d_k % 2:
        raise UserError(f"d_k is {config.d_k}: rotary turns pairs, so it must be even")
