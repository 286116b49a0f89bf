"""Checks of attention, the masks and the heads, §3.2."""

import copy
import math
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from ..model.attention import attention as reference
from .assertions import Wrong, close, expect, expect_masked, expect_touched, require
from .parts import Part, check_of, forward_of
from .weights import fill_matrices, matrices_of, require_gradients, size_of


@check_of("attention")
def attention(part: Part) -> str:
    """`attention(query, key, value, mask=None)`, equation (1).

    Query, key and value are (…, positions, size) with any axes before; True in the mask
    means "may attend". It returns the attended values, alone or with the weights.
    """
    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    value, one_hot = torch.randn(2, 5, 6), torch.eye(5).expand(2, 5, 5)
    found = part.tensor(query, key, value, shape=(2, 3, 6))
    # With the unit vectors as values, what comes out are the weights.
    weights = part.tensor(query, key, one_hot, shape=(2, 3, 5))
    again = part.tensor(query, key, one_hot, shape=(2, 3, 5))
    require(
        close(weights, again),
        "Asked twice, it gives other weights: leave dropout out of it. The paper drops "
        "from each sub-layer's output.",
    )
    _weights(weights, query, key, torch.tensor(True))
    sentence = "The weights are right, but the output isn't `weights @ value`."
    expect(found, weights @ value, sentence)
    mask = torch.arange(5) < torch.tensor([3, 4])[:, None, None]
    masked = part.tensor(query, key, one_hot, mask, shape=(2, 3, 5))
    _weights(masked, query, key, mask)
    _heads_and_second_output(part)
    return "scaled, masked before the softmax, and each row sums to one"


def _weights(weights: Tensor, query: Tensor, key: Tensor, mask: Tensor) -> None:
    """The scale, the softmax's axis, and the mask."""
    scores, d_k = query @ key.mT, key.size(-1)
    scaled = scores / math.sqrt(d_k)

    def softmax(scores: Tensor, mask: Tensor = mask) -> Tensor:
        return scores.masked_fill(~mask, -math.inf).softmax(-1)

    mistakes = {
        "The scores aren't divided by √d_k before the softmax: write scores / "
        "math.sqrt(key.size(-1)).": softmax(scores),
        "The scores are divided by d_k; the paper divides by its square root.": (
            softmax(scores / d_k)
        ),
        "The weights are divided by √d_k after the softmax; divide the scores, before "
        "it.": softmax(scores) / math.sqrt(d_k),
        "The mask is inverted: True means “may attend”, so hide where it is False, "
        "with masked_fill(~mask, −inf).": softmax(scaled, ~mask),
        "Each row should sum to one over the keys that it may see, but query 0's sum "
        f"to {weights[0, 0].sum():.2f}: mask the scores before the softmax, not the "
        "weights after it.": scaled.softmax(-1) * mask,
    }
    sentence = (
        "The weights should be softmax(query · key / √d_k): each row should sum to one "
        "over the keys that it may see, so write −inf into the scores of the others, "
        "before the softmax, and use softmax(dim=-1)."
    )
    expect(weights, softmax(scaled), sentence, mistakes)


def _heads_and_second_output(part: Part) -> None:
    """Four axes, as with heads; and the weights, if they are returned too."""
    query, key, value = (torch.randn(2, 3, n, 4) for n in (2, 5, 5))
    mask = (torch.arange(5) < torch.tensor([3, 5])[:, None])[:, None, None]
    right, weights = reference(query, key, value, mask)
    arguments = query, key, value, mask
    found = part.tensor(*arguments, shape=(2, 3, 2, 4))
    sentence = "With four axes the numbers are wrong: transpose the last two."
    expect(found, right, sentence)
    both = part(*arguments)
    if isinstance(both, tuple):
        require(
            len(both) == 2 and isinstance(both[1], Tensor) and close(both[1], weights),
            "The output is right; what is returned after it should be the weights.",
        )


def _boolean(part: Part, *arguments: object) -> Tensor:
    """The mask that it returns. Raises: Wrong for one of numbers."""
    mask = part(*arguments)
    kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
    require(
        kind == torch.bool,
        f"{part.name} should be a boolean tensor, True where attention is allowed, and "
        f"is {kind}.",
    )
    return cast(Tensor, mask)


@check_of("padding_mask")
def padding_mask(part: Part) -> str:
    """`padding_mask(ids, pad_id)`: True at real tokens.

    ids are (batch, keys); the mask broadcasts to (batch, h, queries, keys).
    """
    ids = torch.tensor([[0, 3, 4, 5, 6], [4, 3, 7, 7, 7], [5, 7, 7, 7, 7]])
    mask = _boolean(part, ids, 7)
    try:
        spread = mask.broadcast_to(3, 2, 4, 5)
    except RuntimeError:
        raise Wrong(
            f"padding_mask((3, 5), 7) has the shape {tuple(mask.shape)}, which doesn't "
            "broadcast to (batch, heads, queries, keys): make it (3, 1, 1, 5), with "
            "[:, None, None, :]."
        ) from None
    right = (ids != 7)[:, None, None].expand(3, 2, 4, 5)
    inverted = "The mask is inverted: it is True at real tokens, ids != pad_id."
    expect(spread, right, "It is True wherever ids != pad_id.", {inverted: ~right})
    return "True at real tokens, whatever the id of the padding"


