"""The data of a translation run: vocabulary and tokenized pairs, in a folder."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..data.bpe_dropout import BPEDropout
from ..data.pair_tokenizer import PairTokenizer
from ..data.parallel_files import ParallelFiles
from ..data.python_pairs import WANTED, as_pairs, checked
from ..data.tokenized_pairs import TokenizedPairs
from ..data.tokenizer_training import train_tokenizer
from ..errors import UserError, check_kind
from ..files import (
    MANIFEST,
    check_no_links,
    fingerprint,
    read_json,
    sweep,
    write_json,
    write_manifest,
)
from ..model.transformer import Transformer
from ..training.recipes import Recipe
from ..training.run import OVERWRITE, differences, some_of

Pairs = Iterable[tuple[str, str]]
STYLE = ("joint", "moses", "lowercase", "normalize")  # how a text is prepared


def check_pairs(name: str, pairs: Any, src: str, tgt: str) -> Pairs:
    """A run's pairs, as `as_pairs` takes them; of a corpus, see that it can be read
    again.

    Raises: UserError that names what is no pair of texts.
    """
    pairs = as_pairs(name, pairs, src, tgt)
    check_kind(name, pairs, Iterable, WANTED)
    if isinstance(pairs, str | bytes | Mapping):
        raise UserError(f"{name} is {pairs!r:.80}: give {WANTED}")
    if any(isinstance(each, Iterator) for each in _within(pairs)):
        raise UserError(
            f"{name} is an iterator, and is read more than once: give {WANTED}"
        )
    if isinstance(pairs, Sequence):
        if not pairs:
            raise UserError(f"{name} is empty: give {WANTED}")
        for _ in checked(name, pairs):
            pass
    return pairs


@dataclass(frozen=True)
class InitFrom:
    """A trained model that a run goes on from, with its tokenizer and its name."""

    name: str
    model: Transformer
    tokenizer: PairTokenizer

    def describe(self) -> dict[str, str]:
        """What the run's record says about it: its name and a hash of its weights."""
        digest = hashlib.sha256()
        for name, weight in self.model.named_parameters():
            digest.update(name.encode())
            digest.update(weight.detach().cpu().numpy().tobytes())
        return {"model": self.name, "weights_sha256": digest.hexdigest()}

    def in_direction(self, src: str, tgt: str) -> "InitFrom":
        """The same weights for the reverse direction, if that is what is asked for.

        Both directions can share them where the languages share one vocabulary.
        """
        text = self.tokenizer
        if (text.tgt_lang, text.src_lang) != (src, tgt) or not text.shares_vocabulary:
            return self
        turned = {"source": text.target, "target": text.source}
        return replace(
            self, tokenizer=replace(text, **turned, src_lang=src, tgt_lang=tgt)
        )

    def tokenizer_with_note(self) -> PairTokenizer:
        """Its tokenizer, with a card that says where the new model comes from."""
        if not self.tokenizer.card:
            return self.tokenizer
        note = f"Fine-tuned from {Path(self.name).name}, whose own card follows.\n\n"
        return replace(self.tokenizer, card=note + self.tokenizer.card)


def describe_data(
    plan: Recipe, train: Pairs, valid: Pairs, start: InitFrom | None
) -> dict[str, Any]:
    """What decides the vocabulary and the tokenized pairs: settings, own files, and
    the model that the run goes on from.
    """
    names = "corpus src tgt vocab_size joint moses lowercase max_tokens"
    names += " train_split valid_split" + " normalize" * plan.normalize
    names += " bpe_dropout" * bool(plan.bpe_dropout)
    description = {name: getattr(plan, name) for name in names.split()}
    sides = (("train", train), ("valid", valid))
    files = {name: found for name, each in sides if (found := _files(each))}
    description |= {"files": files} if files else {}
    for each in _within(train):
        description |= getattr(each, "origin", dict)()
    return description | ({"init_from": start.describe()} if start else {})


