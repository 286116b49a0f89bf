"""data/corpora: own files and their faults, named corpora, downloads, streams."""

import gzip
import hashlib
import io
import itertools
import sys
import tarfile
import types
import zipfile
from dataclasses import replace
from email.message import Message
from functools import partial
from itertools import islice
from pathlib import Path
from urllib.response import addinfourl

import pytest

from annotated_transformer.data import corpora as corpora_module
from annotated_transformer.data import published_files
from annotated_transformer.data.corpora import (
    first_test,
    load_corpus,
    named_corpora,
    stream_pairs,
)
from annotated_transformer.data.near_copies import NearCopies, sketch
from annotated_transformer.data.parallel_files import parallel_files, parallel_prefix
from annotated_transformer.data.published_files import (
    DataFile,
    data_files,
    download_file,
    find_file,
    unpack,
)
from annotated_transformer.data.text_files import read_lines
from annotated_transformer.errors import UserError

# the same bytes each time: they are in the names of tests
packed = partial(gzip.compress, mtime=0)

EN_DE = ("en", "de")


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    english = write(tmp_path / "a.en", "One.\nTwo.\nThree.\n")
    return english, write(tmp_path / "a.de", "Eins.\nZwei.\nDrei.\n")


# -- files of one's own ----------------------------------------------------------------

ODD = "a\v\f\x1c\x1d\x1eb\x85\u2028\u2029c\rd"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("One.\nTwo.", ["One.", "Two."]),
        ("One.\r\nTwo.\r\n", ["One.", "Two."]),
        ("\ufeffOne.\nTwo.\n", ["One.", "Two."]),
        (packed(b"One.\n"), ["One."]),
        (f"{ODD}\n", [ODD]),
    ],
)
def test_only_a_line_feed_ends_a_line(tmp_path, content, expected):
    assert list(read_lines(write(tmp_path / "x.txt", content))) == expected


def test_white_space_is_made_uniform_and_pairs_can_be_read_again(tmp_path):
    french = write(tmp_path / "a.fr", "Comment\u00a0?\nQui  va\n")
    pairs = parallel_files(french, write(tmp_path / "a.en", "How\t?\nWho goes \n"))
    expected = [("Comment ?", "How ?"), ("Qui va", "Who goes")]
    assert list(pairs) == list(pairs) == expected


def test_pairs_are_streamed(tmp_path):
    """The first pair comes before the fault in the second line is seen."""
    good = write(tmp_path / "a", "One.\nTwo.\n")
    bad = write(tmp_path / "b", b"Eins.\n\xff\n")
    stream = iter(parallel_files(good, bad))
    assert next(stream) == ("One.", "Eins.")
    with pytest.raises(UserError, match="b, line 2: not UTF-8"):
        next(stream)


def test_uneven_files_name_both_counts(tmp_path, pair):
    longer = write(tmp_path / "long", "1\n2\n3\n4\n5\n")
    with pytest.raises(UserError, match="has 3 lines.* has 5:"):
        list(parallel_files(pair[0], longer))
    with pytest.raises(UserError, match="has 5 lines.* has 3:"):
        list(parallel_files(longer, pair[0]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Eins.\n\nDrei.\n", "bad, line 2 is blank: remove that line from both files"),
        ("Eins.\n \t\u3000\nDrei.\n", "bad, line 2 is blank"),
        (b"Eins.\nZwei\xe4.\nDrei.\n", "bad, line 2: not UTF-8"),
        (
            packed(b"Eins.\nZwei.\nDrei.\n" * 1000)[:-9],
            "bad can't be read: .*; take another copy",
        ),
        (
            packed(b"Eins.\n")[:-8] + b"\0" * 8,
            "bad can't be read: .*; take another copy",
        ),
    ],
)
def test_faults_in_a_file_are_named(tmp_path, pair, text, message):
    with pytest.raises(UserError, match=message):
        list(parallel_files(pair[0], write(tmp_path / "bad", text)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "absent: no such file"),
        ("none", "none is empty"),
        (".", "can't be read"),
        ("x" * 300, "File name too long"),
    ],
)
def test_files_that_cannot_be_opened_are_refused_at_once(tmp_path, pair, name, message):
    write(tmp_path / "none", "")
    with pytest.raises(UserError, match=message):
        parallel_files(pair[0], tmp_path / name)
    with pytest.raises(UserError, match=message):
        parallel_files(tmp_path / name, pair[1])


