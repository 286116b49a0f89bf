"""A classifier of images: pictures, files or arrays in, classes out."""

from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor

from ..decoding.checks import check_numbers
from ..pretrained import PretrainedModel
from .pictures import as_images
from .vision import VisionConfig, VisionTransformer, attention_maps, class_probabilities


class ImageClassifier(PretrainedModel):
    """Images in, classes out: one image or several, and an answer in kind.

    An image is a PIL picture or the path of one, which are scaled to the model's size,
    or an array of NumPy or PyTorch of that size: grey, bytes or numbers from 0 to 1.
    The path of a file in MNIST's format stands for its images.
    """

    config_class: ClassVar[Any] = VisionConfig
    model_class: ClassVar[Any] = VisionTransformer

    def probabilities(self, images: Any) -> Float[Tensor, "*images classes"]:
        """The probability of each class for each image. Raises: UserError."""
        batch, single = as_images(images, self.config.height, self.config.width)
        found = class_probabilities(self.model, batch)
        check_numbers(found)
        return found[0] if single else found

    def predict(self, images: Any) -> int | list[int]:
        """The likeliest class of each image. Raises: UserError as `probabilities`."""
        return self.probabilities(images).argmax(-1).tolist()

    def attention(self, images: Any) -> Float[Tensor, "*images layer head row column"]:
        """Where the class token looks. Raises: UserError as `probabilities`."""
        batch, single = as_images(images, self.config.height, self.config.width)
        found = attention_maps(self.model, batch.to(self.device))
        return found[0] if single else found
