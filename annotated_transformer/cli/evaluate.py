"""`evaluate`: a model's translations of a test set, and their scores."""

from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from ..model_names import SHIPPED
from .loading import open_translator
from .options import BEAM, COMPUTE, Corpus, ModelName, Options, Root, app, with_groups
from .streams import echo, files_of, validate_outputs

if TYPE_CHECKING:
    from ..translation.translator import Translator

Pairs = Iterable[tuple[str, str]]
File = Path | None
Source = Annotated[File, typer.Option(help="Your own source, instead of a corpus.")]
Reference = Annotated[File, typer.Option(help="Its reference translations.")]
Language = Annotated[
    str | None,
    typer.Option(
        help="The language of the output, such as de; the model's if none is named."
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, max=10**9, help="Only the first so many pairs."),
]
Save = Annotated[File, typer.Option(help="Write the translations to this file.")]
RecordFile = Annotated[File, typer.Option(help="Write the scores to this JSON file.")]
CorpusSplit = Annotated[
    str | None,
    typer.Option(help="The corpus's split; its first test unless named."),
]


@app.command()
@with_groups(search=BEAM, compute=COMPUTE)
def evaluate(
    model: ModelName = SHIPPED,
    corpus: Corpus = None,
    split: CorpusSplit = None,
    source: Source = None,
    reference: Reference = None,
    language: Language = None,
    limit: Limit = None,
    save: Save = None,
    record: RecordFile = None,
    root: Root = None,
    *,
    search: Options,
    compute: Options,
) -> None:
    """Translate a test set and score it: BLEU by each convention, chrF, and the share
    that is exactly right.

    **Example**

    `annotated-transformer evaluate --corpus multi30k --split val -m averaged`
    """
    validate_language(language)
    validate_outputs(save, record, reads=[source, reference, *files_of(model)])
    translator = open_translator(model, **compute)
    pairs = test_pairs(translator, corpus, split, source, reference, root)
    outputs, references = translations(translator, islice(pairs, limit), search)
    language = language or translator.tokenizer.tgt_lang
    write_scores(outputs, references, language, save, record)


def validate_language(language: str | None) -> None:
    """Raises: UserError for a code that is no language's, by the list of CLDR."""
    from babel.localedata import locale_identifiers

    if language is not None and language not in locale_identifiers():
        raise UserError(f"unknown language {language!r}: write a code such as en or de")


def test_pairs(
    translator: "Translator",
    corpus: str | None,
    split: str | None,
    source: Path | None,
    reference: Path | None,
    root: Path | None,
) -> Pairs:
    """The pairs to evaluate on: a named corpus's split, or two files."""
    from ..data.corpora import first_test, load_corpus
    from ..data.parallel_files import parallel_files

    if corpus is not None and source is None and reference is None:
        languages = translator.tokenizer.src_lang, translator.tokenizer.tgt_lang
        if split is None:
            split = first_test(corpus, *languages)
            echo(f"{corpus}'s split {split}", err=True)
        return load_corpus(corpus, split, *languages, root)
    if source is None or reference is None or corpus is not None:
        raise UserError("name a --corpus, or both --source and --reference")
    return parallel_files(source, reference)


def translations(
    translator: "Translator", pairs: Pairs, search: Options
) -> tuple[list[str], list[str]]:
    """The translations of the pairs' sources, and their references."""
    sources, references = map(list, zip(*pairs, strict=True))
    outputs = translator.translate(sources, split=True, **search)
    if translator.tokenizer.lowercase:
        echo("The model writes lower case: compare the lower-cased scores.")
    return outputs, references


def write_scores(
    outputs: list[str],
    references: list[str],
    language: str,
    save: Path | None,
    record: Path | None,
) -> None:
    """Print the scores, and write the translations and the scores where asked."""
    from ..files import write_file, write_json
    from ..translation.scores import format_scores, scores

    results = scores(outputs, references, language)
    same = [a == b for a, b in zip(outputs, references, strict=True)]
    exact = sum(same) / len(same)
    echo(format_scores(results))
    echo(f"exactly right: {exact:.1%} of {len(outputs):,}")
    if save is not None:
        write_file(save, "".join(f"{line}\n" for line in outputs).encode())
    if record is not None:
        rows = [asdict(result) for result in results]
        write_json(record, {"sentences": len(same), "exact": exact, "scores": rows})