def test_prefix(tmp_path, pair):
    write(tmp_path / "a.fr.gz", packed(b"Un.\nDeux.\nTrois.\n"))
    assert next(iter(parallel_prefix(tmp_path / "a", "de", "fr"))) == ("Eins.", "Un.")
    with pytest.raises(UserError, match=r"a\.nl: no such file, nor a\.nl\.gz"):
        parallel_prefix(tmp_path / "a", "de", "nl")


# -- corpora by name -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("multi3k", "train", "en", "de"), "did you mean 'multi30k'"),
        (("multi30k", "test_2016", "en", "de"), "did you mean 'test_2016_flickr'"),
        (("multi30k", "train", "en", "cs"), "no pair en-cs: choose from en-de, en-fr"),
        (("multi30k", "train", "en", "en"), "no pair en-en"),
        (("wmt14", "train", "fr", "de"), "no pair fr-de"),
        (("multi30k", "val", "en", "de", "x" * 300), "no directory"),
    ],
)
def test_unknown_names_suggest_what_exists(arguments, message):
    with pytest.raises(UserError, match=message):
        load_corpus(*arguments)


# -- with the real data ---------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multi30k", "wmt14", "iwslt14", "iwslt17"])
def test_real_corpora_have_the_pairs_that_the_table_states(name, data_root):
    spec = named_corpora()[name]
    for pair in spec.pairs:
        src, tgt = pair.split("-")
        for split in spec.splits(pair):
            if split == "train" and name != "multi30k":
                continue
            sizes, label = spec.sizes(), (name, split, pair)
            count = sum(1 for _ in load_corpus(name, split, tgt, src, data_root))
            assert count == sizes.get(f"{split} {pair}", sizes.get(split)), label


def test_a_sketch_masks_names_numbers_and_endings():
    assert sketch("Tom laughed.", "en") == {"@", "laugh"}
    one = "In 2018 Tom's sister flew to Rome."
    other = "in 7 Mary's sisters flew to Boston"
    assert sketch(one, "en") == sketch(other, "en")
    assert "@" not in sketch("Er sah das Haus.", "de")


def test_near_copies_share_three_quarters_of_the_words():
    """The index finds just what comparing all with all finds."""
    words = ("we they", "saw heard", "all none", "dogs cats", "here there now")
    texts = map(" ".join, itertools.product(*map(str.split, words)))
    sketches = [sketch(text, "en") for text in texts]
    known = sketches[::5]
    copies = NearCopies(known)
    found = [words in copies for words in sketches]
    assert found == [
        any(len(words & k) / len(words | k) >= 0.75 for k in known)
        for words in sketches
    ]
    assert 0 < sum(found) < len(found)


@pytest.mark.slow
def test_tatoeba_splits_hold_no_near_copies(data_root):
    parts = {
        split: list(load_corpus("tatoeba", split, "en", "de", data_root))
        for split in ("train", "val", "test", "all")
    }
    sizes = named_corpora()["tatoeba"].sizes()
    assert {split: len(pairs) for split, pairs in parts.items()} == sizes
    assert set().union(*parts.values()) == set(parts["all"])
    for side, lang in enumerate(EN_DE):
        held = {pair[side] for name in ("val", "test") for pair in parts[name]}
        copies = NearCopies(sketch(text, lang) for text in held)
        training = {pair[side] for pair in parts["train"]}
        assert not held & training
        assert not any(sketch(text, lang) in copies for text in training)
    backwards = load_corpus("tatoeba", "test", "de", "en", data_root)
    assert list(backwards) == [(de, en) for en, de in parts["test"]]


