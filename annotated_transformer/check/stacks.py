"""Checks of both layers, both stacks and the whole model, §3.1 and Figure 1."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .verdict import (
    Part,
    call,
    changed,
    check_of,
    close,
    disturb,
    fill_matrices,
    new_part,
    output,
    require,
    require_gradients,
    size_of,
)

D_MODEL, H, D_FF, DROPOUT = 8, 2, 16, 0.5
BATCH, TGT, SRC = 2, 5, 5  # as long as each other, so that an exchange shows
LAST, HIDDEN = TGT - 1, SRC - 1  # the newest position, and the one under the mask
Forward = Callable[..., Tensor]


def _forward(module: nn.Module) -> Forward:
    """Its forward, with an output of the shape of its first argument."""

    def forward(x: Tensor, *others: object) -> Tensor:
        return output("forward", module, x, *others, shape=tuple(x.shape))

    return forward


def _one_layer(name: str, part: Part, inputs: list[Tensor], norms: int) -> None:
    """What holds for both kinds of layer.

    Raises: Wrong for a norm in the wrong place, a missing residual, network or dropout.
    """
    module = new_part(name, part, D_MODEL, H, D_FF, DROPOUT)
    forward = _forward(module)
    found = forward(*inputs)
    require_gradients(module, found)
    _normalised(found)
    gains = [p for p in module.parameters() if p.dim() == 1 and (p == 1).all()]
    require(
        not gains or len(gains) >= norms,
        f"There is a norm for {len(gains)} of {norms} sub-layers: each has an AddNorm "
        "of its own.",
    )
    wider = size_of(new_part(name, part, D_MODEL, H, D_FF + 1, DROPOUT))
    require(
        wider > size_of(module),
        "d_ff changes nothing: the feed-forward network is missing.",
    )
    module.train()
    require(
        not close(forward(*inputs), found, 1e-3),
        "Dropout does nothing in training mode: hand it to each AddNorm.",
    )
    module.eval()
    fill_matrices(module, 0.0)
    x = inputs[0]
    require(
        close(forward(*inputs), F.layer_norm(x, (D_MODEL,)), 1e-3),
        "A residual is missing: with zeros in all weights each sub-layer adds nothing, "
        "so x should come through, normalised, and it doesn't; add x to each "
        "sub-layer's output.",
    )


def _normalised(found: Tensor) -> None:
    """Raises: Wrong unless each position leaves with mean 0 and variance 1."""
    mean, variance = found.mean(-1), found.var(-1, unbiased=False)
    require(
        close(mean, torch.zeros_like(mean), 1e-3)
        and close(variance, torch.ones_like(variance), 1e-2),
        "Each position should leave with mean 0 and variance 1, but the first has "
        f"{mean[0, 0]:.2f} and {variance[0, 0]:.2f}: the paper's norm comes after the "
        "sum (post-norm), not before the sub-layer.",
    )


def _encoding(forward: Forward) -> None:
    """What an encoder does with positions and with a mask, one layer or many."""
    x = torch.randn(BATCH, SRC, D_MODEL)
    before = forward(x)
    touched = changed(before, forward(disturb(x, 3)))
    require(
        touched != [3],
        "Another vector at position 3 changes the output there alone: self-attention "
        "is missing, or its result is lost.",
    )
    require(
        touched != [3, 4],
        "Position 0 doesn't see position 3: there is a causal mask, and an encoder has "
        "none.",
    )
    order = torch.tensor([3, 0, 4, 1, 2])
    require(
        close(forward(x[:, order]), before[:, order], 1e-4),
        "The same vectors in another order give other outputs: a layer doesn't know "
        "positions, those are in x already.",
    )
    mask = (torch.arange(SRC) != HIDDEN)[None, None, None].expand(BATCH, 1, 1, SRC)
    masked = [forward(given, mask) for given in (x, disturb(x, HIDDEN))]
    leaks = [i for i in changed(*masked) if i != HIDDEN]
    require(
        not leaks,
        f"Padding that the mask hides still changes the output at {leaks}: hand the "
        "mask to self-attention, in each layer.",
    )


def _decoding(forward: Forward) -> None:
    """What a decoder does with the future, the source and its mask."""
    y, memory = torch.randn(BATCH, TGT, D_MODEL), torch.randn(BATCH, SRC, D_MODEL)
    before = forward(y, memory)
    touched = changed(before, forward(y, disturb(memory, 3)))
    require(touched, "memory isn't used: the attention to the source is missing.")
    require(
        touched == list(range(TGT)),
        f"Another source vector changes the output at {touched} alone: query and "
        "memory are exchanged; y asks, and memory holds keys and values.",
    )
    early = [i for i in changed(before, forward(disturb(y, LAST), memory)) if i < LAST]
    require(
        not early,
        f"The last token changes the output at {early}, before it: self-attention "
        "needs causal_mask(y.size(1)).",
    )
    require(
        LAST in changed(before, forward(disturb(y, 0), memory)),
        "The last position doesn't see the first: self-attention over y is missing.",
    )
    mask = (torch.arange(SRC) != HIDDEN)[None, None, None].expand(BATCH, 1, 1, SRC)
    masked = [forward(y, given, mask) for given in (memory, disturb(memory, HIDDEN))]
    require(
        not changed(*masked),
        "Padding in the source still changes the output: hand src_mask to the "
        "attention to the source, in each layer.",
    )
    forward(y[:, :3], memory)  # of different lengths


@check_of("EncoderLayer")
def encoder_layer(part: Part) -> str:
    """`EncoderLayer(d_model, h, d_ff, dropout)`, `forward(x, mask=None)`.

    Self-attention, then the feed-forward network, each in its AddNorm.
    """
    name = "EncoderLayer"
    _encoding(_forward(new_part(name, part, D_MODEL, H, D_FF, DROPOUT)))
    _one_layer(name, part, [torch.randn(BATCH, SRC, D_MODEL)], norms=2)
    return "two sub-layers, each added to its input and normalised"


@check_of("DecoderLayer")
def decoder_layer(part: Part) -> str:
    """`DecoderLayer(d_model, h, d_ff, dropout)`, `forward(y, memory, src_mask=None)`.

    Causal self-attention (it makes the mask itself), attention to the source, and the
    feed-forward network, each in its AddNorm.
    """
    name = "DecoderLayer"
    _decoding(_forward(new_part(name, part, D_MODEL, H, D_FF, DROPOUT)))
    inputs = [torch.randn(BATCH, TGT, D_MODEL), torch.randn(BATCH, SRC, D_MODEL)]
    _one_layer(name, part, inputs, norms=3)
    return "three sub-layers, blind to the future, with the source before them"


def _stack(name: str, part: Part, inputs: list[Tensor]) -> nn.Module:
    """A stack of two layers whose weights are its own and in use.

    Raises: Wrong for shared layers, for a wrong number of them, or ones without effect.
    """
    made = [new_part(name, part, n, D_MODEL, H, D_FF, DROPOUT) for n in (1, 2, 3)]
    one, two, three = map(size_of, made)
    require_gradients(made[2], _forward(made[2])(*inputs))
    require(
        two > one,
        f"{name} has as many weights with N = 2 as with N = 1: make N layers, each "
        "with weights of its own.",
    )
    require(three - two == two - one, f"{name} should have N equal layers.")
    return made[1]


@check_of("Encoder")
def encoder(part: Part) -> str:
    """`Encoder(N, d_model, h, d_ff, dropout)`, `forward(x, mask=None)`: N layers."""
    module = _stack("Encoder", part, [torch.randn(BATCH, SRC, D_MODEL)])
    _encoding(_forward(module))
    return "N layers, one after the other, each with the mask"


@check_of("Decoder")
def decoder(part: Part) -> str:
    """`Decoder(N, d_model, h, d_ff, dropout)`, `forward(y, memory, src_mask=None)`."""
    inputs = [torch.randn(BATCH, TGT, D_MODEL), torch.randn(BATCH, SRC, D_MODEL)]
    _decoding(_forward(_stack("Decoder", part, inputs)))
    return "N layers, one after the other, each with the memory and its mask"


# -- the whole model -------------------------------------------------------------------

VOCAB = 11
SOURCE = torch.tensor([[1, 5, 6, 7, 2], [1, 8, 9, 3, 2]])
TARGET = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9]])


@check_of("Transformer")
def transformer(part: Part) -> str:
    """`Transformer(vocab_size, N, d_model, h, d_ff, dropout)`, `forward(src, tgt)`.

    Ids in, (batch, tgt, vocab_size) logits out; id 0 is padding. One embedding serves
    source, target and output. More arguments must have defaults, such as a max_length.
    """

    def made(N: int = 1, vocab_size: int = VOCAB) -> nn.Module:
        return new_part("Transformer", part, vocab_size, N, D_MODEL, H, D_FF, DROPOUT)

    module = made()

    def forward(src: Tensor, tgt: Tensor) -> Tensor:
        return output("forward", module, src, tgt, shape=(*tgt.shape, VOCAB))

    before = forward(SOURCE, TARGET)
    sums = before.exp().sum(-1), before.sum(-1)
    ones = torch.ones_like(sums[0])
    require(
        not (close(sums[0], ones, 1e-4) or close(sums[1], ones, 1e-4)),
        "These are probabilities: return the logits; the softmax belongs to the loss.",
    )
    require_gradients(module, before)
    require(
        size_of(made(N=2)) > size_of(module), "N changes nothing: build both stacks."
    )
    _shared_embedding(size_of(made(vocab_size=VOCAB + 1)) - size_of(module))
    _source_and_target(forward, before)
    _order_matters(forward, before)
    call("forward", module, SOURCE.repeat(1, 10), TARGET.repeat(1, 16))
    return "Figure 1 from ids to logits, one embedding for all three places"


def _shared_embedding(numbers: int) -> None:
    """A new token takes one row, and perhaps a bias."""
    rows = numbers // D_MODEL
    require(
        rows == 1,
        f"Each token has {rows} vectors: source, target and output share one matrix, "
        "§3.4.",
    )


def _source_and_target(forward: Forward, before: Tensor) -> None:
    """The source is seen, its padding isn't, nor is the future."""
    other = SOURCE.clone()
    other[:, 1] = 10
    require(
        changed(before, forward(other, TARGET)),
        "The source changes nothing: hand the encoder's output to the decoder.",
    )
    later = TARGET.clone()
    later[:, -1] = 10
    early = [i for i in changed(before, forward(SOURCE, later)) if i < 3]
    require(
        not early,
        f"The last target token changes the logits at {early}, before it: the decoder "
        "needs its causal mask.",
    )
    padded = torch.cat([SOURCE, torch.zeros(2, 2, dtype=torch.long)], 1)
    require(
        not changed(before, forward(padded, TARGET)),
        "Padding after the source changes the logits: make padding_mask(src, 0) and "
        "hand it to the encoder and to the decoder.",
    )


def _order_matters(forward: Forward, before: Tensor) -> None:
    """With one layer a decoder sees the order of words through position codes alone."""
    turned = SOURCE[:, [0, 2, 1, 3, 4]]
    require(
        changed(before, forward(turned, TARGET)),
        "The order of the source's words changes nothing: add sinusoids to its "
        "embedding.",
    )
    turned = TARGET[:, [0, 2, 1, 3]]
    require(
        3 in changed(before, forward(SOURCE, turned)),
        "The order of the target's words changes nothing after them: add sinusoids to "
        "its embedding, too.",
    )
