"""What `train` is asked for, as a recipe and its pairs."""

from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .settings import parse_settings, warn_of_rate

if TYPE_CHECKING:
    from ..training.recipes import Recipe
    from ..translation.prepared_data import InitFrom

Pairs = Iterable[tuple[str, str]]
Own = dict[str, str | None]  # src, tgt, valid, recipe
# The tokenizer decides the first, and of a model to go on from it decides more.
TOKENIZER = ["pad_id", "bos_id", "eos_id", "src_vocab_size", "tgt_vocab_size"]
TOKENIZER += ["shared_vocab", "architecture", "training"]
TEXT = ["vocab_size", "joint", "moses", "lowercase", "normalize"]


def plan_training(
    source: str,
    own: Own,
    settings: list[str],
    start: "InitFrom | None",
    parts: str | None,
) -> "Recipe":
    """What `train` is asked for.

    Raises: UserError for options that don't go together, an unknown name, or a value
    out of range.
    """
    from ..training.config import with_settings
    from ..translation.task import fine_tuning_recipe

    if start and (own["recipe"] or parts):
        raise UserError(
            f"{start.name} brings its architecture and settings: leave out --recipe "
            "and --parts, or --from"
        )
    if start and own["valid"]:  # nothing of a recipe stays but the files
        own = {**own, "recipe": "multi30k-en-de-tiny"}
    plan, decided = named_recipe(source, **own), TOKENIZER
    if start:
        plan = fine_tuning_recipe(plan, start)
        decided = TOKENIZER + TEXT + [each.name for each in fields(plan.architecture)]
    known = plan.architecture, plan.training, plan
    values = parse_settings(settings, *known)
    architecture, training, changed = with_settings(values, *known, decided=decided)
    if parts:
        architecture = with_parts(architecture, parts)
    changed = replace(changed, architecture=architecture, training=training)
    warn_of_rate(highest_rate(plan), highest_rate(changed))
    return changed


def named_recipe(
    source: str, src: str | None, tgt: str | None, valid: str | None, recipe: str | None
) -> "Recipe":
    """The named recipe, or one applied to files of one's own."""
    from ..training import recipes

    if src and tgt and valid:
        plan = recipes.recipe(recipe) if recipe else own_recipe(source, src, tgt)
        plan = replace(plan, corpus=source, src=src, tgt=tgt, valid_split=valid)
        return replace(plan, moses=False, lowercase=False, normalize=False)
    files = Path(source).parent.glob(f"{Path(source).name}.*")
    own = src or tgt or valid or recipe
    if own or (source not in recipes.recipes() and any(files)):
        raise UserError(
            "files of your own need all of --src, --tgt and --valid, and may have a "
            "--recipe; a recipe by its own name takes none of these"
        )
    return recipes.recipe(source)


def own_recipe(prefix: str, src: str, tgt: str) -> "Recipe":
    """The settings that suit the number of pairs in files of one's own."""
    from ..data.parallel_files import parallel_prefix
    from ..training.recipes import own_text

    return own_text(parallel_prefix(prefix, src, tgt).count())


def training_pairs(
    plan: "Recipe", valid: str | None, root: Path | None
) -> tuple[Pairs, Pairs]:
    """The training and the validation pairs: a corpus's splits or, with a validation
    prefix, own files.
    """
    from ..data.corpora import load_corpus
    from ..data.parallel_files import parallel_prefix

    langs = plan.src, plan.tgt
    if valid:
        return parallel_prefix(plan.corpus, *langs), parallel_prefix(valid, *langs)
    splits = plan.train_split, plan.valid_split
    train, dev = (load_corpus(plan.corpus, each, *langs, root) for each in splits)
    return train, dev


def distilled_pairs(
    pairs: tuple[Pairs, Pairs],
    plan: "Recipe",
    teacher: str | None,
    choices: int,
    device: str | None,
    dry_run: bool = False,
) -> tuple[Pairs, Pairs]:
    """The same, or with a teacher's translations on the training side; a few, to try
    it.

    On a GPU it translates in bfloat16.
    Raises: UserError for a teacher of other languages.
    """
    if teacher is None:
        return pairs
    from ..after.distillation import DistilledPairs
    from ..devices import find_device
    from ..translation.task import FirstPairs
    from ..translation.translator import Translator

    dtype = "bfloat16" if find_device(device).type == "cuda" else "float32"
    opened = Translator.from_pretrained(teacher, device=device, dtype=dtype)
    text = opened.tokenizer
    if (text.src_lang, text.tgt_lang) != (plan.src, plan.tgt):
        raise UserError(
            f"the teacher {teacher} translates {text.src_lang} to {text.tgt_lang}, and "
            f"the text is {plan.src} to {plan.tgt}: choose another one"
        )
    train = FirstPairs(pairs[0], 2_000) if dry_run else pairs[0]
    return DistilledPairs(train, teacher, opened, choices), pairs[1]


def with_parts(architecture: Any, parts: str) -> Any:
    """The architecture with these parts of today, named with commas between them.

    Raises: UserError for one that is unknown or doesn't fit.
    """
    from ..after.parts_by_name import Since2017Config

    names = [name.strip() for name in parts.split(",") if name.strip()]
    return Since2017Config.from_dict(architecture.to_dict() | {"parts": names})


def highest_rate(plan: "Recipe") -> float:
    """The highest learning rate of a recipe."""
    return plan.training.highest_rate(plan.architecture.d_model)
