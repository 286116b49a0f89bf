"""The settings of a training, validated in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Real
from typing import Any, ClassVar

from ..errors import UserError, check_choice, check_integer, check_kind, nearest


@dataclass(frozen=True)
class RunConfig:
    """How to train a model of any type; each type adds what its data needs.

    Steps and the intervals between log lines and between checkpoints, each with a
    validation, count optimizer updates; `epochs` above 0 counts passes over the data
    in their place, with a log line and a checkpoint after each. `select` says whose
    weights the model gets at the end: those of the "best" validation, which has the
    lowest loss, or the highest of the type's `scores` where `select` names one, or the
    "average" of the last `keep` checkpoints. `precision` is that of the matrix
    products: "fp32", "bf16", or "auto" for whichever is faster where the run computes.

    Raises: UserError naming the first setting out of range and the remedy.
    """

    steps: int = 1_000
    epochs: int = 0
    micro_batches: int = 1
    accumulate: int = 1
    peak: float = 1e-3
    precision: str = "fp32"
    seed: int = 1
    log_every: int = 50
    save_every: int = 250
    keep: int = 1
    select: str = "best"
    patience: int = 0
    sharded: bool = False
    timeout: int = 600
    # what may change when a run goes on
    free: ClassVar[tuple[str, ...]] = ("patience", "accumulate", "sharded", "timeout")
    counts: ClassVar[tuple[str, ...]] = (
        *("steps", "micro_batches", "accumulate"),
        *("log_every", "save_every", "keep", "timeout"),
    )
    shares: ClassVar[tuple[str, ...]] = ()  # from 0, and below 1
    scores: ClassVar[tuple[str, ...]] = ()  # of a validation, the higher the better

    def __post_init__(self) -> None:
        for name in self.counts:
            check_integer(self, name)
        for name in ("seed", "patience", "epochs"):
            check_integer(self, name, least=0, below=2**32)
        for name in ("peak", *self.shares):
            check_kind(name, getattr(self, name), Real, "a number")
        for name in self.shares:
            self.check(
                name, 0 <= getattr(self, name) < 1, "must be from 0, and below 1"
            )
        self.check_rate()
        self.check("sharded", isinstance(self.sharded, bool), "is true or false")
        check_choice(self, "precision", ("auto", "fp32", "bf16"))
        check_choice(self, "select", ("average", "best", *self.scores))

    def check_rate(self) -> None:
        """Raises: UserError for a highest learning rate out of range."""
        self.check("peak", 0 < self.peak < 1, "must be above 0 and below 1")

    def check(self, name: str, right: bool, remedy: str) -> None:
        """Raises: UserError that names a setting unless it is right."""
        if not right:
            raise UserError(f"{name} is {getattr(self, name)!r}: it {remedy}")

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class TrainingConfig(RunConfig):
    """How to train a translation model.

    Steps, batch, warm-up, smoothing and `keep` default to the paper's base run (§5,
    §6.1); the rest the paper doesn't name, or not in updates. The learning rate is that
    of equation (3) times `lr_factor`, or so many times it that it reaches `peak`. Each
    validation translates its first `translate` pairs, and `select` may name a score.
    """

    steps: int = 100_000
    batch_tokens: int = 25_000
    warmup: int = 4_000
    peak: float = 0.0
    lr_factor: float = 1.0
    label_smoothing: float = 0.1
    log_every: int = 100
    save_every: int = 1_000
    keep: int = 5
    select: str = "average"
    translate: int = 0
    free: ClassVar[tuple[str, ...]] = (*RunConfig.free, "steps", "translate")
    counts: ClassVar[tuple[str, ...]] = (*RunConfig.counts, "batch_tokens", "warmup")
    shares: ClassVar[tuple[str, ...]] = ("label_smoothing",)
    scores: ClassVar[tuple[str, ...]] = ("bleu", "chrf")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check("epochs", not self.epochs, "must be 0: give the steps")
        most = f"must be at most batch_tokens, {self.batch_tokens}"
        self.check("micro_batches", self.micro_batches <= self.batch_tokens, most)
        check_integer(self, "translate", least=0)
        if self.select in self.scores and not self.translate:
            lack = f"select is {self.select!r} and translate 0"
            raise UserError(f"{lack}: give it the number of pairs, as in translate=200")
        if self.sharded and self.translate:
            both = f"translate is {self.translate} and sharded true"
            raise UserError(f"{both}: no process has all weights; leave one out")

    def check_rate(self) -> None:
        """Raises: UserError for a rate out of range, or one that is named twice."""
        check_kind("lr_factor", self.lr_factor, Real, "a number")
        factor = "multiplies the learning rate and must be above 0"
        self.check("lr_factor", 0 < self.lr_factor < float("inf"), factor)
        unset = "is the highest learning rate, below 1; 0 leaves it to lr_factor"
        self.check("peak", 0 <= self.peak < 1, unset)
        if self.peak and self.lr_factor != 1:
            twice = f"peak is {self.peak} and lr_factor {self.lr_factor}"
            raise UserError(f"{twice}: both set the learning rate; leave one out")

    def highest_rate(self, d_model: int) -> float:
        """The learning rate after the warm-up: the highest."""
        return self.peak or self.lr_factor * (d_model * self.warmup) ** -0.5


def setting_owners(parts: Sequence[Any]) -> dict[str, int]:
    """Which of some dataclasses has the field of each name: the first that does."""
    return {
        field.name: number
        for number, part in reversed([*enumerate(parts)])
        for field in fields(part)
    }


def with_settings(
    settings: Mapping[str, Any], *parts: Any, decided: Sequence[str] = ()
) -> list[Any]:
    """Dataclasses with these values in the fields of these names.

    Raises: UserError for an unknown name, naming the nearest, for one that the data or
    the model has `decided`, or for a value out of range.
    """
    owners = setting_owners(parts)
    changes: list[dict[str, Any]] = [{} for _ in parts]
    for name, value in settings.items():
        if name in decided:
            raise UserError(f"{name} follows from the data or the model: leave it out")
        if name not in owners:
            known = [each for each in owners if each not in decided]
            raise UserError(f"unknown setting {name!r}: {nearest(name, known)}")
        changes[owners[name]][name] = value
    return [replace(part, **new) for part, new in zip(parts, changes, strict=True)]
