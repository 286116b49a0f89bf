"""data/corpus: own files and their faults, named corpora, downloads."""

import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import socket
import sys
import tarfile
import threading
import types
import zipfile
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from annotated_transformer.data import corpus as room
from annotated_transformer.data.corpus import (
    HubPairs,
    NearCopies,
    TatoebaSplit,
    TextFile,
    Unescaped,
    corpora,
    corpus_files,
    download,
    find_file,
    load_corpus,
    parallel_files,
    parallel_prefix,
    read_lines,
    sketch,
    unpack,
)
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.errors import UserError
from annotated_transformer.training.recipes import recipe

EN_DE = ("en", "de")
DATA = os.environ.get("ANNOTATED_TRANSFORMER_DATA")
needs_data = pytest.mark.skipif(
    not DATA, reason="ANNOTATED_TRANSFORMER_DATA is not set"
)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "a.en", "One.\nTwo.\nThree.\n"), write(
        tmp_path / "a.de", "Eins.\nZwei.\nDrei.\n"
    )


def test_only_a_line_feed_ends_a_line(tmp_path):
    odd = "".join(f"a{c}b\n" for c in "\v\f\x1c\x1d\x1e\x85\u2028\u2029\r")
    assert len(list(read_lines(write(tmp_path / "odd", odd)))) == 9


@pytest.mark.parametrize(
    "text", ["One.\nTwo.", "One.\nTwo.\n", "One.\r\nTwo.\r\n", "\ufeffOne.\nTwo.\n"]
)
def test_last_line_feed_carriage_returns_and_mark_do_not_matter(tmp_path, text):
    assert list(read_lines(write(tmp_path / "x", text))) == ["One.", "Two."]


def test_gzip_is_known_by_its_content(tmp_path):
    assert list(read_lines(write(tmp_path / "x.txt", gzip.compress(b"One.\n")))) == [
        "One."
    ]


def test_gzip_comes_through_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=lambda: (tmp_path / "pipe").write_bytes(gzip.compress(b"One.\nTwo.\n"))
    )
    writer.start()
    assert list(read_lines(tmp_path / "pipe")) == ["One.", "Two."]
    writer.join()


def test_white_space_is_made_uniform_as_the_translator_does(tmp_path):
    sides = (
        write(tmp_path / "a.fr", "Comment\u00a0?\nQui  va\n"),
        write(tmp_path / "a.en", "How\t?\nWho goes \n"),
    )
    assert list(parallel_files(*sides)) == [
        ("Comment ?", "How ?"),
        ("Qui va", "Who goes"),
    ]


def test_pairs_can_be_read_again(pair):
    pairs = parallel_files(*pair)
    assert (
        list(pairs)
        == list(pairs)
        == [("One.", "Eins."), ("Two.", "Zwei."), ("Three.", "Drei.")]
    )


def test_pairs_are_streamed(tmp_path):
    """The first pair comes before the fault in the second line is seen."""
    good, bad = (
        write(tmp_path / "a", "One.\nTwo.\n"),
        write(tmp_path / "b", b"Eins.\n\xff\n"),
    )
    stream = iter(parallel_files(good, bad))
    assert next(stream) == ("One.", "Eins.")
    with pytest.raises(UserError, match="b, line 2: not UTF-8"):
        next(stream)


@pytest.mark.parametrize("swap", [False, True])
def test_uneven_files_name_both_counts(tmp_path, pair, swap):
    longer = write(tmp_path / "long", "1\n2\n3\n4\n5\n")
    files = (longer, pair[0]) if swap else (pair[0], longer)
    with pytest.raises(
        UserError, match="has 5 lines.* has 3:" if swap else "has 3 lines.* has 5:"
    ):
        list(parallel_files(*files))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Eins.\n\nDrei.\n", "bad, line 2 is blank: remove that line from both files"),
        ("Eins.\n \t\u3000\nDrei.\n", "bad, line 2 is blank"),
        (b"Eins.\nZwei\xe4.\nDrei.\n", "bad, line 2: not UTF-8"),
        (
            gzip.compress(b"Eins.\nZwei.\nDrei.\n" * 1000)[:-9],
            "bad: damaged after line",
        ),
        (gzip.compress(b"Eins.\n")[:-8] + b"\0" * 8, "bad: damaged after line"),
    ],
)
def test_faults_in_a_file_are_named(tmp_path, pair, text, message):
    with pytest.raises(UserError, match=message):
        list(parallel_files(pair[0], write(tmp_path / "bad", text)))


