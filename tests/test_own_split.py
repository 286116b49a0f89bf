"""`split`: one's own text in three parts that share no near copies."""

import gzip
import random

import pytest
from tiny_run import refused

from annotated_transformer.data.near_copies import NearCopies, sketch
from annotated_transformer.data.own_split import split_own
from annotated_transformer.errors import UserError

LANGS = ("en", "de")
LETTERS = "abcdefghijklmnoprstuvwz"


def own_pairs(count=200, copies=3):
    """Sentences of random words, each with some copies that differ by a number."""
    rng, pairs = random.Random(0), []
    for _ in range(count // (copies + 1)):
        words = ["".join(rng.sample(LETTERS, 5)) for _ in range(7)]
        for number in range(copies + 1):
            pairs.append(" ".join([*words, str(number)]))
    rng.shuffle(pairs)
    return [(src, src[::-1]) for src in pairs]


def write(folder, pairs, names=("mails.en", "mails.de")):
    paths = [folder / name for name in names]
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in side), encoding="utf-8")
    return paths


def read(folder, part):
    sides = ((folder / f"{part}.{lang}").read_text().splitlines() for lang in LANGS)
    return list(zip(*sides, strict=True))


def test_no_part_has_a_near_copy_of_another_and_nothing_is_lost():
    pairs = own_pairs()
    found = split_own(pairs, LANGS, 20)
    parts = found.parts
    assert sorted(sum(parts.values(), [])) == sorted(pairs)
    assert 20 <= len(parts["test"]) < 24 and 20 <= len(parts["valid"]) < 24
    for part, held in parts.items():
        for side, lang in enumerate(LANGS):
            known = NearCopies(sketch(pair[side], lang) for pair in held)
            others = [p for name, each in parts.items() if name != part for p in each]
            assert not any(sketch(pair[side], lang) in known for pair in others)
    # cut at random, nearly every one has one of its three copies in training
    assert found.drawn == 20 and found.leaked > 17


def test_a_near_copy_on_the_target_side_counts_too():
    pairs = [(src, "Ja doch.") for src, _ in own_pairs(80, copies=0)]
    with pytest.raises(UserError, match="near copies of each other"):
        split_own(pairs, LANGS, 10)


def test_the_same_text_is_split_in_the_same_way_wherever_its_lines_stand():
    pairs = own_pairs()
    first = split_own(pairs, LANGS, 20).parts
    second = split_own(pairs[::-1], LANGS, 20).parts
    assert {k: sorted(v) for k, v in first.items()} == {
        k: sorted(v) for k, v in second.items()
    }


def test_a_text_without_copies_leaks_nothing():
    found = split_own(own_pairs(copies=0), LANGS, 20)
    assert found.leaked == 0 and len(found.parts["test"]) == 20


def test_the_command_writes_what_train_and_evaluate_read(run, tmp_path):
    src, tgt = write(tmp_path, own_pairs())
    status, out, _ = run("split", src, tgt, "--out", tmp_path / "own")
    assert status == 0 and "200 pairs: train 160, valid 20, test 20" in out
    assert "of 20 pairs drawn at random" in out and "in test and valid, none" in out
    sizes = [len(read(tmp_path / "own", part)) for part in ("train", "valid", "test")]
    assert sizes == [160, 20, 20]
    assert run("verify", tmp_path / "own")[0] == 0
    (command,) = (x for x in out.splitlines() if x.startswith("next: "))
    words = command.split()[2:]
    assert words[-2:] == ["--from", "tatoeba-en-de"]
    short = "--set", "steps=1", "--out", tmp_path / "run", "--dry-run"
    status, out, err = run(*words, *short)
    assert status == 0, err


def test_packed_files_and_names_without_a_language(run, tmp_path):
    src, tgt = write(tmp_path, own_pairs(), ("a.txt", "b.txt"))
    refused(run("split", src, tgt, "-o", tmp_path / "own"), "a.txt", "--src en")
    named = "--src", "en", "--tgt", "de", "--held-out", 8
    assert run("split", src, tgt, *named, "-o", tmp_path / "own")[0] == 0
    packed = tmp_path / "mails.en.gz"
    packed.write_bytes(gzip.compress(src.read_bytes()))
    tgt = tgt.rename(tmp_path / "mails.de")
    assert run("split", packed, tgt, "--held-out", 8, "-o", tmp_path / "two")[0] == 0
    for part in ("train", "test"):
        assert read(tmp_path / "own", part) == read(tmp_path / "two", part)


def test_what_is_wrong_ends_in_one_line_and_writes_nothing(run, tmp_path):
    src, tgt = write(tmp_path, own_pairs())
    out = tmp_path / "own"
    refused(run("split", src, src, "-o", out), "both files are en")
    refused(run("split", src, tmp_path / "no.de", "-o", out), "no.de: no such file")
    empty = tmp_path / "empty.de"
    empty.write_bytes(b"")
    refused(run("split", src, empty, "-o", out), "empty.de is empty")
    short = tmp_path / "short.de"
    short.write_text("".join(tgt.read_text().splitlines(True)[:-3]))
    refused(run("split", src, short, "-o", out), "has 200 lines", "has 197")
    few = write(tmp_path, own_pairs()[:3], ("few.en", "few.de"))
    refused(run("split", *few, "-o", out), "3 pairs are too few")
    refused(run("split", src, tgt, "--held-out", 90, "-o", out), "at least 360")
    assert not out.exists()
    out.mkdir()
    (out / "mine").write_text("mine")
    refused(run("split", src, tgt, "-o", out), "own exists already")
    assert [path.name for path in out.iterdir()] == ["mine"]
    assert not list(tmp_path.glob(".draft*"))
