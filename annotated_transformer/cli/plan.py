"""What `train` is asked for, as a recipe and its pairs."""

from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError, nearest

if TYPE_CHECKING:
    from ..engine.runs import Start
    from ..training.recipes import Recipe

Pairs = Iterable[tuple[str, str]]
# The tokenizer decides these.
NOT_SETTINGS = (
    "pad_id",
    "bos_id",
    "eos_id",
    "src_vocab_size",
    "tgt_vocab_size",
    "shared_vocab",
)


def training_plan(
    source: str, own: list[str | None], settings_from: str | None
) -> "Recipe":
    """The named recipe, or one applied to own files.

    `own` holds these files' source language, target language and validation prefix.
    """
    from ..training.recipes import recipe

    if own == [None, None, None]:
        refuse_own_files(source, settings_from)
        return recipe(source)
    src, tgt, valid = own
    if src is None or tgt is None or valid is None:
        raise UserError(
            "your own files need all of --src, --tgt and --valid; a recipe needs none "
            "of them"
        )
    plan = recipe(settings_from or "multi30k-en-de-tiny")
    plan = replace(plan, corpus=source, src=src, tgt=tgt, valid_split=valid)
    return replace(plan, moses=False, lowercase=False)


def open_start(model: str) -> "Start":
    """The model of this name, to go on from."""
    from ..engine.runs import Start
    from ..loading import find_device, open_model

    return Start(model, *open_model(model, find_device("cpu")))


def goes_on(
    plan: "Recipe", start: "Start", settings_from: str | None, settings: list[str]
) -> "Recipe":
    """The recipe's pairs, for a run that goes on from a trained model.

    Raises: UserError for another recipe's settings, or one that the model decides.
    """
    from ..engine.runs import going_on

    if settings_from is not None:
        raise UserError(
            "--recipe and --from are two ways to train your own files: leave one out"
        )
    decided = {field.name for field in fields(plan.architecture)}
    decided |= {"vocab_size", "joint", "moses", "lowercase"}
    for name in (setting.partition("=")[0] for setting in settings):
        if name in decided:
            raise UserError(
                f"{name} is that of {start.name}, from which the run goes on: leave out "
                f"--set {name}=…, or --from"
            )
    return going_on(plan, start)


def refuse_own_files(source: str, settings_from: str | None) -> None:
    """Raises: UserError when a recipe's name is given like that of own files."""
    from ..training.recipes import recipes

    if settings_from is not None:
        raise UserError(
            "--recipe goes with files of your own; a recipe has its own settings, and "
            "--set changes them"
        )
    files = Path(source).parent.glob(f"{Path(source).name}.*")
    if source not in recipes() and any(files):
        raise UserError(
            f"{source} is no recipe: for files of your own, give --src, --tgt and "
            "--valid too"
        )


def training_pairs(
    plan: "Recipe", valid: str | None, root: Path | None
) -> tuple[Pairs, Pairs]:
    """The training and the validation pairs: a corpus's splits or, with a validation
    prefix, own files.
    """
    from ..data.corpus import load_corpus, parallel_prefix

    if valid is None:
        train, dev = (
            load_corpus(plan.corpus, split, plan.src, plan.tgt, root)
            for split in (plan.train_split, plan.valid_split)
        )
        return train, dev
    prefixes = (plan.corpus, valid)
    train, dev = (parallel_prefix(each, plan.src, plan.tgt) for each in prefixes)
    return train, dev


def change(plan: "Recipe", settings: list[str]) -> "Recipe":
    """The recipe with NAME=VALUE settings applied.

    Raises: UserError for an unknown name, naming the nearest.
    """
    parts: dict[str, Any] = {
        "architecture": plan.architecture,
        "training": plan.training,
        "recipe": plan,
    }
    owners = {
        field.name: part
        for part, values in reversed(parts.items())
        for field in fields(values)
        if field.name not in (*NOT_SETTINGS, *parts)
    }
    changes: dict[str, dict[str, Any]] = {part: {} for part in parts}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if name not in owners:
            raise UserError(f"unknown setting {name!r}: {nearest(name, owners)}")
        if not equals:
            raise UserError(f"--set {setting}: write NAME=VALUE")
        part = owners[name]
        changes[part][name] = parse(text, getattr(parts[part], name), name)
    return replace(
        plan,
        architecture=replace(plan.architecture, **changes["architecture"]),
        training=replace(plan.training, **changes["training"]),
        **changes["recipe"],
    )


def with_parts(plan: "Recipe", parts: str | None, start: "Start | None") -> "Recipe":
    """The recipe with these parts of today, named with commas between them.

    Raises: UserError for one that is unknown or doesn't fit, or beside --from.
    """
    if parts is None:
        return plan
    if start:
        raise UserError(
            f"the parts are those of {start.name}, from which the run goes on: leave "
            "out --parts, or --from"
        )
    from ..after.since_2017 import Since2017Config

    names = [name.strip() for name in parts.split(",") if name.strip()]
    sizes = plan.architecture.to_dict()
    return replace(
        plan, architecture=Since2017Config.from_dict(sizes | {"parts": names})
    )


def parse(text: str, like: Any, name: str) -> Any:
    """A setting's text as a value of the type it had.

    Raises: UserError naming the setting and the type.
    """
    if isinstance(like, bool):
        if text.lower() not in ("true", "false"):
            raise UserError(f"{name} is {text!r}: write true or false")
        return text.lower() == "true"
    kind = type(like)
    try:
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise UserError(f"{name} is {text!r}: write {wanted}") from None
