"""Read digits whose patches are shuffled: a vision Transformer and two convolutions.

    python -m benchmarks.after.shuffled [--workers 2]

Each learns scikit-learn's digits of 8 × 8 pixels in order, and with the sixteen patches
of every image in one and the same new order; the Transformer also in a bag, where each
image has an order of its own. Six hundred images are the test, one in twelve of the
others chooses the rate, with a seed that isn't used again; three seeds follow, all with
as many updates. A run is a line of results/after/shuffled.jsonl; one that is there
isn't made again. Then two Transformers, one that learned in order and one with the new
order, read three digits of our own, which are shuffled swap by swap:
results/after/shuffled.json, which nbs/after/patches.ipynb shows. Takes some
ten minutes of one core.
"""

from collections.abc import Sequence
from functools import cache

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from annotated_transformer.after.image_classification import ImageTraining, VisionTask
from annotated_transformer.after.vision import (
    VisionConfig,
    VisionTransformer,
    accuracy,
    class_probabilities,
    cut,
)
from annotated_transformer.data.images import ImageSet
from annotated_transformer.model.transformer import initialise
from annotated_transformer.training.task import train_task
from benchmarks.after.studies import TUNING_SEED, Case, Study, run_missing
from benchmarks.after.vision import Grey
from benchmarks.record import command_line, read_runs, save_line

RUNS, PICTURES = "after/shuffled.jsonl", "after/shuffled.json"
CONFIG = VisionConfig(N=2, d_model=32, d_ff=64, height=8, width=8, patch=2)
TEST, BATCH = 600, 32
RATES = (1e-3, 3e-3, 1e-2)
WAYS = "in order", "shuffled", "in a bag"
SIDES = (
    *("transformer, in order", "transformer, shuffled", "transformer, in a bag"),
    *("convolution, in order", "convolution, shuffled"),
)
STUDY = Study(dict.fromkeys(SIDES, ()), RATES, updates=700)
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


def learned(side: str, rate: float, seed: int) -> tuple[nn.Module, Case]:
    """A network that has learned, and what the validation images say."""
    network, way = side.split(", ")
    train, valid, _ = digits(way)
    torch.manual_seed(seed)
    if network == "transformer":
        model: nn.Module = VisionTransformer(CONFIG)
    else:
        model = convolution().apply(initialise)
    settings = ImageTraining(
        epochs=0,
        steps=STUDY.updates,
        save_every=35,
        shift=0,
        peak=rate,
        batch=BATCH,
        seed=seed,
    )
    points = list(train_task(VisionTask(model, None, train, valid, settings)))
    best = min(points, key=lambda point: point["loss"])  # whose weights it now has
    return model, {
        "updates": STUDY.updates,
        "parameters": sum(each.numel() for each in model.parameters()),
        "validation_loss": best["loss"],
        "validation_accuracy": best["accuracy"],
    }


def run(case: Case) -> Case:
    """Train one side; what it found, on the test images unless it is a trial."""
    model, found = learned(case["side"], case["rate"], case["seed"])
    if case["seed"] != TUNING_SEED:
        test = digits(case["side"].split(", ")[1])[2]
        found["accuracy"] = accuracy(model, test)
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


def readings() -> Case:
    """What both Transformers make of each of our digits after each swap."""
    pictures = {digit: drawn(stroke) for digit, stroke in STROKES.items()}
    runs, read = read_runs(RUNS), {}
    for way in WAYS[:2]:
        side = f"transformer, {way}"
        rate = next(r["rate"] for r in runs if (r["side"], r["seed"]) == (side, 1))
        model, _ = learned(side, rate, 1)
        read[way] = {}
        for digit, picture in pictures.items():
            rows = torch.cat(
                [reordered(picture[None], torch.tensor(o)) for o in orders()]
            )
            best = class_probabilities(model, rows).max(-1)
            read[way][digit] = [
                [guess, round(p, 3)]
                for p, guess in zip(*(each.tolist() for each in best), strict=True)
            ]
    return {
        "pictures": {digit: each.tolist() for digit, each in pictures.items()},
        "orders": orders(),
        "read": read,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the runs that are missing, then the readings."""
    parser = command_line(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    run_missing(RUNS, {"shuffled": STUDY}, run, asked.workers)
    save_line(PICTURES, readings(), "scikit-learn")


if __name__ == "__main__":
    main()