def tar_of(name: str, content: bytes) -> bytes:
    """A gzipped archive of one file."""
    archive, entry = io.BytesIO(), tarfile.TarInfo(name)
    entry.size = len(content)
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(entry, io.BytesIO(content))
    return packed(archive.getvalue())


def test_markup_of_newstest_unpacks_to_the_published_text(data_root):
    """A download, archive and markup included, ends in the bytes of the table."""
    files = data_files().values()
    file = next(it for it in files if it.corpus == "wmt14" and it.member)
    gzipped = data_root / "wmt" / "sgm" / f"{Path(file.member).name}.gz"
    sgml = gzip.decompress(gzipped.read_bytes())
    text = unpack(tar_of(file.member, sgml), file)
    assert hashlib.sha256(text).hexdigest() == file.sha256


# -- files of a corpus, and their downloads --------------------------------------------


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def record(text: bytes, url: str = "", **more: str) -> DataFile:
    return DataFile(
        "toy", "train", "", "en", 1, "toy/train.en", digest(text), url, **more
    )


def test_a_download_by_name_goes_into_the_cache_and_is_made_once(tmp_path, monkeypatch):
    """And what is in the cache is refused once it changes."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ANNOTATED_TRANSFORMER_DATA", raising=False)
    files = {}
    for lang, text in {"en": b"One.\nTwo.\n", "de": b"Eins.\nZwei.\n"}.items():
        url = f"file://{write(tmp_path / lang, packed(text))}"
        file = replace(data_files()[f"multi30k/val.{lang}"], url=url)
        files[file.path] = replace(file, sha256=digest(text))
    for module in (corpora_module, published_files):
        monkeypatch.setattr(module, "data_files", lambda: files)
    expected = [("Eins.", "One."), ("Zwei.", "Two.")]
    assert list(load_corpus("multi30k", "val", "de", "en")) == expected
    for lang in ("en", "de"):
        (tmp_path / lang).unlink()
    assert list(load_corpus("multi30k", "val", "de", "en")) == expected
    cached = tmp_path / "home/.cache/annotated-transformer/multi30k/val.de.gz"
    write(cached, packed(b"Something else.\n"))
    with pytest.raises(UserError, match="val.de.gz is not the published .*remove it"):
        load_corpus("multi30k", "val", "en", "de")


def zip_of(**content: str) -> bytes:
    """A ZIP archive."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, text in content.items():
            packed.writestr(name, text)
    return archive.getvalue()


