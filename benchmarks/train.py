"""Training without a folder, a log or checkpoints, as most benchmarks want it."""

import math
from collections.abc import Callable, Iterator
from copy import deepcopy

import torch
from torch import nn

from annotated_transformer.data.stream import batches
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.meter import check_finite
from annotated_transformer.training.sentence_pairs import paper_schedule
from annotated_transformer.training.task import Task
from annotated_transformer.training.trainer import train
from annotated_transformer.training.update import Update


def train_task(task: Task) -> Iterator[dict[str, float]]:
    """Train without a folder: every `save_every` updates, and after the last, yield the
    step, the mean loss since the last time as "train", and what validation finds.

    At the end the model has the weights of the best validation, if these are wanted.
    """
    config, model, best, kept = task.config, task.model, math.inf, {}
    loop = task.objective, task.batches((0, 0)), task.optimizer(), task.schedule
    losses, tokens = [], 0
    for update in train(*loop, config):
        losses.append(update.loss)
        tokens += update.tokens
        if update.step % config.save_every and update.step < config.steps:
            continue
        mean, losses, tokens = torch.stack(losses).sum().item() / tokens, [], 0
        task.objective.eval()
        figures = task.evaluate()
        check_finite(figures["loss"], update.step)
        if task.criterion(figures) < best:
            best = task.criterion(figures)
            kept = deepcopy(model.state_dict())
        yield {"step": update.step, "train": mean, **figures}
    if config.select != "average":
        model.load_state_dict(kept)
    model.eval()


def train_translation(
    objective: nn.Module,
    optimizer: torch.optim.Optimizer,
    pairs: TokenizedPairs,
    config: TrainingConfig,
    start: tuple[int, tuple[int, int]] = (0, (0, 0)),
    schedule: Callable[[int], float] | None = None,
) -> Iterator[Update]:
    """`train` on sentence pairs, at the rate of equation (3) unless another is given.

    `start` is the step and the position of the last update made, from which to go on.
    """
    start_step, position = start
    max_tokens = config.batch_tokens // config.micro_batches
    source = batches(pairs, max_tokens, config.seed, position)
    schedule = schedule or paper_schedule(config, objective.model.config.d_model)
    return train(objective, source, optimizer, schedule, config, start_step)
