"""Files of data: images, series, reviews and texts are read, and what is wrong with one
is said in a line. Corpora of pairs are test_corpora's.
"""

import gzip
import io
import tarfile
from dataclasses import replace
from functools import partial

import pytest
import torch

from annotated_transformer.data.images import mnist, read_idx, read_images
from annotated_transformer.data.labelled_texts import imdb, read_examples
from annotated_transformer.data.published_files import data_files, unpack
from annotated_transformer.data.series import Series, ett, read_series
from annotated_transformer.data.text_files import LONGEST_LINE, read_lines
from annotated_transformer.data.texts import load_text, unlabelled
from annotated_transformer.errors import UserError

# the same bytes each time: they are in the names of tests
packed = partial(gzip.compress, mtime=0)


def idx(*shape: int, content: bytes | None = None) -> bytes:
    """A file of MNIST's format, of zeros unless told otherwise."""
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    data = bytes(torch.Size(shape).numel()) if content is None else content
    return b"\0\0\x08" + bytes([len(shape)]) + sizes + data


# -- what is published -----------------------------------------------------------------


def test_named_data_are_the_published_ones(data_root):
    digits = mnist("t10k", data_root)
    assert digits.images.shape == (10_000, 28, 28)
    assert digits.labels[:2].tolist() == [7, 2]
    assert ett(data_root).values.shape == (17_420, 7)
    train, valid = load_text("tiny-shakespeare", data_root)
    assert (len(train), len(valid)) == (1_003_854, 111_540)
    found, stars = imdb("test", data_root)
    assert len(found) == 25_000 and sum(found.labels) == 12_500
    assert [star >= 7 for star in stars] == [label == 1 for label in found.labels]
    assert not any("<br />" in text for text in found.texts)
    train, held = unlabelled(root=data_root)
    assert len(train) == 25_000 and len(held) >= 400
    assert len(set(held) - set(train)) > 390  # a few are in both parts


@pytest.mark.parametrize(
    "path, content, read",
    [
        ("images/mnist/train-images-idx3-ubyte", idx(1, 2, 2), mnist),
        ("timeseries/ETTh1.csv", b"date,a\n1,2\n2,3\n", ett),
        ("imdb/test.neg.tsv", b"1\t9\tfun\n", imdb),
        ("text/tinyshakespeare.txt", b"To be\n", load_text),
    ],
)
def test_a_changed_file_on_the_disk_is_refused(tmp_path, path, content, read):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(content)
    names = {imdb: ["test"], load_text: ["tiny-shakespeare"]}.get(read, [])
    with pytest.raises(UserError, match="is not the published file .*: remove it"):
        read(*names, root=tmp_path)


def test_the_archive_of_reviews_becomes_tables():
    texts = {
        "aclImdb/train/pos/10_9.txt": "warm\tand\nfun",
        "aclImdb/train/pos/2_7.txt": "fine<br />",
        "aclImdb/train/unsup/1_0.txt": "unknown",
        "aclImdb/README": "about",
    }
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        for name, text in texts.items():
            about = tarfile.TarInfo(name)
            about.size = len(text)
            tar.addfile(about, io.BytesIO(text.encode()))
    table = unpack(whole.getvalue(), data_files()["imdb/train.pos.tsv"])
    assert table == b"2\t7\tfine<br />\n10\t9\twarm and fun\n"


# -- images ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "is empty"),
        (b"\x89PNG and so on", "no file of bytes"),
        (idx(1, 2, 3)[:6], "no file of bytes"),
        (idx(*[1] * 255), "no file of bytes .*at most 4"),
        (idx(2, 3) + b"x", "announces 6 bytes and holds more"),
        (idx(2, 3)[:-1], "announces 6 bytes and holds 5"),
        (idx(0, 3), "announces 0 bytes"),
        (packed(idx(9, 9))[:-9], "can't be read"),
        (packed(idx(2**16, 2**15, content=b"")), "more than 1,073,741,824"),
        (packed(idx(2**15, 2**15, content=b"")), "and holds 0"),
    ],
)
def test_files_that_are_not_of_the_format(content, words, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match=words):
        read_idx(tmp_path / "file")


