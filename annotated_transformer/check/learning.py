"""Checks of the loss, one training step and greedy search, §5.4 and §6.1."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..model.config import BOS, EOS, PAD
from ..training.loss import smoothed_cross_entropy as summed
from .assertions import Wrong, expect, require
from .parts import Part, check_of, described

SMOOTHING = 0.1


def _mean(logits: Tensor, target: Tensor, smoothing: float = SMOOTHING) -> Tensor:
    """The loss of the package, over the number of real tokens."""
    real = target != PAD
    return summed(logits[real], target[real], smoothing) / real.sum()


@check_of("smoothed_cross_entropy")
def smoothed_cross_entropy(part: Part) -> str:
    """`smoothed_cross_entropy(logits, target, smoothing)`: one number, in nats.

    logits are (batch, n, vocab), target (batch, n) with 0 for padding, which doesn't
    count. The right token should have 1 − ε and each other one ε / (V − 1); PyTorch's
    label_smoothing spreads ε over all V. The mean over real tokens.
    """
    logits = 2 * torch.randn(2, 4, 6)
    logits.requires_grad_()
    target = torch.tensor([[3, 4, 5, 2], [5, 2, PAD, PAD]])
    hard = part.number(logits, target, 0.0)
    smooth = part.number(logits, target, SMOOTHING)
    require(smooth.requires_grad, "The loss has no gradient: return it as a tensor.")
    hard, smooth, logits = hard.detach(), smooth.detach(), logits.detach()
    each, real = cross_entropy(logits.mT, target, reduction="none"), target != PAD
    mistakes = {
        "Padding counts: leave out positions where the target is 0.": each.mean(),
        "That is the sum over tokens: divide by the number of real ones.": (
            each[real].sum()
        ),
    }
    sentence = (
        "Without smoothing the loss should be the mean of −log p over real tokens."
    )
    expect(hard, each[real].mean(), sentence, mistakes)
    pytorchs = cross_entropy(logits[real], target[real], label_smoothing=SMOOTHING)
    mistakes = {
        "Smoothing changes nothing: the right token should have 1 − ε.": hard,
        "ε is spread over all V tokens, as PyTorch's label_smoothing does; in this "
        "book the V − 1 wrong ones share it, and the right one has 1 − ε.": pytorchs,
    }
    sentence = (
        f"With ε = {SMOOTHING} the right token should have 1 − ε, and each other one "
        "ε / (V − 1)."
    )
    expect(smooth, _mean(logits, target), sentence, mistakes)
    return "ε/(V − 1) on each wrong token, and padding doesn't count"


class _Table(nn.Module):
    """A model whose next token depends on the last alone; it notes what it reads."""

    def __init__(self, src: Tensor, vocab_size: int = 7):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocab_size, vocab_size))
        self.src, self.read = src, torch.empty(0)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        require(torch.equal(src, self.src), "The model's first argument should be src.")
        self.read = tgt
        return self.table[tgt]


class _Descent:
    """Gradient descent with a rate of 1. PyTorch's takes seconds to import."""

    def __init__(self, model: _Table):
        self.table = model.table
        self.param_groups = [{"params": [self.table], "lr": 1.0}]

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.table.grad = None if set_to_none else torch.zeros_like(self.table)

    @torch.no_grad()
    def step(self) -> None:
        if self.table.grad is not None:
            self.table.sub_(self.table.grad)


@check_of("training_step")
def training_step(part: Part) -> str:
    """`training_step(model, optimizer, src, tgt)`: one update; it returns the loss.

    tgt is (batch, n), from the begin token 1 to the end token 2, with 0 for padding.
    model(src, tgt) gives logits; the loss is `smoothed_cross_entropy` with ε = 0.1.
    """
    src = torch.tensor([[3, 4, 5], [6, 3, PAD]])
    model = _Table(src)
    optimizer = _Descent(model)
    tgt = torch.tensor([[BOS, 5, 4, 3, EOS], [BOS, 3, 6, EOS, PAD]])
    start = model.table.detach().clone()
    loss = part.number(model, optimizer, src, tgt).detach()
    require(model.read.numel(), "The model is never called: model(src, tgt[:, :-1]).")
    _right_targets(loss, start, model.read, tgt)
    first = start - _gradient(start, tgt)
    sentence = (
        "The weights should go one step along the gradient of the loss: "
        "optimizer.zero_grad(), loss.backward(), optimizer.step(), in this order."
    )
    expect(model.table.detach(), first, sentence)
    part(model, optimizer, src, tgt)
    second = first - _gradient(first, tgt)
    sentence = (
        "The second step goes otherwise: call optimizer.zero_grad() in each, or the "
        "gradient of the first step is still in the second."
    )
    expect(model.table.detach(), second, sentence)
    return "shifted targets, fresh gradients, one update"


