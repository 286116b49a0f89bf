"""Train the vision Transformer on MNIST from scratch, beside three references.

    python -m benchmarks.after.vision [--parts transformer] [--images 1000]

Needs MNIST's four files below ANNOTATED_TRANSFORMER_DATA, or fetches them. Of the
60,000 training images one in twelve is held out for validation; the first 1, 5 or 20
thousand of the others are trained on, or all 55 thousand. The parts are the Transformer
of `annotated-transformer vision train`, a small convolutional network, and a linear
model on the pixels, without moved images and with them. All go through the same loop,
and all make the same number of updates whatever the number of images.

For each part and number of images the rate is chosen among five by the validation
images, with seed 1; two more seeds follow at the rate that won. A run that is on record
is left alone, so the same command finishes what is missing. Uses one thread, and a GPU
where there is one. Adds a line for each run to results/after/vision.jsonl, which
nbs/after/vision.ipynb shows.
"""

import time
from collections.abc import Callable, Sequence
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
from annotated_transformer.devices import find_device
from annotated_transformer.model.transformer import initialise
from annotated_transformer.training.task import train_task
from benchmarks.after.tuning import Case, once, search
from benchmarks.record import command_line

PLACE = "after/vision.jsonl"
RATES, WIDE = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), (3e-5, 3e-4, 3e-3, 3e-2, 3e-1)
SIZES, SEEDS, UPDATES = (55_000, 1_000, 5_000, 20_000), (1, 2, 3), 3_000


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


# Each with the most pixels that its training images are moved by, and its rates.
PARTS: dict[str, tuple[Callable[[], nn.Module], int, tuple[float, ...]]] = {
    "transformer": (transformer, 2, RATES),
    "convolution": (convolution, 2, RATES),
    "linear": (linear, 0, WIDE),
    "linear-moved": (linear, 2, WIDE),
}


def untrained(case: Case) -> nn.Module:
    """The part of a case, from the seed of the case."""
    torch.manual_seed(case["seed"])
    model = PARTS[case["part"]][0]()
    if case["part"] != "transformer":  # which does so itself
        model.apply(initialise)
    return model.to(find_device())


def measure(case: Case, train: ImageSet, valid: ImageSet, test: ImageSet) -> Case:
    """Train one part, and count its mistakes on the test images."""
    shift, start = PARTS[case["part"]][1], time.perf_counter()
    settings = ImageTraining(
        epochs=0,
        steps=UPDATES,
        save_every=UPDATES // 10,
        shift=shift,
        seed=case["seed"],
        peak=case["rate"],
    )
    model: Any = untrained(case)
    task = VisionTask(model, train[: case["images"]], valid, settings)
    points = list(train_task(task))
    best = min(points, key=lambda point: point["loss"])  # whose weights it now has
    found = class_probabilities(model, test.images).argmax(-1)
    confusion = torch.zeros(10, 10, dtype=torch.long)
    confusion.index_put_((test.labels, found), torch.tensor(1), accumulate=True)
    return {
        "updates": UPDATES,
        "passes": round(UPDATES * settings.batch / case["images"], 1),
        "shift": shift,
        "parameters": sum(each.numel() for each in model.parameters()),
        "curve": [[p["step"], p["train"], p["accuracy"]] for p in points],
        "valid_accuracy": best["accuracy"],
        "valid_loss": best["loss"],
        "accuracy": (found == test.labels).double().mean().item(),
        "wrong": int((found != test.labels).sum()),
        "confusion": confusion.tolist(),
        "device": find_device().type,
        "seconds": round(time.perf_counter() - start, 1),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the runs asked for, as far as they are missing."""
    parser = command_line(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--images", nargs="+", type=int, choices=SIZES, default=SIZES)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    (train, valid), test = cut(mnist()), mnist("t10k")

    def trial(case: Case) -> Case:
        return once(PLACE, case, lambda case: measure(case, train, valid, test))

    for images in options.images:
        for part in options.parts:
            first = {"part": part, "images": images, "seed": SEEDS[0]}
            best = search(first, {"rate": PARTS[part][2]}, trial)
            for seed in SEEDS[1:]:
                trial(best | {"seed": seed})


if __name__ == "__main__":
    main()
