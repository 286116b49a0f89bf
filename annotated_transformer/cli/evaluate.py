"""`evaluate`: a model's translations of a test set, or a file's, and their scores."""

from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.text_files import read_lines
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
HypothesisFile = Annotated[
    File,
    typer.Option(help="Score this output file against --reference; no model is used."),
]
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
CorpusSplit = Annotated[str, typer.Option(help="The corpus's split.")]


@app.command()
@with_groups(search=BEAM, compute=COMPUTE)
def evaluate(
    model: ModelName = SHIPPED,
    corpus: Corpus = None,
    split: CorpusSplit = "test",
    source: Source = None,
    reference: Reference = None,
    hypothesis: HypothesisFile = None,
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

    **Examples**

    `annotated-transformer evaluate --corpus multi30k --split val -m averaged`

    `annotated-transformer evaluate --hypothesis out.de --reference test.de`
    `--language de`
    """
    validate_language(language)
    reads = [source, reference, hypothesis, *files_of(model)]
    validate_outputs(save, record, reads=reads)
    if hypothesis:
        validate_unused({"corpus": corpus, "source": source} | search | compute)
        outputs, references = read_output(hypothesis, reference, language, limit)
    else:
        translator = open_translator(model, **compute)
        pairs = test_pairs(translator, corpus, split, source, reference, root)
        outputs, references = translations(translator, islice(pairs, limit), search)
        language = language or translator.tokenizer.tgt_lang
    write_scores(outputs, references, str(language), save, record)


def validate_unused(options: Options) -> None:
    """Raises: UserError for an option about how to translate, beside --hypothesis."""
    usual = {name: default for name, (_, default) in (BEAM | COMPUTE).items()}
    for name, value in options.items():
        if value != usual.get(name):
            raise UserError(
                f"--hypothesis is scored as it is: leave out --{name.replace('_', '-')}"
            )


def validate_language(language: str | None) -> None:
    """Raises: UserError for a code that is no language's, by the list of CLDR."""
    from babel.localedata import locale_identifiers

    if language is not None and language not in locale_identifiers():
        raise UserError(f"unknown language {language!r}: write a code such as en or de")


def read_output(
    hypothesis: Path, reference: Path | None, language: str | None, limit: int | None
) -> tuple[list[str], list[str]]:
    """The lines of an output file and of its references, white space made even.

    Raises: UserError for a blank reference, or without references or a language.
    """
    if reference is None or language is None:
        raise UserError("--hypothesis needs --reference and --language too")
    outputs, references = (
        [" ".join(line.split()) for line in islice(read_lines(path), limit)]
        for path in (hypothesis, reference)
    )
    if "" in references:
        raise UserError(
            f"{reference}, line {references.index('') + 1} is blank: remove it from "
            "both files"
        )
    return outputs, references


def test_pairs(
    translator: "Translator",
    corpus: str | None,
    split: str,
    source: Path | None,
    reference: Path | None,
    root: Path | None,
) -> Pairs:
    """The pairs to evaluate on: a named corpus's split, or two files."""
    from ..data.corpora import load_corpus
    from ..data.parallel_files import parallel_files

    if corpus is not None and source is None and reference is None:
        languages = translator.tokenizer.src_lang, translator.tokenizer.tgt_lang
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
