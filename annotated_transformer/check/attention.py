"""Checks of attention, the masks and the heads, §3.2."""

import copy
import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..model.attention import attention as reference
from .verdict import (
    Part,
    Wrong,
    call,
    changed,
    check_of,
    close,
    described,
    disturb,
    expect,
    expect_changed,
    fill_matrices,
    match,
    matrices_of,
    new_part,
    output,
    require,
    require_gradients,
)


@check_of("attention")
def attention(part: Part) -> str:
    """`attention(query, key, value, mask=None)`, equation (1).

    Query, key and value are (…, positions, size) with any axes before; True in the mask
    means "may attend". It returns the attended values, alone or with the weights.
    """
    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    value, one_hot = torch.randn(2, 5, 6), torch.eye(5).expand(2, 5, 5)
    hint = "the weights average `value`, one row for each query"
    found = output("attention", part, query, key, value, shape=(2, 3, 6), hint=hint)
    # With the unit vectors as values, what comes out are the weights.
    weights = output("attention", part, query, key, one_hot, shape=(2, 3, 5))
    _weights_alone(weights, query, key)
    sentence = "The weights are right, but the output isn't `weights @ value`."
    expect(found, weights @ value, sentence)
    mask = torch.arange(5) < torch.tensor([3, 4])[:, None, None]
    masked = output("attention", part, query, key, one_hot, mask, shape=(2, 3, 5))
    _weights_masked(masked, query, key, mask)
    _heads_and_second_output(part)
    return "scaled, masked before the softmax, and each row sums to one"


def _weights_alone(weights: Tensor, query: Tensor, key: Tensor) -> None:
    """Without a mask: the softmax's axis, and the scale."""
    scores = query @ key.transpose(-2, -1)
    d_k = query.size(-1)
    scaled = scores / math.sqrt(d_k)
    right = scaled.softmax(-1)
    match(
        weights,
        {
            "The softmax is missing: the output is scores times values.": scaled,
            "Neither scaled nor passed through a softmax: weights are "
            "softmax(scores / √d_k).": scores,
            "The scores aren't divided by √d_k before the softmax: write scores / "
            "math.sqrt(key.size(-1)).": scores.softmax(-1),
            "The scores are divided by d_k; the paper divides by its square root.": (
                scores / d_k
            ).softmax(-1),
            "The scores are multiplied by √d_k; divide.": (
                scores * math.sqrt(d_k)
            ).softmax(-1),
            "The scores are divided by the root of another size; d_k is that of a "
            "key, key.size(-1).": (scores / math.sqrt(key.size(-2))).softmax(-1),
        },
        right=right,
    )
    _rows_sum_to_one(weights, right)
    sentence = "The weights should be softmax(query · key / √d_k), over the keys."
    expect(weights, right, sentence)


def _rows_sum_to_one(weights: Tensor, right: Tensor) -> None:
    """Raises: Wrong where the softmax runs over another axis than the keys'."""
    sums, columns = weights.sum(-1), weights.sum(-2)
    over = "over the queries" if close(columns, columns**0) else "over another axis"
    sentence = (
        f"The softmax runs {over}: each row should sum to one over the keys, but query "
        f"0's weights sum to {sums[0, 0]:.2f}; use softmax(dim=-1)."
    )
    if not close(sums, sums**0):
        raise Wrong(sentence, right, weights)