def test_missing_and_empty_files_and_directories_are_refused_at_once(tmp_path, pair):
    with pytest.raises(UserError, match="absent: no such file"):
        parallel_files(pair[0], tmp_path / "absent")
    with pytest.raises(UserError, match="none is empty"):
        parallel_files(write(tmp_path / "none", ""), pair[1])
    with pytest.raises(UserError, match="can't be read"):
        parallel_files(tmp_path, pair[1])


def test_prefix(tmp_path, pair):
    write(tmp_path / "a.fr.gz", gzip.compress(b"Un.\nDeux.\nTrois.\n"))
    assert next(iter(parallel_prefix(tmp_path / "a", "de", "fr"))) == ("Eins.", "Un.")
    with pytest.raises(UserError, match=r"a\.nl: no such file, nor a\.nl\.gz"):
        parallel_prefix(tmp_path / "a", "de", "nl")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("multi3k", "train", "en", "de"), "did you mean 'multi30k'"),
        (("multi30k", "test_2016", "en", "de"), "did you mean 'test_2016_flickr'"),
        (
            ("multi30k", "train", "en", "cs"),
            "no pair en-cs: choose from en-de, en-fr, de-fr",
        ),
        (("multi30k", "train", "en", "en"), "no pair en-en"),
        (("wmt14", "train", "fr", "de"), "no pair fr-de"),
    ],
)
def test_unknown_names_suggest_what_exists(arguments, message):
    with pytest.raises(UserError, match=message):
        load_corpus(*arguments)


def test_every_file_has_a_hash_and_a_source_except_those_to_prepare_by_hand():
    for file in corpus_files():
        by_hand = (file.corpus, file.split) == ("iwslt14", "train")
        assert bool(file.url) == bool(file.sha256) == (not by_hand), file.path
        assert len(file.sha256) in (0, 64)


def test_listing():
    names = "phrasebook multi30k wmt14 iwslt14 iwslt17 tatoeba everyday"
    assert list(corpora()) == names.split()
    for spec in corpora().values():
        assert spec.licence and spec.source and spec.pairs
        for pair in spec.pairs:
            assert "train" in spec.splits(pair)


def test_each_corpus_says_how_it_is_checked():
    found = {name: spec.check("train") for name, spec in corpora().items()}
    assert found == {
        "phrasebook": "made on the fly",
        "multi30k": "SHA-256",
        "wmt14": "commit b199e40, number of rows",
        "iwslt14": "nothing",
        "iwslt17": "number of rows",
        "tatoeba": "SHA-256",
        "everyday": "SHA-256",
    }
    assert (
        corpora()["wmt14"].check("test") == corpora()["wmt14"].check("val") == "SHA-256"
    )


def test_phrasebook_by_name_against_the_listed_direction():
    pairs = load_corpus("phrasebook", "test", "nl", "en")
    assert len(pairs) == len(list(pairs)) == corpora()["phrasebook"].sizes()["test"]
    assert list(pairs) == phrasebook("nl", "en", "test", len(pairs))


def test_a_sample_reads_no_more_than_itself(tmp_path, monkeypatch):
    """The line after the sample would end the reading, and the hash is another one."""
    count = 50_000
    sides = [
        f"{lang} sentence\n".encode() * count for lang in ("an English", "a German")
    ]
    paths = [write(tmp_path / f"{i}", side + b"\xff\n") for i, side in enumerate(sides)]
    pairs = replace(parallel_files(*paths), hashes=("0" * 64,) * 2)
    for each in (pairs, Unescaped(pairs)):
        assert len(list(islice(each, count))) == count
        with pytest.raises(UserError, match="line 50001: not UTF-8"):
            list(each)

    def endless(*_):
        yield from (("a", "b") for _ in range(9))
        raise AssertionError("one pair too many")

    monkeypatch.setattr("annotated_transformer.data.phrasebook.phrases", endless)
    assert list(islice(load_corpus("phrasebook", "train", "en", "de"), 1)) == [
        ("a", "b")
    ]