def _files(pairs: Pairs) -> dict[str, dict[str, Any]]:
    """Size and hash of the files that the pairs are read from, or of a list of them."""
    if isinstance(pairs, list | tuple):
        digest = hashlib.sha256()
        for src, tgt in pairs:
            digest.update(repr((src, tgt)).encode())
        return {"list": {"pairs": len(pairs), "sha256": digest.hexdigest()}}
    own = [each for each in _within(pairs) if isinstance(each, ParallelFiles)]
    paths = [path for each in own for path in (each.src_path, each.tgt_path)]
    return {path.name: fingerprint(path) for path in paths}


def _within(pairs: Any) -> Iterator[Any]:
    """The pairs, and those that they are made of."""
    yield pairs
    if inner := getattr(pairs, "pairs", None):
        yield from _within(inner)


def check_data(folder: Path, wanted: dict[str, Any]) -> None:
    """See that a folder may hold a run's data.

    Raises: UserError when it has those of other settings or files, or something else
    altogether.
    """
    check_no_links(*folder.glob("*"))
    described = folder / "recipe.json"
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    stored = read_json(described) if described.exists() else None
    if stored is None and not all(name.startswith(".") for name in names):
        made = f"{folder} was not made by a run"
        raise UserError(f"{made}: move it away or choose another folder for the run")
    if stored is None or stored == wanted or not names & {"train", "valid"}:
        return
    other = f"{folder} holds other data ({some_of(differences(stored, wanted))})"
    raise UserError(f"{other}: {OVERWRITE}")


def prepare_data(
    plan: Recipe,
    folder: Path,
    train: Pairs,
    valid: Pairs,
    start: InitFrom | None = None,
) -> tuple[PairTokenizer, TokenizedPairs, TokenizedPairs, dict[str, Any]]:
    """The vocabulary and the tokenized pairs in `folder`, made unless they are there,
    and what the run's record says of them.

    The vocabulary is that of `start`, if there is one.
    Raises: UserError when the folder holds other data, or can't be written.
    """
    described, wanted = folder / "recipe.json", describe_data(plan, train, valid, start)
    check_data(folder, wanted)
    if not described.exists() or read_json(described) != wanted:
        # what a recipe left that got no further than its vocabulary
        for name in (MANIFEST, "text.json"):
            (folder / name).unlink(missing_ok=True)
        write_json(described, wanted)
    sweep(folder)
    tokenizer = (
        start.tokenizer_with_note() if start else _vocabulary(plan, folder, train)
    )
    tokenizer.check_trainable()
    if not (folder / MANIFEST).exists():
        write_manifest(folder, "prepare")
    cutter = tokenizer
    if plan.bpe_dropout:
        cutter = BPEDropout.of(tokenizer, plan.bpe_dropout)
    train_side = _tokenized(folder / "train", train, cutter, plan.max_tokens)
    valid_side = _tokenized(folder / "valid", valid, tokenizer, plan.max_tokens)
    names = ("files", "teacher", "init_from", "bpe_dropout")
    record: dict[str, Any] = {n: wanted[n] for n in names if n in wanted}
    return tokenizer, train_side, valid_side, record


def _tokenized(
    folder: Path, pairs: Pairs, tokenizer: PairTokenizer, max_tokens: int
) -> TokenizedPairs:
    """The pairs of a folder, tokenized unless they are there."""
    if not folder.exists():
        TokenizedPairs.build(pairs, tokenizer, folder, max_tokens)
    tokenized = TokenizedPairs.open(folder)
    sizes = tokenizer.src_vocab_size, tokenizer.tgt_vocab_size
    for ids, size in zip(
        (tokenized.src_tokens, tokenized.tgt_tokens), sizes, strict=True
    ):
        if ids.min() < 0 or ids.max() >= size:
            raise UserError(
                f"{folder} has tokens of another vocabulary: delete it, and the next "
                "run makes it again"
            )
    return tokenized


def _vocabulary(plan: Recipe, folder: Path, train: Pairs) -> PairTokenizer:
    """The vocabulary in the folder, learned unless it is there."""
    if not (folder / "text.json").exists():
        styles = {name: getattr(plan, name) for name in STYLE}
        data = train, plan.src, plan.tgt, plan.vocab_size
        train_tokenizer(*data, **styles).save(folder)
    return PairTokenizer.load(folder)
