"""`evaluate`: a model's translations of a test set, or a file's, and their scores."""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from ..loading import SHIPPED
from .opening import import_torch, open_translator
from .options import (
    Alpha,
    Beam,
    Device,
    Engine,
    MaxLength,
    Model,
    Precision,
    Root,
    app,
    console,
    corpus_names,
)
from .streams import files_of, input_lines, refuse_places

if TYPE_CHECKING:
    from ..translation.translator import Translator


@app.command()
def evaluate(
    model: Model = SHIPPED,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="A named corpus to translate; `corpora` lists them.",
            autocompletion=corpus_names,
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="The corpus's split.")] = "test",
    source: Annotated[
        Path | None, typer.Option(help="Your own source file, instead of a corpus.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Its reference translations.")
    ] = None,
    hypothesis: Annotated[
        Path | None,
        typer.Option(
            help="Score this output file against --reference; no model is used."
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            help="The language of the output, such as de; the model's if none is named."
        ),
    ] = None,
    beam_size: Beam = 4,
    alpha: Alpha = 0.6,
    max_length: MaxLength = None,
    limit: Annotated[
        int | None, typer.Option(help="Only the first so many pairs.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the translations to this file.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write the scores to this JSON file.")
    ] = None,
    root: Root = None,
    device: Device = None,
    engine: Engine = "torch",
    precision: Precision = "float32",
) -> None:
    """Translate a test set and score it: BLEU by each convention, chrF, and the share
    that is exactly right.

    **Examples**

    `annotated-transformer evaluate --corpus phrasebook --split test`

    `annotated-transformer evaluate --corpus multi30k --split val -m averaged`

    `annotated-transformer evaluate --hypothesis out.de --reference test.de`
    `--language de`
    """
    check_limit(limit)
    check_language(language)
    refuse_places(save, record, reads=[source, reference, hypothesis, *files_of(model)])
    if hypothesis is not None:
        refuse_search(
            {
                "--model": (model, SHIPPED),
                "--split": (split, "test"),
                "--beam-size": (beam_size, 4),
                "--alpha": (alpha, 0.6),
                "--max-length": (max_length, None),
                "--root": (root, None),
                "--device": (device, None),
                "--engine": (engine, "torch"),
                "--precision": (precision, "float32"),
            }
        )
        if reference is None or language is None or corpus or source:
            raise UserError(
                "--hypothesis needs --reference and --language, and no --corpus or "
                "--source"
            )
        outputs, references = lines_to_compare(hypothesis, reference, limit)
    else:
        import_torch()
        from ..translation.search import SearchOptions

        options = SearchOptions(beam_size=beam_size, alpha=alpha, max_length=max_length)
        translator = open_translator(model, device, precision, engine)
        language = language or translator.tokenizer.tgt_lang
        pairs = pairs_to_translate(translator, corpus, split, source, reference, root)
        sources, references = map(list, zip(*islice(pairs, limit), strict=True))
        outputs = translator.translate(sources, options, split=True)
        if translator.tokenizer.lowercase:
            console.print(
                "The model writes lower case: compare the lower-cased scores."
            )
    report(outputs, references, language, save, record)


def refuse_search(how: dict[str, tuple[object, object]]) -> None:
    """Raises: UserError for an option, given with its default, that was changed."""
    if given := [name for name, (value, default) in how.items() if value != default]:
        raise UserError(
            f"--hypothesis is scored as it is: leave out {', '.join(given)}, which "
            "says how to translate"
        )


def check_limit(limit: int | None) -> None:
    """Raises: UserError for a number of pairs that can't be taken."""
    if limit is not None and not 1 <= limit <= sys.maxsize:
        raise UserError(
            f"--limit is {limit}: evaluate at least one pair, and no more than a "
            "machine can count"
        )


def check_language(language: str | None) -> None:
    """Raises: UserError for a code that is no language's, by the list of CLDR."""
    from babel.localedata import locale_identifiers

    if language is not None and language not in locale_identifiers():
        raise UserError(f"unknown language {language!r}: write a code such as en or de")


def lines_to_compare(
    hypothesis: Path, reference: Path, limit: int | None
) -> tuple[list[str], list[str]]:
    """The lines of an output file and of its references, white space made even.

    Raises: UserError for a blank reference.
    """
    outputs, references = (
        [" ".join(line.split()) for line in islice(input_lines(path), limit)]
        for path in (hypothesis, reference)
    )
    if "" in references:
        raise UserError(
            f"{reference}, line {references.index('') + 1} is blank: remove it from "
            "both files"
        )
    return outputs, references


def pairs_to_translate(
    translator: "Translator",
    corpus: str | None,
    split: str,
    source: Path | None,
    reference: Path | None,
    root: Path | None,
) -> Iterable[tuple[str, str]]:
    """The pairs to evaluate on: a named corpus's split, or two files."""
    from ..data.corpus import load_corpus, parallel_files

    if corpus is not None and source is None and reference is None:
        languages = translator.tokenizer.src_lang, translator.tokenizer.tgt_lang
        return load_corpus(corpus, split, *languages, root)
    if source is None or reference is None or corpus is not None:
        raise UserError("name a --corpus, or both --source and --reference")
    return parallel_files(source, reference)


def report(
    outputs: list[str],
    references: list[str],
    language: str,
    save: Path | None,
    record: Path | None,
) -> None:
    """Print the scores, and write the translations and the scores where asked."""
    from ..files import write_json, write_whole
    from ..translation.bleu import format_scores, scores

    results = scores(outputs, references, language)
    same = [a == b for a, b in zip(outputs, references, strict=True)]
    exact = sum(same) / len(same)
    print(format_scores(results))
    print(f"exactly right: {exact:.1%} of {len(outputs):,}", flush=True)
    if save is not None:
        write_whole(save, "".join(f"{line}\n" for line in outputs).encode())
    if record is not None:
        found = [asdict(result) for result in results]
        write_json(record, {"sentences": len(same), "exact": exact, "scores": found})