# -- with the real data ---------------------------------------------------------------


@needs_data
@pytest.mark.parametrize("name", ["multi30k", "wmt14", "iwslt14", "iwslt17"])
def test_real_corpora_have_the_pairs_that_the_table_states(name):
    spec = corpora()[name]
    for pair in spec.pairs:
        src, tgt = pair.split("-")
        for split in spec.splits(pair):
            if split == "train" and name in ("wmt14", "iwslt14", "iwslt17"):
                continue
            sizes = spec.sizes()
            count = sum(1 for _ in load_corpus(name, split, tgt, src, DATA))
            assert count == sizes.get(f"{split} {pair}", sizes.get(split)), (
                name,
                split,
                pair,
            )


SIMPLE = [
    ("Tom failed.", "Tom versagte."),
    ("Mary failed.", "Maria versagte."),
    ("He has failed in 2018.", "Er hat 2018 versagt."),
    ("We live in Boston.", "Wir wohnen in Boston."),
]


def test_a_sketch_masks_names_numbers_and_endings():
    assert (
        sketch("Tom laughed.", "en") == sketch("Mary laughed!", "en") == {"@", "laugh"}
    )
    assert sketch("In 2018 Tom's sister flew to Rome.", "en") == sketch(
        "in 7 Mary's sisters flew to Boston", "en"
    )
    assert "@" not in sketch("Er sah das Haus.", "de")
    assert sketch("Am I late?", "en") == {"am", "i", "late"}


def test_near_copies_share_three_quarters_of_the_words():
    """The index finds just what comparing all with all finds."""
    texts = [
        f"{a} {b} {c} the {d}"
        for a in ("we", "they")
        for b in ("saw", "heard", "like")
        for c in ("all of", "none of", "")
        for d in ("dogs", "cats", "big dogs", "small cats here")
    ]
    sketches = [sketch(text, "en") for text in texts]
    known, others = sketches[::5], sketches
    copies = NearCopies(known)
    found = [words in copies for words in others]
    assert found == [
        any(len(words & k) / len(words | k) >= 0.75 for k in known) for words in others
    ]
    assert 0 < sum(found) < len(found)


