"""The tokenizers of published GPT-2 and BERT checkpoints."""

from pathlib import Path

from tokenizers import BertWordPieceTokenizer, Tokenizer

from ..data.tokenizer_files import (
    check_ids,
    parse_tokenizer,
    read_tokenizer,
    tokenizer_errors,
)
from ..errors import UserError
from ..files import read_bytes, read_json


def read_published_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    """The tokenizer of a published checkpoint, of tokenizer.json or a BERT's word list.

    Raises: UserError when there is none, it is damaged, takes steps that are
    not read here, or has ids that aren't below `vocab_size`.
    """
    tokenizer_path, words = folder / "tokenizer.json", folder / "vocab.txt"
    if tokenizer_path.is_file():
        tokenizer = read_tokenizer(tokenizer_path)
    elif words.is_file():
        tokenizer = parse_tokenizer(word_pieces(folder, words), words)
    else:
        raise UserError(
            f"{folder} has no tokenizer: it needs tokenizer.json, which transformers "
            "writes, or a BERT's vocab.txt"
        )
    check_ids(tokenizer, vocab_size, folder, spare=True)
    return tokenizer


def word_pieces(folder: Path, words: Path) -> str:
    """BERT's tokenizer from its word list; lower case unless the settings say no."""
    path = folder / "tokenizer_config.json"
    lower = read_json(path).get("do_lower_case", True) if path.is_file() else True
    with tokenizer_errors(words):
        lines = read_bytes(words).decode().rstrip("\n").split("\n")
        vocab = {word.rstrip("\r"): i for i, word in enumerate(lines)}
        return BertWordPieceTokenizer(vocab, lowercase=bool(lower)).to_str()
