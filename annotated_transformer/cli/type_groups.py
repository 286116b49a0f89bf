"""A group of commands for each model type that has a summary in the registry."""

from typing import Any

from typer.core import TyperGroup

from ..registry import SUMMARIES
from .loading import import_torch

MARKUP: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": "markdown"}


class LazyGroup(TyperGroup):
    """Commands that are added when they are asked for."""

    def fill(self) -> None:
        """Add them."""
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        self.fill()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them, if there is one of that name."""
        self.fill()
        return super().get_command(ctx, cmd_name)


class TypeGroup(LazyGroup):
    """The commands of a model type, whose module has to be imported."""

    def fill(self) -> None:
        """Make them from the type's record."""
        if not self.commands:
            import_torch()
            from .task_commands import commands_of

            self.commands.update(commands_of(str(self.name)))


class RootGroup(LazyGroup):
    """The commands of the package, and a group for each model type."""

    def fill(self) -> None:
        """Add the groups."""
        for name, summary in SUMMARIES.items():
            if name not in self.commands:
                self.add_command(TypeGroup(name=name, help=summary, **MARKUP))
