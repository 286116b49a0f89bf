"""A small model learns from a large one's translations, as Kim and Rush (2016) say."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from ..data.augmentation import VariedPairs
from ..devices import find_device
from ..errors import UserError
from .options import SearchOptions
from .prepared_data import InitFrom
from .translator import Translator

Pair = tuple[str, str]


@dataclass(frozen=True)
class TaughtPairs:
    """Pairs, and after them each source once more, with a teacher's translation.

    The teacher, of that name, translates when the pairs are first read.
    """

    pairs: Iterable[Pair]
    name: str
    teacher: Translator
    options: SearchOptions = SearchOptions(batch_tokens=16_384)

    @cached_property
    def taught(self) -> list[Pair]:
        """Each different source with its translation, those without one left out."""
        sources = list(dict.fromkeys(source for source, _ in self.pairs))
        outputs = self.teacher.translate(sources, self.options)
        both = zip(sources, outputs, strict=True)
        return [(source, output) for source, output in both if output]

    def __iter__(self) -> Iterator[Pair]:
        return chain(self.pairs, self.taught)

    def origin(self) -> dict[str, Any]:
        """What a run's record says of them: the teacher's name and a hash of it."""
        model, tokenizer = self.teacher.model, self.teacher.tokenizer
        return {"teacher": InitFrom(self.name, model, tokenizer).describe()}


def open_teacher(name: str, langs: Pair, device: str | None = None) -> Translator:
    """The model of this name, as fast as it translates; in bfloat16 on a GPU.

    Raises: UserError for a model of other languages.
    """
    dtype = "bfloat16" if find_device(device).type == "cuda" else "float32"
    teacher = Translator.from_pretrained(name, device=device, dtype=dtype)
    found = teacher.tokenizer.src_lang, teacher.tokenizer.tgt_lang
    if found != langs:
        raise UserError(
            f"the teacher {name} translates {' to '.join(found)}, and the text is "
            f"{' to '.join(langs)}: choose another one"
        )
    return teacher


def with_teacher(
    pairs: Iterable[Pair], name: str, teacher: Translator
) -> Iterable[Pair]:
    """The training pairs of a corpus, and those that a teacher makes of them.

    Where pairs are varied, the teacher's are varied with them, each half as many times,
    so that names and numbers change in its translations as well.
    """
    if isinstance(pairs, VariedPairs):
        taught = TaughtPairs(pairs.pairs, name, teacher)
        return replace(pairs, pairs=taught, copies=max(1, pairs.copies // 2))
    return TaughtPairs(pairs, name, teacher)