def test_images_and_labels_must_fit(tmp_path):
    with pytest.raises(UserError, match="no folder"):
        read_images(tmp_path / "nowhere")
    with pytest.raises(UserError, match="has neither t10k-images-idx3-ubyte"):
        read_images(tmp_path, "t10k")
    (tmp_path / "t10k-images.idx3-ubyte").write_bytes(idx(21, 2, 3))
    labels = tmp_path / "t10k-labels-idx1-ubyte"
    for shape, words in (((20,), "21 images and .* 20 labels"), ((21, 1), "2 axes")):
        labels.write_bytes(idx(*shape))
        with pytest.raises(UserError, match=words):
            read_images(tmp_path, "t10k")
    labels.write_bytes(idx(21))
    assert len(read_images(tmp_path, "t10k")[:5]) == 5


# -- series ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "empty"),
        ("date\n1\n2\n", "line 1"),
        ("date,a,a\n1,2,3\n2,3,4\n", "line 1"),
        ("date,a\n1,2\n2,3,4\n", "line 3 has 3 columns"),
        ("date,a\n1,2\n2,dear\n", "line 3 of a is no number"),
        ("date,a\n1,2\n2,\n", "line 3 of a"),
        ("date,a\n1,nan\n2,3\n", "line 2 of a"),
        ("date,a\n1,1e39\n2,3\n", "line 2 of a"),
        ("date,a\n1,2\n", "no two lines"),
        ("2016-07-01,1\n2016-07-02,2\n2016-07-03,3\n", "line 1: it must name"),
        ("date,a\n2016-07-02,1\n2016-07-01,2\n", "line 3 is of 2016-07-01.*sort"),
        (f"date,a\n1,2\n2,{'3' * 200_000}\n", "line 3 is no line of a table"),
    ],
)
def test_files_that_are_no_series(text, words, tmp_path):
    (tmp_path / "file.csv").write_text(text)
    with pytest.raises(UserError, match=words):
        read_series(tmp_path / "file.csv")


def test_the_hour_that_summer_time_gives_back_is_in_order(tmp_path):
    (tmp_path / "file.csv").write_text(
        "date,a\n2016-10-30 02:45,1\n2016-10-30 02:00,2\n"
    )
    assert read_series(tmp_path / "file.csv").day == 7


@pytest.mark.parametrize(
    "first, second, steps",
    [
        ("2016-07-01 00:00:00", "2016-07-01 00:15:00", 96),
        ("2016-07-01", "2016-07-02", 7),
        ("first", "second", 24),
    ],
)
def test_steps_in_a_day(first, second, steps):
    assert Series(("a",), (first, second), torch.zeros(2, 1)).day == steps


# -- texts -----------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_without_end_is_refused(tmp_path, pack):
    (tmp_path / "x").write_bytes(pack(b"a\n" + b"b" * (LONGEST_LINE + 1)))
    with pytest.raises(UserError, match="x, line 2 is longer than 1,048,576 bytes"):
        list(read_lines(tmp_path / "x"))


@pytest.mark.parametrize(
    "text, words",
    [
        ("good\n", "line 1"),
        ("good\tx\nbad\t \n", "line 2"),
        ("good\tx\n", "one class"),
        ("godo\tx\nbad\ty\n", "line 1: did you mean 'good'"),
        ("", "empty"),
    ],
)
def test_wrong_examples(tmp_path, text, words):
    (tmp_path / "own.tsv").write_text(text)
    classes = ("bad", "good") if "godo" in text else None
    with pytest.raises(UserError, match=words):
        read_examples(tmp_path / "own.tsv", classes)


def test_html_in_a_text_of_ones_own_stays(tmp_path):
    (tmp_path / "own.tsv").write_text("a\tx<br />y\nb\tz\n")
    found, classes = read_examples(tmp_path / "own.tsv")
    assert found.texts == ["x<br />y", "z"] and classes == ("a", "b")


def test_every_file_has_a_hash_and_a_safe_source_except_those_to_prepare_by_hand():
    for file in data_files().values():
        by_hand = (file.corpus, file.split) == ("iwslt14", "train")
        assert len(file.sha256) == (0 if by_hand else 64), file.path
        assert file == replace(file, url="") if by_hand else file.url[:8] == "https://"
