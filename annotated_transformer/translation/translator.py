"""§6.1: a text goes in, its translation comes out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar, overload

import torch
from torch import nn

from ..data.pair_tokenizer import PairTokenizer, read_pair_tokenizer, token_labels
from ..decoding.checks import as_list
from ..decoding.engines import DTYPES, check_engine, make_engine
from ..decoding.model_search import ModelSearch, SearchEngine
from ..decoding.options import SearchOptions, search_options
from ..errors import UserError
from ..model.config import TransformerConfig
from ..model.transformer import Transformer
from ..model_names import SHIPPED
from ..pretrained import PretrainedModel, SavedModel
from .attention_weights import Attention, inspect_attention
from .confidence import Confidence, ForcedScore, confidences, teacher_forced_batches
from .lines import (
    RowHypotheses,
    Translation,
    Unknown,
    encode_untruncated,
    in_chunks,
    join_parts,
    restore_unknown,
    source_rows,
    to_translations,
    warn_of_cuts,
)
from .whole import Losses, Search

AnyTranslator = TypeVar("AnyTranslator", bound="Translator")


class Translator(PretrainedModel):
    """Texts in, texts out: translate, score, and look inside, with one trained model.

    Every method takes a text or a list of texts, and answers in kind. A line that can't
    be answered raises a UserError that names it; a blank line has a blank translation.
    Characters that the model never saw pass as unknown, with one warning at the end,
    and are put back where the model copies them; `strict` refuses them. How to search
    is said by keywords, those of `SearchOptions`: `translate(text, beam_size=1)`,
    `translate(text, temperature=1.0, seed=1)`.
    """

    config_class: ClassVar[Any] = TransformerConfig
    model_class: ClassVar[Any] = Transformer
    hub_task = "translation"
    dtypes: ClassVar[tuple[str, ...]] = DTYPES["ctranslate2"]

    def __init__(
        self,
        model: nn.Module,
        tokenizer: PairTokenizer,
        engine: SearchEngine | str = "plain",
        dtype: str = "float32",
    ):
        super().__init__(model, tokenizer)
        self.dtype, self._asked = dtype, engine
        self._start_engine()

    def _start_engine(self) -> None:
        """Make what searches from the model as it is now."""
        if isinstance(self._asked, str):
            made = make_engine(self._asked, self.model, self.tokenizer, self.dtype)
            self.engine_name, self.engine = made
        else:
            self.engine_name = type(self._asked).__name__
            self.engine = self._asked

    def __reduce__(self) -> tuple[Any, ...]:
        """Of a copy: it makes its own engine, since CTranslate2's can't be copied."""
        made_of = self.model, self.tokenizer, self._asked, self.dtype
        return type(self), made_of, {"source": self.source}

    @classmethod
    def from_pretrained(  # type: ignore[override]  # it names its options
        cls: type[AnyTranslator],
        name: str | Path = SHIPPED,
        *,
        device: str | torch.device | None = None,
        dtype: str | None = None,
        engine: str = "auto",
        revision: str | None = None,
    ) -> AnyTranslator:
        """The translator of a model by its name; `load` says what each option means."""
        return super().from_pretrained(
            name, device=device, dtype=dtype, engine=engine, revision=revision
        )

    @classmethod
    def open(  # type: ignore[override]
        cls: type[AnyTranslator],
        saved: SavedModel,
        device: torch.device,
        dtype: str,
        engine: str = "auto",
    ) -> AnyTranslator:
        """The translator of a folder. Raises: UserError as `from_pretrained`."""
        check_engine(engine, dtype)
        model, tokenizer = cls.read(saved)
        return cls(model.to(device), tokenizer, engine, dtype)

    @classmethod
    def read_files(cls, folder: Path, config: Any) -> tuple[PairTokenizer]:
        """The tokenizer. Raises: UserError if it is damaged, or another model's."""
        return (read_pair_tokenizer(folder, config),)

    def to(self: AnyTranslator, device: str | torch.device) -> AnyTranslator:
        """Move the model, and what searches with it, to a device; returns itself.

        Raises: UserError if it isn't there, or if an engine of your own searches.
        """
        if isinstance(self._asked, ModelSearch):
            searched: Any = self._asked.model
            self._asked = ModelSearch(searched.to(device))
        elif not isinstance(self._asked, str):
            raise UserError(
                f"{self.engine_name} stays on the device it was made for: make another "
                "translator"
            )
        super().to(device)
        self._start_engine()
        return self

    def about(self) -> list[str]:
        """The languages, and what searches."""
        languages = f"{self.tokenizer.src_lang} to {self.tokenizer.tgt_lang}"
        return [languages, f"engine {self.engine_name} in {self.dtype}"]

    @overload
    def translate(
        self, texts: str, options: SearchOptions | None = ..., **how: Any
    ) -> str: ...
    @overload
    def translate(
        self, texts: Sequence[str], options: SearchOptions | None = ..., **how: Any
    ) -> list[str]: ...
    def translate(
        self,
        texts: str | Sequence[str],
        options: SearchOptions | None = None,
        *,
        split: bool = False,
        strict: bool = False,
        **search: Any,
    ) -> str | list[str]:
        """Each text's translation; `split` cuts a long one at ends of sentences."""
        lines, chosen = as_list(texts), search_options(options, search, n_best=1)
        hypotheses = list(self._stream(lines, chosen, split, strict, len(lines) or 1))
        outputs = [best.text for best, *_ in hypotheses]
        return outputs[0] if isinstance(texts, str) else outputs

    @overload
    def n_best(
        self, texts: str, options: SearchOptions | None = ..., **how: Any
    ) -> list[Translation]: ...
    @overload
    def n_best(
        self, texts: Sequence[str], options: SearchOptions | None = ..., **how: Any
    ) -> list[list[Translation]]: ...
    def n_best(
        self,
        texts: str | Sequence[str],
        options: SearchOptions | None = None,
        *,
        strict: bool = False,
        **search: Any,
    ) -> list[Translation] | list[list[Translation]]:
        """The `n_best` translations of each text, best first."""
        lines, chosen = as_list(texts), search_options(options, search)
        hypotheses = list(self._stream(lines, chosen, False, strict, len(lines) or 1))
        return hypotheses[0] if isinstance(texts, str) else hypotheses

    def translate_stream(
        self,
        lines: Iterable[str],
        options: SearchOptions | None = None,
        *,
        split: bool = False,
        strict: bool = False,
        lines_at_once: int = 1,
        **search: Any,
    ) -> Iterator[str]:
        """Translations of lines as they come, so many at a time."""
        chosen = search_options(options, search, n_best=1)
        for best, *_ in self._stream(lines, chosen, split, strict, lines_at_once):
            yield best.text

    def n_best_stream(
        self,
        lines: Iterable[str],
        options: SearchOptions | None = None,
        *,
        strict: bool = False,
        lines_at_once: int = 1,
        **search: Any,
    ) -> Iterator[list[Translation]]:
        """The `n_best` translations of lines as they come, best first."""
        chosen = search_options(options, search)
        yield from self._stream(lines, chosen, False, strict, lines_at_once)

    @overload
    def confidence(
        self, texts: str, options: SearchOptions | None = ..., **how: Any
    ) -> Confidence: ...
    @overload
    def confidence(
        self, texts: Sequence[str], options: SearchOptions | None = ..., **how: Any
    ) -> list[Confidence]: ...
    def confidence(
        self,
        texts: str | Sequence[str],
        options: SearchOptions | None = None,
        *,
        split: bool = False,
        strict: bool = False,
        **search: Any,
    ) -> Confidence | list[Confidence]:
        """Each text's translation, with the probability of each word."""
        lines = as_list(texts)
        how: Any = {"split": split, "strict": strict, "lines_at_once": len(lines) or 1}
        confidences = list(self.confidence_stream(lines, options, **how, **search))
        return confidences[0] if isinstance(texts, str) else confidences

    def confidence_stream(
        self,
        lines: Iterable[str],
        options: SearchOptions | None = None,
        *,
        split: bool = False,
        strict: bool = False,
        lines_at_once: int = 1,
        **search: Any,
    ) -> Iterator[Confidence]:
        """The same of lines as they come, so many at a time."""
        chosen = search_options(options, search, n_best=1)
        scorer = self.model, self.tokenizer
        for chunk in self._search(lines, chosen, split, strict, lines_at_once):
            yield from confidences(*scorer, chunk, chosen.batch_tokens)

    def check(
        self, lines: Iterable[str], *, split: bool = False, strict: bool = False
    ) -> None:
        """Raises: UserError as `translate` would, without translating anything."""
        unknown = Unknown(self.tokenizer.unk_id, strict)
        several = [lines] if isinstance(lines, str) else lines
        for number, line in enumerate(in_chunks(several, 1), start=1):
            self._rows(line, unknown, split, number)

    @overload
    def score(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
        self, src: str, tgt: str, *, strict: bool = ..., batch_tokens: int = ...
    ) -> ForcedScore: ...
    @overload
    def score(
        self,
        src: Sequence[str],
        tgt: Sequence[str],
        *,
        strict: bool = ...,
        batch_tokens: int = ...,
    ) -> list[ForcedScore]: ...
    def score(
        self,
        src: str | Sequence[str],
        tgt: str | Sequence[str],
        *,
        strict: bool = False,
        batch_tokens: int = 4096,
    ) -> ForcedScore | list[ForcedScore]:
        """The log-probability of each target given its source.

        Raises: UserError naming a line that is blank or too long.
        """
        sources, targets = as_list(src), as_list(tgt)
        if len(sources) != len(targets):
            raise UserError(
                f"{len(sources)} sources and {len(targets)} targets: each source needs "
                "its own target"
            )
        unknown = Unknown(self.tokenizer.unk_id, strict)
        from_rows = self._whole(sources, "source ", unknown)
        to_rows = self._whole(targets, "target ", unknown)
        scores = [
            ForcedScore(sum(row), token_labels(self.tokenizer.target, target), row)
            for target, row in zip(
                to_rows,
                teacher_forced_batches(self.model, from_rows, to_rows, batch_tokens),
                strict=True,
            )
        ]
        unknown.warn()
        return scores[0] if isinstance(src, str) else scores

    def attention(
        self, src: str, tgt: str | None = None, *, strict: bool = False
    ) -> Attention:
        """Every attention weight for one sentence and its translation.

        Without a `tgt` that is the model's own translation.
        """
        unknown = Unknown(self.tokenizer.unk_id, strict)
        (source,) = self._whole([src], "source ", unknown)
        if tgt is None:
            ((best, *_),) = ModelSearch(self.model).search([source])
            target = best.tokens + [self.model.config.eos_id] * best.finished
        else:
            (target,) = self._whole([tgt], "target ", unknown)
        unknown.warn()
        return inspect_attention(self.model, self.tokenizer, source, target)

    def _rows(
        self, lines: Sequence[str], unknown: Unknown, split: bool, first_line: int
    ) -> list[list[list[int]]]:
        """Rows of ids for each line."""
        limit = self.model.config.max_length
        return source_rows(self.tokenizer, lines, limit, unknown, split, first_line)

    def _whole(
        self, texts: Sequence[str], side: str, unknown: Unknown
    ) -> list[list[int]]:
        """Ids of the texts of one side, "source " or "target ", none of them blank."""
        limit = self.model.config.max_length
        return encode_untruncated(self.tokenizer, texts, limit, unknown, side)

    def _stream(
        self,
        lines: Iterable[str],
        options: SearchOptions,
        split: bool,
        strict: bool,
        lines_at_once: int,
    ) -> Iterator[list[Translation]]:
        """The translations of each line, best first."""
        for chunk in self._search(lines, options, split, strict, lines_at_once):
            for line, parts in chunk:
                each = [
                    to_translations(hypotheses, self.tokenizer)
                    for _, hypotheses in parts
                ]
                yield [
                    replace(one, text=restore_unknown(one.text, line, self.tokenizer))
                    for one in join_parts(each)
                ]

    def _search(
        self,
        lines: Iterable[str],
        options: SearchOptions,
        split: bool,
        strict: bool,
        lines_at_once: int,
    ) -> Iterator[list[RowHypotheses]]:
        """What was found for each row of each line, so many lines at a time."""
        unknown, number = Unknown(self.tokenizer.unk_id, strict), 1
        losses, others = Losses(self.tokenizer), self._whole_beam(options)
        try:
            for chunk in in_chunks(lines, lines_at_once):
                parts = self._rows(chunk, unknown, split, number)
                rows = [row for part in parts for row in part]
                hypotheses = iter(self.engine.search(rows, options) if rows else [])
                ready = [
                    (line, [(row, next(hypotheses)) for row in part])
                    for line, part in zip(chunk, parts, strict=True)
                ]
                ready = losses.complete(ready, number, others)
                warn_of_cuts(ready, number)
                yield ready
                number += len(chunk)
        finally:
            unknown.warn(stacklevel=5)
            losses.warn(stacklevel=5)

    def _whole_beam(self, options: SearchOptions) -> Search | None:
        """The search for all of a beam's hypotheses, if the best alone is asked for."""
        every = replace(options, n_best=options.beam_size)
        if options.temperature is not None or options.n_best > 1 or every == options:
            return None
        return lambda rows: self.engine.search(rows, every)
