"""Tokens in a sentence of Multi30k, for vocabularies of growing size.

    python -m benchmarks.paper.vocabulary

Also measured: what it changes whether a token of Moses keeps the space before it or the
one after it. Multi30k is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder
that holds it. Takes minutes and writes results/paper/vocabulary.json, which
nbs/data/tokenizer.ipynb plots.
"""

from collections.abc import Sequence
from unittest.mock import patch

from tokenizers import Regex, Tokenizer, pre_tokenizers

from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import empty_tokenizer, moses_tokenize
from annotated_transformer.data.tokenizer_training import train_bpe, train_tokenizer
from benchmarks.record import command_line, save

SIZES = [250, 500, 1000, 2000, 4000, 8000, 16000]
EXAMPLES = ["hundeschlitten", "motorradrennen", "gitarrenspieler", "holzbrücke"]


def tokens_per_sentence(
    pairs: list[tuple[str, str]], size: int, joint: bool
) -> tuple[float, float]:
    """Mean number of tokens, [eos] not counted, of the English and the German side."""
    tokenizer = train_tokenizer(pairs, "en", "de", size, joint=joint)
    sides = (
        tokenizer.encode_source([en for en, _ in pairs]),
        tokenizer.encode_target([de for _, de in pairs]),
    )
    return tuple(sum(len(row) - 1 for row in rows) / len(pairs) for rows in sides)


def space_before(*settings: bool) -> Tokenizer:
    """The package's untrained tokeniser, but cut between spaces, each at the front of
    what follows it.
    """
    tokenizer = empty_tokenizer()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("▁[^▁]*"), "isolated")
    return tokenizer


def cut_words(tokenizer: Tokenizer, lines: list[str]) -> dict[str, list[str]]:
    """The different words of some lines that the tokeniser cuts, with their pieces."""
    words = sorted({word for line in lines for word in line.split()})
    pieces = {
        word: tokenizer.encode(word, add_special_tokens=False).tokens for word in words
    }
    return {word: found for word, found in pieces.items() if len(found) > 1}


def sides_of_the_space(
    pairs: list[tuple[str, str]], tests: list[str], size: int = 10_000
) -> dict[str, dict]:
    """For the space before and after: tokens per training sentence, and what the pieces
    of cut German words share.

    Shared is a piece at the space's end of a word that is by itself a word of the
    German training text; the words are those of the test sets.
    """
    english, german = ([pair[side] for pair in pairs] for side in (0, 1))
    sides = (
        moses_tokenize(english, "en", lowercase=True),
        moses_tokenize(german, "de", lowercase=True),
    )
    texts = [line for lines in zip(*sides, strict=True) for line in lines]
    known = {word for line in sides[1] for word in line.split()}
    lines, found = moses_tokenize(tests, "de", lowercase=True), {}
    trainer = "annotated_transformer.data.tokenizer_training"
    with patch(f"{trainer}.empty_tokenizer", space_before):
        before = train_bpe(texts, size)
    trained = {
        "before": (before, 0),
        "after": (train_bpe(texts, size, spaces_only=True), -1),
    }
    for name, (tokenizer, end) in trained.items():
        cut = cut_words(tokenizer, lines)
        rows = [
            tokenizer.encode_batch(side, add_special_tokens=False) for side in sides
        ]
        found[name] = {
            "tokens": [sum(map(len, side)) / len(pairs) for side in rows],
            "cut_words": len(cut),
            "shared": sum(pieces[end].strip("▁") in known for pieces in cut.values())
            / len(cut),
            "examples": {
                word: tokenizer.encode(word, add_special_tokens=False).tokens
                for word in EXAMPLES
            },
        }
    return found


def curves(pairs: list[tuple[str, str]]) -> dict[str, list[float]]:
    """Tokens per sentence by size, of vocabularies shared and separate."""
    shared = [tokens_per_sentence(pairs, size, joint=True) for size in SIZES]
    separate = [tokens_per_sentence(pairs, size, joint=False) for size in SIZES]
    return {
        "German, shared": [de for _, de in shared],
        "German, its own": [de for _, de in separate],
        "English, shared": [en for en, _ in shared],
        "English, its own": [en for en, _ in separate],
    }


def words_per_sentence(lines: list[str], lang: str) -> float:
    """Mean number of Moses tokens."""
    return sum(len(line.split()) for line in moses_tokenize(lines, lang)) / len(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Train every vocabulary and write the record."""
    command_line(__doc__).parse_args(argv)
    pairs = list(load_corpus("multi30k", "train", "en", "de"))
    tests = [
        de
        for split in ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
        for _, de in load_corpus("multi30k", split, "en", "de")
    ]
    found = {
        "corpus": "Multi30k train, en and de",
        "sizes": SIZES,
        "curves": curves(pairs),
        "words": {
            "English": words_per_sentence([en for en, _ in pairs], "en"),
            "German": words_per_sentence([de for _, de in pairs], "de"),
        },
        "space": sides_of_the_space(pairs, tests),
    }
    save("paper/vocabulary.json", found, "tokenizers", "sacremoses")


if __name__ == "__main__":
    main()
