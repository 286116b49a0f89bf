"""Images into classes: the vision Transformer as one trains, opens and uses it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..data.images import ImageSet, mnist, read_images
from ..data.pictures import as_images
from ..data.published_files import own_path
from ..decoding.checks import check_numbers
from ..errors import UserError
from ..pretrained import PretrainedModel
from ..registry import ModelType, Root
from ..training.held_out import BatchedTraining, HeldOutTask, class_metrics
from ..training.task import TensorBatch
from .classifier import class_loss
from .vision import (
    VisionConfig,
    VisionTransformer,
    class_probabilities,
    cut,
    image_batches,
)


@dataclass(frozen=True)
class ImageTraining(BatchedTraining):
    """How to train a vision model; each image is moved by up to `shift` pixels.

    `smoothing` is the share of label smoothing.
    """

    epochs: int = 12
    batch: int = 128
    peak: float = 2e-3
    shift: int = 2
    smoothing: float = 0.1
    shares: ClassVar[tuple[str, ...]] = ("smoothing",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check("shift", self.shift >= 0, "must be 0 or more")


class VisionTask(HeldOutTask):
    """A vision Transformer, and images to train and validate."""

    config: ImageTraining
    unit = "images"

    def loss(self, model: nn.Module, batch: TensorBatch) -> Tensor:
        """The smoothed cross-entropy of the class."""
        return class_loss(model, batch, self.config.smoothing)

    def draw(self) -> Iterator[TensorBatch]:
        """Every image once an epoch, moved a little."""
        settings = self.config.seed, self.config.shift, self.config.batch
        return image_batches(self.train, *settings)

    def evaluate(self) -> dict[str, float]:
        """The loss per image, and the share of right answers."""
        probabilities = class_probabilities(self.model, self.valid.images)
        return class_metrics(probabilities, self.valid.labels.long())


class ImageClassifier(PretrainedModel):
    """Images in, classes out: one image or several, and an answer in kind.

    An image is a PIL picture or the path of one, which are scaled to the model's size,
    or an array of NumPy or PyTorch of that size: grey, bytes or numbers from 0 to 1.
    The path of a file in MNIST's format stands for its images.
    """

    config_class: ClassVar[Any] = VisionConfig
    model_class: ClassVar[Any] = VisionTransformer
    hub_task = "image-classification"

    def probabilities(self, images: Any) -> Float[Tensor, "*images classes"]:
        """The probability of each class for each image. Raises: UserError."""
        batch, single = as_images(images, self.config.height, self.config.width)
        probabilities = class_probabilities(self.model, batch)
        check_numbers(probabilities)
        return probabilities[0] if single else probabilities

    def predict(self, images: Any) -> int | list[int]:
        """The likeliest class of each image. Raises: UserError as `probabilities`."""
        return self.probabilities(images).argmax(-1).tolist()

    def evaluate(self, data: str | Path = "mnist", root: Root = None) -> dict[str, Any]:
        """How many test images it gets right. Raises: UserError for other classes."""
        test = load_images(data, "t10k", root)
        highest, known = int(test.labels.max()), self.config.classes
        if highest >= known:
            raise UserError(
                f"the test images have a class {highest} and the model knows 0 to "
                f"{known - 1}: they belong to another set"
            )
        predicted = self.probabilities(test.images).argmax(-1)
        wrong, count = int((predicted != test.labels).sum()), len(test)
        return {"accuracy": 1 - wrong / count, "wrong": wrong, "images": count}


def load_images(data: str | Path, part: str, root: Root = None) -> ImageSet:
    """The "train" or the "t10k" images of MNIST, or of a folder."""
    path = own_path(data, "mnist")
    return read_images(path, part) if path else mnist(part, root)


def image_task(
    data: str | Path, config: VisionConfig, training: ImageTraining, root: Root
) -> VisionTask:
    """A new vision model of the images' size.

    Raises: UserError for images of one class alone, or moved out of sight.
    """
    images = load_images(data, "train", root)
    height, width = images.images.shape[1:]
    if training.shift >= min(height, width):
        raise UserError(
            f"shift is {training.shift} and the images have {height} × {width} pixels: "
            "take a smaller one"
        )
    highest = int(images.labels.max())
    if highest == int(images.labels.min()):
        raise UserError(
            "all training images are of one class: take images of two or more"
        )
    sizes: dict[str, int] = {"height": height, "width": width, "classes": highest + 1}
    torch.manual_seed(training.seed)
    model = VisionTransformer(replace(config, **sizes))
    return VisionTask(model, None, *cut(images), training)


def predict_images(
    model: ImageClassifier,
    file: Annotated[
        Path,
        "A picture, which is scaled to the model's size, or a file of images in "
        "MNIST's format.",
    ],
    *,
    invert: Annotated[bool, "The picture is dark on light: invert it."] = False,
) -> Iterator[str]:
    """The most probable class of each image, and its probability.

    **Examples**

    `annotated-transformer vision predict runs/vision digit.png --invert`

    `annotated-transformer vision predict runs/vision t10k-images-idx3-ubyte.gz`
    """
    images, _ = as_images(file, model.config.height, model.config.width)
    for row in model.probabilities(255 - images if invert else images):
        yield f"{int(row.argmax())}\t{row.max():.3f}"


MODEL_TYPE = ModelType(
    ImageClassifier,
    image_task,
    ImageTraining(),
    data="mnist, or a folder with four files of MNIST's names and format",
    decided=("height", "width", "classes"),
    about="One training image in twelve is held out for validation. Evaluated is the "
    "share of right answers on the test images.",
    example=("fashion", "epochs=20"),
    commands={"predict": predict_images},
)
