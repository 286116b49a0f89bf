"""The vision Transformer: patches, moves, files, folders, and its commands."""

import gzip
import struct

import pytest
import torch
from PIL import Image

from annotated_transformer import UserError, load
from annotated_transformer.after.vision import (
    ImageClassifier,
    ImageSet,
    VisionConfig,
    VisionTransformer,
    accuracy,
    cut,
    patches,
    read_idx,
    read_images,
    shifted,
    train_epochs,
)
from annotated_transformer.training.checkpoint import save_model

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


@pytest.fixture
def data(tmp_path):
    """A set of another size, and with another number of classes, than MNIST."""
    write_set(tmp_path / "data", stripes(60), "train", gzip.compress, ".gz")
    write_set(tmp_path / "data", stripes(21), "t10k")
    return tmp_path / "data"


def test_patches_hold_every_pixel_once():
    images = torch.arange(2 * 4 * 6, dtype=torch.uint8).view(2, 4, 6)
    found = ((patches(images, 2) + 1) * 127.5).round().to(torch.uint8)
    assert found.shape == (2, 6, 4)
    assert found[0, 1].tolist() == [2, 3, 8, 9] and found[0, 3].tolist() == [
        *(12, 13, 18, 19)
    ]
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


def test_it_learns():
    torch.manual_seed(1)
    model = VisionTransformer(SMALL)
    train, valid = cut(stripes(120))
    assert (len(train), len(valid)) == (110, 10)
    *_, last = train_epochs(model, train, valid, 12, shift=0, batch=16)
    assert last["epoch"] == 12 and accuracy(model, stripes(30)) == 1


def test_it_is_saved_and_opened_by_load(tmp_path):
    torch.manual_seed(0)
    model, images = VisionTransformer(SMALL), stripes(5).images
    save_model(tmp_path / "model", model, None)
    opened = load(tmp_path / "model", device="cpu")
    assert isinstance(opened, ImageClassifier) and opened.config == SMALL
    assert torch.equal(opened.model(images), model(images))
    assert opened.attention(images).shape == (5, 1, 4, 2, 3)
    assert torch.allclose(opened.attention(images).sum((-1, -2)), torch.ones(5, 1, 4))
    with pytest.raises(UserError, match="5 × 10 .* 6 × 10"):
        opened.predict(images[:, 1:])


@pytest.mark.parametrize(
    "change",
    [{"patch": 0}, {"classes": 0}, {"height": 0}, {"patch": 1, "width": 999}],
)
def test_sizes_out_of_range_are_refused(change):
    with pytest.raises(UserError):
        VisionConfig(**({"height": 99} | change))


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "no file of bytes"),
        (b"\x89PNG and so on", "no file of bytes"),
        (bytes([0, 0, 8, 3, 0, 0]), "no file of bytes"),
        (idx(torch.zeros(2, 3)) + b"x", "announces 6 bytes and holds 7"),
        (idx(torch.zeros(2, 3))[:-1], "announces 6 bytes and holds 5"),
        (idx(torch.zeros(0, 3)), "announces 0 bytes"),
        (gzip.compress(b"a" * 999)[:-9], "can't be read"),
    ],
)
def test_files_that_are_not_of_the_format(content, words, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match=words):
        read_idx(tmp_path / "file")


def test_files_that_do_not_fit(tmp_path, data):
    with pytest.raises(UserError, match="no folder"):
        read_images(tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(UserError, match="has neither train-images-idx3-ubyte"):
        read_images(tmp_path / "bare")
    labels = data / "t10k-labels-idx1-ubyte"
    labels.write_bytes(idx(torch.zeros(20)))
    with pytest.raises(UserError, match="21 images and .* 20 labels"):
        read_images(data, "t10k")
    labels.write_bytes(idx(torch.zeros(21, 1)))
    with pytest.raises(UserError, match="2 axes where 1"):
        read_images(data, "t10k")


def test_the_commands_train_measure_and_predict(run, data, tmp_path):
    out = tmp_path / "model"
    sizes = ["--epochs", 12, "--layers", 1, "--width", 32, "--shift", 0, "--batch", 16]
    status, said, told = run("vision", "train", out, "--data", data, *sizes)
    assert status == 0 and str(out) in said and told.count("epoch") == 12
    status, said, _ = run("vision", "evaluate", out, "--data", data)
    assert status == 0 and said.startswith("accuracy ") and "of 21 test" in said
    file = data / "t10k-images-idx3-ubyte"
    status, said, _ = run("vision", "predict", out, file)
    classes = [line.split("\t")[0] for line in said.splitlines()]
    assert status == 0 and len(classes) == 21 and set(classes) <= {"0", "1", "2"}
    Image.new("RGB", (30, 30), "white").save(tmp_path / "picture.png")
    status, said, _ = run("vision", "predict", out, tmp_path / "picture.png")
    assert status == 0 and len(said.splitlines()) == 1


def test_bad_input_ends_in_one_line(run, data, tmp_path):
    def refused(words, *arguments):
        status, _, told = run("vision", *arguments)
        assert status == 2 and words in told and len(told.splitlines()) == 1, told

    out, model = tmp_path / "out", tmp_path / "model"
    save_model(model, VisionTransformer(SMALL), None)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("dear")
    refused("no folder", "train", out, "--data", tmp_path / "nowhere")
    refused("other files", "train", tmp_path / "full", "--data", data)
    refused("is a file", "train", data / "t10k-images-idx3-ubyte", "--data", data)
    refused("smaller", "train", out, "--data", data, "--shift", 6)
    refused("d_model", "train", out, "--data", data, "--width", 6)
    refused("can't be read", "predict", model, tmp_path / "nowhere.png")
    refused("no file of bytes", "predict", model, tmp_path / "full" / "letter")
    refused("no vision model", "predict", "phrasebook-en-de", tmp_path / "full")
    many = ImageSet(stripes(21).images, torch.full((21,), 7))
    write_set(data, many, "t10k")
    refused("a class 7", "evaluate", model, "--data", data)
    single = ImageSet(stripes(24).images, torch.zeros(24).long())
    write_set(tmp_path / "single", single, "train")
    refused("one class", "train", out, "--data", tmp_path / "single")
    write_set(tmp_path / "few", stripes(5), "train")
    refused("too few", "train", out, "--data", tmp_path / "few")
    assert not out.exists()
