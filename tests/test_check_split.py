"""The check of `split_of`: right ways pass, each mistake gets its reason."""

import random
import zlib
from hashlib import blake2b, sha256

import pytest

from annotated_transformer import check
from annotated_transformer.data import pairs

PLAIN = """
def split_of(phrase):
    if phrase.pattern.size < 100:
        return "train"
    number = crc32(phrase.meaning.encode())
    return {0: "test", 1: "val"}.get(number % 32, "train")
"""
HASHED = "crc32(phrase.meaning.encode())"
RIGHT = [
    ("", ""),
    (HASHED, "blake2b(phrase.meaning.encode(), digest_size=1).digest()[0]"),
    (HASHED, "int(sha256(repr(phrase.values).encode()).hexdigest(), 16)"),
    (HASHED, "random.Random(phrase.meaning).randrange(32)"),
    ('{0: "test", 1: "val"}', '{7: "val", 30: "test"}'),
]
MISTAKES = [
    (HASHED, "hash(phrase.meaning)", "In another process"),
    (HASHED, "random.randrange(32)", "asked twice"),
    (HASHED, "id(phrase) // 16", "asked twice"),
    ("phrase.meaning.", "phrase.say('en').", "in two wordings"),
    ("phrase.meaning.", "(phrase.pattern.texts['de'] + phrase.meaning).", "wordings"),
    ("phrase.meaning.", "str(phrase.values[0]).", "the date makes no difference"),
    ("phrase.meaning.", "str(phrase.values[-1]).", "the city makes no difference"),
    ("size < 100", "size < 0", "patterns of fewer than 100 are for training"),
    ("size < 100", "size < 1_000", "Of the 366 days of a year none is held out"),
    ("% 32", "% 100", "1 in 100, where 1 in 32"),
    ("% 32", "% 256", "1 in 256, where 1 in 32"),
    ("% 32", "% 16", "1 in 16, where 1 in 32"),
    ("number % 32", "number", "none, where 1 in 32"),
    ('{0: "test", 1: "val"}', '{0: "test"}', "in val, none"),
    ("    return {", "    {", "`return` missing"),
    ('"train")', '"training")', "returns 'training'"),
    (".encode()", "", "raised TypeError"),
]


def verdict(old, new):
    """What the check says when a piece of the plain solution is another."""
    assert old in PLAIN
    names = {"crc32": zlib.crc32, "blake2b": blake2b, "sha256": sha256}
    exec(PLAIN.replace(old, new, 1), names | {"random": random}, names)
    return check.split_of(names["split_of"])


@pytest.mark.parametrize("old, new", RIGHT)
def test_right_ways_pass(old, new):
    found = verdict(old, new)
    assert found, found


def test_the_packages_own_passes():
    assert check.split_of(pairs.split_of)


@pytest.mark.parametrize("old, new, reason", MISTAKES)
def test_mistakes_get_their_reason(old, new, reason):
    found = verdict(old, new)
    assert not found and reason in str(found), found


def test_a_hash_of_the_readers_own_is_left_alone():
    names = {"hash": lambda text: zlib.crc32(text.encode())}
    exec(PLAIN.replace(HASHED, "hash(phrase.meaning)"), names)
    own = names["hash"]
    assert check.split_of(names["split_of"]) and names["hash"] is own


def test_an_empty_one_is_not_yet_written():
    def split_of(phrase):
        raise NotImplementedError

    assert str(check.split_of(split_of)) == "not yet written"