def encrypted() -> bytes:
    """A ZIP archive whose member says that it is encrypted."""
    data = bytearray(zip_of(inside="One."))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "member", "message"),
    [
        (b"Changed.\n", "", "is not the published file .*the source has changed"),
        (None, "", "could not be fetched"),
        (packed(b"One.\n" * 99)[:-9], "", "could not be fetched"),
        (b"no archive", "inside", "could not be fetched"),
        (tar_of("other", b"One."), "inside", "could not be fetched .*inside"),
        (encrypted(), "inside", "could not be fetched .*encrypted"),
        (b"<seg>\xff</seg>", "", "could not be fetched"),
        (packed(bytes(2_000)), "", "could not be fetched .more than 1,000"),
        (zip_of(inside="1" * 2_000), "inside", "could not be fetched .more than 1,000"),
    ],
)
def test_a_download_that_fails_is_named_and_leaves_nothing(
    tmp_path, monkeypatch, content, member, message
):
    monkeypatch.setattr(published_files, "MOST_DOWNLOAD_BYTES", 1_000)
    if content is not None:
        write(tmp_path / "x", content)
    file = record(b"One.\n", f"file://{tmp_path}/x", member=member)
    with pytest.raises(UserError, match=f"{message}.*ANNOTATED_TRANSFORMER_DATA"):
        download_file(file, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_download_from_a_zip_and_a_column(tmp_path):
    write(tmp_path / "x.zip", zip_of(text="Hi.\tHallo!\r\nRun!\tLauf!\n"))
    address = f"file://{tmp_path}/x.zip"
    file = record(b"Hallo!\nLauf!\n", address, member="text", column="1")
    assert list(read_lines(download_file(file, tmp_path))) == ["Hallo!", "Lauf!"]


def test_a_source_that_leads_to_an_open_line_is_refused(tmp_path, monkeypatch):
    def redirected(url, timeout):
        return addinfourl(io.BytesIO(b"One.\n"), Message(), "http://elsewhere/x")

    monkeypatch.setattr("urllib.request.urlopen", redirected)
    with pytest.raises(UserError, match="http://elsewhere/x, which is not encrypted"):
        download_file(record(b"One.\n", "https://here/x"), tmp_path)


@pytest.mark.parametrize("text", [packed(b"One.\n" * 9_999)[:-9], packed(b"")])
def test_a_damaged_or_empty_file_of_a_named_corpus_is_refused(tmp_path, text):
    (tmp_path / "toy").mkdir()
    write(tmp_path / "toy/train.en.gz", text)
    with pytest.raises(UserError, match=r"train\.en\.gz (can't be read|is empty)"):
        find_file(record(b"One.\n"), tmp_path)


def test_root_comes_before_the_environment_and_the_cache(tmp_path, monkeypatch):
    for name in ("root", "env", "home/.cache/annotated-transformer"):
        (tmp_path / name / "toy").mkdir(parents=True)
        write(tmp_path / name / "toy/train.en", "One.\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ANNOTATED_TRANSFORMER_DATA", str(tmp_path / "env"))
    file = record(b"One.\n")
    assert find_file(file, tmp_path / "root").is_relative_to(tmp_path / "root")
    assert find_file(file).is_relative_to(tmp_path / "env")
    (tmp_path / "env/toy/train.en").unlink()
    assert find_file(file).is_relative_to(tmp_path / "home")

    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    assert find_file(file, tmp_path / "root").is_relative_to(tmp_path / "root")
    with pytest.raises(UserError, match="set HOME, or ANNOTATED_TRANSFORMER_DATA"):
        find_file(file)


# -- streams from the Hub --------------------------------------------------------------


def hub_pairs(lines: int) -> list[tuple[str, str]]:
    """WMT 2014 from German, as if the Hub stated so many rows."""
    hub = replace(named_corpora()["wmt14"].others[0], lines=lines)
    return list(stream_pairs(hub, ("de", "en")))


def stand_in(monkeypatch, load_dataset) -> None:
    module = types.SimpleNamespace(load_dataset=load_dataset)
    monkeypatch.setitem(sys.modules, "datasets", module)


def test_hub_streams_skip_blank_sides_and_count_rows(monkeypatch):
    """A sample takes no more rows than it needs."""
    texts = [("One.\n", " Eins. "), ("", "Zwei."), ("Three.", "\t")]
    asked = {}

    def load_dataset(*arguments, **options):
        asked.update(options, arguments=arguments, rows=0)
        for english, german in texts:
            asked["rows"] += 1
            yield {"translation": {"en": english, "de": german}}

    stand_in(monkeypatch, load_dataset)
    assert hub_pairs(3) == [("Eins.", "One.")]
    assert asked["arguments"] == ("wmt/wmt14", "de-en") and asked["split"] == "train"
    assert asked["streaming"] and len(asked["revision"]) == 40
    named = load_corpus("wmt14", "train", "de", "en")
    assert list(islice(named, 1)) == [("Eins.", "One.")] and asked["rows"] == 1
    with pytest.raises(
        UserError, match="has 3 rows and not 4508785: its text has changed"
    ):
        list(named)


def test_a_corpus_is_tested_on_its_first_test_split():
    assert first_test("multi30k", "en", "de") == "test_2016_flickr"
    assert first_test("tatoeba", "de", "en") == "test"
    with pytest.raises(UserError, match="multi30k"):
        first_test("multi30", "en", "de")
