"""Tokenizer files, ours and those of other programs, read with care."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ..errors import UserError
from ..files import read_bytes
from ..model.config import BOS, EOS, PAD, UNK

SPECIAL = {"[pad]": PAD, "[bos]": BOS, "[eos]": EOS, "[unk]": UNK}

MOST_STEPS = 16
LONGEST = 64  # characters of a string in a step, entries of a list
LONGEST_TOKEN = 1024  # characters
LONGEST_WORD = 1000  # characters that WordPiece looks at
COMPONENTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
NESTED = ("normalizers", "pretokenizers", "processors", "decoders")
STEPS = frozenset(
    """
    Sequence NFC NFD NFKC NFKD Lowercase StripAccents Strip Replace Prepend
    BertNormalizer BertPreTokenizer ByteLevel Metaspace Whitespace WhitespaceSplit
    Punctuation Digits Split TemplateProcessing BertProcessing RobertaProcessing
    WordPiece BPEDecoder ByteFallback Fuse""".split()
)


# The patterns of the tokenizers that this package makes. GPT-2's has none in its file.
PATTERNS = {r"\z", r"▁\z", r"\A▁", r"[^▁]*▁", r"[\s\x1c-\x1f]+", r"[\s\S]"}
PATTERNS |= {r"▁?[\p{L}\p{M}]+|▁?\p{N}|▁?[^▁\p{L}\p{M}\p{N}]+|▁"}


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a file, made by any program, which takes a text whole.

    Raises: UserError as `parse_tokenizer`, or if the file is missing or too large.
    """
    with tokenizer_errors(path):
        return parse_tokenizer(read_bytes(path).decode(), path)


def parse_tokenizer(text: str, path: Path) -> Tokenizer:
    """The tokenizer that the JSON of a file describes.

    Raises: UserError if it is damaged, or asks for a step of an unknown type, for too
    many steps, or for what might take long or let a text grow.
    """
    with tokenizer_errors(path):
        settings = json.loads(text)
        if fault := _fault_of_steps(settings) or _fault_of_model(settings["model"]):
            raise UserError(f"{path} {fault}: take another tokenizer")
        return plain(Tokenizer.from_str(text))


def _fault_of_steps(settings: dict[str, Any]) -> str:
    """What keeps a tokenizer's steps from being taken; nothing for sound ones."""
    count = 0
    for part in COMPONENTS:
        pending, types = [settings.get(part)], []
        while pending:
            if (step := pending.pop()) is None:
                continue
            types.append(step["type"])
            inner = [each for name in NESTED for each in step.pop(name, [])]
            if fault := _fault_of_step(step):
                return fault
            pending += inner
        count += len(types)
        if count > MOST_STEPS or types.count("ByteLevel") > 1:
            return f"has more than {MOST_STEPS} steps, or two of ByteLevel in a part"
    return ""


def _fault_of_step(step: dict[str, Any]) -> str:
    if step["type"] not in STEPS:
        return f"has a step of type {step['type']!r}, which is not read here"
    if not _small(step):
        return f"has a {step['type']} step with a text or a list longer than {LONGEST}"
    pattern = step.get("pattern", {})
    if isinstance(pattern, dict) and pattern.get("Regex", r"\z") not in PATTERNS:
        return "has a pattern that is none of this package's"
    if step["type"] == "Replace":
        if len(step["content"]) > len(pattern.get("String", "1")):
            return "has a replacement that makes a text longer"
    if sum("Sequence" in each for each in step.get("single", ["Sequence"])) != 1:
        return "has a template that doesn't hold the text once"
    return ""


def _small(value: Any) -> bool:
    """Whether strings, lists and numbers, however deep inside, are short and small."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return len(value) <= LONGEST and all(map(_small, [*inner, *value]))
    if isinstance(value, str):
        return len(value) <= LONGEST or value in PATTERNS
    return value is None or abs(value) < 2**24


def _fault_of_model(model: dict[str, Any]) -> str:
    """What keeps a tokenizer's table from being used; nothing for a sound one."""
    vocab, unknown = model["vocab"], model.get("unk_token")
    if (kind := model.get("type", "BPE")) not in ("BPE", "WordPiece", "WordLevel"):
        return f"has a table of type {kind!r}, which is not read here"
    if max(map(len, vocab), default=0) > LONGEST_TOKEN:
        return f"has a token of more than {LONGEST_TOKEN:,} characters"
    if model.get("max_input_chars_per_word", 0) > LONGEST_WORD:
        return f"takes words of more than {LONGEST_WORD:,} characters"
    if (unknown is not None or kind != "BPE") and unknown not in vocab:
        return f"has no token {unknown!r} for what is unknown"
    merged = any(len(name) > 1 and "[" not in name for name in vocab)
    return "" if kind != "BPE" or not merged or model["merges"] else "has no merges"