def test_mixed_pairs_come_after_every_fourth_and_are_no_copies():
    pairs = [
        (f"word{a} is {b}.", f"{b} ist {a}.") for a in "abcdefg" for b in "hijklmn"
    ]
    extra = [("a phrase", "ein Satz"), *SIMPLE] * 20
    held = [p for name in ("val", "test") for p in TatoebaSplit(pairs, name, EN_DE)]
    assert held, "the toy is too small"
    mixed = list(TatoebaSplit(pairs, "train", EN_DE, [*held, *extra]))
    plain = list(TatoebaSplit(pairs, "train", EN_DE))
    assert [pair for pair in mixed if pair in pairs] == plain
    assert mixed[4::5] == extra[: len(plain) // 4] and not set(held) & set(mixed)


@needs_data
def test_tatoeba_splits_hold_no_near_copies():
    parts = {
        split: list(load_corpus("tatoeba", split, "en", "de", DATA))
        for split in ("train", "val", "test", "all")
    }
    sizes = corpora()["tatoeba"].sizes()
    assert {split: len(pairs) for split, pairs in parts.items()} == sizes
    assert set().union(*parts.values()) == set(parts["all"])
    for side, lang in enumerate(EN_DE):
        held = {pair[side] for name in ("val", "test") for pair in parts[name]}
        copies = NearCopies(sketch(text, lang) for text in held)
        training = {pair[side] for pair in parts["train"]}
        assert not held & training
        assert not any(sketch(text, lang) in copies for text in training)
    backwards = load_corpus("tatoeba", "test", "de", "en", DATA)
    assert list(backwards) == [(de, en) for en, de in parts["test"]]


@needs_data
def test_everyday_sentences_are_tatoebas_with_a_fifth_of_phrases():
    first = list(islice(load_corpus("everyday", "train", "en", "de", DATA), 5))
    phrases = load_corpus("phrasebook", "train", "en", "de")
    assert first[4] == next(iter(phrases))
    assert corpora()["everyday"].sizes()["train"] == 163_957 * 5 // 4
    for split in ("val", "test"):
        same = [
            list(load_corpus(name, split, "en", "de", DATA))
            for name in ("everyday", "tatoeba")
        ]
        assert same[0] == same[1]


@needs_data
def test_iwslt14_has_no_escapes_and_its_tokens_survive_the_recipe():
    plan, pairs = (
        recipe("iwslt14-de-en"),
        list(load_corpus("iwslt14", "valid", "de", "en", DATA))[:500],
    )
    lines = [en for _, en in pairs]
    assert sum("'s" in line for line in lines) > 20 and not [
        line for line in lines if "&apos" in line
    ]
    tokenizer = train_tokenizer(
        pairs, "de", "en", 2_000, moses=plan.moses, lowercase=plan.lowercase
    )
    assert (
        tokenizer.decode([row[:-1] for row in tokenizer.encode_target(lines)]) == lines
    )


@needs_data
def test_markup_of_newstest_unpacks_to_the_published_text():
    """The path of a download, archive and markup included, ends in the bytes of the
    table.
    """
    for file in corpus_files():
        if file.corpus == "wmt14" and file.member:
            sgml = gzip.decompress(
                (
                    Path(DATA) / "wmt" / "sgm" / f"{Path(file.member).name}.gz"
                ).read_bytes()
            )
            archive = io.BytesIO()
            with tarfile.open(fileobj=archive, mode="w:gz") as tar:
                entry = tarfile.TarInfo(file.member)
                entry.size = len(sgml)
                tar.addfile(entry, io.BytesIO(sgml))
            text = unpack(archive.getvalue(), file.member)
            assert hashlib.sha256(text).hexdigest() == file.sha256, file.path


@pytest.mark.parametrize("lang", ["en", "de"])
@pytest.mark.parametrize("more", ["", "Another.\n"])
def test_a_file_of_other_content_is_refused_at_its_end(
    tmp_path, monkeypatch, lang, more
):
    texts = {"en": "One.\n", "de": "Eins.\n"}
    table = [
        replace(file, sha256=hashlib.sha256(texts[file.lang].encode()).hexdigest())
        for file in corpus_files()
        if (file.corpus, file.split) == ("multi30k", "val") and file.lang in texts
    ]
    monkeypatch.setattr(room, "corpus_files", lambda: table)
    (tmp_path / "multi30k").mkdir()
    for name, text in (texts | {lang: f"Something else.\n{more}"}).items():
        write(tmp_path / "multi30k" / f"val.{name}", text)
    pairs = load_corpus("multi30k", "val", "en", "de", tmp_path)
    with pytest.raises(
        UserError, match=f"val.{lang} is not the published text.*remove it"
    ):
        list(pairs)


# -- downloads, from a server on this machine ------------------------------------------


@pytest.fixture
def server(tmp_path):
    site = tmp_path / "site"
    site.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    running = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=site)
    )
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield site, f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()


def record(text: bytes, url: str, **more: str) -> TextFile:
    digest = hashlib.sha256(text).hexdigest()
    return TextFile("toy", "train", "", "en", 1, "toy/train.en", digest, url, **more)


