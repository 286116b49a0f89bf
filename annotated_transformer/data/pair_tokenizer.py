"""The tokenizer of a language pair: text in, ids out, and back; its files."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from ..errors import UserError, check_kind
from ..files import CARD, read_card, read_json, write_file, write_json
from ..model.config import BOS, EOS, PAD, UNK
from .normalization import COPIED, HIDDEN, normalize_text
from .tokenizer_files import (
    as_rows,
    check_ids,
    check_trainable,
    decode_rows,
    encode_texts,
    read_tokenizer,
)

CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]+")  # all but tabs


def empty_tokenizer(spaces_only: bool = False, lowercase: bool = False) -> Tokenizer:
    """An untrained byte-pair tokenizer whose decoding gives the text back.

    The text comes back composed (NFC) and, if asked, lower-cased. Merges stay inside
    words, single digits and runs of punctuation, each with the space before it, written
    '▁'; with `spaces_only`, for text that is cut into tokens already, inside tokens,
    each with the space after it.
    """
    mark: normalizers.Normalizer
    if spaces_only:
        pieces = r"[^▁]*▁"
        mark = normalizers.Replace(Regex(r"\z"), "▁")
        unmark = decoders.Replace(Regex(r"▁\z"), "")
    else:
        pieces = r"▁?[\p{L}\p{M}]+|▁?\p{N}|▁?[^▁\p{L}\p{M}\p{N}]+|▁"
        mark = normalizers.Prepend("▁")
        unmark = decoders.Replace(Regex(r"\A▁"), "")
    case = [normalizers.Lowercase()] if lowercase else []
    steps = [normalizers.NFC(), *case, normalizers.Replace(" ", "▁"), mark]
    joined = [decoders.Fuse(), unmark, decoders.Replace("▁", " ")]
    tokenizer = Tokenizer(models.BPE(unk_token="[unk]"))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pieces), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [eos]", special_tokens=[("[eos]", EOS)]
    )
    tokenizer.decoder = decoders.Sequence(joined)
    return tokenizer


@dataclass(frozen=True, eq=False, repr=False)
class PairTokenizer:
    """Text to ids and back for a pair of languages, with one vocabulary or two.

    The `card` of its model, with data and licence, goes along into every copy.
    """

    source: Tokenizer
    target: Tokenizer
    src_lang: str
    tgt_lang: str
    moses: bool = False
    lowercase: bool = False
    normalize: bool = False
    card: str = ""

    def __post_init__(self) -> None:
        for side in (self.source, self.target):
            if isinstance(side, Tokenizer):  # "[eos]" in a text is text
                side.encode_special_tokens = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy: the library's own copies forget how to read special tokens."""
        vars(self).update(state)
        self.__post_init__()

    def __repr__(self) -> str:
        more = " shared" if self.joint else f" + {self.tgt_vocab_size:,}"
        size = f"{self.src_vocab_size:,}{more} tokens"
        return f"{type(self).__name__}({self.src_lang} to {self.tgt_lang}, {size})"

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        return self.source is self.target

    @property
    def shares_vocabulary(self) -> bool:
        """Whether both languages have the same ids, however they cut words."""
        return self.joint or self.source.get_vocab() == self.target.get_vocab()

    @property
    def src_vocab_size(self) -> int:
        """Number of source tokens, special ones included."""
        return self.source.get_vocab_size()

    @property
    def tgt_vocab_size(self) -> int:
        """Number of target tokens, special ones included."""
        return self.target.get_vocab_size()

    @property
    def unk_id(self) -> int:
        """The id that stands for what the vocabulary lacks."""
        return UNK

    def __call__(
        self, texts: str | list[str], return_tensors: str | None = None
    ) -> dict[str, Any]:
        """Source `input_ids` and their `attention_mask`, 1 for a token, as from a
        tokenizer of transformers: in lists, or with "pt" padded (batch, width) tensors.

        Raises: UserError for what is no text, or other tensors.
        """
        if return_tensors not in (None, "pt"):
            raise UserError(f"return_tensors is {return_tensors!r}: give 'pt' or None")
        check_kind("texts", texts, Iterable, "a text, or a list of them")
        lines = [texts] if isinstance(texts, str) else list(texts)
        if not lines or not all(isinstance(line, str) for line in lines):
            raise UserError(f"texts is {texts!r:.80}: give a text, or a list of them")
        ids: Any = self.encode_source(lines)
        mask: Any = [[1] * len(row) for row in ids]
        if return_tensors:
            from .batching import pad_rows

            pad_id = getattr(self.source, "pad_id", PAD)  # Marian has its own
            ids, mask = pad_rows(ids, pad_id=pad_id), pad_rows(mask, pad_id=0)
        elif isinstance(texts, str):
            ids, mask = ids[0], mask[0]
        return {"input_ids": ids, "attention_mask": mask}

    def prefix(self, text: str) -> str:
        """What each part of a text that is cut must begin with: nothing, for a pair."""
        return ""

    def prepare(self, texts: list[str], lang: str) -> list[str]:
        """Texts as the tokenizer gets them, as this pair asks for it: addresses hidden
        if it normalizes, cut by Moses."""
        if self.normalize:
            texts = [COPIED.sub(HIDDEN, text) for text in texts]
        return moses_tokenize(texts, lang, self.lowercase) if self.moses else texts

    def prepare_source(self, texts: list[str]) -> list[str]:
        """The same of source texts, normalized before if this pair asks for it."""
        normalized = list(map(normalize_text, texts)) if self.normalize else texts
        return self.prepare(normalized, self.src_lang)

    def encode_source(self, texts: list[str]) -> list[list[int]]:
        """Source ids of each text, ending in [eos]."""
        prepared = self.prepare_source(texts)
        return encode_texts(self.source, prepared)

    def encode_target(self, texts: list[str]) -> list[list[int]]:
        """Target ids of each text, without [bos], ending in [eos]."""
        prepared = self.prepare(texts, self.tgt_lang)
        return encode_texts(self.target, prepared)

    def decode(self, ids: list[list[int]], detokenize: bool = True) -> list[str]:
        """Target text of each row of ids.

        `detokenize=False` leaves Moses tokens apart, for BLEU on tokens. Line breaks
        and control characters of a vocabulary become spaces: a text stays one line.
        """
        rows = [[i for i in row if i not in (PAD, BOS, EOS)] for row in as_rows(ids)]
        texts = decode_rows(self.target, rows)
        texts = [CONTROLS.sub(" ", text) for text in texts]
        running = self.moses and detokenize
        return moses_detokenize(texts, self.tgt_lang) if running else texts

    def source_tokens(self, text: str) -> list[str]:
        """The source tokens of one text as strings, '</s>' for the end."""
        return token_labels(self.source, self.encode_source([text])[0])

    def target_tokens(self, text: str) -> list[str]:
        """The target tokens of one text as strings, '</s>' for the end."""
        return token_labels(self.target, self.encode_target([text])[0])

    def without_addresses(self, text: str) -> str:
        """The text without what passes as one character, if this pair normalizes."""
        return COPIED.sub("", text) if self.normalize else text

    def unknown_characters(self, text: str) -> list[str]:
        """The characters of a source text that the vocabulary lacks, in order, with
        those that stand for an address."""
        prepared = self.prepare_source([text])[0]
        if self.source.normalizer:  # a tokenizer of another program may have none
            prepared = self.source.normalizer.normalize_str(prepared)
        known = self.source.token_to_id
        return [each for each in prepared if each == HIDDEN or known(each) is None]

    def check_trainable(self) -> None:
        """Raises: UserError for a tokenizer that a model can't be trained with."""
        for name, side in (("source", self.source), ("target", self.target)):
            check_trainable(side, name)

    def save(self, directory: str | Path) -> None:
        """Write tokenizer.json, text.json, for two vocabularies the second one, and
        card.md if there is a card.

        Raises: UserError if they can't be written.
        """
        folder = Path(directory)
        write_file(folder / "tokenizer.json", self.source.to_str().encode())
        if not self.joint:
            other = self.target.to_str().encode()
            write_file(folder / "target_tokenizer.json", other)
        settings = {name: getattr(self, name) for name in FIELDS}
        write_json(folder / "text.json", {"format": 1, **settings})
        if self.card:
            write_file(folder / CARD, self.card.encode())

    @classmethod
    def load(cls, directory: str | Path) -> "PairTokenizer":
        """What `save` wrote. Raises: UserError naming a missing or damaged file."""
        folder = Path(directory)
        settings = read_settings(folder / "text.json")
        source = read_tokenizer(folder / "tokenizer.json")
        other = folder / "target_tokenizer.json"
        target = source if settings["joint"] else read_tokenizer(other)
        del settings["joint"]  # which the files say
        return cls(source, target, **settings, card=read_card(folder))


