"""`classifier`: train one on IMDb or on examples of your own, measure it, ask it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from .opening import import_torch, open_kind
from .options import Device, Root, app
from .streams import input_lines, naming, refuse_file, refuse_folder, say, tell

if TYPE_CHECKING:
    import torch

    from ..after.classifier import (
        Classifier,
        ClassifierConfig,
        ClassifierTraining,
        Examples,
    )

group = typer.Typer(no_args_is_help=True, help="Put texts into classes.")
app.add_typer(group, name="classifier")

FEWEST = 40  # with fewer, nothing may be left for validation

Data = Annotated[
    Path | None,
    typer.Option(
        help="Examples of your own, one a line: the class, a tab, the text. IMDb's "
        "reviews if none are named."
    ),
]
Folder = Annotated[Path, typer.Argument(help="The folder of a trained classifier.")]


@group.command()
def train(
    out: Annotated[Path, typer.Argument(help="The model folder to write.")],
    data: Data = None,
    epochs: Annotated[int, typer.Option(help="Passes over the training texts.")] = 3,
    attention: Annotated[
        str, typer.Option(help="learned; plain, without parameters; or none.")
    ] = "learned",
    vocab_size: Annotated[
        int, typer.Option(help="The most tokens of the vocabulary.")
    ] = 16_000,
    max_length: Annotated[
        int, typer.Option(help="The most tokens that are read at once.")
    ] = 256,
    seed: Annotated[int, typer.Option(help="Of weights, order and dropout.")] = 1,
    root: Root = None,
    device: Device = None,
) -> None:
    """Train a classifier; a tenth of the texts is kept for validation, and the best
    pass is saved.

    **Examples**

    `annotated-transformer classifier train sentiment`

    `annotated-transformer classifier train spam --data mails.tsv --epochs 10`
    """
    import_torch()
    from ..after.classifier import (
        ClassifierConfig,
        ClassifierTraining,
        imdb,
        read_examples,
    )
    from ..files import claimed
    from ..loading import find_device

    refuse_folder(out, "classifier")
    training = ClassifierTraining(epochs=epochs, seed=seed)
    config = ClassifierConfig(
        vocab_size=vocab_size, max_length=max_length, attention=attention
    )
    place = find_device(device)
    examples, classes = (
        read_examples(data) if data else (imdb("train", root)[0], config.classes)
    )
    refuse_few(examples)
    with claimed(out):
        trained(examples, replace(config, classes=classes), training, place).save(out)
    tell(str(out))


def refuse_few(examples: "Examples") -> None:
    """Raises: UserError where a tenth of the texts may be none."""
    if len(examples) < FEWEST:
        raise UserError(
            f"{len(examples)} texts are too few to keep a tenth for validation: give "
            f"at least {FEWEST}"
        )


def trained(
    examples: "Examples",
    config: "ClassifierConfig",
    training: "ClassifierTraining",
    device: "torch.device",
) -> "Classifier":
    """A classifier of these examples."""
    from ..after.classifier import new_classifier

    parts = examples.divide()
    classifier = new_classifier(parts[0].texts, config, training.seed)
    classifier.model.to(device)
    fit(classifier, parts, training)
    return classifier


def fit(
    classifier: "Classifier",
    parts: "tuple[Examples, Examples]",
    training: "ClassifierTraining",
) -> None:
    """Train on the first part, with a line of progress for each pass."""
    from ..after.classifier import encode, fit_classifier

    own, held = (
        (encode(classifier.tokenizer, each.texts), each.labels) for each in parts
    )
    for epoch in fit_classifier(classifier.model, own, held, training):
        say(
            f"pass {epoch.number} of {training.epochs}  loss {epoch.loss:.3f}  "
            f"right on validation {epoch.valid_accuracy:.1%}"
        )


@group.command()
def evaluate(
    model: Folder, data: Data = None, root: Root = None, device: Device = None
) -> None:
    """How often a classifier is right, in all and class by class, and how sure it is.

    **Examples**

    `annotated-transformer classifier evaluate sentiment`

    `annotated-transformer classifier evaluate spam --data held-out.tsv`
    """
    classifier = open_classifier(model, device)
    from ..after.classifier import imdb, read_examples, reliability

    if data is None and set(classifier.classes) != {"negative", "positive"}:
        raise UserError(
            f"{model} knows the classes {', '.join(classifier.classes)}, and IMDb has "
            "others: name your own examples with --data"
        )
    test: Examples
    test, _ = read_examples(data, classifier.classes) if data else imdb("test", root)
    found = classifier.probabilities(test.texts)
    answers = found.argmax(-1).tolist()
    right = [a == b for a, b in zip(answers, test.labels, strict=True)]
    tell(f"right {sum(right) / len(right):.2%} of {len(right):,}")
    for number, name in enumerate(classifier.classes):
        own = [
            r for r, label in zip(right, test.labels, strict=True) if label == number
        ]
        if own:
            tell(f"  {name}: {sum(own) / len(own):.2%} of {len(own):,}")
    tell("sure  right  texts")
    for sure, share, count in reliability(found, test.labels):
        tell(f"{sure:4.0%}  {share:5.1%}  {count:,}")


@group.command()
def predict(
    model: Folder,
    text: Annotated[
        str | None,
        typer.Argument(
            help="A text; without it, lines are read from --input or standard input."
        ),
    ] = None,
    input: Annotated[
        Path | None,
        typer.Option(
            "--input", "-i", help="A text file, plain or .gz, one text a line."
        ),
    ] = None,
    device: Device = None,
) -> None:
    """The likeliest class of each text and its probability, line by line.

    **Examples**

    `annotated-transformer classifier predict sentiment "a waste of two hours"`

    `annotated-transformer classifier predict sentiment -i reviews.txt`
    """
    lines = texts_to_read(text, input)
    classifier = open_classifier(model, device)
    with naming(input):
        for line in lines:
            found = classifier.probabilities([line])[0]
            best = int(found.argmax())
            print(f"{classifier.classes[best]}\t{found[best]:.3f}", flush=True)


def texts_to_read(text: str | None, input: Path | None) -> Iterator[str]:
    """The text, or the lines of a file or of standard input."""
    if text is None:
        return input_lines(input)
    if input is not None:
        raise UserError("give a text or --input, not both")
    refuse_file(text, "--input reads its lines")
    return iter([text])


def open_classifier(folder: Path, device: str | None) -> "Classifier":
    """The classifier of a folder. Raises: UserError if it holds anything else."""
    import_torch()
    from ..after.classifier import Classifier

    return open_kind(folder, device, Classifier, "classifier: train one first")
