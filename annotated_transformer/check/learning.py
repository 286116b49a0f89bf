"""Checks of the loss, one training step and greedy search, §5.4 and §6.1."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..model.config import BOS, EOS, PAD
from ..training.loss import smoothed_cross_entropy as summed
from .verdict import Part, Wrong, call, check_of, close, described, match, require

SMOOTHING = 0.1


def _mean(logits: Tensor, target: Tensor, smoothing: float = SMOOTHING) -> Tensor:
    """The loss of the package, over the number of real tokens."""
    real = target != PAD
    return summed(logits[real], target[real], smoothing) / real.sum()


def _number(name: str, found: object) -> Tensor:
    """A number or a tensor of one. Raises: Wrong for anything else."""
    found = torch.tensor(found) if isinstance(found, int | float) else found
    require(
        isinstance(found, Tensor) and found.numel() == 1,
        f"{name} should return one number, the mean over all real tokens, and returns "
        f"{described(found)}.",
    )
    assert isinstance(found, Tensor)
    return found.reshape(()).float()


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
    name = "smoothed_cross_entropy"
    hard = _number(name, call(name, part, logits, target, 0.0))
    smooth = _number(name, call(name, part, logits, target, SMOOTHING))
    require(smooth.requires_grad, "The loss has no gradient: return it as a tensor.")
    logits = logits.detach()
    _padding(hard.detach(), logits, target)
    _smoothing(smooth.detach(), hard.detach(), logits, target)
    return "ε/(V − 1) on each wrong token, and padding doesn't count"


def _padding(found: Tensor, logits: Tensor, target: Tensor) -> None:
    """Without smoothing: the mean over real tokens of −log p."""
    log_probs = logits.log_softmax(-1)
    each = -log_probs.gather(-1, target[..., None])[..., 0]
    real = target != PAD
    softmaxed = _mean(logits.softmax(-1), target, 0.0)
    match(
        found,
        {
            "Padding counts: leave out positions where the target is 0.": each.mean(),
            "Padding is left out of the sum but not of the count: divide by the number "
            "of real tokens.": each[real].sum() / target.numel(),
            "That is the sum over tokens: divide by the number of real ones.": (
                each[real].sum()
            ),
            "The sign is wrong: the loss is minus the log-probability.": (
                -each[real].mean()
            ),
            "The softmax is applied twice: the loss takes logits.": softmaxed,
            "The logarithm is missing: the loss is −log p.": -log_probs.exp()
            .gather(-1, target[..., None])[..., 0][real]
            .mean(),
        },
    )
    right = each[real].mean()
    require(
        close(found, right, 1e-4),
        f"Without smoothing the loss should be {right:.4f}, the mean of −log p over "
        f"real tokens, and is {found:.4f}.",
    )


def _smoothing(found: Tensor, hard: Tensor, logits: Tensor, target: Tensor) -> None:
    """With an ε of 0.1: who shares it, and how."""
    vocab, real = logits.size(-1), target != PAD
    log_probs, token = logits.log_softmax(-1)[real], target[real]
    right = log_probs[torch.arange(len(token)), token]
    others = log_probs.sum(-1) - right

    def loss(right_share: float, share: float, others: Tensor = others) -> Tensor:
        return -(right_share * right + share * others).mean()

    rest = 1 - SMOOTHING
    match(
        found,
        {
            "Smoothing changes nothing: the right token should have 1 − ε.": hard,
            "ε is spread over all V tokens, as PyTorch's label_smoothing does; in this "
            "book the V − 1 wrong ones share it, and the right one has 1 − ε.": loss(
                rest + SMOOTHING / vocab, SMOOTHING / vocab
            ),
            "ε and 1 − ε are exchanged: the right token has 1 − ε.": loss(
                SMOOTHING, rest / (vocab - 1)
            ),
            "Each wrong token has ε; they share it, ε / (V − 1) each.": loss(
                rest, SMOOTHING
            ),
            "ε is spread over V − 2 tokens, without the padding; here all V − 1 wrong "
            "ones share it.": loss(
                rest, SMOOTHING / (vocab - 2), others - log_probs[:, PAD]
            ),
        },
    )
    wanted = loss(rest, SMOOTHING / (vocab - 1))
    require(
        close(found, wanted, 1e-4),
        f"With ε = 0.1 the loss should be {wanted:.4f} and is {found:.4f}: the right "
        "token has 1 − ε, each other one ε / (V − 1).",
    )


# -- one step --------------------------------------------------------------------------


class _Table(nn.Module):
    """A model whose next token depends on the last alone; it notes what it reads."""

    def __init__(self, src: Tensor, vocab_size: int = 7):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocab_size, vocab_size))
        self.src, self.read = src, torch.empty(0)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        require(
            torch.equal(src, self.src),
            "The model's first argument should be src, as it came.",
        )
        self.read = tgt
        return self.table[tgt]


@check_of("training_step")
def training_step(part: Part) -> str:
    """`training_step(model, optimizer, src, tgt)`: one update; it returns the loss.

    tgt is (batch, n), from the begin token 1 to the end token 2, with 0 for padding.
    model(src, tgt) gives logits; the loss is `smoothed_cross_entropy` with ε = 0.1.
    """
    src = torch.tensor([[3, 4, 5], [6, 3, PAD]])
    model = _Table(src)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    tgt = torch.tensor([[BOS, 5, 4, 3, EOS], [BOS, 3, 6, EOS, PAD]])
    start = model.table.detach().clone()
    found = call("training_step", part, model, optimizer, src, tgt)
    require(model.read.numel(), "The model is never called: model(src, tgt[:, :-1]).")
    loss = _number("training_step", found).detach()
    _right_targets(loss, start, model.read, tgt)
    first = _gradient(start, tgt)
    _updated(model, start, first)
    call("training_step", part, model, optimizer, src, tgt)
    second = start - first - _gradient(start - first, tgt)
    match(
        model.table.detach(),
        {
            "The gradient of the first step is still in the second: call "
            "optimizer.zero_grad() in each.": second - first,
            "The second step changes nothing.": start - first,
        },
    )
    require(close(model.table.detach(), second, 1e-4), "The second step goes wrong.")
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
    every = F.cross_entropy(
        logits.flatten(0, 1),
        wanted.flatten(),
        label_smoothing=SMOOTHING * table.size(0) / (table.size(0) - 1),
    )
    unshifted = (
        "The target isn't shifted: the decoder has just read the token that it should "
        f"predict; {shift}."
    )
    match(
        loss,
        {
            unshifted: _mean(table[tgt], tgt),
            unshifted.replace("The target", "The right answer"): _mean(logits, inputs),
            "Padding counts in the loss: leave out where the target is 0.": every,
            "The loss isn't smoothed: call smoothed_cross_entropy with 0.1.": _mean(
                logits, wanted, 0.0
            ),
        },
    )
    right = _mean(logits, wanted)
    require(
        close(loss, right, 1e-4),
        f"The loss should be {right:.4f}, smoothed_cross_entropy(logits, tgt[:, 1:], "
        f"0.1), and is {loss:.4f}.",
    )


def _gradient(table: Tensor, tgt: Tensor) -> Tensor:
    """That of the loss at such weights."""
    table = table.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(_mean(table[tgt[:, :-1]], tgt[:, 1:]), table)
    return gradient


def _updated(model: _Table, start: Tensor, gradient: Tensor) -> None:
    """Raises: Wrong unless plain gradient descent has made its step."""
    now = model.table.detach()
    if close(now, start):
        lost = model.table.grad is None or not model.table.grad.any()
        raise Wrong(
            "The weights don't change, and there is no gradient: after zero_grad call "
            "loss.backward(), and then optimizer.step()."
            if lost
            else "The weights don't change although there is a gradient: call "
            "optimizer.step() after loss.backward()."
        )
    require(
        close(now, start - gradient, 1e-4),
        "The weights change otherwise than by one step along the gradient of the loss.",
    )


# -- greedy search ---------------------------------------------------------------------

AFTER_THE_END = 4  # what the scripted model goes on with


class _Scripted(nn.Module):
    """A model that has one answer for each source, and minds how it is asked.

    Raises: Wrong from within the reader's loop for the first wrong question.
    """

    def __init__(self, answers: dict[int, list[int]], most: int):
        super().__init__()
        self.answers, self.most, self.calls = answers, most, 0
        self.begun: set[int] = set()

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        self.calls += 1
        require(self.calls <= self.most, "The search never stops: end at max_length.")
        require(
            tgt.dim() == 2 and len(tgt) == len(src),
            f"The model is called with src {described(src)} and tgt {described(tgt)}: "
            "both are (batch, n), with the same batch.",
        )
        firsts = src[:, 0].tolist()
        rows = [self.answers[first] for first in firsts]
        for first, written in zip(firsts, tgt.tolist(), strict=True):
            self._check_prefix(first, written)
        self.begun |= set(firsts)
        n = tgt.size(1)
        require(
            not all(EOS in written for written in tgt.tolist()),
            "The search doesn't stop at the end token: when each row has written it, "
            "return.",
        )
        scores = torch.zeros(len(src), n, 8)
        for scored, row in zip(scores, rows, strict=True):
            following = [*row, *[AFTER_THE_END] * n][:n]
            scored[torch.arange(n), following] = 1.0
            scored[:, 7] = 0.9  # nearly as high, so that a random draw shows
        return scores

    def _check_prefix(self, first: int, written: Sequence[int]) -> None:
        """What stands behind the begin token is what had the highest scores."""
        require(
            first not in self.begun or len(written) > 1,
            "The model sees the last token alone: without a cache it needs all that "
            "was written so far.",
        )
        require(
            written[0] == BOS,
            f"The target should begin with the begin token {BOS} and begins with "
            f"{written[0]}.",
        )
        for i, (wanted, token) in enumerate(
            zip(self.answers[first], written[1:], strict=False)
        ):
            require(
                token == wanted,
                f"As token {i + 1} the highest score has {wanted}, and the search "
                f"writes {token}: take the argmax of the last position, logits[:, -1].",
            )
            if wanted == EOS:
                break


@check_of("greedy_search")
def greedy_search(part: Part) -> str:
    """`greedy_search(model, src, max_length)`: ids, row by row, a tensor or lists.

    src is (batch, n); model(src, tgt) gives logits. Begin with 1, add the best token of
    the last position, and stop when each row has written 2, or after max_length tokens.
    With the begin token in front or without; what follows an end token doesn't count.
    """
    answers = {3: [5, 4, EOS], 4: [6, EOS], 5: [3, 3, 6, 5, EOS]}
    src = torch.tensor([[3, 6, EOS], [4, EOS, PAD], [5, 3, EOS]])
    found = _rows(call("greedy_search", part, _Scripted(answers, 40), src, 12))
    require(
        len(found) == len(src),
        f"For {len(src)} sources it should return {len(src)} rows and returns "
        f"{len(found)}.",
    )
    for row, right in zip(found, answers.values(), strict=True):
        require(
            row == right[:-1],
            f"A row should be {right[:-1]} up to the end token and is {row}: return "
            "what was written, each row to its end.",
        )
    endless = _Scripted({3: [5] * 60}, 50)
    written = _rows(call("greedy_search", part, endless, src[:1], 6))[0]
    require(
        5 <= len(written) <= 6,
        f"With a max_length of 6 and no end token it should write 6 tokens and writes "
        f"{len(written)}.",
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