@check_of("causal_mask")
def causal_mask(part: Part) -> str:
    """`causal_mask(n)`: (n, n), True where the key isn't after the query."""
    mask = _boolean(part, 4)
    require(
        mask.shape[-2:] == (4, 4) and mask.numel() == 16,
        f"causal_mask(4) should have the shape (4, 4) and has {tuple(mask.shape)}.",
    )
    everything = torch.ones(4, 4, dtype=torch.bool)
    future = (
        "The mask shows the future: position 0 may see 3, and 3 may not see 0; the "
        "True half is the lower one, tril()."
    )
    sentence = (
        "Row i should be True from 0 to i and False after: a position sees itself and "
        "what is before it, tril()."
    )
    expect(mask.reshape(4, 4), everything.tril(), sentence, {future: everything.triu()})
    return "each position sees itself and those before it"


@check_of("MultiHeadAttention")
def multi_head_attention(part: Part) -> str:
    """`MultiHeadAttention(d_model, h)`, `forward(x, memory, mask=None)`, §3.2.2.

    x asks and memory answers; both are (batch, positions, d_model). Four matrices under
    any names, as you like with biases: each a parameter of two axes, or more.
    """
    module = part.module(12, 3)
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    forward = forward_of(module)
    kept = copy.deepcopy(module.state_dict())
    fill_matrices(module, 0.3)  # with all columns alike, so that no view shows
    _averages(forward, x, memory)
    module.load_state_dict(kept)
    hint = f"the queries come from x, or {VIEW}"
    expect_touched(lambda x: forward(x, memory), x, 2, [2], hint)
    hint = f"each query sees each key of memory, or {VIEW}"
    expect_touched(lambda memory: forward(x, memory), memory, 3, range(5), hint)
    mask = (torch.arange(7) < 6)[None, None, None].expand(2, 1, 1, 7)
    expect_masked(lambda memory: forward(x, memory, mask), memory, "the mask")
    require_gradients(module, forward(x, memory))
    fill_matrices(module, 0.3)
    _numbers_of_heads(forward(x / 2, memory / 2), x / 2, memory / 2)
    numbers = size_of(matrices_of(module))
    require(
        numbers == 4 * 12**2,
        f"W_Q, W_K, W_V and W_O have 4 d_model² = 576 numbers, and here are {numbers}.",
    )
    return "the heads are apart, scaled by √d_k, and joined by W_O"


def _averages(forward: Callable[..., Tensor], x: Tensor, memory: Tensor) -> None:
    """Copies of one key and value answer as one does, however many queries ask."""
    one = memory[:, :1]
    alone = torch.cat([forward(x[:, [i]], one) for i in range(5)], 1)
    sentence = (
        "A single key should get the weight 1 from each query, and seven copies of it "
        "should answer as one does: the softmax runs over the keys, dim=-1."
    )
    expect(forward(x, one), alone, sentence, tolerance=1e-3)
    expect(forward(x, one.expand(-1, 7, -1)), alone, sentence, tolerance=1e-3)


VIEW = (
    "a view cut the positions into heads; split the last axis into (h, d_k) and then "
    "transpose, and back in the same way"
)


def _numbers_of_heads(found: Tensor, x: Tensor, memory: Tensor) -> None:
    """With 0.3 in all weights every entry of a head is the same, so the scale, the
    number of heads and W_O show in the numbers.
    """
    asks, answers = 0.3 * x.sum(-1), 0.3 * memory.sum(-1)
    products = asks[:, :, None] * answers[:, None]

    def result(factor: float) -> Tensor:
        head = (factor * products).softmax(-1) @ answers[:, :, None]
        return (0.3 * 12 * head).expand_as(found)

    d_k, d_model = 4.0, 12.0
    mistakes = {
        "There is one head and not h of them: cut d_model into h heads of "
        "d_model / h.": result(math.sqrt(d_model)),
        "The scores are divided by √d_model; in a head it is √d_k, with d_k = "
        "d_model / h.": result(d_k / math.sqrt(d_model)),
        "The scores aren't divided by √d_k, with d_k = d_model / h.": result(d_k),
    }
    sentence = (
        "With 0.3 in all weights the numbers are others: look at the scale, the heads "
        "and W_O."
    )
    expect(found, result(math.sqrt(d_k)), sentence, mistakes, tolerance=1e-3)
