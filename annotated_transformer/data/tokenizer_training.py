"""Byte-pair vocabularies, learned by the library `tokenizers` from texts or pairs."""

from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer, trainers

from ..errors import UserError
from .normalization import normalize_text
from .pair_tokenizer import PairTokenizer, empty_tokenizer, moses_tokenize
from .tokenizer_files import SPECIAL, check_learned, check_vocab_size


def train_bpe(
    texts: Iterable[str],
    vocab_size: int,
    spaces_only: bool = False,
    lowercase: bool = False,
) -> Tokenizer:
    """Learn a byte-pair vocabulary of at most `vocab_size` tokens (§5.1).

    The four special tokens are included, and at most a thousand different characters:
    text from the web has stray ones of every script.

    Raises: UserError if there is no text, or `vocab_size` is out of range or too small
    for the single characters.
    """
    check_vocab_size(vocab_size)
    tokenizer = empty_tokenizer(spaces_only, lowercase)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL),
        limit_alphabet=1000,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.encode_special_tokens = True
    check_learned(tokenizer, vocab_size)
    return tokenizer


def train_tokenizer(
    pairs: Iterable[tuple[str, str]],
    src_lang: str,
    tgt_lang: str,
    vocab_size: int,
    joint: bool = True,
    moses: bool = False,
    lowercase: bool = False,
    normalize: bool = False,
) -> PairTokenizer:
    """Learn byte-pair vocabularies from sentence pairs: one for both languages, as in
    the paper, or one each.

    Raises: UserError for no pairs, a vocabulary too small for the characters, or an
    iterator where two passes are needed.
    """
    langs, style = (src_lang, tgt_lang), (moses, lowercase, normalize)
    passes = training_texts(pairs, langs, joint, *style)
    sides = [train_bpe(each, vocab_size, moses, lowercase) for each in passes]
    return PairTokenizer(sides[0], sides[-1], *langs, *style)


def training_texts(
    pairs: Iterable[tuple[str, str]],
    langs: tuple[str, str],
    joint: bool,
    moses: bool,
    lowercase: bool,
    normalize: bool,
) -> list[Iterator[str]]:
    """The texts to learn a vocabulary from: of both sides together, or of each side.

    Raises: UserError for an iterator where two passes are needed.
    """
    if not joint and iter(pairs) is pairs:
        raise UserError(
            "separate vocabularies need two passes: give a list or a corpus, not an "
            "iterator"
        )

    def texts(*sides: int) -> Iterator[str]:
        for pair in pairs:
            for side in sides:
                text = (
                    normalize_text(pair[side])
                    if normalize and side == 0
                    else pair[side]
                )
                lang = langs[side]
                yield moses_tokenize([text], lang, lowercase)[0] if moses else text

    return [texts(0, 1)] if joint else [texts(0), texts(1)]