def test_download_by_name_into_the_cache_and_once_only(tmp_path, server, monkeypatch):
    site, address = server
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ANNOTATED_TRANSFORMER_DATA", raising=False)
    sides = {"en": b"One.\nTwo.\n", "de": b"Eins.\nZwei.\n"}
    for lang, text in sides.items():
        write(site / f"val.{lang}.gz", gzip.compress(text))
    table = [
        replace(
            file,
            sha256=hashlib.sha256(sides[file.lang]).hexdigest(),
            url=f"{address}/val.{file.lang}.gz",
        )
        for file in corpus_files()
        if (file.corpus, file.split) == ("multi30k", "val") and file.lang in sides
    ]
    monkeypatch.setattr(room, "corpus_files", lambda: table)
    expected = [("Eins.", "One."), ("Zwei.", "Two.")]
    assert list(load_corpus("multi30k", "val", "de", "en")) == expected
    assert (tmp_path / "home/.cache/annotated-transformer/multi30k/val.de.gz").exists()
    for packed in site.iterdir():
        packed.unlink()
    assert list(load_corpus("multi30k", "val", "de", "en")) == expected


def test_download_refuses_other_text_and_leaves_nothing(tmp_path, server):
    site, address = server
    write(site / "x", "Changed.\n")
    with pytest.raises(UserError, match="is not the published text"):
        download(record(b"Published.\n", f"{address}/x"), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "content",
    [None, gzip.compress(b"One.\n" * 99)[:-9], b"PK\x03\x04 no zip", b"no archive"],
)
def test_download_names_the_address_when_it_fails(tmp_path, server, content):
    site, address = server
    if content is not None:
        write(site / "x", content)
    archive = (
        {"member": "inside"} if content and not content.startswith(b"\x1f") else {}
    )
    with pytest.raises(
        UserError,
        match=r"127\.0\.0\.1.* could not be fetched .*ANNOTATED_TRANSFORMER_DATA",
    ):
        download(record(b"One.\n", f"{address}/x", **archive), tmp_path / "cache")


def test_download_from_a_zip_and_a_column(tmp_path, server):
    site, address = server
    with zipfile.ZipFile(site / "x.zip", "w") as archive:
        archive.writestr("deu.txt", "Hi.\tHallo!\r\nRun!\tLauf!\n")
    file = record(b"Hallo!\nLauf!\n", f"{address}/x.zip", member="deu.txt", column="1")
    assert list(read_lines(download(file, tmp_path))) == ["Hallo!", "Lauf!"]


def test_a_download_that_is_cut_short_or_no_text(tmp_path):
    for body, announced in ((b"One.", 99), (b"<seg>\xff</seg>", None)):
        listener = socket.create_server(("127.0.0.1", 0))

        def answer(listener=listener, body=body, announced=announced):
            connection, _ = listener.accept()
            connection.recv(4096)
            connection.sendall(
                b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n"
                % (announced or len(body))
                + body
            )
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(UserError, match=r"127\.0\.0\.1.* could not be fetched"):
            download(
                record(b"One.\n", f"http://127.0.0.1:{listener.getsockname()[1]}/x"),
                tmp_path / "cache",
            )
        listener.close()


@pytest.mark.parametrize(
    "text", [gzip.compress(b"One.\n" * 9_999)[:-9], gzip.compress(b"")]
)
def test_a_damaged_or_empty_file_of_a_named_corpus_is_refused(tmp_path, text):
    (tmp_path / "toy").mkdir()
    write(tmp_path / "toy/train.en.gz", text)
    with pytest.raises(UserError, match=r"train\.en\.gz(: damaged after| is empty)"):
        list(read_lines(find_file(record(b"One.\n", ""), tmp_path)))


def test_a_server_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="could not be fetched"):
        download(record(b"", "http://127.0.0.1:9/x"), tmp_path)


def test_root_comes_before_the_environment_and_the_cache(tmp_path, monkeypatch):
    text = b"One.\n"
    for name in ("root", "env", "home/.cache/annotated-transformer"):
        (tmp_path / name / "toy").mkdir(parents=True)
        write(tmp_path / name / "toy/train.en", text)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ANNOTATED_TRANSFORMER_DATA", str(tmp_path / "env"))
    file = record(text, "")
    assert find_file(file, tmp_path / "root").is_relative_to(tmp_path / "root")
    assert find_file(file).is_relative_to(tmp_path / "env")
    (tmp_path / "env/toy/train.en").unlink()
    assert find_file(file).is_relative_to(tmp_path / "home")


