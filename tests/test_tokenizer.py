"""data/tokenizer: byte pairs against the reference, exact decoding, Moses' token
counts, files and their faults.
"""

import json
import os
import pickle
import subprocess
import sys
import unicodedata
from collections import Counter
from copy import deepcopy
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from annotated_transformer.data.corpus import load_corpus, read_lines
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer import (
    PairTokenizer,
    apply_merges,
    learn_merges,
    moses_detokenize,
    moses_tokenize,
    train_bpe,
    train_tokenizer,
)
from annotated_transformer.errors import UserError
from annotated_transformer.model.config import BOS, EOS, PAD, UNK

DATA = os.environ.get("ANNOTATED_TRANSFORMER_DATA")
needs_data = pytest.mark.skipif(
    not DATA, reason="ANNOTATED_TRANSFORMER_DATA is not set"
)
PAIRS = phrasebook("en", "de", "train", 500)


@pytest.fixture(scope="module")
def joint() -> PairTokenizer:
    return train_tokenizer(PAIRS, "en", "de", 400)


@needs_data
def test_byte_pairs_are_those_of_the_reference():
    folder = Path(DATA) / "reference" / "subword-nmt"
    lines = [line.split() for line in read_lines(folder / "corpus.en.gz")]
    counts = Counter((*word[:-1], f"{word[-1]}</w>") for line in lines for word in line)
    merges = learn_merges(counts, 1000)
    assert merges == [
        tuple(line.split()) for line in list(read_lines(folder / "bpe.ref.gz"))[1:]
    ]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    tokens = {
        word: "@@ ".join(apply_merges(word, ranks)[-1]).removesuffix("</w>")
        for word in counts
    }
    cut = [
        " ".join(tokens[(*word[:-1], f"{word[-1]}</w>")] for word in line)
        for line in lines
    ]
    assert cut == [line.strip() for line in read_lines(folder / "corpus.bpe.ref.en.gz")]


@needs_data
@pytest.mark.parametrize(
    ("split", "lang", "count"),
    [
        ("train", "en", 377534),
        ("train", "de", 360706),
        ("val", "en", 13308),
        ("val", "de", 12828),
        ("test_2016_flickr", "en", 12968),
        ("test_2016_flickr", "de", 12103),
        ("test_2016_flickr", "fr", 13988),
        ("test_2017_flickr", "en", 11376),
        ("test_2017_flickr", "de", 10758),
        ("test_2017_flickr", "fr", 12596),
        ("test_2017_mscoco", "en", 5239),
        ("test_2017_mscoco", "de", 5158),
        ("test_2017_mscoco", "fr", 5710),
    ],
)
def test_moses_tokens_are_as_many_as_multi30k_states(split, lang, count):
    """Counts in words of Multi30k's README, which are those of its lower-cased,
    Moses-tokenised files.
    """
    other = "en" if lang != "en" else "de"
    texts = [pair[0] for pair in load_corpus("multi30k", split, lang, other, DATA)]
    assert (
        sum(
            len(line.split(" ")) for line in moses_tokenize(texts, lang, lowercase=True)
        )
        == count
    )


def test_special_ids(joint):
    tokens = ("[pad]", "[bos]", "[eos]", "[unk]")
    assert [*map(joint.source.token_to_id, tokens)] == [PAD, BOS, EOS, UNK]
    assert joint.src_vocab_size == joint.tgt_vocab_size == 400 and joint.joint


def test_text_comes_back_exactly(joint):
    for side, texts in enumerate(zip(*PAIRS, strict=True)):
        ids = (joint.encode_source, joint.encode_target)[side](list(texts))
        assert all(row[-1] == EOS and BOS not in row for row in ids)
        assert joint.decode(ids) == [
            unicodedata.normalize("NFC", text) for text in texts
        ]


@needs_data
def test_real_text_comes_back_exactly():
    pairs = list(load_corpus("multi30k", "val", "en", "de", DATA)) + list(
        load_corpus("wmt14", "val", "en", "de", DATA)
    )
    tokenizer = train_tokenizer(pairs, "en", "de", 2000)
    german = [unicodedata.normalize("NFC", de) for _, de in pairs]
    assert tokenizer.decode(tokenizer.encode_target(german)) == german


