"""Train the vision Transformer on MNIST from scratch, beside two references.

    python -m benchmarks.after.vision [--workers 2]

Needs MNIST's four files below ANNOTATED_TRANSFORMER_DATA, or fetches them. Of the
60,000 training images one in twelve is held out for validation; the first 1, 5 or 20
thousand of the others are trained on, or all 55 thousand. The Transformer of
`annotated-transformer vision train` and a small convolutional network go through the
same loop: moved images, and as many updates. For each number of images the rate of each
is chosen by the loss on the validation images, with a seed that isn't used again; three
seeds follow. Beside them, scikit-learn's logistic regression on the pixels, which has
as many trials for the strength of its penalty. A last study asks where both networks
end: a thousand images, and four times as many updates.

A GPU is used where there is one, else a thread for each worker. A run that is on record
is left alone, so the same command finishes what is missing. Adds a line for each run to
results/after/vision.jsonl, which nbs/after/patches.ipynb shows. Takes four hours of
one core.
"""

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from torch import Tensor, nn

from annotated_transformer.after.image_classification import ImageTraining, VisionTask
from annotated_transformer.after.vision import (
    VisionConfig,
    VisionTransformer,
    class_probabilities,
    cut,
)
from annotated_transformer.data.images import ImageSet, mnist
from annotated_transformer.devices import find_device
from annotated_transformer.model.transformer import initialise
from benchmarks.after.studies import TUNING_SEED, Case, Study, run_missing
from benchmarks.record import add_run, command_line, read_runs
from benchmarks.train import train_task

PLACE = "after/vision.jsonl"
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0)  # the inverse of the penalty
UPDATES = {1_000: 1_000, 5_000: 1_000, 20_000: 1_000, 55_000: 2_000}  # by images
TO_THE_END = "1000 images, to the end"


class Grey(nn.Module):
    """Bytes to numbers from −1 to 1, with one channel."""

    def forward(self, images: Tensor) -> Tensor:
        """The images, ready for a network."""
        return images[:, None].float() / 127.5 - 1


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


SIDES: dict[str, Callable[[], nn.Module]] = {
    "transformer": transformer,
    "convolution": convolution,
}
STUDIES = {
    f"{images} images": Study(dict.fromkeys(SIDES, ()), RATES, updates)
    for images, updates in UPDATES.items()
} | {TO_THE_END: Study(dict.fromkeys(SIDES, ()), RATES[1:], 4_000)}


@cache
def digits() -> tuple[ImageSet, ImageSet, ImageSet]:
    """The images to train on, those to choose by, and those of the test."""
    return *cut(mnist()), mnist("t10k")


def untrained(side: str, seed: int) -> Any:
    """The network of a side, from a seed."""
    torch.manual_seed(seed)
    model = SIDES[side]()
    if side != "transformer":  # which does so itself
        model.apply(initialise)
    return model.to(find_device())


def run(case: Case) -> Case:
    """Train one side; what it found, on the test images unless it is a trial."""
    train, valid, test = digits()
    images, start = int(case["study"].split()[0]), time.perf_counter()
    updates = STUDIES[case["study"]].updates
    settings = ImageTraining(
        epochs=0,
        steps=updates,
        save_every=updates // 10,
        seed=case["seed"],
        peak=case["rate"],
    )
    model = untrained(case["side"], case["seed"])
    points = list(train_task(VisionTask(model, None, train[:images], valid, settings)))
    best = min(points, key=lambda point: point["loss"])  # whose weights it now has
    found: Case = {
        "images": images,
        "updates": updates,
        "parameters": sum(each.numel() for each in model.parameters()),
        "validation_loss": best["loss"],
        "validation_accuracy": best["accuracy"],
        "best_update": best["step"],
        "validation_losses": [point["loss"] for point in points],  # at each tenth
        "device": find_device().type,
        "seconds": round(time.perf_counter() - start, 1),
    }
    if case["seed"] != TUNING_SEED:
        found |= mistakes(class_probabilities(model, test.images).argmax(-1), test)
    return found


def mistakes(read: Tensor, test: ImageSet) -> Case:
    """The share of test images read rightly, and what each digit was taken for."""
    confusion = torch.zeros(10, 10, dtype=torch.long)
    confusion.index_put_((test.labels, read), torch.tensor(1), accumulate=True)
    accuracy = (read == test.labels).double().mean().item()
    return {"accuracy": accuracy, "confusion": confusion.tolist()}


def linear(images: int, trials: int) -> Case:
    """The logistic regression of the strength that is best on the validation images."""
    train, valid, test = digits()
    start, tried = time.perf_counter(), {}
    known, held, asked = (
        part.images.flatten(1).numpy() / 255 for part in (train[:images], valid, test)
    )
    for strength in STRENGTHS[:trials]:
        model = LogisticRegression(C=strength, max_iter=1_000)
        model.fit(known, train.labels[:images])
        tried[strength] = log_loss(valid.labels, model.predict_proba(held)), model
    best = min(tried, key=lambda strength: tried[strength][0])
    model = tried[best][1]
    return {
        "strength": best,
        "tried": {strength: loss for strength, (loss, _) in tried.items()},
        "parameters": model.coef_.size + model.intercept_.size,
        "seconds": round(time.perf_counter() - start, 1),
    } | mistakes(torch.from_numpy(model.predict(asked)), test)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args(arguments)
    run_missing(PLACE, STUDIES, run, asked.workers)
    runs = read_runs(PLACE)
    there = {run["images"] for run in runs if run["side"] == "linear"}
    for images in [each for each in UPDATES if each not in there]:
        study = f"{images} images"
        wanted = {"side": "transformer", "study": study, "seed": TUNING_SEED}
        trials = sum(wanted.items() <= run.items() for run in runs)
        about = {"study": f"{study}, linear", "side": "linear", "images": images}
        add_run(PLACE, about | linear(images, trials), "scikit-learn")


if __name__ == "__main__":
    main()
