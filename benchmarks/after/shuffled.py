"""Read digits whose patches are shuffled: a vision Transformer and two convolutions.

    python -m benchmarks.after.shuffled [--workers 2]

Each learns scikit-learn's digits of 8 × 8 pixels in order, and with the sixteen patches
of every image in one and the same new order; the Transformer also in a bag, where each
image has an order of its own. Six hundred images are the test, and one in twelve of the
others says which weights to keep. All have the same settings, which weren't tuned, and
three seeds. Then the Transformers of the first seed, the one that learned in order and
the one with the new order, read three digits of our own, which are shuffled swap by
swap. Writes results/after/shuffled.json, which nbs/after/patches.ipynb shows. Takes
three minutes of one core.
"""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from annotated_transformer.after.image_classification import ImageTraining, VisionTask
from annotated_transformer.after.vision import (
    VisionConfig,
    VisionTransformer,
    class_probabilities,
    cut,
)
from annotated_transformer.data.images import ImageSet
from annotated_transformer.model.transformer import initialise
from benchmarks.after.vision import Grey
from benchmarks.record import command_line, save_line
from benchmarks.train import train_task

PLACE = "after/shuffled.json"
CONFIG = VisionConfig(N=2, d_model=32, d_ff=64, height=8, width=8, patch=2)
TEST, SEEDS = 600, (1, 2, 3)
TRAINING = ImageTraining(
    epochs=0, steps=700, save_every=35, shift=0, peak=3e-3, batch=32
)
WAYS = "in order", "shuffled", "in a bag"
SIDES = (
    *("transformer, in order", "transformer, shuffled", "transformer, in a bag"),
    *("convolution, in order", "convolution, shuffled"),
)
STROKES = {  # the 21st of the 3rd: the corners of each stroke, on a sheet of 32 × 32
    2: [(9, 9), (12, 5), (18, 4), (22, 8), (20, 14), (13, 21), (9, 27), (23, 27)],
    1: [(12, 9), (17, 4), (16, 28)],
    3: [(9, 7), (15, 4), (21, 8), (15, 14), (22, 20), (17, 27), (9, 25)],
}


def convolution() -> nn.Module:
    """Two convolutions with pooling and two linear layers, as large as the other."""
    return nn.Sequential(
        *(Grey(), nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 4, 96), nn.ReLU(), nn.Linear(96, 10)),
    )


# -- orders ----------------------------------------------------------------------------


def orders() -> list[list[int]]:
    """The patches as they are, and after 1, 2 … 15 swaps, which make the new order."""
    generator = torch.Generator().manual_seed(1)
    order, found = list(range(16)), [list(range(16))]
    for i in range(15, 0, -1):
        j = int(torch.randint(i, (1,), generator=generator))  # none stays: Sattolo 1986
        order[i], order[j] = order[j], order[i]
        found.append([*order])
    return found


def reordered(images: Tensor, order: Tensor) -> Tensor:
    """Images whose patches stand in another order, one for all or one for each."""
    squares = images.unflatten(2, (4, 2)).unflatten(1, (4, 2)).transpose(2, 3)
    squares = squares.reshape(-1, 16, 4)
    squares = squares.gather(
        1, order.expand(len(images), 16)[..., None].expand(-1, -1, 4)
    )
    return squares.view(-1, 4, 4, 2, 2).transpose(2, 3).reshape(-1, 8, 8)


def in_way(images: Tensor, way: str) -> Tensor:
    """All images in one of the three ways."""
    if way == "in order":
        return images
    if way == "shuffled":
        return reordered(images, torch.tensor(orders()[-1]))
    generator = torch.Generator().manual_seed(2)
    return reordered(
        images, torch.rand(len(images), 16, generator=generator).argsort(1)
    )


# -- runs ------------------------------------------------------------------------------


@cache
def digits(way: str) -> tuple[ImageSet, ImageSet, ImageSet]:
    """The images to train on, those to choose by, and those of the test."""
    found = load_digits()
    pixels = torch.from_numpy((found.images * 255 / 16).round().astype("uint8"))
    everything = ImageSet(in_way(pixels, way), torch.from_numpy(found.target).long())
    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))
    return *cut(everything[order[TEST:]]), everything[order[:TEST]]


def learned(side: str, seed: int) -> nn.Module:
    """A network that has learned, with the weights that were best in validation."""
    network, way = side.split(", ")
    train, valid, _ = digits(way)
    torch.manual_seed(seed)
    if network == "transformer":
        model: nn.Module = VisionTransformer(CONFIG)
    else:
        model = convolution().apply(initialise)
    settings = replace(TRAINING, seed=seed)
    list(train_task(VisionTask(model, None, train, valid, settings)))
    return model


def run(side: str, seed: int) -> dict[str, Any]:
    """The share of test images that one network reads; what it makes of ours."""
    model = learned(side, seed)
    _, _, test = digits(side.split(", ")[1])
    found: dict[str, Any] = {"side": side, "seed": seed}
    right = class_probabilities(model, test.images).argmax(-1) == test.labels
    found["accuracy"] = right.float().mean().item()
    found["parameters"] = sum(each.numel() for each in model.parameters())
    if seed == SEEDS[0] and side in SIDES[:2]:
        found["read"] = readings(model)
    return found


# -- our own digits --------------------------------------------------------------------


def drawn(stroke: list[tuple[int, int]]) -> Tensor:
    """A digit of 8 × 8 pixels: how much of each 4 × 4 of a sheet has ink."""
    corners = torch.tensor(stroke, dtype=torch.float)
    along = torch.linspace(0, 1, 50)[:, None]
    line = torch.cat(
        [a + along * (b - a) for a, b in zip(corners, corners[1:], strict=False)]
    )
    y, x = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    sheet = torch.stack([x, y], -1).flatten(0, 1)
    ink = (torch.cdist(sheet, line).amin(1) < 2.5).float().view(8, 4, 8, 4)
    return (ink.mean((1, 3)) * 255).round().to(torch.uint8)


def readings(model: nn.Module) -> dict[int, list[list[float]]]:
    """What a model reads in each of our digits after each swap, and how surely."""
    found = {}
    for digit, stroke in STROKES.items():
        images = [reordered(drawn(stroke)[None], torch.tensor(o)) for o in orders()]
        best = class_probabilities(model, torch.cat(images)).max(-1)
        both = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        found[digit] = [[guess, round(p, 3)] for guess, p in both]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args(arguments)
    context, cases = get_context("spawn"), [(s, seed) for seed in SEEDS for s in SIDES]
    with ProcessPoolExecutor(
        asked.workers, context, torch.set_num_threads, (1,)
    ) as pool:
        runs = list(pool.map(run, *zip(*cases, strict=True)))
    read = {
        each["side"].split(", ")[1]: each.pop("read") for each in runs if "read" in each
    }
    pictures = {digit: drawn(stroke).tolist() for digit, stroke in STROKES.items()}
    found = {"runs": runs, "pictures": pictures, "orders": orders(), "read": read}
    save_line(PLACE, found, "scikit-learn")


if __name__ == "__main__":
    main()