@pytest.mark.parametrize(
    "text", ["", " ", "  two  spaces ", "a\tb", "don't - stop…", "1,000.50"]
)
def test_odd_spaces_and_punctuation_come_back(text):
    tokenizer = train_tokenizer(
        [("a b\tc don't - stop…", "two spaces 1,000.50 2 3 4 6 7 8 9")] * 2,
        "en",
        "de",
        60,
    )
    assert tokenizer.decode(tokenizer.encode_target([text])) == [text]


def test_decomposed_letters_are_composed(joint):
    assert joint.encode_target(["schön"]) == joint.encode_target(["scho\u0308n"])


def test_digits_stand_alone_and_words_share_across_punctuation(joint):
    tokens = [token.strip("▁") for token in joint.source_tokens("1984")]
    assert tokens == [*"1984", "</s>"]
    assert joint.source_tokens("Monday.")[:-2] == joint.source_tokens("Monday")[:-1]


def test_specials_typed_as_text_are_text(joint, tmp_path):
    joint.save(tmp_path)
    for tokenizer in (joint, PairTokenizer.load(tmp_path)):
        row = tokenizer.encode_source(["[eos] [pad] [bos]"])[0]
        assert row.count(EOS) == 1 and PAD not in row and BOS not in row


def test_unknown_characters_are_named_and_shown(joint):
    assert joint.unknown_characters("a ☃ and ☃, 北") == ["☃", "北"]
    assert joint.unknown_characters(PAIRS[0][0]) == []
    assert UNK in joint.encode_source(["☃"])[0]
    assert joint.decode([[UNK, EOS]]) == ["[unk]"]


def test_decode_drops_padding_begin_and_end(joint):
    row = joint.encode_target(["drei"])[0]
    assert joint.decode([[BOS, *row, PAD, PAD], []]) == ["drei", ""]


def test_lower_casing():
    tokenizer = train_tokenizer(
        [("Hello World", "Hallo Welt")] * 2, "en", "de", 60, lowercase=True
    )
    assert tokenizer.decode(tokenizer.encode_target(["HALLO Welt"])) == ["hallo welt"]


def test_moses_round_trip_and_tokens():
    texts = [
        ("A dog, running.", "Ein Hund, der rennt."),
        ("It's two o'clock.", "Es ist zwei Uhr."),
    ] * 3
    tokenizer = train_tokenizer(texts, "en", "de", 80, moses=True, lowercase=True)
    ids = tokenizer.encode_target(["Ein Hund, der rennt."])
    assert tokenizer.decode(ids) == ["ein hund, der rennt."]
    assert tokenizer.decode(ids, detokenize=False) == ["ein hund , der rennt ."]
    assert tokenizer.source_tokens("A dog.")[-1] == "</s>"


def test_tokens_of_moses_keep_the_space_after_them():
    """As in subword-nmt: a word is the same token as the last part of a compound."""
    texts = ["sled"] * 9 + ["dog dogs cats dogsled"]
    tokenizer = train_bpe(texts, 20, spaces_only=True)
    tokens = {
        word: tokenizer.encode(word).tokens[:-1]
        for word in ("sled", "dogsled", "gasled")
    }
    assert tokens["sled"] == ["sled▁"] and all(
        pieces[-1] == "sled▁" for pieces in tokens.values()
    )
    assert len(tokens["gasled"]) > 1
    for text in ["", "sled", " dogs  cats ", "dogs cats"]:
        assert tokenizer.decode(tokenizer.encode(text).ids[:-1]) == text


def test_moses_escapes_nothing_and_detokenises_blank_lines():
    assert moses_tokenize(["Tom & Jerry's <b>"], "en") == ["Tom & Jerry 's < b >"]
    assert moses_detokenize(["", "Tom & Jerry 's"], "en") == ["", "Tom & Jerry's"]


def test_separate_vocabularies(tmp_path):
    tokenizer = train_tokenizer(PAIRS, "en", "de", 300, joint=False)
    assert (
        not tokenizer.joint
        and tokenizer.source.get_vocab() != tokenizer.target.get_vocab()
    )
    tokenizer.save(tmp_path)
    again = PairTokenizer.load(tmp_path)
    texts = [src for src, _ in PAIRS[:50]]
    assert not again.joint and again.encode_source(texts) == tokenizer.encode_source(
        texts
    )
    assert again.encode_target(texts) == tokenizer.encode_target(texts)
    with pytest.raises(UserError, match="two passes"):
        train_tokenizer(iter(PAIRS), "en", "de", 300, joint=False)


