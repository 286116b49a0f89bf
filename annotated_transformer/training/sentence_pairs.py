"""Training on sentence pairs: their batches, the paper's rate, the validation loss."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..data.batch import Batch
from ..data.batching import collate, token_batches
from ..data.tokenized_pairs import TokenizedPairs
from .config import TrainingConfig
from .schedule import noam, peak_factor


@torch.no_grad()
def validation_loss(
    objective: nn.Module,
    pairs: TokenizedPairs,
    config: TrainingConfig,
    loss: Callable[[Batch], Tensor | float] | None = None,
) -> float:
    """The unsmoothed loss per target token, in nats; its exponential is the perplexity.

    The objective is left in evaluation mode. `loss` gives the summed loss of one batch,
    if that isn't the objective's own, as where several processes share a batch.
    """
    objective.eval()
    loss = loss or objective
    lengths = pairs.src_lengths, pairs.tgt_lengths
    total, tokens = 0.0, 0
    for rows in token_batches(*lengths, config.batch_tokens, config.seed):
        batch = collate(pairs, rows)
        total += float(loss(batch))
        tokens += batch.tokens
    return total / tokens


def paper_schedule(config: TrainingConfig, d_model: int) -> Callable[[int], float]:
    """Equation (3) as the settings scale it."""
    peak, warmup = config.peak, config.warmup
    factor = peak_factor(peak, d_model, warmup) if peak else config.lr_factor
    return lambda step: noam(step, d_model, warmup, factor)