def _weights_masked(weights: Tensor, query: Tensor, key: Tensor, mask: Tensor) -> None:
    """With a mask that hides the last keys of each row."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    hidden = weights.masked_fill(mask, 0).amax(dim=(0, 2))
    position = int(hidden.argmax())
    leak = f"position {position} still gives {hidden[position]:.2f} to the padding"
    sums, free = weights.sum(-1), scores.softmax(-1)
    right = scores.masked_fill(~mask, -math.inf).softmax(-1)
    match(
        weights,
        {
            f"The mask changes nothing: {leak}.": free,
            "The mask is inverted: True means “may attend”, so hide where "
            "it is False, with masked_fill(~mask, −inf).": scores.masked_fill(
                mask, -math.inf
            ).softmax(-1),
            "Each row should sum to one over the keys that it may see, but query 0's "
            f"sum to {sums[0, 0]:.2f}: mask the scores before the softmax, not the "
            "weights after it.": free * mask,
            "Each row should sum to one over the keys that it may see, "
            f"but {leak}: a score of 0 isn't nothing, since e⁰ is 1; write −inf.": (
                scores * mask
            ).softmax(-1),
        },
        right=right,
    )
    sentence = (
        f"Each row should sum to one over the keys that it may see, but {leak}: write "
        "−inf into the scores before the softmax."
        if hidden[position] > 1e-4
        else "With a mask the weights should be the softmax over the keys it shows."
    )
    expect(weights, right, sentence)


def _heads_and_second_output(part: Part) -> None:
    """Four axes, as with heads; and the weights, if they are returned too."""
    query, key, value = (torch.randn(2, 3, n, 4) for n in (2, 5, 5))
    mask = (torch.arange(5) < torch.tensor([3, 5])[:, None])[:, None, None]
    right, weights = reference(query, key, value, mask)
    hint = (
        "with heads there are four axes, so transpose the last two, transpose(-2, -1)"
    )
    arguments = query, key, value, mask
    found = output("attention", part, *arguments, shape=(2, 3, 2, 4), hint=hint)
    expect(found, right, f"With four axes the numbers are wrong: {hint}.")
    both = call("attention", part, *arguments)
    if isinstance(both, tuple):
        require(
            len(both) == 2 and isinstance(both[1], Tensor) and close(both[1], weights),
            "The output is right; what is returned after it should be the weights.",
        )


def _boolean(name: str, mask: object) -> Tensor:
    """Raises: Wrong for a mask of numbers."""
    require(
        isinstance(mask, Tensor) and mask.dtype == torch.bool,
        f"{name} should be a boolean tensor, True where attention is allowed, and is "
        f"{mask.dtype if isinstance(mask, Tensor) else described(mask)}.",
    )
    assert isinstance(mask, Tensor)
    return mask


@check_of("padding_mask")
def padding_mask(part: Part) -> str:
    """`padding_mask(ids, pad_id)`: True at real tokens.

    ids are (batch, keys); the mask broadcasts to (batch, h, queries, keys).
    """
    ids = torch.tensor([[0, 3, 4, 5, 6], [4, 3, 7, 7, 7], [5, 7, 7, 7, 7]])
    mask = _boolean("padding_mask", call("padding_mask", part, ids, 7))
    try:
        spread = mask.broadcast_to(3, 2, 4, 5)
    except RuntimeError:
        raise Wrong(
            f"padding_mask({described(ids)}, 7) has the shape {tuple(mask.shape)}, "
            "which doesn't broadcast to (batch, heads, queries, keys): make it (3, 1, "
            "1, 5), with [:, None, None, :]."
        ) from None
    right = (ids != 7)[:, None, None].expand(3, 2, 4, 5)
    match(
        spread,
        {
            "The mask is inverted: True means “may attend”, so it is True "
            "at real tokens, ids != pad_id.": ~right,
            "The mask takes 0 for padding; compare with pad_id.": (ids != 0)[
                :, None, None
            ].expand(3, 2, 4, 5),
        },
        right=right,
    )
    expect(spread, right, "It should be True wherever ids != pad_id.")
    return "True at real tokens, whatever the id of the padding"


@check_of("causal_mask")
def causal_mask(part: Part) -> str:
    """`causal_mask(n)`: (n, n), True where the key isn't after the query."""
    mask = _boolean("causal_mask", call("causal_mask", part, 4))
    require(
        mask.shape[-2:] == (4, 4) and mask.numel() == 16,
        f"causal_mask(4) should have the shape (4, 4) and has {tuple(mask.shape)}.",
    )
    everything = torch.ones(4, 4, dtype=torch.bool)
    found, right = mask.reshape(4, 4), everything.tril()
    match(
        found,
        {
            "The mask shows the future: position 0 may see 3, and 3 may not see 0; the "
            "True half is the lower one, tril().": everything.triu(),
            "The mask is inverted: it is True at the future, which is to be "
            "hidden.": everything.triu(1),
            "The diagonal is False, so position 0 sees nothing at all: a position may "
            "attend to itself.": everything.tril(-1),
            "The mask hides nothing: keep the lower half alone, tril().": everything,
        },
        right=right,
    )
    expect(found, right, "Row i should be True from 0 to i and False after.")
    return "each position sees itself and those before it"