def read_pair_tokenizer(folder: Path, config: Any) -> PairTokenizer:
    """The tokenizer of a folder whose model has this configuration.

    Raises: UserError if it is missing, damaged, or another model's.
    """
    tokenizer = PairTokenizer.load(folder)
    check_ids(tokenizer.source, config.src_vocab_size, folder, spare=False)
    if not tokenizer.joint or config.tgt_vocab_size != config.src_vocab_size:
        check_ids(tokenizer.target, config.tgt_vocab_size, folder, spare=False)
    return tokenizer


def token_labels(tokenizer: Any, ids: list[int]) -> list[str]:
    """Ids as readable tokens: '<s>' and '</s>' for begin and end."""
    tokens = [tokenizer.id_to_token(i) for i in ids]
    return [{"[bos]": "<s>", "[eos]": "</s>"}.get(token, token) for token in tokens]


@lru_cache(maxsize=16)
def _moses(lang: str) -> tuple[Any, Any, Any]:
    """The Moses normalizer, tokenizer and detokenizer of one language, made once."""
    from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

    return MosesPunctNormalizer(lang), MosesTokenizer(lang), MosesDetokenizer(lang)


def moses_tokenize(
    lines: Iterable[str], lang: str, lowercase: bool = False
) -> list[str]:
    """Lines in Moses' tokens, one space between them.

    They are lower-cased if asked, then punctuation is made uniform, then they are cut.
    """
    normalizer, tokenizer, _ = _moses(lang)
    texts = (
        normalizer.normalize(line.lower() if lowercase else line) for line in lines
    )
    return [" ".join(tokenizer.tokenize(text, escape=False)) for text in texts]


def moses_detokenize(lines: Iterable[str], lang: str) -> list[str]:
    """Running text again from lines of Moses tokens; some spaces may be lost."""
    join = _moses(lang)[2].detokenize
    return [join(line.split(" "), unescape=False) if line else "" for line in lines]


FIELDS = {"src_lang": str, "tgt_lang": str, "joint": bool, "moses": bool}
FIELDS |= {"lowercase": bool, "normalize": bool}


def read_settings(path: Path) -> dict[str, Any]:
    """The fields of text.json. Raises: UserError for a damaged or a newer file."""
    settings = {"normalize": False} | read_json(path)  # which older files don't say
    if settings.get("format") not in (None, 1):
        raise UserError(
            f"{path}: format {settings['format']!r}, but this version reads format 1; "
            "upgrade the package"
        )
    if any(type(settings.get(name)) is not kind for name, kind in FIELDS.items()):
        raise UserError(f"{path}: must hold {', '.join(FIELDS)}; take another copy")
    return {name: settings[name] for name in FIELDS}
