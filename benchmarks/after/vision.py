"""Train the vision Transformer on MNIST from scratch, beside two references.

    python -m benchmarks.after.vision [--parts transformer linear]

Needs MNIST's four files below ANNOTATED_TRANSFORMER_DATA, or fetches them. Of the
60,000 training images one in twelve is held out for validation; settings were chosen on
those alone. The parts are trained by the same loop: the Transformer, which is what
`annotated-transformer vision train` trains, and a small convolutional network on
moved images; a linear model on the pixels, without moves and with them. What an earlier
run found for other parts stays. One thread; times are processor seconds. Writes
results/after/vision.json, which nbs/after/vision.ipynb shows.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from annotated_transformer.after.config import ImageTraining
from annotated_transformer.after.tasks import VisionTask
from annotated_transformer.after.vision import (
    VisionConfig,
    VisionTransformer,
    class_probabilities,
    cut,
)
from annotated_transformer.data.images import ImageSet, mnist
from annotated_transformer.model.transformer import initialise
from annotated_transformer.training.task import train_task
from benchmarks.record import command_line, load, save

RECORD, SEED, EPOCHS, PEAK = "after/vision.json", 1, 10, 2e-3
COMMAND = "python -m benchmarks.after.vision"  # the parts may be made one by one


class Grey(nn.Module):
    """Bytes to numbers from −1 to 1, with one channel."""

    def forward(self, images: Tensor) -> Tensor:
        """The images, ready for a network."""
        return images[:, None].float() / 127.5 - 1


def linear() -> nn.Module:
    """One score a class, each a weighted sum of the pixels."""
    return nn.Sequential(Grey(), nn.Flatten(), nn.Linear(28 * 28, 10))


def convolution() -> nn.Module:
    """Two convolutions with pooling and two linear layers, as in LeNet."""
    return nn.Sequential(
        *(Grey(), nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 49, 96), nn.ReLU(), nn.Linear(96, 10)),
    )


def transformer() -> nn.Module:
    """The model of the chapter."""
    return VisionTransformer(VisionConfig())


# Each with the most pixels that its training images are moved by.
PARTS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "transformer": (transformer, 2),
    "linear": (linear, 0),
    "linear-moved": (linear, 2),
    "convolution": (convolution, 2),
}


def report(
    epochs: Iterator[dict[str, int | float]], start: float
) -> list[dict[str, int | float]]:
    """The epochs of a training, each told as it ends."""
    curve = []
    for epoch in epochs:
        curve.append(epoch | {"seconds": round(time.process_time() - start, 1)})
        print(curve[-1], file=sys.stderr, flush=True)
    return curve


def measure(name: str, train: ImageSet, valid: ImageSet, test: ImageSet) -> Any:
    """Train one part, and count its mistakes on the test images."""
    torch.manual_seed(SEED)
    (make, shift), start = PARTS[name], time.process_time()
    model = make()
    if name != "transformer":
        model.apply(initialise)
    settings = ImageTraining(epochs=EPOCHS, seed=SEED, shift=shift, peak=PEAK)
    points = train_task(VisionTask(model, train, valid, settings))
    epochs = (
        {"epoch": number, "loss": each["train"], "accuracy": each["accuracy"]}
        for number, each in enumerate(points, 1)
    )
    curve = report(epochs, start)
    found = class_probabilities(model, test.images).argmax(-1)
    confusion = torch.zeros(10, 10, dtype=torch.long)
    confusion.index_put_((test.labels, found), torch.tensor(1), accumulate=True)
    return {
        "shift": shift,
        "parameters": sum(each.numel() for each in model.parameters()),
        "seconds": curve[-1]["seconds"],
        "curve": curve,
        "accuracy": (found == test.labels).float().mean().item(),
        "wrong": int((found != test.labels).sum()),
        "confusion": confusion.tolist(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and measure the parts asked for, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    (train, valid), test = cut(mnist()), mnist("t10k")
    found = load(RECORD).get("parts", {})
    for name in options.parts:
        found[name] = measure(name, train, valid, test)
        settings = {"seed": SEED, "epochs": EPOCHS, "peak": PEAK}
        sizes = {"training": len(train), "validation": len(valid), "test": len(test)}
        about = {"command": COMMAND, "threads": 1, "settings": settings}
        save(RECORD, about | {"images": sizes, "parts": found})


if __name__ == "__main__":
    main()
