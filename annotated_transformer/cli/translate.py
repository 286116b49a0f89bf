"""`translate` and `score`: a model's words for a text, and its view of given ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.text_files import read_lines
from ..decoding.options import SearchOptions
from ..errors import UserError
from ..model_names import SHIPPED
from .loading import open_translator
from .options import (
    BEAM,
    COMPUTE,
    SAMPLING,
    Device,
    Input,
    ModelName,
    Options,
    Split,
    Strict,
    Text,
    app,
    with_groups,
)
from .streams import echo, input_lines, naming, validate_text

if TYPE_CHECKING:
    from ..translation.translator import Translator

# One right translation in twenty has a mean below it, by results/paper/confidence.json.
GUESS = 0.71

NBest = Annotated[
    int,
    typer.Option(
        help="Translations of each sentence, best first, each with its score; the "
        "beam is as wide at least."
    ),
]

ShowConfidence = Annotated[
    bool,
    typer.Option(
        "--show-confidence",
        help="Before each translation the mean probability of its tokens, a guess "
        f"below {GUESS}; words that the model guessed stand as [word?].",
    ),
]


@app.command()
@with_groups(search=BEAM | SAMPLING, compute=COMPUTE)
def translate(
    text: Text = None,
    model: ModelName = SHIPPED,
    input: Input = None,
    n_best: NBest = 1,
    show_confidence: ShowConfidence = False,
    split: Split = False,
    strict: Strict = False,
    *,
    search: Options,
    compute: Options,
) -> None:
    """Translate a text, a file, or standard input, line by line.

    Where a translation lacks a number, a price or an address, another of the beam that
    has it is taken; if none has, a warning at the end names the line and what is lost.

    **Examples**

    `annotated-transformer translate "the twenty-first of March"`

    `annotated-transformer translate -i test.en -m averaged > out.de`

    `annotated-transformer translate "March 3" --temperature 1 --n-best 5`

    `annotated-transformer translate "Break a leg!" --show-confidence`
    """
    check_n_best(n_best, split, show_confidence)
    options = search_for(n_best, **search)
    lines, file = input_lines(text, input), None if input == Path("-") else input
    translator = open_translator(model, **compute)
    with naming(file):
        if file and file.is_file():  # inspected before any line is translated
            translator.check(read_lines(file), split=split, strict=strict)
        how: Options = {"split": split, "lines_at_once": 512 if file else 1}
        for line in answers(translator, lines, options, show_confidence, strict, how):
            echo(line)


def check_n_best(n_best: int, split: bool, show_confidence: bool) -> None:
    """Raises: UserError for options that go with one translation of a line alone."""
    if n_best != 1 and split:
        raise UserError("--n-best takes whole sentences: leave out --split")
    if n_best != 1 and show_confidence:
        raise UserError("--show-confidence takes the best alone: leave out --n-best")


def answers(
    translator: "Translator",
    lines: Iterator[str],
    options: SearchOptions,
    confident: bool,
    strict: bool,
    how: Options,
) -> Iterator[str]:
    """What `translate` prints."""
    if options.n_best > 1:
        for hypotheses in translator.n_best_stream(lines, options, strict=strict):
            yield from (f"{each.score:.4f}\t{each.text}" for each in hypotheses)
    elif confident:
        for each in translator.confidence_stream(lines, options, strict=strict, **how):
            yield f"{each.probability:.2f}\t{each.marked}"
    else:
        yield from translator.translate_stream(lines, options, strict=strict, **how)


def search_for(n_best: int, beam_size: int, **search: Any) -> SearchOptions:
    """How to search, with a beam that is as wide as `n_best` at least."""
    wide = max(beam_size, n_best) if beam_size > 0 else beam_size
    return SearchOptions(beam_size=wide, n_best=n_best, **search)


@app.command()
def score(
    source: Annotated[
        str, typer.Argument(help="A source sentence, or with --files a source file.")
    ],
    target: Annotated[
        str,
        typer.Argument(help="Its translation, or with --files a file of translations."),
    ],
    model: ModelName = SHIPPED,
    files: Annotated[
        bool,
        typer.Option(
            "--files", help="Read both sides from files, one sentence a line."
        ),
    ] = False,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """How probable a model finds a given translation: its total log-probability in
    nats, the mean for each token, and the pair.

    **Examples**

    `annotated-transformer score "March 3" "3. März"`

    `annotated-transformer score --files test.en test.de -m averaged`
    """
    from ..data.parallel_files import parallel_files

    for side in [] if files else [source, target]:
        validate_text(side, "--files reads its lines")
    translator = open_translator(model, device)
    pairs = list(parallel_files(source, target)) if files else [(source, target)]
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    results = translator.score(sources, targets, strict=strict)
    for result, one, other in zip(results, sources, targets, strict=True):
        mean = result.total / len(result.token_log_probabilities)
        sides = (" ".join(side.split()) for side in (one, other))
        echo("\t".join([f"{result.total:.4f}", f"{mean:.4f}", *sides]))
