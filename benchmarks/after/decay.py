"""Weights that shrink and a rate that falls to nothing: AdamW and half a cosine."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.sentence_pairs import paper_schedule


def decaying_adam(model: nn.Module, decay: float = 0.1) -> torch.optim.AdamW:
    """AdamW with the paper's constants: matrices shrink by rate × decay an update."""
    matrices = [each for each in model.parameters() if each.dim() > 1]
    vectors = [each for each in model.parameters() if each.dim() < 2]
    groups: Any = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    constants = {name: adam(model).defaults[name] for name in ("lr", "betas", "eps")}
    return torch.optim.AdamW(groups, weight_decay=decay, **constants)


def falling_cosine(config: TrainingConfig, d_model: int) -> Callable[[int], float]:
    """Equation (3) up to its peak, and from there half a cosine, down to nothing."""
    climb, peak = paper_schedule(config, d_model), config.highest_rate(d_model)

    def rate(step: int) -> float:
        if step <= config.warmup:
            return climb(step)
        share = (step - config.warmup) / (config.steps - config.warmup)
        return peak * (1 + math.cos(math.pi * share)) / 2

    return rate