def test_without_a_home_directory_a_given_root_serves_and_nothing_else(
    tmp_path, monkeypatch
):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.delenv("ANNOTATED_TRANSFORMER_DATA", raising=False)
    file = record(b"One.\n", "")
    (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
    write(tmp_path / file.path, "One.\n")
    assert find_file(file, tmp_path) == tmp_path / file.path
    with pytest.raises(UserError, match="set HOME, or ANNOTATED_TRANSFORMER_DATA"):
        find_file(file)


def test_a_name_too_long_for_the_system_is_refused(tmp_path):
    long = tmp_path / ("x" * 300)
    with pytest.raises(UserError, match="File name too long"):
        parallel_files(long, long)
    with pytest.raises(UserError, match="no such file"):
        parallel_prefix(long, "en", "de")
    with pytest.raises(UserError, match="no directory"):
        load_corpus("multi30k", "test_2016_flickr", "en", "de", root=long)


def hub_pairs(lines: int) -> HubPairs:
    """WMT 2014 from German, as if the Hub stated so many rows."""
    return HubPairs(replace(corpora()["wmt14"].hub[0], lines=lines), ("de", "en"))


def stand_in(monkeypatch, load_dataset) -> None:
    module = types.SimpleNamespace(load_dataset=load_dataset)
    monkeypatch.setitem(sys.modules, "datasets", module)


def test_hub_streams_skip_blank_sides_and_count_rows(monkeypatch):
    texts = [("One.\n", " Eins. "), ("", "Zwei."), ("Three.", "\t")]
    rows = [{"translation": {"en": en, "de": de}} for en, de in texts]
    asked = {}

    def load_dataset(*arguments, **options):
        asked.update(options, arguments=arguments)
        return rows

    stand_in(monkeypatch, load_dataset)
    stream = hub_pairs(3)
    assert list(stream) == list(stream) == [("Eins.", "One.")]
    assert asked["arguments"] == ("wmt/wmt14", "de-en") and asked["split"] == "train"
    assert asked["streaming"] and len(asked["revision"]) == 40
    named = load_corpus("wmt14", "train", "de", "en")
    with pytest.raises(
        UserError, match="has 3 rows and not 4508785: its text has changed"
    ):
        list(named)


def test_a_sample_of_a_stream_takes_no_more_rows(monkeypatch):
    def load_dataset(*_, **__):
        yield from [{"translation": {"en": "One.", "de": "Eins."}}] * 50_000
        raise AssertionError("one row too many")

    stand_in(monkeypatch, load_dataset)
    pairs = load_corpus("wmt14", "train", "en", "de")
    assert len(list(islice(pairs, 50_000))) == 50_000


def test_the_real_library_streams_a_local_copy(monkeypatch, tmp_path):
    """The library takes a folder of the repository's name for the repository: the call
    itself is tested, offline.
    """
    pytest.importorskip("datasets")
    table, parquet = (
        pytest.importorskip("pyarrow"),
        pytest.importorskip("pyarrow.parquet"),
    )
    copy = tmp_path / "wmt" / "wmt14"
    (copy / "de-en").mkdir(parents=True)
    texts = [("One.\n", " Eins. "), ("", "Zwei."), ("Three.", "Drei.")]
    rows = [{"en": en, "de": de} for en, de in texts]
    parquet.write_table(
        table.table({"translation": rows}),
        copy / "de-en" / "train-00000-of-00001.parquet",
    )
    about = {
        "configs": [
            {
                "config_name": "de-en",
                "data_files": [{"split": "train", "path": "de-en/train-*"}],
            }
        ]
    }
    (copy / "README.md").write_text(
        f"---\n{json.dumps(about)}\n---\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    stream = hub_pairs(3)
    assert list(stream) == list(stream) == [("Eins.", "One."), ("Drei.", "Three.")]


def test_hub_without_network_is_one_clear_error(monkeypatch):
    def load_dataset(*arguments, **options):
        raise ConnectionError("offline")

    stand_in(monkeypatch, load_dataset)
    with pytest.raises(
        UserError, match=r"wmt/wmt14 on the Hugging Face Hub can't be read \(offline\)"
    ):
        list(load_corpus("wmt14", "train", "en", "fr"))
