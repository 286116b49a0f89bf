"""Tokenizer files, ours and those of other programs, read with care."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ..errors import UserError
from ..files import read_bytes
from ..model.config import BOS, EOS, PAD, UNK

SPECIAL = {"[pad]": PAD, "[bos]": BOS, "[eos]": EOS, "[unk]": UNK}

MOST_STEPS = 16
MOST_GROWTH = 64  # times the text, by all replacements together
PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
NESTED = ("normalizers", "pretokenizers", "processors", "decoders")
STEPS = frozenset(
    """
    Sequence NFC NFD NFKC NFKD Lowercase StripAccents Strip Replace Prepend
    BertNormalizer BertPreTokenizer ByteLevel Metaspace Whitespace WhitespaceSplit
    Punctuation Digits Split TemplateProcessing BertProcessing RobertaProcessing
    WordPiece BPEDecoder ByteFallback Fuse""".split()
)


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a file, made by any program, which takes a text whole.

    Raises: UserError as `parse_tokenizer`, or if the file is missing or too large.
    """
    with tokenizer_errors(path):
        return parse_tokenizer(read_bytes(path).decode(), path)


def parse_tokenizer(text: str, path: Path) -> Tokenizer:
    """The tokenizer that the JSON of a file describes.

    Raises: UserError if it is damaged, or asks for a step of an unknown type, too many
    steps, or replacements that let a text grow.
    """
    with tokenizer_errors(path):
        if fault := _fault(json.loads(text)):
            raise UserError(f"{path} {fault}: take another tokenizer")
        return plain(Tokenizer.from_str(text))


def _fault(settings: dict[str, Any]) -> str:
    """What keeps a tokenizer from being used; nothing for a sound one."""
    pending, count, growth = [settings.get(part) for part in PARTS], 0, 1.0
    while pending:
        if (step := pending.pop()) is None:
            continue
        count += 1
        if step["type"] not in STEPS:
            return f"has a step of type {step['type']!r}, which is not read here"
        if count > MOST_STEPS:
            return f"has more than {MOST_STEPS} steps"
        if re.search(r"\)[*+{]", step.get("pattern", {}).get("Regex", "")):
            return "has a pattern that repeats a group, which may take for ever"
        if step["type"] == "Replace":
            growth *= _growth(step)
        pending += [each for name in NESTED for each in step.get(name, [])]
    if growth > MOST_GROWTH:
        return f"has replacements that make a text {growth:.0f} times as long"
    model = settings["model"]
    whole = any(len(name) > 1 and "[" not in name for name in model["vocab"])
    merges = model.get("type") != "BPE" or not whole or model["merges"]
    return "" if merges else "has no merges"


def _growth(step: dict[str, Any]) -> float:
    """How many times as long a replacement can make a text."""
    pattern, content = step["pattern"], step["content"]
    if "String" in pattern:
        return max(1.0, len(content) / max(1, len(pattern["String"])))
    return 1.0 + len(content)  # an expression may match between any two characters


def plain(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that neither cuts texts off nor fills them up nor draws lots."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if getattr(tokenizer.model, "dropout", None) is not None:
        tokenizer.model.dropout = None
    tokenizer.decode(tokenizer.encode("A text, to see that it works.").ids)
    return tokenizer


@contextmanager
def tokenizer_errors(path: Path) -> Iterator[None]:
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
    """See that a folder's model of `size` tokens has one for each id of its tokenizer,
    and no others unless it may have `spare` ones.

    Raises: UserError.
    """
    ids = {*tokenizer.get_vocab().values(), *tokenizer.encode("a text").ids}
    most = max(ids, default=-1)
    if most >= size or (len(ids) < size and not spare):
        raise UserError(
            f"{folder}: the tokenizer has {len(ids)} ids up to {most} and the model "
            f"{size} tokens: they don't belong together"
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
