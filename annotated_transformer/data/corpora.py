"""The corpora that are known by name: sources, licences, sizes and splits."""

import html
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice
from pathlib import Path

from ..errors import UserError, nearest
from .near_copies import split_pairs
from .parallel_files import parallel_files
from .published_files import DataFile, data_files, find_file


@dataclass(frozen=True)
class HubSplit:
    """A split that is streamed from the Hugging Face Hub instead of kept in files."""

    split: str
    pair: str
    lines: int
    repository: str
    config: str
    revision: str


@dataclass(frozen=True)
class CorpusSpec:
    """A named corpus: its language pairs, licence, home and splits."""

    name: str
    pairs: tuple[str, ...]
    licence: str
    source: str
    hub: tuple[HubSplit, ...] = ()
    made: tuple[tuple[str, int], ...] = ()

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Its files in the table."""
        files = data_files().values()
        return tuple(file for file in files if file.corpus == self.name)

    @property
    def stored(self) -> tuple[HubSplit | DataFile, ...]:
        """Its streams and files."""
        return (*self.hub, *self.files)

    def splits(self, pair: str) -> list[str]:
        """The names of the splits of one language pair."""
        stored = [part.split for part in self.stored if part.pair in ("", pair)]
        return list(dict.fromkeys([split for split, _ in self.made] + stored))

    def sizes(self) -> dict[str, int]:
        """Pairs stated for each split, with the languages where they matter."""
        stored = {f"{it.split} {it.pair}".strip(): it.lines for it in self.stored}
        return dict(self.made) | stored


_WMT14 = "b199e406369ec1b7634206d3ded5ba45de2fe696"  # wmt/wmt14, 3 April 2024
_PARQUET = "refs/convert/parquet"  # the Hub's own conversion, a branch
_WMT = (
    HubSplit("train", "en-de", 4_508_785, "wmt/wmt14", "de-en", _WMT14),
    HubSplit("train", "en-fr", 40_836_715, "wmt/wmt14", "fr-en", _WMT14),
)
_TALKS = (
    HubSplit("train", "en-de", 206_112, "IWSLT/iwslt2017", "iwslt2017-en-de", _PARQUET),
)
_TED = "CC BY-NC-ND 3.0, TED Conference LLC"


_COLLECTED = (
    CorpusSpec(
        "multi30k",
        ("en-de", "en-fr", "de-fr"),
        "research and education only",
        "https://github.com/multi30k/dataset",
    ),
    CorpusSpec(
        "wmt14",
        ("en-de", "en-fr"),
        "free for research",
        "https://statmt.org/wmt14/translation-task.html",
        hub=_WMT,
    ),
    CorpusSpec(
        "iwslt14",
        ("de-en",),
        _TED,
        "folder tmp of prepare-iwslt14.sh, https://github.com/facebookresearch/fairseq",
    ),
    CorpusSpec("iwslt17", ("en-de",), _TED, "https://wit3.fbk.eu/2017-01", hub=_TALKS),
    CorpusSpec(
        "tatoeba",
        ("en-de",),
        "CC BY 2.0 FR, tatoeba.org",
        "https://www.manythings.org/anki/",
        made=(("train", 163_957), ("val", 1_694), ("test", 1_692)),
    ),
)


def named_corpora() -> dict[str, CorpusSpec]:
    """All named corpora by name."""
    from .phrasebook_grammar import LANGUAGES

    phrases = CorpusSpec(
        "phrasebook",
        tuple(f"{a}-{b}" for a, b in combinations(LANGUAGES, 2)),
        "Unicode licence (CLDR)",
        "made on the fly from Babel's CLDR data and num2words",
        made=(("train", 100_000), ("val", 1_000), ("test", 1_000)),
    )
    return {spec.name: spec for spec in (phrases, *_COLLECTED)}


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


def find_corpus(name: str, split: str, src: str, tgt: str) -> tuple[CorpusSpec, str]:
    """The corpus of that name and its pair of the languages, if it has the split.

    Raises: UserError for an unknown corpus, language pair or split.
    """
    spec, pair = find_languages(name, src, tgt)
    if split not in spec.splits(pair):
        hint = nearest(split, spec.splits(pair))
        raise UserError(f"{name} has no split {split!r}: {hint}")
    return spec, pair


def first_test(name: str, src: str, tgt: str) -> str:
    """The first split of a corpus that is for tests, or "test".

    Raises: UserError for an unknown corpus or language pair.
    """
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
    spec, pair = find_corpus(name, split, src, tgt)
    made = dict(spec.made)
    if name == "phrasebook":
        return CorpusPairs(partial(_phrases, src, tgt, split, made[split]))
    for hub in spec.hub:
        if (hub.split, hub.pair) == (split, pair):
            return CorpusPairs(partial(stream_pairs, hub, (src, tgt)))
    stored = "all" if split in made else split
    parts = [file for file in spec.files if file.split == stored]
    sides = {file.lang: file for file in parts if file.pair in ("", pair)}
    files = parallel_files(*(find_file(sides[lang], root) for lang in (src, tgt)))
    if name == "iwslt14":
        return CorpusPairs(partial(_unescaped, files))
    if split in made:
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


def stream_pairs(hub: HubSplit, langs: tuple[str, str]) -> Iterator[tuple[str, str]]:
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
