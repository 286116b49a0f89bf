"""`language-model`: train a decoder-only model on a text, measure it, let it write."""

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, nearest
from .opening import import_torch, open_kind
from .options import Device, Root, app
from .plan import parse
from .streams import refuse_file, refuse_folder, say, tell

if TYPE_CHECKING:
    from ..after.language_model import TextTokenizer, Writer

group = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
app.add_typer(group, name="language-model", help=__doc__)

TOKENS = ("characters", "byte-pairs")
Trained = Annotated[Path, typer.Argument(help="A folder that train has written.")]
Text = Annotated[
    str, typer.Option(help="tiny-shakespeare, wikitext-2, or a file of your own.")
]


@group.command()
def train(
    out: Annotated[Path, typer.Argument(help="The folder to write the model to.")],
    text: Text = "tiny-shakespeare",
    tokens: Annotated[
        str,
        typer.Option(help="characters or byte-pairs.", autocompletion=lambda: TOKENS),
    ] = "characters",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE for a size of the model (N, d_model, d_ff, h, dropout, "
            "max_length, vocab_size for byte pairs) or a setting of its training "
            "(steps, batch, peak, seed, every); may be repeated.",
        ),
    ] = None,
    root: Root = None,
    device: Device = None,
) -> None:
    """Train a language model, and tell its loss on the held-out part as it goes.

    WikiText-2 is trained on its validation part and measured on its test part, since
    its training part isn't among our texts; of any other text the last tenth is held
    out. Nothing is written before the end, so Ctrl-C leaves nothing behind.

    **Examples**

    `annotated-transformer language-model train shakespeare`

    `annotated-transformer language-model train own --text own.txt`
    `--set vocab_size=2000 --set steps=1000`
    """
    if tokens not in TOKENS:
        raise UserError(f"unknown tokens {tokens!r}: {nearest(tokens, TOKENS)}")
    refuse_folder(out, "language_model")
    import_torch()
    import torch

    from ..after.language_model import (
        LanguageModel,
        LanguageModelConfig,
        LanguageTraining,
        Writer,
        learn,
        load_text,
    )
    from ..files import claimed
    from ..loading import find_device
    from ..training.checkpoint import save_model

    sizes, training = settings_of(
        settings or [], LanguageModelConfig(), LanguageTraining()
    )
    place, (known, held) = find_device(device), load_text(text, root)
    tokenizer, config = vocabulary(tokens, known, held, sizes)
    torch.manual_seed(training.seed)
    model = LanguageModel(config).to(place)
    read, kept = (torch.tensor(tokenizer.encode(part)) for part in (known, held))
    with claimed(out):
        for found in learn(model, read, kept, training):
            step, losses = found["step"], (found["train"], found["valid"])
            words = "step {:>6,}  loss {:.4f}  held out {:.4f}".format(step, *losses)
            say(words)
        save_model(out, model, tokenizer)
    report(Writer(model, tokenizer), held, overlap=0)


def settings_of(
    settings: list[str], sizes: Any, training: Any
) -> tuple[dict[str, Any], Any]:
    """Those settings that are sizes of the model, and the training with the others.

    Raises: UserError for an unknown name, naming the nearest, or a value out of range.
    """
    parts = sizes, training
    owners = {field.name: part for part in parts for field in fields(part)}
    changes: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if name not in owners:
            raise UserError(f"unknown setting {name!r}: {nearest(name, owners)}")
        if not equals:
            raise UserError(f"--set {setting}: write NAME=VALUE")
        changes[name] = parse(value, getattr(owners[name], name), name)
    given, changed = (
        {name: value for name, value in changes.items() if owners[name] is part}
        for part in parts
    )
    return given, replace(training, **changed)


def vocabulary(
    tokens: str, known: str, held: str, sizes: dict[str, Any]
) -> "tuple[TextTokenizer, Any]":
    """The tokenizer of a text, and the sizes of the model that fits it.

    The characters of both parts are known, byte pairs are learned from the first alone.
    """
    from ..after.language_model import LanguageModelConfig, byte_pairs, characters

    if tokens == "characters":
        if "vocab_size" in sizes:
            raise UserError("vocab_size is for --tokens byte-pairs: leave it out")
        tokenizer = characters(known + held)
    else:
        tokenizer = byte_pairs(known, sizes.get("vocab_size", 1_000))
    return tokenizer, LanguageModelConfig(**sizes | {"vocab_size": tokenizer.size})


def open_writer(folder: Path, device: str | None) -> "Writer":
    """The language model of a folder. Raises: UserError if it holds another machine."""
    import_torch()
    from ..after.language_model import Writer

    return open_kind(
        folder, device, Writer, "language model: name one that train wrote"
    )


def report(writer: "Writer", text: str, overlap: int) -> None:
    """Print what a text costs."""
    found = writer.measure(text, overlap)
    tell(f"characters           {found.characters:>12,}")
    tell(f"tokens               {found.tokens:>12,}")
    tell(f"nats per token       {found.nats_per_token:>12.4f}")
    tell(f"bits per character   {found.bits_per_character:>12.4f}")
    tell(f"perplexity per word  {found.perplexity_per_word:>12.1f}")


@group.command()
def evaluate(
    model: Trained,
    text: Text = "tiny-shakespeare",
    overlap: Annotated[
        int,
        typer.Option(
            help="Tokens of each window that are read and not scored, so that the "
            "others have more context; 0 cuts the text into windows side by side."
        ),
    ] = 0,
    root: Root = None,
    device: Device = None,
) -> None:
    """Measure a model on the held-out part of a named text, or on a whole file.

    **Examples**

    `annotated-transformer language-model evaluate shakespeare`

    `annotated-transformer language-model evaluate shakespeare --text own.txt`
    """
    import_torch()
    from ..after.language_model import TEXTS, load_text, read_text

    writer = open_writer(model, device)
    known = text in TEXTS or not Path(text).is_file()
    held = load_text(text, root)[1] if known else read_text(text)
    report(writer, held, overlap)


@group.command(name="generate")
def write(
    model: Trained,
    prompt: Annotated[str, typer.Argument(help="What to go on from.")] = "\n",
    length: Annotated[int, typer.Option(help="Tokens to write.")] = 500,
    temperature: Annotated[
        float, typer.Option(help="Below 1 safer, above 1 bolder.")
    ] = 0.8,
    top_k: Annotated[
        int | None, typer.Option(help="Draw from the k most probable tokens alone.")
    ] = None,
    top_p: Annotated[
        float,
        typer.Option(help="Draw from the fewest tokens that reach this probability."),
    ] = 1.0,
    seed: Annotated[int | None, typer.Option(help="For the same text again.")] = None,
    device: Device = None,
) -> None:
    """Let a model go on from a text.

    **Examples**

    `annotated-transformer language-model generate shakespeare "ROMEO:"`

    `annotated-transformer language-model generate shakespeare --top-k 1`
    """
    refuse_file(prompt, "give the text itself, in quotes")
    if not 1 <= length < 2**31:
        raise UserError(f"--length is {length}: write at least one token")
    import_torch()
    from ..translation.search import SearchOptions

    options = SearchOptions(
        temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
    )
    tell(prompt + open_writer(model, device).generate(prompt, length, options))
