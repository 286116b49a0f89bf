"""data/tokenizer: byte pairs against the reference, exact decoding, Moses' token
counts, files and their faults.
"""

import itertools
import json
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from dataclasses import replace

import pytest
from tokenizers import Tokenizer, models

from annotated_transformer.data.bpe_dropout import BPEDropout
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.normalization import normalize_text
from annotated_transformer.data.pair_tokenizer import (
    PairTokenizer,
    moses_detokenize,
    moses_tokenize,
)
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.text_files import read_lines
from annotated_transformer.data.tokenizer import apply_merges, learn_merges, merge
from annotated_transformer.data.tokenizer_training import train_bpe, train_tokenizer
from annotated_transformer.errors import UserError
from annotated_transformer.model.config import BOS, EOS, PAD, UNK

PAIRS = phrasebook("en", "de", "train", 500)


@pytest.fixture(scope="module")
def joint() -> PairTokenizer:
    return train_tokenizer(PAIRS, "en", "de", 400)


@pytest.mark.parametrize("steps", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_byte_pairs_are_those_of_the_reference(steps, data_root):
    folder = data_root / "reference" / "subword-nmt"
    lines = [line.split() for line in read_lines(folder / "corpus.en.gz")]
    counts = Counter((*word[:-1], f"{word[-1]}</w>") for line in lines for word in line)
    published = list(read_lines(folder / "bpe.ref.gz"))[1:]
    merges = [tuple(line.split()) for line in published]
    assert len(merges) == 1000 and learn_merges(counts, steps) == merges[:steps]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    reference = read_lines(folder / "corpus.bpe.ref.en.gz")
    for line, cut in itertools.islice(zip(lines, reference, strict=True), 200):
        words = [
            apply_merges((*word[:-1], f"{word[-1]}</w>"), ranks)[-1] for word in line
        ]
        tokens = ["@@ ".join(word).removesuffix("</w>") for word in words]
        assert " ".join(tokens) == cut.strip()


def test_the_library_learns_and_cuts_as_the_chapter_does():
    """Merge for merge, where it takes, of equally frequent pairs, the smaller ids."""
    texts = [text for pair in PAIRS for text in pair]
    library = train_bpe(texts, 400)
    model = json.loads(library.to_str())["model"]
    merges, ids = [tuple(pair) for pair in model["merges"]], model["vocab"]
    pieces = Counter(
        piece
        for text in texts
        for piece, _ in library.pre_tokenizer.pre_tokenize_str(
            library.normalizer.normalize_str(text)
        )
    )
    words, ties = [(tuple(piece), n) for piece, n in pieces.items()], 0
    for step, learned in enumerate(merges):
        pairs = Counter()
        for word, n in words:
            for pair in itertools.pairwise(word):
                pairs[pair] += n
        most = max(pairs.values())
        tied = [pair for pair in pairs if pairs[pair] == most]
        assert learned == min(tied, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
        if not ties:  # until the first one, both lists are the same
            (ours,) = learn_merges(Counter(dict(words)), 1)
            assert ours == max(tied) and (len(tied) > 1 or ours == learned), step
        ties += len(tied) > 1
        words = [(merge(word, learned), n) for word, n in words]
    assert ties and len(merges) > 300
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    for piece in pieces:
        tokens = tuple(token.value for token in library.model.tokenize(piece))
        assert tokens == apply_merges(tuple(piece), ranks)[-1]


def test_moses_lowers_a_text_before_it_looks_for_abbreviations():
    """ "Bart." (beard) is one, "bart." isn't: the reason for the order."""
    shaved = ["Ein Mann mit ergrauenden Haaren rasiert seinen Bart."]
    ends = [moses_tokenize(shaved, "de", low)[0].split()[-2:] for low in (False, True)]
    assert ends == [["seinen", "Bart."], ["bart", "."]]


WORDS = {  # Multi30k's README counts them in its lower-cased, Moses-tokenised files
    "train": {"en": 377534, "de": 360706},
    "val": {"en": 13308, "de": 12828},
    "test_2016_flickr": {"en": 12968, "de": 12103, "fr": 13988},
    "test_2017_flickr": {"en": 11376, "de": 10758, "fr": 12596},
    "test_2017_mscoco": {"en": 5239, "de": 5158, "fr": 5710},
}


@pytest.mark.slow
@pytest.mark.parametrize("split", WORDS)
def test_moses_tokens_are_as_many_as_multi30k_states(split, data_root):
    for lang, count in WORDS[split].items():
        other = "en" if lang != "en" else "de"
        pairs = load_corpus("multi30k", split, lang, other, data_root)
        lines = moses_tokenize([text for text, _ in pairs], lang, lowercase=True)
        assert sum(len(line.split(" ")) for line in lines) == count, lang


def test_text_comes_back_exactly(joint):
    assert joint.src_vocab_size == joint.tgt_vocab_size == 400 and joint.joint
    for encode, texts in zip(
        (joint.encode_source, joint.encode_target),
        zip(*PAIRS, strict=True),
        strict=True,
    ):
        ids = encode(list(texts))
        assert all(row[-1] == EOS and BOS not in row for row in ids)
        composed = [unicodedata.normalize("NFC", text) for text in texts]
        assert joint.decode([[BOS, *row, PAD] for row in ids]) == composed
    assert joint.encode_target(["schön"]) == joint.encode_target(["scho\u0308n"])


def test_odd_spaces_and_punctuation_come_back_in_one_line():
    odd = "one\ntwo\x1b[31m\u2028three"
    pair = ("a b\tc don't - stop… " + odd, "two spaces 1,000.50 2 3 4 6 7 8 9")
    tokenizer = train_tokenizer([pair] * 2, "en", "de", 80)
    texts = ["", " ", "  two  spaces ", "a\tb", "don't - stop…", "1,000.50"]
    assert tokenizer.decode(tokenizer.encode_target(texts)) == texts
    assert tokenizer.decode(tokenizer.encode_target([odd])) == ["one two [31m three"]


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
    assert joint.unknown_characters("a ☃ and ☃, 北") == ["☃", "☃", "北"]
    assert joint.unknown_characters(PAIRS[0][0]) == []
    assert UNK in joint.encode_source(["☃"])[0]
    assert joint.decode([[UNK, EOS]]) == ["[unk]"]


def test_moses_round_trip_and_tokens():
    texts = [("A dog, it's running.", "Ein Hund, der rennt.")] * 3
    tokenizer = train_tokenizer(texts, "en", "de", 80, moses=True, lowercase=True)
    ids = tokenizer.encode_target(["Ein Hund, der rennt."])
    assert tokenizer.decode(ids) == ["ein hund, der rennt."]
    assert tokenizer.decode(ids, detokenize=False) == ["ein hund , der rennt ."]
    assert tokenizer.source_tokens("A dog.")[-1] == "</s>"
    assert moses_tokenize(["Tom & Jerry's <b>"], "en") == ["Tom & Jerry 's < b >"]
    assert moses_detokenize(["", "Tom & Jerry 's"], "en") == ["", "Tom & Jerry's"]


def test_tokens_of_moses_keep_the_space_after_them():
    """As in subword-nmt: a word is the same token as the last part of a compound."""
    texts = ["sled"] * 9 + ["dog dogs cats dogsled"]
    tokenizer = train_bpe(texts, 20, spaces_only=True)
    assert tokenizer.encode("sled").tokens[:-1] == ["sled▁"]
    for word in ("dogsled", "gasled"):
        assert tokenizer.encode(word).tokens[-2] == "sled▁"
    for text in ["", "sled", " dogs  cats ", "dogs cats"]:
        assert tokenizer.decode(tokenizer.encode(text).ids[:-1]) == text


NORMALIZED = {
    "“Hi,” she said. ‘No’": "\"Hi,\" she said. 'No'",
    "«Oui» „ja‟ ‚so’": '"Oui" "ja" \'so\'',
    "WHERE IS THE STATION?": "Where is the station?",
    "“WHAT?” I’M HERE, AND I KNOW IT": '"What?" I\'m here, and I know it',
    "(I WILL) IF I CAN. I": "(I will) if I can. I",
    "HE'S 39 NOW": "He's 39 now",
    "Where Is The Station?": "Where is the station?",
    "“Do I Know Tom’s Car,” 1984": '"Do I know tom\'s car," 1984',
    "ALGÚN DÍA IRÉ": "Algún día iré",
    "SEND IT TO Jo.B@Web.de NOW": "Send it to \ufffc now",
    "See https://a.b/c?d=E, or www.f.org.": "See \ufffc, or \ufffc.",
    "Ask a.example.com/x or b.de.": "Ask \ufffc or \ufffc.",
    "Call 555-1234, 030 1234567 or +49 30 901820.": "Call \ufffc, \ufffc or \ufffc.",
    "Is it (212) 555-0147 or 030/1234567?": "Is it \ufffc or \ufffc?",
    "ISTANBUL İLE IRMAK": "Istanbul i\u0307le irmak",  # as Unicode has it, everywhere
}
LEFT = ["", "OK", "NATO!", "I'M", "1984 ABC", "It's in the USA", "STRAßE IST GUT"]
LEFT += [
    "I do",
    "Mail a@b or @tom at 3.5@, www. or http:",
    "The Lord of the Rings",
    "Hello Mr. Tom",
    "北京 上海",
    "39 41",
    "In 1998, 45 men paid $1,250.50 or 1234567 on 06/15/2024.",
    "e.g. 3.5 at 12:30, so 12 34 5",
    "Is \"it\" 'so'?",
]


@pytest.mark.parametrize(
    ("text", "wanted"), [*NORMALIZED.items(), *((t, t) for t in LEFT)]
)
def test_source_text_is_normalized(text, wanted):
    assert normalize_text(text) == wanted == normalize_text(wanted)


@pytest.mark.parametrize("part", ["a", "a.", "a@a.", "www.!", "12 ", "1-", "com."])
def test_a_word_without_end_is_normalized_at_once(part):
    began = time.process_time()
    normalize_text(part * 50_000)
    assert time.process_time() - began < 2


def test_a_normalizing_pair_changes_its_source_alone():
    pairs = [(en.upper(), f"“{de}”") for en, de in PAIRS]
    normalizing = train_tokenizer(pairs, "en", "de", 300, normalize=True)
    assert {*"“”"} <= normalizing.target.get_vocab().keys()
    texts, same = ["“TWO HOURS”, ’TIS SO"], ['"Two hours", \'tis so']
    assert normalizing.encode_source(texts) == normalizing.encode_source(same)
    assert normalizing.source_tokens(texts[0]) == normalizing.source_tokens(same[0])
    assert normalizing.unknown_characters("‟☃") == ['"', "☃"]
    assert normalizing.encode_target(texts) != normalizing.encode_target(same)
    assert normalizing.encode_target(["a@b.de"]) == normalizing.encode_target(
        ["\ufffc"]
    )
    assert normalizing.unknown_characters("☃ a@b.de") == ["☃", "\ufffc"]
    plain = replace(normalizing, normalize=False)
    assert plain.encode_source(texts) != normalizing.encode_source(texts)


def test_an_older_text_json_normalizes_nothing(joint, tmp_path):
    replace(joint, normalize=True).save(tmp_path)
    path = tmp_path / "text.json"
    settings = json.loads(path.read_text())
    assert settings["normalize"] is True and settings["format"] == 1
    assert PairTokenizer.load(tmp_path).normalize
    del settings["normalize"]
    path.write_text(json.dumps(settings))
    assert not PairTokenizer.load(tmp_path).normalize


@pytest.mark.parametrize("joint", [True, False])
def test_saving_and_loading(tmp_path, joint):
    tokenizer = train_tokenizer(PAIRS, "en", "de", 300, joint=joint, lowercase=True)
    assert (tokenizer.source.to_str() == tokenizer.target.to_str()) == joint
    tokenizer.save(tmp_path / "new" / "model")
    again = PairTokenizer.load(tmp_path / "new" / "model")
    assert again.joint == tokenizer.joint == joint
    assert (again.src_lang, again.tgt_lang, again.moses) == ("en", "de", False)
    assert again.lowercase
    texts = [src for src, _ in PAIRS[:50]]
    assert again.encode_source(texts) == tokenizer.encode_source(texts)
    assert again.encode_target(texts) == tokenizer.encode_target(texts)


def test_training_is_the_same_each_time(joint):
    """In another process too: no order of a hash table gets in."""
    code = (
        "from annotated_transformer.data.phrasebook import phrasebook\n"
        "from annotated_transformer.data.tokenizer_training import train_tokenizer\n"
        "pairs = phrasebook('en', 'de', 'train', 500)\n"
        "print(train_tokenizer(pairs, 'en', 'de', 400).source.to_str())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.removesuffix("\n") == joint.source.to_str()


@pytest.mark.parametrize(
    ("pairs", "size", "message"),
    [
        ([], 100, "no text to learn"),
        (PAIRS, 10, "vocab_size 10 is too small: .* take "),
        (PAIRS, 0, "vocab_size is 0"),
    ],
)
def test_impossible_vocabularies(pairs, size, message):
    with pytest.raises(UserError, match=message):
        train_tokenizer(pairs, "en", "de", size)


def test_at_most_a_thousand_characters():
    rare = "".join(chr(0x4E00 + i) for i in range(3000))
    vocabulary = train_bpe(["the the"] * 9 + [rare], 2000).get_vocab()
    assert sum(len(token) == 1 for token in vocabulary) == 1000
    assert set("the▁") <= set(vocabulary)


@pytest.mark.parametrize("name", ["tokenizer.json", "text.json"])
@pytest.mark.parametrize(
    "damage", ["gone", "{}", "not json", b"\xff\xfe", "half", "directory"]
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


FOREIGN = {"type": "BPE", "vocab": {"[eos]": 0, "b": 1}, "merges": []}


def steps(count: int, content: str, pattern: str = "A") -> dict:
    """A normalizer of so many replacements."""
    step = {"type": "Replace", "pattern": {"String": pattern}, "content": content}
    return {"normalizer": {"type": "Sequence", "normalizers": [step] * count}}


def step(kind: str, **fields) -> dict:
    return {"normalizer": {"type": kind, **fields}}


def twice(kind: str) -> dict:
    fields = {"add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    both = [{"type": kind, **fields}] * 2
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": both}}


def table(**fields) -> dict:
    known = {"type": "BPE", "vocab": {"[unk]": 0}, "merges": [], "unk_token": "[unk]"}
    return {"model": known | fields}


EOS_PIECE = {"SpecialToken": {"id": "[eos]", "type_id": 0}}
TEXT_PIECE = {"Sequence": {"id": "A", "type_id": 0}}
RECURSIVE = r"(?<n>a+)\g<n>+\g<n>+b"


def template(pieces: list) -> dict:
    eos = {"[eos]": {"id": "[eos]", "ids": [2], "tokens": ["[eos]"]}}
    step = {"type": "TemplateProcessing", "single": pieces, "pair": []}
    return {"post_processor": step | {"special_tokens": eos}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (steps(28, "A"), "has more than 16 steps"),
        (steps(1, "AA"), "a replacement that makes a text longer"),
        (steps(1, "A", ""), "a replacement that makes a text longer"),
        (step("Prepend", prepend="b" * 20_000_000), "a text or a list longer than 64"),
        (
            step("Replace", pattern={"Regex": "a?" * 20}, content=""),
            "a pattern that is",
        ),
        (
            step("Replace", pattern={"Regex": RECURSIVE}, content=""),
            "a pattern that is",
        ),
        (twice("ByteLevel"), "two of ByteLevel"),
        (template([EOS_PIECE] * 1_000_000), "a text or a list longer than 64"),
        (template([TEXT_PIECE] * 2), "a template that doesn't hold the text once"),
        (table(unk_token="nope"), "no token 'nope' for what is unknown"),
        (
            table(type="WordPiece", max_input_chars_per_word=2**40),
            "more than 1,000 char",
        ),
        (table(vocab={"b" * 10_000: 0}), "a token of more than 1,024 characters"),
        (table(type="Unigram"), "a table of type 'Unigram'"),
        ({"decoder": {"type": "CTC"}}, "a step of type 'CTC'"),
        ({"normalizer": {"type": "Precompiled"}}, "a step of type 'Precompiled'"),
        ({"normalizer": {"type": "Replace"}}, "not a readable tokenizer"),
        ({"normalizer": 7}, "not a readable tokenizer"),
        ({"model": {"type": "BPE", "vocab": {"ab": 0}, "merges": []}}, "no merges"),
        ({"format": 2}, "format 2, but this version reads format 1; upgrade"),
        ({"moses": "yes"}, "must hold"),
        ({"normalize": 1}, "must hold"),
    ],
)
def test_files_of_others_are_refused(joint, tmp_path, change, message):
    joint.save(tmp_path)
    settings = {"format", "moses", "normalize"} & change.keys()
    name = "text.json" if settings else "tokenizer.json"
    content = json.loads((tmp_path / name).read_text()) | change
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(UserError, match=f"{name}.*({message})"):
        PairTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"post_processor": None}, r"doesn't end a text with \[eos\]"),
        ({"model": FOREIGN, "added_tokens": []}, "made by another program"),
    ],
)
def test_another_programs_tokenizer_is_read_and_not_trained_with(
    joint, tmp_path, change, message
):
    joint.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    opened = PairTokenizer.load(tmp_path)
    assert opened.encode_source(["b b"]) and "☃" in opened.unknown_characters("☃")
    with pytest.raises(UserError, match=f"source tokenizer .*{message}"):
        opened.check_trainable()


