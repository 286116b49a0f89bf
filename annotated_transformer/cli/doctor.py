"""`doctor`: what is likely wrong with sentence pairs, a model or a run."""

import json
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from ..model_names import SHIPPED
from .options import Device, app
from .split import Language, languages
from .streams import echo

LOOKED_AT = 100_000  # pairs, of those that a run begins with

What = Annotated[
    str,
    typer.Argument(
        metavar="RUN|DATA|MODEL",
        help="A run's folder; your own files, by their common prefix or their folder, "
        "with --src and --tgt; or any model that translate opens.",
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(
        help="The second of two files, line by line the first's translation."
    ),
]
Valid = Annotated[
    str | None,
    typer.Option(help="Prefix of validation files; a model is measured on them."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print all measures as JSON.")]


@app.command()
def doctor(
    what: What = SHIPPED,
    target: Target = None,
    src: Language = None,
    tgt: Language = None,
    valid: Valid = None,
    as_json: AsJson = False,
    device: Device = None,
) -> None:
    """Measure a run, sentence pairs or a model, and say what is likely wrong.

    The likeliest cause comes first, each with its number and what is normal; then what
    is well. Status 0 when all is normal, 1 when something isn't.

    **Examples**

    `annotated-transformer doctor mails.en mails.de`

    `annotated-transformer doctor own/train --src en --tgt de --valid own/valid`
    """
    from .loading import import_torch

    import_torch()
    from ..data.parallel_files import parallel_files
    from ..translation.doctor import doctor as examine

    subject = parallel_files(what, target) if target else what
    if target:
        src, tgt = languages((Path(what), src), (Path(target), tgt))
    found = examine(subject, src, tgt, valid=valid, device=device)
    measures = [each.to_dict() for each in found.measures]
    echo(json.dumps(measures, ensure_ascii=False) if as_json else str(found))
    if found.findings:
        raise typer.Exit(1)


def tell_of_pairs(plan: Any, run: Any, valid: str | None) -> None:
    """Before a new run begins, say its sizes and, on standard error, what is suspicious
    about files to train on, if anything.

    Of a large text the beginning is looked at, so that this takes seconds.
    """
    from ..data.parallel_files import parallel_prefix
    from ..translation.doctor import doctor as examine

    if valid and not (run.folder / "run.json").exists():
        langs, sizes = (plan.src, plan.tgt), run.model.config
        pairs, held = (
            [*islice(parallel_prefix(prefix, *langs), LOOKED_AT)]
            for prefix in (plan.corpus, valid)
        )
        for each in examine(pairs, *langs, valid=held).findings:
            if each.name != "pairs" or not run.task.fine_tunes:  # few are enough then
                echo(f"doctor: {each.says}; {each}", err=True)
        layers = f"{sizes.N} + {sizes.N} layers, d_model {sizes.d_model}"
        echo(f"{layers}, {run.task.tokenizer.tgt_vocab_size:,} tokens")
