"""A group of commands for each model type that has a summary in the registry."""

from typing import Any

from typer.core import TyperGroup

from ..registry import SUMMARIES
from .opening import import_torch

MARKUP: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": "markdown"}


class TypeGroup(TyperGroup):
    """The commands of a model type; its module is imported when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        if not self.commands:
            import_torch()
            from .task_commands import commands_of

            self.commands.update(commands_of(str(self.name)))
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them, if there is one of that name."""
        return self.commands[cmd_name] if cmd_name in self.list_commands(ctx) else None


class RootGroup(TyperGroup):
    """The commands of the package, and a group for each model type."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        for name, summary in SUMMARIES.items():
            if name not in self.commands:
                self.commands[name] = TypeGroup(name=name, help=summary, **MARKUP)
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them, if there is one of that name."""
        return self.commands[cmd_name] if cmd_name in self.list_commands(ctx) else None
