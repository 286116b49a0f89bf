"""§3 and Table 3: the settings of a Transformer, in one frozen dataclass."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from ..errors import UserError, check_choice, check_integer, nearest

PAD, BOS, EOS, UNK = 0, 1, 2, 3


Config = TypeVar("Config", bound="ModelConfig")


@dataclass(frozen=True)
class ModelConfig:
    """What all configurations have: a model type, and a form as plain JSON values."""

    model_type: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """The model type and the fields, as config.json has them."""
        values = {"model_type": self.model_type} | asdict(self)
        return {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}

    @classmethod
    def from_dict(cls: type[Config], values: dict[str, Any]) -> Config:
        """A configuration from `to_dict`'s values; a missing field takes its default.

        Raises: UserError for an unknown field, or one that is out of range.
        """
        known, known_values = [field.name for field in fields(cls)], {}
        for name, value in values.items():
            if name in known:
                known_values[name] = tuple(value) if isinstance(value, list) else value
            elif name not in METADATA:
                hint = nearest(name, known)
                raise UserError(f"unknown architecture setting {name!r}: {hint}")
        return cls(**known_values)


# Of config.json: the rest are fields.
METADATA = ("model_type", "annotated_transformer")


@dataclass(frozen=True)
class TransformerConfig(ModelConfig):
    """The architecture of one Transformer, in the paper's names, §3.

    The defaults are Table 3's base row; d_k and d_v are d_model / h unless given.
    """

    model_type: ClassVar[str] = "transformer"
    src_vocab_size: int = 37000
    tgt_vocab_size: int = 37000
    shared_vocab: bool = True
    N: int = 6
    d_model: int = 512
    d_ff: int = 2048
    h: int = 8
    d_k: int = None  # type: ignore[assignment]  # until __post_init__
    d_v: int = None  # type: ignore[assignment]
    dropout: float = 0.1
    positions: str = "sinusoidal"
    max_length: int = 1024
    pad_id: int = PAD
    bos_id: int = BOS
    eos_id: int = EOS

    def __post_init__(self) -> None:
        for name in ("d_k", "d_v"):
            if getattr(self, name) is None:
                check_integer(self, "h")
                check_integer(self, "d_model")
                object.__setattr__(self, name, max(1, self.d_model // self.h))
        check_config(self)


def check_config(config: TransformerConfig) -> None:
    """Raises: UserError that names the first setting out of range and the remedy."""
    check_vocabularies(config)
    for name in ("N", "d_model", "d_ff", "h", "d_k", "d_v"):
        check_integer(config, name)
    check_integer(config, "max_length", below=2**20)
    keys, values = config.h * config.d_k, config.h * config.d_v
    if max(keys, values) >= 2**31:
        raise UserError(
            f"h × d_k is {keys} and h × d_v is {values}: both must be below {2**31}, "
            "so lower h, d_k or d_v"
        )
    if config.d_model % 2:
        raise UserError(
            f"d_model is {config.d_model}: it must be even, since sines and cosines "
            "come in pairs"
        )
    check_dropout(config)
    check_choice(config, "positions", ("sinusoidal", "learned"))


def check_vocabularies(config: Any) -> None:
    """Raises: UserError for vocabularies or ids of padding, begin and end that don't
    fit each other.
    """
    source, target = config.src_vocab_size, config.tgt_vocab_size
    for name in ("src_vocab_size", "tgt_vocab_size"):
        check_integer(config, name)
    if type(config.shared_vocab) is not bool:
        shared = f"shared_vocab is {config.shared_vocab!r}"
        raise UserError(f"{shared}: it must be True or False")
    if config.shared_vocab and source != target:
        raise UserError(
            f"a shared vocabulary needs src_vocab_size ({source}) equal to "
            f"tgt_vocab_size ({target}): make them equal or set shared_vocab=False"
        )
    for name in ("pad_id", "bos_id", "eos_id"):
        value, most = getattr(config, name), min(source, target) - 1
        if type(value) is not int or not 0 <= value <= most:
            raise UserError(
                f"{name} is {value!r}: it must be an id of both vocabularies, from 0 "
                f"to {most}"
            )
    for name, harm in (
        ("pad_id", "hiding padding hides the end"),
        ("bos_id", "a translation can't end"),
    ):
        if (value := getattr(config, name)) == config.eos_id:
            both = f"{name} and eos_id are both {value}"
            raise UserError(f"{both}: make them differ, or {harm}")


def table_3() -> dict[str, TransformerConfig]:
    """Table 3's twenty rows by name.

    Label smoothing is no part of the architecture, so its two rows equal base.
    """
    base = TransformerConfig()
    changes: dict[str, dict[str, Any]] = {
        "base": {},
        "A-1-head": dict(h=1, d_k=512, d_v=512),
        "A-4-heads": dict(h=4, d_k=128, d_v=128),
        "A-16-heads": dict(h=16, d_k=32, d_v=32),
        "A-32-heads": dict(h=32, d_k=16, d_v=16),
        "B-16-keys": dict(d_k=16),
        "B-32-keys": dict(d_k=32),
        "C-2-layers": dict(N=2),
        "C-4-layers": dict(N=4),
        "C-8-layers": dict(N=8),
        "C-256-model": dict(d_model=256, d_k=32, d_v=32),
        "C-1024-model": dict(d_model=1024, d_k=128, d_v=128),
        "C-1024-ff": dict(d_ff=1024),
        "C-4096-ff": dict(d_ff=4096),
        "D-no-dropout": dict(dropout=0.0),
        "D-dropout-0.2": dict(dropout=0.2),
        "D-no-smoothing": {},
        "D-smoothing-0.2": {},
        "E-learned-positions": dict(positions="learned"),
        "big": dict(d_model=1024, d_ff=4096, h=16, dropout=0.3),
    }
    return {name: replace(base, **change) for name, change in changes.items()}


def preset(name: str) -> TransformerConfig:
    """The named row of Table 3.

    Raises: UserError naming the nearest row, or all of them.
    """
    rows = table_3()
    if name not in rows:
        raise UserError(f"unknown preset {name!r}: {nearest(name, list(rows))}")
    return rows[name]


@dataclass(frozen=True)
class StackConfig(ModelConfig):
    """The sizes of one stack of layers; each head has d_model / h numbers.

    A model with more to say adds its fields in a dataclass of its own, after these.
    """

    N: int = 4
    d_model: int = 128
    d_ff: int = 512
    h: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_stack(self)

    @property
    def d_k(self) -> int:
        """The size of a head's keys."""
        return self.d_model // self.h

    @property
    def d_v(self) -> int:
        """The size of a head's values, as large as its keys."""
        return self.d_k


def check_stack(config: StackConfig) -> None:
    """Raises: UserError that names the first size out of range and the remedy."""
    for name in ("N", "d_model", "d_ff", "h"):
        check_integer(config, name)
    if config.d_model % config.h or config.d_model % 2:
        raise UserError(
            f"d_model is {config.d_model} and h is {config.h}: d_model must be even, "
            "and the heads must share it without a remainder"
        )
    check_dropout(config)


def check_dropout(config: Any) -> None:
    """Raises: UserError for a share of dropped values that is none."""
    share = config.dropout
    if type(share) not in (int, float) or not 0 <= share < 1:
        raise UserError(
            f"dropout is {share!r}: it is the share of values dropped, at least 0 and "
            "below 1"
        )
