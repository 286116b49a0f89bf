"""`translate` and `score`: a model's words for a text, and its view of given ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

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
    Strict,
    app,
)
from .streams import input_lines, naming, refuse_file


@app.command()
def translate(
    text: Annotated[
        str | None,
        typer.Argument(
            help="What to translate; without it, lines are read from --input or "
            "standard input."
        ),
    ] = None,
    model: Model = SHIPPED,
    input: Annotated[
        Path | None,
        typer.Option(
            "--input", "-i", help="A text file, plain or .gz, one sentence a line."
        ),
    ] = None,
    beam_size: Beam = 4,
    alpha: Alpha = 0.6,
    n_best: Annotated[
        int,
        typer.Option(
            help="Translations of each sentence, best first, each with its score; the "
            "beam is as wide at least."
        ),
    ] = 1,
    max_length: MaxLength = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Draw samples instead of searching; 1 draws from the model's own "
            "distribution, less from a sharper one."
        ),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(help="Draw from the likeliest so many tokens.")
    ] = None,
    top_p: Annotated[
        float,
        typer.Option(help="Draw from the likeliest tokens that hold this share."),
    ] = 1.0,
    seed: Annotated[
        int | None, typer.Option(help="Draw the same samples each time.")
    ] = None,
    split: Annotated[
        bool,
        typer.Option(
            "--split",
            help="Cut input that is too long at the ends of sentences instead of "
            "refusing it.",
        ),
    ] = False,
    strict: Strict = False,
    device: Device = None,
    engine: Engine = "torch",
    precision: Precision = "float32",
) -> None:
    """Translate text, a file, or standard input, line by line.

    **Examples**

    `annotated-transformer translate "the twenty-first of March"`

    `annotated-transformer translate -i test.en -m averaged > out.de`

    `echo "27.4 kilometers" | annotated-transformer translate --n-best 3`

    `annotated-transformer translate "March 3" --temperature 1 --n-best 5`
    """
    import_torch()
    from ..translation.search import SearchOptions

    input = None if input == Path("-") else input
    if n_best != 1 and split:
        raise UserError(
            "--n-best lists translations of whole sentences: leave out --split"
        )
    options = SearchOptions(
        beam_size=max(beam_size, n_best) if beam_size > 0 else beam_size,
        alpha=alpha,
        n_best=n_best,
        max_length=max_length,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    lines = lines_to_translate(text, input)
    translator = open_translator(model, device, precision, engine)
    with naming(input):
        if input is not None and input.is_file():  # looked at before any is translated
            translator.check(input_lines(input), split=split, strict=strict)
        if n_best == 1:
            at_once = 1 if input is None else 512
            for translation in translator.translate_stream(
                lines, options, split=split, strict=strict, lines_at_once=at_once
            ):
                print(translation, flush=True)
        else:
            for found in translator.n_best_stream(lines, options, strict=strict):
                for candidate in found:
                    print(f"{candidate.score:.4f}\t{candidate.text}", flush=True)


def lines_to_translate(text: str | None, input: Path | None) -> Iterator[str]:
    """The lines of a text, a file, or standard input, which "-" stands for too."""
    if text is None or text == "-":
        return input_lines(input)
    if input is not None:
        raise UserError("give a text or --input, not both")
    refuse_file(text, "--input reads its lines")
    return iter(text.removesuffix("\n").split("\n"))


@app.command()
def score(
    source: Annotated[
        str, typer.Argument(help="A source sentence, or with --files a source file.")
    ],
    target: Annotated[
        str,
        typer.Argument(help="Its translation, or with --files a file of translations."),
    ],
    model: Model = SHIPPED,
    files: Annotated[
        bool,
        typer.Option(
            "--files", help="Read both sides from files, one sentence a line."
        ),
    ] = False,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """How probable the model finds a given translation: total natural-log probability,
    its mean a token, the pair.

    **Examples**

    `annotated-transformer score "March 3" "3. März"`

    `annotated-transformer score --files test.en test.de -m averaged`
    """
    from ..data.corpus import parallel_files

    for side in [] if files else [source, target]:
        refuse_file(side, "--files reads its lines")
    translator = open_translator(model, device)
    pairs = list(parallel_files(source, target)) if files else [(source, target)]
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    results = translator.score(sources, targets, strict=strict)
    for result, one, other in zip(results, sources, targets, strict=True):
        mean = result.total / len(result.token_log_probabilities)
        sides = (" ".join(side.split()) for side in (one, other))
        print(f"{result.total:.4f}", f"{mean:.4f}", *sides, sep="\t", flush=True)
