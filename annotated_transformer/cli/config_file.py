"""`--config FILE`: a command's arguments and options in YAML, read and written."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import UserError, escaped, nearest
from ..files import write_file

Context = Any  # typer's own class isn't that of the contexts that it makes


def parameters(context: Context) -> dict[str, Any]:
    """A command's arguments, and its options without their dashes."""
    known = [each for each in context.command.params if each.name != "config"]
    return {max(each.opts, key=len).lstrip("-"): each for each in known}


def read_config(context: Context, path: str | None) -> str | None:
    """Take what a file says for what isn't typed.

    Raises: UserError for a file that isn't YAML, or says what the command doesn't take.
    """
    if path is None:
        return None
    said, known = read_yaml(path), parameters(context)
    settings = as_mapping(said.pop("set", None), f"{path}: set")
    texts = {name: as_typed(f"{path}: {name}", each) for name, each in settings.items()}
    context.obj = [f"{name}={text}" for name, text in texts.items()]
    context.default_map = {}
    for name, value in said.items():
        if name not in known:
            raise UserError(
                f"{path}: {name!r} is no option of {context.info_name} (settings stand "
                f"under set): {nearest(name, known)}"
            )
        if isinstance(value, bool) and not getattr(known[name], "is_flag", False):
            raise UserError(f"{path}: {name} is {value}: put what you mean in quotes")
        if value is not None:
            text = as_typed(f"{path}: {name}", value)
            context.default_map[known[name].name] = text
    return path


def read_yaml(path: str) -> dict[str, Any]:
    """The mapping that a file holds. Raises: UserError for what is none."""
    import yaml

    try:
        values = yaml.safe_load(Path(path).read_bytes())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} is no YAML: {reason}; mend it") from None
    return as_mapping(values, path)


def as_mapping(values: Any, what: str) -> dict[str, Any]:
    """Values by their names, if there are any. Raises: UserError for what is none."""
    if not isinstance(values, dict | None):
        raise UserError(f"{what} holds no names with values: write NAME: VALUE")
    return values or {}


def as_typed(what: str, value: Any) -> str:
    """A value as it is typed. Raises: UserError unless it is a single one."""
    if isinstance(value, dict | list | set):
        raise UserError(f"{what} holds several values: write one")
    return str(value)


def with_file(context: Context, typed: list[str] | None) -> list[str] | None:
    """The file's settings, then those that are typed, which win."""
    return [*(context.obj or []), *(typed or [])] or None


@contextmanager
def naming_file(context: Context) -> Iterator[None]:
    """An error about a setting or a value of the file's names the file too."""
    try:
        yield
    except UserError as error:
        names = [each.partition("=")[0] for each in context.params["settings"] or []]
        (subject,) = re.findall(r"^(?:unknown \w+ )?'?([\w-]*)", str(error))
        ours = subject in names[: len(context.obj or [])] and names.count(subject) == 1
        if ours or subject in (context.default_map or {}).values():
            raise UserError(f"{context.params['config']}: {error}") from None
        raise


def write_config(context: Context, path: Path) -> None:
    """Write what repeats a command: its arguments, and the options that differ from
    their defaults. Raises: UserError as `write_file`.
    """
    import yaml

    said: dict[str, Any] = {}
    for name, each in parameters(context).items():
        value = context.params[each.name]
        usual = value == each.default and name != each.opts[0]
        if name == "set" and value:
            pairs = (setting.partition("=") for setting in value)
            said[name] = {setting: as_number(text) for setting, _, text in pairs}
        elif name != "overwrite" and not usual:
            said[name] = str(value) if isinstance(value, Path) else value
    words = context.command_path.removeprefix(context.find_root().info_name)
    head = f"# annotated-transformer{words} --config {escaped(str(path))}\n"
    text = yaml.safe_dump(said, sort_keys=False, allow_unicode=True)
    write_file(path, (head + text).encode())


def as_number(text: str) -> int | float | str:
    """A number, if it is written as it is here; else the text."""
    for kind in (int, float):
        with suppress(ValueError):
            if str(kind(text)) == text:
                return kind(text)
    return text
