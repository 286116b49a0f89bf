"""A translation run: from a recipe and its pairs, or from a trained model."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sacrebleu.metrics import BLEU, CHRF
from torch import nn

from ..data.batch import Batch
from ..data.pair_tokenizer import PairTokenizer
from ..data.stream import batches
from ..data.tokenized_pairs import TokenizedPairs
from ..errors import UserError, check_kind
from ..model.config import TransformerConfig
from ..model.memory import check_memory
from ..model.transformer import Transformer
from ..registry import make, model_type
from ..training.config import TrainingConfig, with_settings
from ..training.distributed import World, first_process_first, join_world
from ..training.log import Report, print_line
from ..training.recipes import Recipe, own_text
from ..training.run import Run, lock_folder, ready_folder
from ..training.schedule import adam
from ..training.sentence_pairs import paper_schedule, validation_loss
from ..training.task import Position, Task
from ..training.update import seed_update
from .model_measures import chance
from .prepared_data import STYLE, InitFrom, check_pairs, prepare_data
from .scores import system_score
from .translator import Translator

Pairs = Iterable[tuple[str, str]]


class TranslationTask(Task):
    """A translation model, its tokenizer, and tokenized pairs of training and
    validation.

    `texts` are the validation pairs that are translated, as the config's `translate`
    says.
    """

    config: TrainingConfig
    shardable = True

    def __init__(
        self,
        model: nn.Module,
        tokenizer: PairTokenizer,
        train: TokenizedPairs,
        valid: TokenizedPairs,
        config: TrainingConfig,
        data: dict[str, Any] | None = None,
        texts: Sequence[tuple[str, str]] = (),
    ):
        super().__init__(model, config, tokenizer)
        self.train, self.valid, self.data = train, valid, data or {}
        assert texts or not config.translate, "the pairs to translate are missing"
        self.texts = texts
        self.fine_tunes = "init_from" in self.data
        self.objective = make("objective", model, config.label_smoothing)

    def batches(self, start: Position) -> Iterator[tuple[Position, Batch]]:
        """Pairs of similar length (§5.1)."""
        size = self.config.batch_tokens // self.config.micro_batches
        return batches(self.train, size, self.config.seed, start)

    def evaluate(self) -> dict[str, Any]:
        """The unsmoothed loss per target token, the perplexity, and what `translations`
        finds if there are `texts`.
        """
        loss = validation_loss(self.objective, self.valid, self.config, self.batch_loss)
        figures = {"loss": loss, "perplexity": float(np.exp(loss))}
        # nothing can be translated once the weights are no numbers
        return figures | (self.translations() if self.texts and loss < np.inf else {})

    def inspect_start(self, figures: dict[str, Any]) -> None:
        """Warn if the loss is what chance would have, as a doctor says it."""
        found = chance(figures["loss"], self.tokenizer.tgt_vocab_size)
        if not found.healthy:
            warnings.warn(
                f"before the first update {found.says}; {found}", stacklevel=2
            )

    def translations(self) -> dict[str, Any]:
        """BLEU and chrF of the `texts`, translated greedily, and three samples."""
        sources, references = map(list, zip(*self.texts, strict=True))
        translator = Translator(self.model, self.tokenizer)
        with warnings.catch_warnings(action="ignore"):  # a new model ends no sentence
            outputs = translator.translate(sources, beam_size=1)
        metrics = {"bleu": BLEU(force=True), "chrf": CHRF()}
        files, names = (outputs, references), ("source", "translation", "reference")
        lines = zip(sources, outputs, references, strict=True)
        samples = [dict(zip(names, line, strict=True)) for line in lines]
        return {
            **{name: system_score(name, m, files).value for name, m in metrics.items()},
            "samples": samples[:: max(1, len(samples) // 3)][:3],
        }

    def optimizer(self) -> torch.optim.Optimizer:
        """Adam (§5.3)."""
        return adam(self.model, fused=True)

    def schedule(self, step: int) -> float:
        """Equation (3)."""
        return paper_schedule(self.config, self.model.config.d_model)(step)

    def describe(self) -> dict[str, Any]:
        """The size of the data, and where it comes from."""
        sides: dict[str, Any] = {}
        for name, pairs in (("train", self.train), ("valid", self.valid)):
            sides[f"{name}_pairs"] = len(pairs)
            sides[f"{name}_tokens"] = int(pairs.tgt_lengths.sum())
        if self.config.select in self.config.scores:  # of other pairs it is another
            sides["translate"] = self.config.translate
        return {"data": sides | self.data}

    def notes(self) -> dict[str, int]:
        """How many pairs were too long, if any."""
        dropped = {"train": self.train.dropped, "valid": self.valid.dropped}
        if not any(dropped.values()):
            return {}
        return {f"dropped_{name}": count for name, count in dropped.items()}


PEAK = 3e-4
FINE_TUNING = TrainingConfig(
    steps=2_000,
    batch_tokens=2_048,
    warmup=50,
    peak=PEAK,
    log_every=25,
    save_every=25,
    keep=5,
    patience=4,
)


def fine_tuning_recipe(plan: Recipe, start: InitFrom) -> Recipe:
    """The pairs of a recipe, for a run that goes on from a trained model."""
    text, limit = start.tokenizer, start.model.config.max_length
    decided = {name: getattr(text, name) for name in STYLE}
    decided |= {"vocab_size": text.tgt_vocab_size, "training": FINE_TUNING}
    return replace(plan, **decided, max_tokens=min(plan.max_tokens, limit))


DECIDED = "corpus architecture training train_split valid_split vocab_size".split()
DECIDED += [*STYLE, *(each.name for each in fields(TransformerConfig))]


def fine_tune(
    init_from: str | Path | Translator,
    folder: str | Path,
    train: Any,
    valid: Any,
    report: Report | None = print_line,
    device: str | torch.device | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> Run:
    """A run ready for `fit`, from a translator or a model's name, with its tokenizer.

    `settings` are those of `TrainingConfig` and, of `Recipe`, `max_tokens`,
    `bpe_dropout`, and `src` and `tgt` for the reverse direction; `prepare` says the
    rest. Raises: UserError as `prepare`, or naming a setting that the model decides.
    """
    start = open_start(init_from)
    text, plan = start.tokenizer, own_text(0)
    plan = replace(plan, corpus="pairs", src=text.src_lang, tgt=text.tgt_lang)
    plan = fine_tuning_recipe(plan, start)
    training, plan = with_settings(settings, plan.training, plan, decided=DECIDED)
    plan = replace(plan, training=training)
    return prepare(plan, folder, train, valid, report, device, start, overwrite)


def open_start(model: str | Path | Translator) -> InitFrom:
    """A translator, or the one of this name, to go on from."""
    if not isinstance(model, Translator):
        model = Translator.from_pretrained(model, device="cpu", engine="plain")
    return InitFrom(model.source, model.model, model.tokenizer)


def check_start(plan: Recipe, start: InitFrom, pairs: Pairs) -> None:
    """See that a model fits the languages of a recipe and the beginning of its text.

    Raises: UserError for other languages, for longer sentences than the model reads, or
    when more than one token in twenty is unknown.
    """
    tokenizer = start.tokenizer
    sides = (plan.src, tokenizer.src_lang), (plan.tgt, tokenizer.tgt_lang)
    for wanted, spoken in sides:
        if spoken not in (wanted, "und"):
            known = f"{tokenizer.src_lang} to {tokenizer.tgt_lang}"
            raise UserError(
                f"{start.name} translates {known}, and the text is {plan.src} to "
                f"{plan.tgt}: choose another model to go on from"
            )
    if plan.max_tokens > (limit := start.model.config.max_length):
        raise UserError(
            f"max_tokens is {plan.max_tokens}: {start.name} reads at most {limit}"
        )
    first = TokenizedPairs.build(islice(pairs, 1_000), tokenizer)
    for language, tokens in (
        (plan.src, first.src_tokens),
        (plan.tgt, first.tgt_tokens),
    ):
        if (share := float(np.mean(tokens == tokenizer.unk_id))) > 0.05:
            raise UserError(
                f"{share:.0%} of the {language} tokens are unknown to the tokenizer of "
                f"{start.name}: choose a model that knows this script"
            )


def prepare(
    plan: Recipe,
    folder: str | Path,
    train: Any,
    valid: Any,
    report: Report | None = print_line,
    device: str | torch.device | None = None,
    init_from: InitFrom | None = None,
    overwrite: bool = False,
) -> Run:
    """A run ready for `fit`: its data in its folder, the model from the recipe's seed
    or, with its tokenizer, from `init_from`, which may be of the reverse direction if
    both languages share its vocabulary.

    `train` and `valid`, lists, corpora or what else `as_pairs` takes, are read more
    than once. The run prints its progress line by line; another `report` gets the
    records of its log instead, and with None it is silent. `device` is a GPU where
    there is one, unless named. `overwrite` deletes the run that the folder holds.
    Raises: UserError, before the folder is made, for an argument of another kind, a
    list with anything but pairs of texts, pairs that can be read only once, a folder
    that holds something else, or a model to start from that doesn't fit.
    """
    train, valid = _check_arguments(plan, folder, train, valid, report, init_from)
    if init_from:
        init_from = init_from.in_direction(plan.src, plan.tgt)
        check_start(plan, init_from, train)
    folder, world = Path(folder), join_world(plan.training.timeout, device)
    here = world.device.type == "cpu" and not plan.training.sharded
    check_memory(plan.architecture, copies=4 if here else 1)
    with first_process_first(world):
        _claim_folder(folder, world, overwrite)
        with lock_folder(folder, world):
            tokenizer, *sides, data = prepare_data(
                plan, folder / "data", train, valid, init_from
            )
    model = deepcopy(init_from.model) if init_from else _new_model(plan, tokenizer)
    ids = {"pad_id": model.config.pad_id, "bos_id": model.config.bos_id}
    known, held = (replace(pairs, **ids) for pairs in sides)
    given = known, held, plan.training, data, first_pairs(plan, valid, tokenizer)
    return Run(TranslationTask(model, tokenizer, *given), folder, world, report)


def _check_arguments(
    plan: Any, folder: Any, train: Any, valid: Any, report: Any, init_from: Any
) -> list[Pairs]:
    check_kind("plan", plan, Recipe, "a recipe, such as recipe('phrasebook')")
    check_kind("folder", folder, str | Path, "the path of the run's folder")
    check_kind("report", report, Callable | None, "a function of a record, or None")
    check_kind("init_from", init_from, InitFrom | None, "none, or call fine_tune")
    sides = {"train": train, "valid": valid}
    return [check_pairs(*side, plan.src, plan.tgt) for side in sides.items()]


def _claim_folder(folder: Path, world: World, overwrite: bool) -> None:
    ready_folder(folder, world, overwrite)
    if not (world.first or (folder / "data").exists()):
        made = f"{folder / 'data'} was made by the first process and is not here"
        raise UserError(f"{made}: name a folder that all can see")


def first_pairs(
    plan: Recipe, valid: Pairs, tokenizer: PairTokenizer
) -> list[tuple[str, str]]:
    """The pairs that validations translate; those that are too long are left out."""

    def fits(pair: tuple[str, str]) -> bool:
        src, tgt = pair
        rows = *tokenizer.encode_source([src]), *tokenizer.encode_target([tgt])
        return max(map(len, rows)) <= plan.max_tokens

    return list(islice(filter(fits, valid), plan.training.translate))


def _new_model(plan: Recipe, tokenizer: PairTokenizer) -> Transformer:
    seed_update(plan.training.seed, 0)
    config = replace(
        plan.architecture,
        src_vocab_size=tokenizer.src_vocab_size,
        tgt_vocab_size=tokenizer.tgt_vocab_size,
        shared_vocab=plan.joint,
    )
    model: Transformer = model_type(config.model_type).model.model_class(config)
    return model


def shortened(plan: Recipe) -> Recipe:
    """The recipe with the same model and batches, and only three updates."""
    keep = min(3, plan.training.keep)
    few = {"steps": 3, "log_every": 1, "save_every": 1, "keep": keep}
    return replace(plan, training=replace(plan.training, **few))


@dataclass(frozen=True)
class FirstPairs:
    """The first `count` pairs of a corpus, which can be read again and again."""

    pairs: Pairs
    count: int

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return islice(iter(self.pairs), self.count)
