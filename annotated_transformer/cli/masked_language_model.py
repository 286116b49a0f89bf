"""`masked-language-model`: learn from texts without labels, then fine-tune on a few."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from .classifier import Data, fit, refuse_few
from .language_model import settings_of
from .opening import import_torch, open_kind
from .options import Device, Root, app
from .streams import refuse_folder, say, tell

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from ..after.masked_language_model import MaskedLanguageModel

group = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
app.add_typer(group, name="masked-language-model", help=__doc__)

Pretrained = Annotated[Path, typer.Argument(help="A folder that train has written.")]
Texts = Annotated[
    Path | None,
    typer.Option(
        help="A file of your own, a text on each line. IMDb's reviews if none is named."
    ),
]


@group.command()
def train(
    out: Annotated[Path, typer.Argument(help="The folder to write the model to.")],
    data: Texts = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE for a size of the model (N, d_model, d_ff, h, dropout, "
            "vocab_size, max_length) or a setting of its training (steps, batch, peak, "
            "share, masked, short, short_share, seed, every); may be repeated.",
        ),
    ] = None,
    root: Root = None,
    device: Device = None,
) -> None:
    """Pretrain an encoder: hide 15 % of the tokens, and let it guess them.

    Held-out texts, on which its guesses are measured as it goes, are some of IMDb's test
    reviews, or a tenth of your own lines. Nothing is written before the end, so Ctrl-C
    leaves nothing behind. `annotated-transformer fill-mask` uses the result.

    **Examples**

    `annotated-transformer masked-language-model train reviews`

    `annotated-transformer masked-language-model train own --data own.txt`
    `--set vocab_size=2000 --set steps=1000`
    """
    refuse_folder(out, "masked_language_model")
    import_torch()
    import torch

    from ..after.language_model import TextTokenizer
    from ..after.masked_language_model import (
        MaskedLanguageModel,
        MaskedLanguageModelConfig,
        MaskedTraining,
        mask_tokenizer,
        pretrain,
        text_rows,
        unlabelled,
    )
    from ..files import claimed
    from ..loading import find_device
    from ..training.checkpoint import save_model

    parts = MaskedLanguageModelConfig(), MaskedTraining()
    sizes, training = settings_of(settings or [], *parts)
    config, place = replace(parts[0], **sizes), find_device(device)
    texts = unlabelled(data, root)
    tokenizer = mask_tokenizer(texts[0], config.vocab_size)
    config = replace(config, vocab_size=tokenizer.get_vocab_size())
    torch.manual_seed(training.seed)
    model = MaskedLanguageModel(config).to(place)
    known, held = (text_rows(tokenizer, part, config.max_length) for part in texts)
    with claimed(out):
        for found in pretrain(model, known, held, training):
            step, losses = found["step"], (found["train"], found["valid"])
            words = "step {:>6,}  loss {:.3f}  held out {:.3f}".format(step, *losses)
            say(f"{words}  right {found['right']:.1%}")
        save_model(out, model, TextTokenizer(tokenizer))
    tell(str(out))


def open_pretrained(
    folder: Path, device: str | None
) -> "tuple[MaskedLanguageModel, Tokenizer]":
    """The model of a folder and its tokenizer. Raises: UserError for another machine."""
    import_torch()
    from ..after.masked_language_model import Filler, MaskedLanguageModel

    words = "masked language model: name one that train wrote"
    filler = open_kind(folder, device, Filler, words)
    if not isinstance(filler.model, MaskedLanguageModel):
        raise UserError(f"{folder} holds a BERT, not one of ours: fill-mask uses it")
    return filler.model, filler.tokenizer


@group.command()
def evaluate(
    model: Pretrained, data: Texts = None, root: Root = None, device: Device = None
) -> None:
    """The loss on hidden tokens of held-out texts, and how many are guessed right.

    **Examples**

    `annotated-transformer masked-language-model evaluate reviews`

    `annotated-transformer masked-language-model evaluate reviews --data own.txt`
    """
    trained, tokenizer = open_pretrained(model, device)
    from ..after.masked_language_model import guesses, text_rows, unlabelled
    from ..data.corpus import read_lines

    texts = list(read_lines(data)) if data else unlabelled(None, root)[1]
    rows = text_rows(tokenizer, texts, trained.config.max_length)
    loss, right = guesses(trained, rows)
    tell(f"nats per hidden token  {loss:.4f}")
    tell(f"guessed right          {right:.2%}")


@group.command(name="fine-tune")
def fine_tune(
    model: Pretrained,
    out: Annotated[Path, typer.Argument(help="The folder of the classifier to write.")],
    data: Data = None,
    labels: Annotated[
        int | None,
        typer.Option(help="Learn from so many labelled texts alone, drawn by chance."),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the training texts.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the drawing, order and dropout.")] = 1,
    root: Root = None,
    device: Device = None,
) -> None:
    """Make a classifier of a pretrained model; a tenth of the texts is kept for
    validation, and the best pass is saved.

    The result is a classifier as `annotated-transformer classifier train` writes one.

    **Examples**

    `annotated-transformer masked-language-model fine-tune reviews sentiment`

    `annotated-transformer masked-language-model fine-tune reviews genres`
    `--data films.tsv --epochs 10`
    """
    refuse_folder(out, "classifier")
    trained, tokenizer = open_pretrained(model, device)
    import torch

    from ..after.classifier import (
        Classifier,
        ClassifierConfig,
        ClassifierTraining,
        imdb,
        read_examples,
    )
    from ..after.masked_language_model import classifier_from, draw_examples
    from ..files import claimed

    training = ClassifierTraining(epochs, 32, 3e-3, word_dropout=0.1, seed=seed)
    examples, classes = (
        read_examples(data)
        if data
        else (imdb("train", root)[0], ClassifierConfig().classes)
    )
    if labels is not None:
        examples = draw_examples(examples, labels, seed)
    refuse_few(examples)
    torch.manual_seed(seed)
    classifier = Classifier(classifier_from(trained, classes), tokenizer)
    with claimed(out):
        fit(classifier, examples.divide(), training)
        classifier.save(out)
    tell(str(out))
