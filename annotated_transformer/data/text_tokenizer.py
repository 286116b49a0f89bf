"""The tokenizer of a text: ids and back, and its file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from ..errors import UserError
from ..files import write_file
from .tokenizer_files import check_ids, check_vocab_size, decode_rows, read_tokenizer
from .tokenizer_files import encode_texts as encode_texts


@dataclass(frozen=True, eq=False)
class TextTokenizer:
    """Text to ids and back, without loss."""

    tokenizer: Tokenizer = field(repr=False)

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return self.tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises: UserError for a character that has none."""
        (ids,) = encode_texts(self.tokenizer, [text])
        if self.decode(ids) != text:
            known = self.tokenizer.get_vocab()
            strange = next(letter for letter in text if letter not in known)
            raise UserError(
                f"{strange!r} is none of the {self.size} characters that this model "
                "knows: leave it out, or train on byte pairs, which know all"
            )
        return ids

    def decode(self, ids: list[int]) -> str:
        """The text of ids; bytes that are no UTF-8 become replacement characters."""
        return decode_rows(self.tokenizer, [ids])[0]

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json. Raises: UserError if it can't be written."""
        write_file(Path(folder) / "tokenizer.json", self.tokenizer.to_str().encode())


def characters(text: str) -> TextTokenizer:
    """A token for each different character of a text. Raises: UserError for none."""
    if not text:
        raise UserError("the text is empty: there is no character to learn")
    ids = {letter: number for number, letter in enumerate(sorted(set(text)))}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=next(iter(ids))))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return TextTokenizer(tokenizer)


def byte_pairs(text: str, vocab_size: int) -> TextTokenizer:
    """Byte-pair encoding over the 256 bytes of UTF-8, as GPT-2 has it: no text is new.

    Raises: UserError for an empty text, or a vocabulary that has no room for the bytes.
    """
    if not text:
        raise UserError("the text is empty: there is no byte pair to learn")
    check_vocab_size(vocab_size, least=256)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    settings: dict[str, Any] = dict(vocab_size=vocab_size, show_progress=False)
    trainer = trainers.BpeTrainer(initial_alphabet=alphabet, **settings)
    tokenizer.train_from_iterator([text], trainer)
    return TextTokenizer(tokenizer)


def read_text_tokenizer(folder: Path, vocab_size: int) -> TextTokenizer:
    """The tokenizer of a folder whose model has so many tokens.

    Raises: UserError if it is missing, damaged, or another model's.
    """
    tokenizer = TextTokenizer(read_tokenizer(folder / "tokenizer.json"))
    check_ids(tokenizer.tokenizer, vocab_size, folder, spare=False)
    tokenizer.tokenizer.encode_special_tokens = True  # "[eos]" in a text is text
    return tokenizer