def _right_targets(loss: Tensor, table: Tensor, read: Tensor, tgt: Tensor) -> None:
    """What the decoder reads, and with what its output is compared."""
    shift = "feed tgt[:, :-1] and compare with tgt[:, 1:]"
    require(
        not torch.equal(read, tgt[:, 1:]),
        f"The decoder doesn't read the begin token: {shift}.",
    )
    inputs, wanted = tgt[:, :-1], tgt[:, 1:]
    logits = table[inputs]
    unshifted = (
        "The target isn't shifted: the decoder has just read the token that it should "
        f"predict; {shift}."
    )
    mistakes = {
        unshifted: _mean(table[tgt], tgt),
        "The loss isn't smoothed: call smoothed_cross_entropy with 0.1.": _mean(
            logits, wanted, 0.0
        ),
    }
    sentence = "The loss should be smoothed_cross_entropy(logits, tgt[:, 1:], 0.1)."
    expect(loss, _mean(logits, wanted), sentence, mistakes)


def _gradient(table: Tensor, tgt: Tensor) -> Tensor:
    """That of the loss at such weights."""
    table = table.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(_mean(table[tgt[:, :-1]], tgt[:, 1:]), table)
    return gradient


class _Scripted(nn.Module):
    """A model that has one answer for each source, and minds how it is asked.

    Raises: Wrong from within the reader's loop for the first wrong question.
    """

    def __init__(self, answers: dict[int, list[int]], most: int):
        super().__init__()
        self.answers, self.most, self.calls = answers, most, 0

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        self.calls += 1
        require(self.calls <= self.most, "The search never stops: end at max_length.")
        require(
            tgt.dim() == 2 and len(tgt) == len(src) and (tgt[:, 0] == BOS).all(),
            f"The model is called with src {described(src)} and tgt {described(tgt)}: "
            "both are (batch, n), and tgt has the begin token 1 and then all that was "
            "written so far.",
        )
        rows = [self.answers[first] for first in src[:, 0].tolist()]
        for written, right in zip(tgt[:, 1:].tolist(), rows, strict=True):
            end = min(len(written), len(right))
            require(
                written[:end] == right[:end],
                f"The highest scores have {right[:end]} and the search writes "
                f"{written[:end]}: take the argmax of logits[:, -1].",
            )
        require(
            not (tgt == EOS).any(1).all(),
            "The search doesn't stop at the end token: when each row has written it, "
            "return.",
        )
        n = tgt.size(1)
        scores = torch.zeros(len(src), n, 8)
        for scored, row in zip(scores, rows, strict=True):
            following = [*row, *[4] * n][:n]  # 4s behind the end token
            scored[torch.arange(n), following] = 1.0
            scored[:, 7] = 0.9  # nearly as high, so that a random draw shows
        return scores


@check_of("greedy_search")
def greedy_search(part: Part) -> str:
    """`greedy_search(model, src, max_length)`: ids, row by row, a tensor or lists.

    src is (batch, n); model(src, tgt) gives logits. Begin with 1, add the best token of
    the last position, and stop when each row has written 2, or after max_length tokens.
    With the begin token in front or without; what follows an end token doesn't count.
    """
    answers = {3: [5, 4, EOS], 4: [6, EOS], 5: [3, 3, 6, 5, EOS]}
    src = torch.tensor([[3, 6, EOS], [4, EOS, PAD], [5, 3, EOS]])
    found = _rows(part(_Scripted(answers, 40), src, 12))
    right = [row[:-1] for row in answers.values()]
    require(
        found == right,
        f"Up to their end tokens the rows should be {right} and are {found}: return "
        "what was written for each source.",
    )
    endless = _Scripted({3: [5] * 60}, 50)
    written = _rows(part(endless, src[:1], 6))
    require(
        [len(row) for row in written] in ([5], [6]),
        f"With a max_length of 6 and no end token it should write 6 tokens and writes "
        f"{sum(map(len, written))}.",
    )
    return "the best token each time, up to the end"


def _rows(found: Any) -> list[list[int]]:
    """Each row without its begin token, up to its end token."""
    try:
        rows = [[int(i) for i in row] for row in found]
    except TypeError:
        raise Wrong(
            f"greedy_search should return a row of ids for each source, and returns "
            f"{described(found)}."
        ) from None
    rows = [row[1:] if row[:1] == [BOS] else row for row in rows]
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]
