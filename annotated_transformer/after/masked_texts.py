"""What a masked language model reads: its tokenizer, rows and batches, and how well it
names what is hidden in texts that it hasn't read.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

import torch
import torch.nn.functional as F
from tokenizers import AddedToken, Tokenizer
from torch import Tensor

from ..data.batching import pad_rows
from ..data.text_tokenizer import encode_texts
from ..data.tokenizer_training import train_bpe
from ..errors import UserError
from ..training.task import TensorBatch
from .labelled_rows import Rows, classifier_batches, pieces
from .masked_language_model import MaskedLanguageModel, hide

MASK = "[MASK]"


def mask_tokenizer(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """Byte pairs of lower-cased words, at most `vocab_size`, the last of them [MASK].

    Raises: UserError as `train_bpe`.
    """
    tokenizer = train_bpe(texts, vocab_size - 1, lowercase=True)
    tokenizer.add_tokens([AddedToken(MASK, normalized=True, special=False)])
    return tokenizer


def text_rows(tokenizer: Tokenizer, texts: Sequence[str], most: int) -> Rows:
    """Texts as rows of at most so many ids; a longer text becomes several rows."""
    return [row for ids in encode_texts(tokenizer, texts) for row in pieces(ids, most)]


def masked_batches(
    rows: Rows,
    mask_id: int,
    size: int,
    seed: int,
    share: float = 0.15,
    masked: float = 0.8,
    short: int = 32,
    short_updates: int = 0,
) -> Iterator[TensorBatch]:
    """Endless batches of (shown, chosen, ids), hidden anew each time a row comes up.

    The first `short_updates` have rows of at most `short` tokens, and more of them.
    """
    draw = torch.Generator().manual_seed(seed)
    more = max(1, max(map(len, rows)) // short)
    cut = [piece for row in rows for piece in pieces(row, short)]
    first = islice(_batches(cut, more * size, seed), short_updates)
    for ids in chain(first, _batches(rows, size, seed)):
        shown, chosen = hide(ids, mask_id, draw, share, masked)
        yield TensorBatch((shown, chosen, ids), max(1, int(chosen.sum())))


def _batches(rows: Rows, size: int, seed: int) -> Iterator[Tensor]:
    """Endless batches of rows of similar length."""
    longest, labels = max(map(len, rows)), [0] * len(rows)
    drawn = classifier_batches(rows, labels, longest, size, seed)
    return (batch.tensors[0] for batch in drawn)


@torch.inference_mode()
def predictions(
    model: MaskedLanguageModel, rows: Rows, share: float = 0.15, seed: int = 0
) -> tuple[float, float]:
    """On texts with a share of the tokens masked: the mean loss in nats, and how often
    the likeliest token is the right one.

    The same tokens are hidden each time. Raises: UserError if there is none to hide.
    """
    model.eval()
    device, mask_id = model.bias.device, model.config.mask_id
    draw = torch.Generator().manual_seed(seed)
    nats, right, count = 0.0, 0, 0
    rows = sorted(rows, key=len)
    for start in range(0, len(rows), 64):
        ids = pad_rows(rows[start : start + 64])
        shown, chosen = hide(ids, mask_id, draw, share, masked=1.0)
        truth = ids[chosen].to(device)
        logits = model.logits(model.vectors(shown.to(device))[chosen.to(device)])
        nats += F.cross_entropy(logits, truth, reduction="sum").item()
        right += int((logits.argmax(-1) == truth).sum())
        count += len(truth)
    if not count:
        raise UserError("the held-out texts are too short to hide a token: give more")
    return nats / count, right / count
