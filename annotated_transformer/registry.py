"""The model types: a record each, imported when its name is asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    and a setting. `commands` are functions of an opened model, which yield lines or
    return a `Task`: their docstring is the help, their parameters are the options.
    """

    model: Any
    task: Callable[..., Any] | None = None
    training: Any = None
    data: str = ""
    decided: tuple[str, ...] = ()
    about: str = ""
    example: tuple[str, str] = ("", "")
    commands: tuple[Callable[..., Any], ...] = ()

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
    home = HOMES[name]
    if isinstance(home, str):
        module, _, attribute = home.partition(":")
        entry = getattr(import_module(f".{module}", __package__), attribute)
        home = entry if isinstance(entry, ModelType) else ModelType(entry)
        HOMES[name] = home
    return home
