"""`split`: two files of one's own, cut into train, valid and test without leaks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from ..model_names import SHIPPED
from .options import Out, app
from .streams import echo

if TYPE_CHECKING:
    from ..data.own_split import OwnSplit

Language = Annotated[
    str | None,
    typer.Option(help="Its language, such as en; the ending of its name if none."),
]


Source = Annotated[Path, typer.Argument(help="A text file, a sentence a line.")]
Target = Annotated[Path, typer.Argument(help="Its translation, line by line.")]
HeldOut = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Pairs for valid, and as many for test; a tenth of all, and at most "
        "1,000, if not named.",
    ),
]


@app.command()
def split(
    source: Source,
    target: Target,
    out: Out,
    src: Language = None,
    tgt: Language = None,
    held_out: HeldOut = None,
) -> None:
    """Cut your own text into train, valid and test, before you train.

    A sentence goes where its near copies go, by its words on either side, so that the
    test asks for nothing that training has seen. Nothing is thrown away.
    The files are those that `train` and `evaluate` read: train.en, train.de, and so on.

    **Example**

    `annotated-transformer split mails.en mails.de --out own`
    """
    from ..data.own_split import split_own, write_parts
    from ..data.parallel_files import parallel_files

    langs = languages((source, src), (target, tgt))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} exists already: choose another folder")
    pairs = list(parallel_files(source, target))
    size = held_out or min(1_000, max(1, len(pairs) // 10))
    found = split_own(pairs, langs, size)
    write_parts(found.parts, langs, out)
    for line in report(found, out, langs):
        echo(line)


def report(found: "OwnSplit", out: Path, langs: tuple[str, str]) -> Iterator[str]:
    """The sizes, what chance would have leaked, and the command that comes next."""
    count = sum(map(len, found.parts.values()))
    sizes = ", ".join(f"{name} {len(part):,}" for name, part in found.parts.items())
    yield f"{count:,} pairs: {sizes}"
    yield (
        f"of {found.drawn:,} pairs drawn at random, {found.leaked:,} "
        f"({found.leaked / found.drawn:.0%}) have a near copy among the rest; of these "
        "in test and valid, none"
    )
    start = f" --from {SHIPPED}" * SHIPPED.endswith("-".join(("", *langs)))
    yield (
        f"next: annotated-transformer train {out}/train --valid {out}/valid "
        f"--src {langs[0]} --tgt {langs[1]}{start}"
    )


def languages(*sides: tuple[Path, str | None]) -> tuple[str, str]:
    """The languages of two files, as named or by their endings.

    Raises: UserError for an ending that is no language, or twice the same one.
    """
    found = []
    for (path, named), option in zip(sides, ("--src", "--tgt"), strict=True):
        lang = named or path.name.removesuffix(".gz").rpartition(".")[2]
        if not re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z]+)?", lang) or lang == "txt":
            raise UserError(f"{path}: name its language, such as {option} en")
        found.append(lang)
    if found[0] == found[1]:
        raise UserError(
            f"both files are {found[0]}: name their languages with --src and --tgt"
        )
    return found[0], found[1]