def test_training_is_the_same_each_time():
    """In another process too: no order of a hash table gets in."""
    code = (
        "from annotated_transformer.data.phrasebook import phrasebook\n"
        "from annotated_transformer.data.tokenizer import train_tokenizer\n"
        "print(train_tokenizer(phrasebook('en', 'de', 'train', 500), 'en', 'de', "
        "400).source.to_str())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert (
        runs[0].stdout
        == runs[1].stdout
        == train_tokenizer(PAIRS, "en", "de", 400).source.to_str() + "\n"
    )


def test_impossible_vocabularies():
    with pytest.raises(UserError, match="no text to learn"):
        train_tokenizer([], "en", "de", 100)
    with pytest.raises(UserError, match="vocab_size 10 is too small: .* take "):
        train_tokenizer(PAIRS, "en", "de", 10)


def test_at_most_a_thousand_characters():
    rare = "".join(chr(0x4E00 + i) for i in range(3000))
    vocabulary = train_bpe(["the the"] * 9 + [rare], 2000).get_vocab()
    assert sum(len(token) == 1 for token in vocabulary) == 1000
    assert set("the▁") <= set(vocabulary)


def test_saving_and_loading(joint, tmp_path):
    joint.save(tmp_path / "new" / "model")
    again = PairTokenizer.load(tmp_path / "new" / "model")
    assert again.joint and (again.src_lang, again.tgt_lang) == ("en", "de")
    assert not again.moses and not again.lowercase
    assert again.source.to_str() == joint.source.to_str()
    assert sorted(path.name for path in (tmp_path / "new" / "model").iterdir()) == [
        "text.json",
        "tokenizer.json",
    ]


def foreign() -> str:
    return Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[])).to_str()


@pytest.mark.parametrize("name", ["tokenizer.json", "text.json"])
@pytest.mark.parametrize(
    "damage", ["gone", "", "{}", "[1]", "not json", b"\xff\xfe", "half", "directory"]
)
def test_damaged_files_are_one_clear_error(joint, tmp_path, name, damage):
    joint.save(tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    path.unlink()
    if damage == "directory":
        path.mkdir()
    elif damage == "half":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage != "gone":
        path.write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    with pytest.raises(UserError, match=name):
        PairTokenizer.load(tmp_path)


def test_a_tokeniser_that_ends_no_text_is_refused(joint, tmp_path):
    joint.save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(
        json.dumps(content | {"post_processor": None})
    )
    with pytest.raises(UserError, match=r"doesn't end a text with \[eos\]"):
        PairTokenizer.load(tmp_path)


def test_foreign_and_newer_files(joint, tmp_path):
    joint.save(tmp_path)
    (tmp_path / "tokenizer.json").write_text(foreign())
    with pytest.raises(UserError, match="made by another program"):
        PairTokenizer.load(tmp_path)
    settings = json.loads((tmp_path / "text.json").read_text())
    (tmp_path / "text.json").write_text(
        json.dumps({"format": 2, "languages": ["en", "de"]})
    )
    with pytest.raises(
        UserError, match="format 2, but this version reads format 1; upgrade"
    ):
        PairTokenizer.load(tmp_path)
    (tmp_path / "text.json").write_text(json.dumps({**settings, "moses": "yes"}))
    with pytest.raises(UserError, match="must hold"):
        PairTokenizer.load(tmp_path)


def test_moses_is_imported_only_where_it_is_needed():
    code = (
        "import sys, annotated_transformer.data.batching\n"
        "print([name for name in sys.modules if name in ('sacremoses', 'datasets')])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_a_copy_reads_special_tokens_in_a_text_as_text():
    tokenizer = train_tokenizer(phrasebook("en", "de", "train", 200), "en", "de", 200)
    expected = tokenizer.encode_source(["[eos] five"])
    assert deepcopy(tokenizer).encode_source(["[eos] five"]) == expected
    assert (
        pickle.loads(pickle.dumps(tokenizer)).encode_source(["[eos] five"]) == expected
    )