def plain(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that neither cuts texts off nor fills them up nor draws lots."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if getattr(tokenizer.model, "dropout", None) is not None:
        tokenizer.model.dropout = None
    for text in ("A text, to see that it works.", "", " \u2603\U0001d11e\u0301"):
        tokenizer.decode(tokenizer.encode(text).ids)
    tokenizer.decode_batch([[i] for i in tokenizer.get_vocab().values()])
    return tokenizer


def encode_texts(tokenizer: Tokenizer, texts: Iterable[str]) -> list[list[int]]:
    """Texts as rows of ids, as long as they are. Raises: UserError if it can't."""
    with tokenizer_errors("the model's tokenizer"):
        try:
            return [each.ids for each in tokenizer.encode_batch_fast(list(texts))]
        except TypeError:
            raise UserError("a text is not valid UTF-8: convert it") from None


def decode_rows(tokenizer: Tokenizer, rows: list[list[int]]) -> list[str]:
    """Rows of ids as texts, special tokens included. Raises: UserError if it can't."""
    with tokenizer_errors("the model's tokenizer"):
        return tokenizer.decode_batch(rows, skip_special_tokens=False)


def as_rows(ids: Any, size: int = 2**24, pad_id: int | None = None) -> list[list[int]]:
    """Rows of ids in lists, without padding, from lists, a matrix of any library, or
    what a tokenizer returns. Raises: UserError for others, or an id of no token.
    """
    ids = ids.get("input_ids") if isinstance(ids, Mapping) else ids
    ids = ids.tolist() if hasattr(ids, "tolist") else ids
    try:
        rows = [[index(each) for each in row if each != pad_id] for row in ids]
    except TypeError:
        rows = [[-1]]
    if not all(0 <= each < size for row in rows for each in row):
        wanted = f"rows of ids below {size}, as in [[5, 2]], or a matrix of them"
        raise UserError(f"the ids are {ids!r:.80}: give {wanted}")
    return rows


@contextmanager
def tokenizer_errors(path: Path | str) -> Iterator[None]:
    """Whatever the library raises as it reads a file, a panic too, as a UserError."""
    try:
        yield
    except (UserError, KeyboardInterrupt, SystemExit):
        raise
    except FileNotFoundError:
        raise UserError(f"{path} is missing: take another copy") from None
    except BaseException as error:  # the library raises nothing narrower
        raise UserError(
            f"{path}: not a readable tokenizer ({error}); copy or train it again"
        ) from None


def check_ids(tokenizer: Tokenizer, size: int, folder: Path, spare: bool) -> None:
    """Raises: UserError unless a folder's model of `size` tokens has one for each id of
    its tokenizer, and no others but, if it may have them, `spare` ones.
    """
    ids = {*tokenizer.get_vocab().values(), *tokenizer.encode("a text").ids}
    most = max(ids, default=-1)
    if most >= size or (len(ids) < size and not spare):
        raise UserError(
            f"{folder}: the tokenizer has {len(ids)} ids up to {most} and the model "
            f"{size} tokens: they don't belong together"
        )


def check_vocab_size(vocab_size: int, least: int = 1) -> None:
    """Raises: UserError for a size that no vocabulary can have."""
    if not least <= vocab_size <= 2**24:
        raise UserError(
            f"vocab_size is {vocab_size}: it must be from {least} to {2**24}"
        )


def check_learned(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Raises: UserError for a vocabulary of no text, or larger than was asked for."""
    size = tokenizer.get_vocab_size()
    if size <= len(SPECIAL):
        raise UserError("no text to learn a vocabulary from: the corpus is empty")
    if size > vocab_size:
        raise UserError(
            f"vocab_size {vocab_size} is too small: characters and special tokens "
            f"alone take {size}"
        )


def check_trainable(tokenizer: Tokenizer, name: str) -> None:
    """See that a model can be trained with a tokenizer, whoever made it.

    Raises: UserError unless it has this package's special tokens and ends a text.
    """
    ids = set(tokenizer.get_vocab().values())
    if any(tokenizer.token_to_id(name) != i for name, i in SPECIAL.items()):
        fault = f"was made by another program ({', '.join(SPECIAL)} not at their ids)"
    elif tokenizer.encode("").ids != [EOS]:
        fault = "doesn't end a text with [eos]"
    elif ids != set(range(tokenizer.get_vocab_size())):
        fault = f"has ids that are not those from 0 to {len(ids) - 1}"
    else:
        return
    raise UserError(f"the {name} tokenizer {fault}; take another one or train one here")
