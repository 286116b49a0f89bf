"""`vision`: train, evaluate and use a vision Transformer on images in MNIST's format."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError
from .opening import import_torch, open_kind
from .options import Device, Root, app
from .streams import refuse_folder, say, tell

if TYPE_CHECKING:
    from ..after.vision import ImageClassifier, ImageSet

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Classify images: patches as tokens, on MNIST or any set in its format.",
)
app.add_typer(commands, name="vision")

Data = Annotated[
    Path | None,
    typer.Option(
        help="A folder with four files of MNIST's names and format, gzipped or not; "
        "MNIST itself if none is named."
    ),
]
Folder = Annotated[Path, typer.Argument(help="A model folder that `train` wrote.")]


@commands.command("train")
def train_(
    out: Annotated[Path, typer.Argument(help="The model folder to write.")],
    data: Data = None,
    epochs: Annotated[
        int, typer.Option(min=1, help="Passes over the training images.")
    ] = 10,
    patch: Annotated[
        int, typer.Option(min=1, help="Pixels along each side of a patch.")
    ] = 4,
    layers: Annotated[int, typer.Option(min=1, help="Layers of the encoder.")] = 3,
    width: Annotated[
        int, typer.Option(min=2, help="d_model; d_ff is four times as much.")
    ] = 64,
    shift: Annotated[
        int,
        typer.Option(min=0, help="Move each image by up to so many pixels; 0: don't."),
    ] = 2,
    batch: Annotated[
        int,
        typer.Option(min=1, help="Images in one update; 32 suits a set of thousands."),
    ] = 128,
    seed: Annotated[int, typer.Option(min=0, help="Of weights, order and moves.")] = 1,
    root: Root = None,
    device: Device = None,
) -> None:
    """Train on the training images; one in twelve is held out for validation.

    Ctrl-C ends with status 130 and writes no model.

    **Examples**

    `annotated-transformer vision train runs/mnist`

    `annotated-transformer vision train runs/fashion --data fashion --epochs 20`
    """
    refuse_folder(out, "vision")
    import torch

    from ..after.vision import VisionConfig, VisionTransformer, cut, train_epochs
    from ..files import claimed
    from ..loading import find_device
    from ..training.checkpoint import save_model

    place = find_device(device)
    images = part("train", data, root)
    height, across = images.images.shape[1:]
    if shift >= min(height, across):
        raise UserError(
            f"--shift is {shift} and the images have {height} × {across} pixels: take "
            "a smaller one"
        )
    config = VisionConfig(
        N=layers,
        d_model=width,
        d_ff=4 * width,
        height=height,
        width=across,
        patch=patch,
        classes=classes_of(images),
    )
    training, valid = cut(images)
    torch.manual_seed(seed)
    model = VisionTransformer(config).to(place)
    run = train_epochs(model, training, valid, epochs, seed, shift, batch=batch)
    with claimed(out):
        for epoch in run:
            say(line(epoch, epochs))
        save_model(out, model, None)
    tell(f"{epoch['accuracy']:.2%} of {len(valid):,} validation images right: {out}")


@commands.command("evaluate")
def evaluate_(
    model: Folder, data: Data = None, root: Root = None, device: Device = None
) -> None:
    """Count the test images that a model gets right.

    **Examples**

    `annotated-transformer vision evaluate runs/mnist`

    `annotated-transformer vision evaluate runs/fashion --data fashion`
    """
    classifier = opened(model, device)
    images = part("t10k", data, root)
    highest, known = int(images.labels.max()), classifier.config.classes
    if highest >= known:
        raise UserError(
            f"the test images have a class {highest} and {model} knows 0 to "
            f"{known - 1}: they belong to another set"
        )
    found = classifier.probabilities(images.images).argmax(-1)
    wrong = int((found != images.labels).sum())
    tell(
        f"accuracy {1 - wrong / len(images):.2%}: {wrong:,} of {len(images):,} test "
        "images wrong"
    )


@commands.command("predict")
def predict_(
    model: Folder,
    file: Annotated[
        Path,
        typer.Argument(
            help="A picture, which is scaled to the model's size, or a file of images "
            "in MNIST's format."
        ),
    ],
    invert: Annotated[
        bool,
        typer.Option(
            "--invert", help="The picture is dark on light, as on paper: turn it round."
        ),
    ] = False,
    device: Device = None,
) -> None:
    """Print the likeliest class of each image, and its probability.

    **Examples**

    `annotated-transformer vision predict runs/mnist digit.png --invert`

    `annotated-transformer vision predict runs/mnist t10k-images-idx3-ubyte.gz`
    """
    classifier = opened(model, device)
    images = pictures(file, classifier.config.height, classifier.config.width)
    for row in classifier.probabilities(255 - images if invert else images):
        tell(f"{int(row.argmax())}\t{row.max():.3f}")


def part(name: str, data: Path | None, root: Path | None) -> "ImageSet":
    """The training or the test images of a folder, or else of MNIST."""
    from ..after.vision import mnist, read_images

    return read_images(data, name) if data else mnist(name, root)


def classes_of(images: "ImageSet") -> int:
    """The number of classes. Raises: UserError for one alone: there is no question."""
    if int(images.labels.max()) == int(images.labels.min()):
        raise UserError(
            "all training images are of one class: take images of two or more"
        )
    return int(images.labels.max()) + 1


def opened(folder: Path, device: str | None) -> "ImageClassifier":
    """The classifier of a folder. Raises: UserError for anything else."""
    import_torch()
    from ..after.vision import ImageClassifier

    return open_kind(
        folder,
        device,
        ImageClassifier,
        "vision model: name one that `vision train` wrote",
    )


def pictures(file: Path, height: int, width: int) -> Any:
    """The images of a file in MNIST's format, or a picture scaled to this size.

    Raises: UserError for a file that is neither.
    """
    import numpy as np
    import torch
    from PIL import Image, UnidentifiedImageError

    from ..after.vision import read_idx

    try:
        with Image.open(file) as picture:
            grey = picture.convert("L").resize((width, height))
        return torch.from_numpy(np.array(grey))[None]
    except UnidentifiedImageError:
        images = read_idx(file)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{file} can't be read ({reason}): name another file") from None
    if images.dim() != 3:
        raise UserError(f"{file} has {images.dim()} axes, and grey images take 3")
    return images


def line(epoch: dict[str, int | float], epochs: int) -> str:
    """One epoch as a line of text."""
    return (
        f"epoch {epoch['epoch']:>3} of {epochs}  loss {epoch['loss']:.4f}  "
        f"validation accuracy {epoch['accuracy']:.2%}"
    )
