"""The tokenizer of a text: ids and back, and its file."""

from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from ..errors import UserError
from ..files import write_file
from .tokenizer_files import check_ids, decode_rows, read_tokenizer
from .tokenizer_files import encode_texts as encode_texts


@dataclass(frozen=True, eq=False)
class TextTokenizer:
    """Text to ids and back, without loss."""

    tokenizer: Tokenizer

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


def read_text_tokenizer(folder: Path, vocab_size: int) -> TextTokenizer:
    """The tokenizer of a folder whose model has so many tokens.

    Raises: UserError if it is missing, damaged, or another model's.
    """
    tokenizer = TextTokenizer(read_tokenizer(folder / "tokenizer.json"))
    check_ids(tokenizer.tokenizer, vocab_size, folder, spare=False)
    tokenizer.tokenizer.encode_special_tokens = True  # "[eos]" in a text is text
    return tokenizer
