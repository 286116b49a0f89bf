"""The corpora that are known by name: sources, licences, sizes and splits."""

import html
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import UserError, nearest
from .near_copies import split_pairs
from .parallel_files import parallel_files
from .published_files import DataFile, data_files, find_file
from .text_files import read_table


@dataclass(frozen=True)
class Split:
    """A split that has no files: streamed from the Hugging Face Hub, or made here.

    A revision is a commit, or the branch of the Hub's own conversion to Parquet.
    """

    corpus: str
    split: str
    pair: str
    lines: int
    repository: str
    config: str
    revision: str


@dataclass(frozen=True)
class CorpusSpec:
    """A named corpus: its language pairs, licence and home, by the table corpora.tsv;
    splits.tsv and files.tsv say what it consists of.
    """

    name: str
    pairs: tuple[str, ...]
    licence: str
    source: str

    @property
    def files(self) -> list[DataFile]:
        """Its files."""
        return [file for file in data_files().values() if file.corpus == self.name]

    @property
    def others(self) -> list[Split]:
        """Its splits that are streamed or made."""
        rows: list[dict[str, Any]] = [*read_table("splits.tsv")]
        splits = [Split(**row | {"lines": int(row["lines"])}) for row in rows]
        return [split for split in splits if split.corpus == self.name]

    @property
    def parts(self) -> list[Split | DataFile]:
        """Both of them."""
        return [*self.others, *self.files]

    def splits(self, pair: str) -> list[str]:
        """The names of the splits of one language pair."""
        names = (it.split for it in self.parts if it.pair in ("", pair))
        return list(dict.fromkeys(names))

    def sizes(self) -> dict[str, int]:
        """Pairs stated for each split, with the languages where they matter."""
        return {f"{it.split} {it.pair}".strip(): it.lines for it in self.parts}


def named_corpora() -> dict[str, CorpusSpec]:
    """All named corpora by name."""
    rows: list[dict[str, Any]] = [*read_table("corpora.tsv")]
    specs = [CorpusSpec(**row | {"pairs": tuple(row["pairs"].split())}) for row in rows]
    return {spec.name: spec for spec in specs}


@dataclass(frozen=True)
class CorpusPairs:
    """Pairs that are read or made anew at each iteration."""

    start: Callable[[], Iterator[tuple[str, str]]]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return self.start()


def find_languages(name: str, src: str, tgt: str) -> tuple[CorpusSpec, str]:
    """The corpus of that name and its pair of the languages, in the corpus' own order.

    Raises: UserError for an unknown corpus or language pair, with what to write
    instead.
    """
    specs = named_corpora()
    if name not in specs:
        raise UserError(f"no corpus is named {name!r}: {nearest(name, specs)}")
    spec, wanted = specs[name], (f"{src}-{tgt}", f"{tgt}-{src}")
    pair = next((each for each in spec.pairs if each in wanted), None)
    if pair is None:
        raise UserError(
            f"{name} has no pair {src}-{tgt}: choose from {', '.join(spec.pairs)}, in "
            "either direction"
        )
    return spec, pair


def first_test(name: str, src: str, tgt: str) -> str:
    """The first split for tests, or "test". Raises: UserError as `find_languages`."""
    spec, pair = find_languages(name, src, tgt)
    tests = (split for split in spec.splits(pair) if split.startswith("test"))
    return next(tests, "test")


def load_corpus(
    name: str, split: str, src: str, tgt: str, root: str | Path | None = None
) -> Iterable[tuple[str, str]]:
    """A split of a named corpus as pairs that can be read again and again, lazily.

    Raises: UserError for an unknown corpus, pair or split, or a file that can't be
    found or fetched or isn't the published one.
    """
    spec, pair = find_languages(name, src, tgt)
    if split not in spec.splits(pair):
        hint = nearest(split, spec.splits(pair))
        raise UserError(f"{name} has no split {split!r}: {hint}")
    others = [it for it in spec.others if it.split == split and it.pair in ("", pair)]
    if others and others[0].repository:
        return CorpusPairs(partial(stream_pairs, others[0], (src, tgt)))
    if name == "phrasebook":
        return CorpusPairs(partial(_phrases, src, tgt, split, others[0].lines))
    stored = "all" if others else split
    parts = [file for file in spec.files if file.split == stored]
    sides = {file.lang: file for file in parts if file.pair in ("", pair)}
    files = parallel_files(*(find_file(sides[lang], root) for lang in (src, tgt)))
    if name == "iwslt14":
        return CorpusPairs(partial(_unescaped, files))
    if others:
        return CorpusPairs(partial(split_pairs, files, split, (src, tgt)))
    return files


def _phrases(src: str, tgt: str, split: str, count: int) -> Iterator[tuple[str, str]]:
    """So many different pairs of the phrasebook."""
    from .phrasebook import different, phrases

    return islice(different(phrases(src, tgt, split)), count)


def _unescaped(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Pairs with `&apos;` and its like turned back into characters."""
    for src, tgt in pairs:
        yield html.unescape(src), html.unescape(tgt)


def stream_pairs(hub: Split, langs: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """A split streamed from the Hub; pairs with a blank side are skipped.

    Raises: UserError if it can't be read, or at its end for another number of rows.
    """
    try:
        from datasets import load_dataset
    except ImportError:
        raise UserError(
            "this corpus is streamed: pip install 'annotated-transformer[data]'"
        ) from None
    options = {"split": hub.split, "revision": hub.revision, "streaming": True}
    number = 0
    try:
        for row in load_dataset(hub.repository, hub.config, **options):
            number += 1
            src, tgt = (" ".join(row["translation"][lang].split()) for lang in langs)
            if src and tgt:
                yield src, tgt
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"{hub.repository} on the Hugging Face Hub can't be read ({error})"
        ) from None
    if number != hub.lines:
        raise UserError(
            f"{hub.repository} on the Hugging Face Hub has {number} rows and not "
            f"{hub.lines}: its text has changed"
        )
