"""Marian's tokenizer: SentencePiece cuts a text, a table gives each piece its id."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.pair_tokenizer import CONTROLS, PairTokenizer
from ..data.tokenizer_files import as_rows
from ..errors import UserError, nearest
from ..files import read_bytes, read_json, write_file, write_json
from .extras import needed


def split_code(text: str) -> tuple[str, str]:
    """A language code such as '>>deu<<' at the front of a text, or '', and the rest."""
    end = text.find("<<") + 2
    return (text[:end], text[end:]) if text.startswith(">>") and end > 1 else ("", text)


class Pieces:
    """One side's tokenizer: a SentencePiece model and the ids of its pieces."""

    def __init__(self, model: bytes, vocab: dict[str, int]):
        self.model, self.vocab = model, vocab
        self.processor = needed("sentencepiece").SentencePieceProcessor()
        self.processor.LoadFromSerializedProto(model)
        self.names = {i: name for name, i in vocab.items()}
        self.codes = [name for name in vocab if split_code(name) == (name, "")]
        self.eos_id, self.unk_id, self.pad_id = (
            vocab[name] for name in ("</s>", "<unk>", "<pad>")
        )

    def get_vocab_size(self) -> int:
        """How many tokens have an id."""
        return len(self.vocab)

    def get_vocab(self) -> dict[str, int]:
        """The ids of all pieces."""
        return self.vocab

    def id_to_token(self, i: int) -> str | None:
        """The piece of an id."""
        return self.names.get(i)

    def cut(self, text: str) -> list[str]:
        """The pieces of a text, known or not, the code of a language in front."""
        code, rest = split_code(text)
        return [code] * bool(code) + self.processor.encode(rest, out_type=str)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, ending in </s>.

        Raises: UserError for a code if the model has others and not this one.
        """
        code, _ = split_code(text)
        if code and self.codes and code not in self.vocab:
            raise UserError(
                f"unknown target language {code!r}: {nearest(code, self.codes)}"
            )
        ids = [self.vocab.get(piece, self.unk_id) for piece in self.cut(text)]
        return [*ids, self.eos_id]

    def decode(self, ids: list[int]) -> str:
        """The text of some ids on one line, without end, padding and unknown tokens."""
        special = (self.eos_id, self.unk_id, self.pad_id)
        cut = [self.names[i] for i in ids if i not in special and i in self.names]
        text = self.processor.decode_pieces(cut).replace("▁", " ")
        return CONTROLS.sub(" ", text).strip()


@dataclass(frozen=True, eq=False, repr=False)
class MarianTokenizer(PairTokenizer):
    """Text to ids and back for a Marian model; both sides may share a table of ids."""

    source: Pieces
    target: Pieces

    @property
    def joint(self) -> bool:
        """Whether both languages share one table of ids."""
        return self.source.vocab == self.target.vocab

    def check_trainable(self) -> None:
        """Nothing more: its ids were compared with the model's when it was opened."""

    @property
    def unk_id(self) -> int:
        """The id that stands for what the vocabulary lacks."""
        return self.source.unk_id

    def prefix(self, text: str) -> str:
        """A text's code of the target language, which each part of it needs, or ''."""
        code, rest = split_code(text)
        return code + " " * (bool(code) and rest.startswith(" "))

    def encode_source(self, texts: list[str]) -> list[list[int]]:
        """Source ids of each text, ending in </s>."""
        return [self.source.encode(text) for text in texts]

    def encode_target(self, texts: list[str]) -> list[list[int]]:
        """Target ids of each text, ending in </s>."""
        return [self.target.encode(text) for text in texts]

    def decode(self, ids: list[list[int]], detokenize: bool = True) -> list[str]:
        """Target text of each row of ids."""
        return [self.target.decode(row) for row in as_rows(ids)]

    def unknown_characters(self, text: str) -> list[str]:
        """Code and characters that the source's vocabulary lacks, or else pieces."""
        code, rest = split_code(text)
        lacking = [code] * (bool(code) and code not in self.source.vocab)
        for character in rest:
            if self.unk_id in self.source.encode(character):
                lacking.append(character)
        pieces = dict.fromkeys(self.source.cut(rest))
        return lacking or [each for each in pieces if each not in self.source.vocab]

    def settings(self) -> dict[str, Any]:
        """The content of tokenizer_config.json, as `transformers` reads it."""
        return {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": self.src_lang,
            "target_lang": self.tgt_lang,
            "separate_vocabs": not self.joint,
        }

    def save(self, directory: str | Path) -> None:
        """Write the files of a published Marian tokenizer."""
        folder = Path(directory)
        write_json(folder / "tokenizer_config.json", self.settings())
        write_json(folder / "vocab.json", self.source.vocab)
        if not self.joint:
            write_json(folder / "target_vocab.json", self.target.vocab)
        for name in ("source", "target"):
            write_file(folder / f"{name}.spm", getattr(self, name).model)

    @classmethod
    def load(cls, directory: str | Path) -> "MarianTokenizer":
        """The tokenizer of a published directory or of one of our model folders.

        Languages that it doesn't name are "und", undetermined.
        Raises: UserError naming a file that is missing, damaged or foreign.
        """
        folder = Path(directory)
        path = folder / "tokenizer_config.json"
        settings = read_json(path) if path.exists() else {}
        both = "target_vocab" if settings.get("separate_vocabs") else "vocab"
        return cls(
            read_side(folder / "source.spm", folder / "vocab.json"),
            read_side(folder / "target.spm", folder / f"{both}.json"),
            str(settings.get("source_lang") or "und"),
            str(settings.get("target_lang") or "und"),
        )


def read_side(path: Path, vocab_path: Path) -> Pieces:
    """One side's files. Raises: UserError for one that is missing or damaged."""
    vocab = read_json(vocab_path)
    special = {"</s>", "<unk>", "<pad>"}
    if special - vocab.keys() or not all(type(i) is int for i in vocab.values()):
        raise UserError(
            f"{vocab_path} is no table of ids with </s>, <unk> and <pad>: download it "
            "again"
        )
    if not path.exists():
        raise UserError(f"{path} is missing: download it again")
    try:
        return Pieces(read_bytes(path), vocab)
    except (OSError, RuntimeError):
        raise UserError(
            f"{path} is damaged or no SentencePiece model: download it again"
        ) from None