@check_of("MultiHeadAttention")
def multi_head_attention(part: Part) -> str:
    """`MultiHeadAttention(d_model, h)`, `forward(x, memory, mask=None)`, §3.2.2.

    x asks and memory answers; both are (batch, positions, d_model). Four matrices under
    any names, as you like with biases: each a parameter of two axes, or more.
    """
    name = "MultiHeadAttention"
    module = new_part(name, part, 12, 3)
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    hint = (
        "queries come from x, keys and values from memory; the heads go back behind "
        "the positions, transpose(1, 2), before they are joined"
    )

    def forward(x: Tensor, *given: object) -> Tensor:
        return output("forward", module, x, *given, shape=tuple(x.shape), hint=hint)

    kept = copy.deepcopy(module.state_dict())
    fill_matrices(module, 0.3)  # with all columns alike, so that no view shows
    _averages(forward, x, memory)
    module.load_state_dict(kept)
    before = forward(x, memory)
    _positions_apart(before, forward(disturb(x, 2), memory))
    _all_keys_seen(before, forward(x, disturb(memory, 3)))
    mask = (torch.arange(7) < 5)[None, None, None].expand(2, 1, 1, 7)
    _mask_used(forward, x, memory, mask)
    require_gradients(module, before)
    fill_matrices(module, 0.3)
    _numbers_of_heads(forward(x / 2, memory / 2), x / 2, memory / 2)
    numbers = sum(weight.numel() for weight in matrices_of(module))
    require(
        numbers == 4 * 12**2,
        f"W_Q, W_K, W_V and W_O have 4 d_model² = 576 numbers, and here are {numbers}.",
    )
    return "the heads are apart, scaled by √d_k, and joined by W_O"


def _mask_used(
    forward: Callable[..., Tensor], x: Tensor, memory: Tensor, mask: Tensor
) -> None:
    """What the mask hides changes nothing, and what it shows does."""
    masked = [forward(x, given, mask) for given in (memory, disturb(memory, 6))]
    require(
        changed(masked[0], forward(x, disturb(memory, 0), mask)),
        "The mask is inverted: True means that a query may attend to a key.",
    )
    require(
        not changed(*masked),
        "The mask is lost: a key that it hides still changes the output; hand the mask "
        "to attention.",
    )


def _averages(forward: Callable[..., Tensor], x: Tensor, memory: Tensor) -> None:
    """Copies of one key and value answer as one does, however many queries ask."""
    copies = memory[:, :1].expand(-1, 7, -1)
    alone = torch.cat([forward(x[:, [i]], memory[:, :1]) for i in range(5)], 1)
    together = forward(x, memory[:, :1])
    keys = "weights sum to one over the keys, so it belongs to the last axis, dim=-1."
    sentence = (
        "The softmax runs over the queries: with a single key each should give it the "
        f"weight 1, however many ask; {keys}"
    )
    expect(together, alone, sentence, tolerance=1e-3)
    sentence = (
        "Seven copies of one key and value should answer as one does, and don't: "
        f"{keys}"
    )
    expect(forward(x, copies), alone, sentence, tolerance=1e-3)


VIEW = (
    "a view cut the positions into heads; split the last axis into (h, d_k) and then "
    "transpose, and back in the same way"
)


def _positions_apart(before: Tensor, after: Tensor) -> None:
    """Another query at position 2 changes the output there alone."""
    touched = changed(before, after)
    require(2 in touched, "The output doesn't depend on x: the queries come from it.")
    others = [i for i in touched if i != 2]
    sentence = (
        f"Another query at position 2 also changes the output at {others}: {VIEW}."
    )
    expect_changed(before, after, [2], sentence)


def _all_keys_seen(before: Tensor, after: Tensor) -> None:
    """Another key and value at one position changes the output at all."""
    touched = changed(before, after)
    require(touched, "memory isn't used: keys and values come from it.")
    blind = [i for i in range(before.size(1)) if i not in touched]
    sentence = (
        f"Without a mask each query sees each key, but those at {blind} don't see "
        f"memory's position 3: {VIEW}."
    )
    expect_changed(before, after, range(before.size(1)), sentence)


def _numbers_of_heads(found: Tensor, x: Tensor, memory: Tensor) -> None:
    """With 0.3 in all weights every entry of a head is the same, so the scale, the
    number of heads and W_O show in the numbers.
    """
    asks, answers = 0.3 * x.sum(-1), 0.3 * memory.sum(-1)
    products = asks[:, :, None] * answers[:, None]

    def result(factor: float, joined: float = 0.3 * 12) -> Tensor:
        head = (factor * products).softmax(-1) @ answers[:, :, None]
        return (joined * head).expand_as(found)

    d_k, d_model = 4.0, 12.0
    right = result(math.sqrt(d_k))
    match(
        found,
        {
            "W_O is missing: project the joined heads once more.": result(
                2.0, joined=1.0
            ),
            "There is one head and not h of them: cut d_model into h heads of "
            "d_model / h.": result(math.sqrt(d_model)),
            "The scores are divided by √d_model; in a head it is √d_k, with d_k = "
            "d_model / h.": result(d_k / math.sqrt(d_model)),
            "The scores aren't divided by √d_k, with d_k = d_model / h.": result(d_k),
            "The scores are divided by d_k, or there are more than h heads.": result(
                1.0
            ),
        },
        right=right,
    )
    expect(
        found,
        right,
        "With 0.3 in all weights the numbers are others: look at the scale, the heads "
        "and W_O.",
        tolerance=1e-3,
    )