def test_a_call_gives_ids_and_mask_as_transformers_does(joint):
    texts = ["one house", "one house in March"]
    rows = joint.encode_source(texts)
    mask = [[1] * len(row) for row in rows]
    assert joint(texts) == {"input_ids": rows, "attention_mask": mask}
    assert joint(texts[0]) == {"input_ids": rows[0], "attention_mask": mask[0]}
    padded = joint(texts, return_tensors="pt")
    short, long = map(len, rows)
    assert padded["input_ids"].tolist() == [rows[0] + [PAD] * (long - short), rows[1]]
    ends = [[1] * short + [0] * (long - short), [1] * long]
    assert padded["attention_mask"].tolist() == ends
    assert joint(texts[0], return_tensors="pt")["input_ids"].tolist() == rows[:1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], "np"), "return_tensors is 'np': give 'pt'"),
        (([], "pt"), r"texts is \[\]: give a text"),
    ],
)
def test_a_call_that_makes_no_sense(joint, arguments, message):
    with pytest.raises(UserError, match=message):
        joint(*arguments)


def test_bpe_dropout_cuts_sources_smaller_and_always_alike(joint):
    texts = ["three young women are dancing in the street"] * 20
    whole = joint.encode_source(texts)
    some, again = (BPEDropout.of(joint, 0.2).encode_source(texts) for _ in "12")
    assert some == again
    assert len(set(map(tuple, some))) > 10
    assert all(len(row) >= len(whole[0]) for row in some)
    letters = BPEDropout.of(joint, 1.0).encode_source(texts)[0]
    assert len(letters) == len(texts[0]) + 2  # a mark before it, [eos] after it
    assert joint.decode([*some, letters]) == [*texts, texts[0]]
    assert BPEDropout.of(joint, 1.0).encode_target(texts) == whole


def test_bpe_dropout_needs_merges(joint):
    words = Tokenizer(models.WordLevel({"[unk]": 0}, unk_token="[unk]"))
    other = replace(joint, source=words)
    with pytest.raises(UserError, match="byte pairs, and the tokenizer is WordLevel"):
        BPEDropout.of(other, 0.1).encode_source(["a"])
