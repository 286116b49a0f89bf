"""What is imported when its name is asked for: model types, a record each, and what
makes the engines of a search and the faster objective.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from .errors import UserError, nearest

Root = str | Path | None  # where named data sets are kept
Lines = Iterator[list[str]]  # the texts that a command reads, as many as there are


@dataclass(frozen=True)
class ModelType:
    """All that a model type is.

    `model` is the `PretrainedModel` that opens it, and the rest is for types that are
    trained on data alone. `task(data, config, training, root)` makes a new model and
    its training, from sizes as `model.config_class` and settings as `training`. `data`
    says what data may be, the default first; `decided` names the sizes that they
    decide; `about` says what is held out and measured; `example` has data of one's own
    and a setting. `commands` are functions of an opened model by name, which yield
    lines or return a `Task`: the docstring is the help, the parameters the options.
    """

    model: Any
    task: Callable[..., Any] | None = None
    training: Any = None
    data: str = ""
    decided: tuple[str, ...] = ()
    about: str = ""
    example: tuple[str, str] = ("", "")
    commands: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model_type of its config.json."""
        return str(self.model.config_class.model_type)

    @property
    def default_data(self) -> str:
        """The name of the data set that is taken if none is named."""
        return self.data.partition(",")[0]


HOMES: dict[str, str | ModelType] = {}
SUMMARIES: dict[str, str] = {}  # of the types that have commands
# What makes an engine of a model, its tokenizer and a dtype, and an objective of a
# model and its smoothing: a function, or "module:NAME" in this package for it.
MAKERS: dict[str, str | Callable[..., Any]] = {}


def make(name: str, *parts: Any) -> Any:
    """What the maker of this name makes of some parts."""
    return resolved(MAKERS[name])(*parts)


def resolved(home: Any) -> Any:
    """What "module:NAME" stands for in this package; anything else is itself."""
    if not isinstance(home, str):
        return home
    module, _, attribute = home.partition(":")
    return getattr(import_module(f".{module}", __package__), attribute)


def register(name: str, home: str | ModelType, summary: str = "") -> None:
    """Make a model type known: its record, or "module:NAME" in this package for it or,
    where a model is opened only, for its class.

    With a summary it has commands, and the summary stands in their help.
    """
    HOMES[name] = home
    if summary:
        SUMMARIES[name] = summary


def model_type(name: str) -> ModelType:
    """The record of a model type. Raises: UserError for an unknown one."""
    if name not in HOMES:
        raise UserError(f"unknown model type {name!r}: {nearest(name, HOMES)}")
    entry = resolved(HOMES[name])
    HOMES[name] = home = entry if isinstance(entry, ModelType) else ModelType(entry)
    return home
