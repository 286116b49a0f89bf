"""The vision Transformer: patches, moves, files, folders, and its commands."""

import gzip
import struct
from dataclasses import replace

import torch
from tiny_run import refused as assert_refused

from annotated_transformer.after.vision import (
    VisionConfig,
    VisionTransformer,
    patches,
    shifted,
)
from annotated_transformer.data.images import ImageSet
from annotated_transformer.training.checkpoint import save_model
from benchmarks.after import vision as benchmark
from benchmarks.after.studies import due
from benchmarks.record import read_runs

SMALL = VisionConfig(N=1, d_model=16, d_ff=32, height=6, width=10, patch=4, classes=3)


def stripes(count: int, height: int = 6, width: int = 10) -> ImageSet:
    """Images with noise and one bright stripe, whose height is the class of three."""
    generator = torch.Generator().manual_seed(count)
    pixels = torch.randint(0, 60, (count, height, width), generator=generator)
    labels = torch.arange(count) % 3
    pixels[torch.arange(count), labels * (height // 3)] = 255
    return ImageSet(pixels.to(torch.uint8), labels)


def idx(values: torch.Tensor) -> bytes:
    """The bytes of a file in MNIST's format."""
    head = struct.pack(f">4B{values.dim()}I", 0, 0, 8, values.dim(), *values.shape)
    return head + bytes(values.flatten().long().tolist())


def write_set(folder, images: ImageSet, part: str, pack=lambda data: data, end=""):
    folder.mkdir(exist_ok=True)
    for name, values in (
        ("images-idx3-ubyte", images.images),
        ("labels-idx1-ubyte", images.labels),
    ):
        (folder / f"{part}-{name}{end}").write_bytes(pack(idx(values)))


def test_patches_hold_every_pixel_once():
    images = torch.arange(2 * 4 * 6, dtype=torch.uint8).view(2, 4, 6)
    found = ((patches(images, 2) + 1) * 127.5).round().to(torch.uint8)
    assert found.shape == (2, 6, 4)
    assert found[0, 1].tolist() == [2, 3, 8, 9]
    assert found[0, 3].tolist() == [12, 13, 18, 19]
    assert found.flatten().sort().values.equal(images.flatten())


def test_what_lacks_to_a_whole_patch_is_black():
    found = patches(torch.full((1, 6, 10), 255, dtype=torch.uint8), 4)
    assert found.shape == (1, 6, 16) and SMALL.grid == (2, 3)
    assert (found == 1).sum() == 60 and (found == -1).sum() == 36


def test_moves_keep_the_image_and_its_size():
    image = torch.zeros(50, 5, 7, dtype=torch.uint8)
    image[:, 2, 3] = 9
    moved = shifted(image, 2, torch.Generator().manual_seed(0))
    assert moved.shape == image.shape and (moved.sum((1, 2)) == 9).all()
    rows, columns = moved.nonzero()[:, 1:].unbind(1)
    assert set(rows.tolist()) == {0, 1, 2, 3, 4} == {c - 1 for c in columns.tolist()}


def test_bad_input_ends_in_one_line(run, tmp_path):
    def refused(words, *arguments):
        assert_refused(run("vision", *arguments), words)

    out, model, data = (tmp_path / name for name in ("out", "model", "data"))
    write_set(data, stripes(60), "train", gzip.compress, ".gz")
    write_set(data, ImageSet(stripes(21).images, torch.full((21,), 7)), "t10k")
    save_model(model, VisionTransformer(SMALL), None)
    (tmp_path / "letter").write_text("dear")
    refused("can't be made", "train", data, "-o", data / "t10k-images-idx3-ubyte")
    refused("smaller", "train", data, "-o", out, "--set", "shift=6")
    refused("d_model", "train", data, "-o", out, "--set", "d_model=6")
    refused("can't be read", "predict", model, tmp_path / "nowhere.png")
    refused("read as a picture", "predict", model, tmp_path / "letter")
    refused("a class 7", "evaluate", model, data)
    single = ImageSet(stripes(24).images, torch.zeros(24).long())
    for words, images in (("one class", single), ("too few", stripes(5))):
        write_set(tmp_path / words, images, "train")
        refused(words, "train", tmp_path / words, "-o", out)
    assert not out.exists()


# -- the benchmark ---------------------------------------------------------------------


def test_the_long_study_tries_its_rates_and_the_others_are_on_record():
    last = benchmark.TO_THE_END
    runs = [run for run in read_runs(benchmark.PLACE) if run["study"] != last]
    studies = benchmark.STUDIES.items()
    missing = {name: due(name, study, runs) for name, study in studies}
    tried = {(each["rate"], each["seed"]) for each in missing.pop(last)}
    assert tried == {(1e-3, 0), (3e-3, 0), (1e-2, 0)}
    assert not any(missing.values())


def test_a_run_says_when_it_was_best(monkeypatch):
    parts = stripes(48, 28, 28), stripes(24, 28, 28), stripes(24, 28, 28)
    monkeypatch.setattr(benchmark, "digits", lambda: parts)
    name = benchmark.TO_THE_END
    short = replace(benchmark.STUDIES[name], updates=20)
    monkeypatch.setattr(benchmark, "STUDIES", {name: short})
    found = benchmark.run(
        {"study": name, "side": "convolution", "rate": 1e-3, "seed": 1}
    )
    losses = found["validation_losses"]
    assert len(losses) == 10 and found["updates"] == 20
    assert found["validation_loss"] == min(losses)
    assert found["best_update"] == 2 * (losses.index(min(losses)) + 1)
