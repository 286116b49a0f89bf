"""Checks of both layers, both stacks and the whole model, §3.1 and Figure 1."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .probes import (
    SELF,
    Forward,
    Probe,
    Weights,
    check_order,
    normalised,
    only,
    sublayers_of,
    without,
)
from .verdict import (
    Part,
    changed,
    check_of,
    close,
    disturb,
    expect,
    expect_changed,
    matrices_of,
    new_part,
    output,
    require,
    require_gradients,
    silence,
    size_of,
)

D_MODEL, H, D_FF, DROPOUT = 8, 2, 16, 0.5
BATCH, TGT, SRC = 2, 5, 5  # as long as each other, so that an exchange shows
LAST, HIDDEN = TGT - 1, SRC - 1  # the newest position, and the one under the mask
Build = Callable[..., Probe]  # with (h, d_ff, dropout), each of which has a default


def _builder(name: str, part: Part, *first: int) -> Build:
    """Makes a layer, or a stack of `first` layers, as a probe."""

    def build(h: int = H, d_ff: int = D_FF, dropout: float = DROPOUT) -> Probe:
        module = new_part(name, part, *first, D_MODEL, h, d_ff, dropout)

        def forward(x: Tensor, *others: object) -> Tensor:
            return output("forward", module, x, *others, shape=tuple(x.shape))

        return Probe(module, forward, matrices_of(module))

    return build


def _inputs(kinds: int) -> list[Tensor]:
    """Vectors for an encoder (1), or for a decoder and its memory (2)."""
    return [normalised(torch.randn(BATCH, SRC, D_MODEL)) for _ in range(kinds)]


def _hiding(position: int) -> Tensor:
    return (torch.arange(SRC) != position)[None, None, None].expand(BATCH, 1, 1, SRC)


# -- one layer -------------------------------------------------------------------------


def check_layer(
    build: Build, kinds: int
) -> tuple[Probe, dict[str, Weights], list[Tensor]]:
    """Its norms, sizes, residuals and order; what was found out about a layer."""
    probe, inputs = build(), _inputs(kinds)
    x, *memory = inputs
    found = probe.forward(*inputs)
    _normalised(found)
    require(
        size_of(build(d_ff=D_FF + 1).weights) > size_of(probe.weights),
        "d_ff changes nothing: the feed-forward network is missing, or has a size of "
        "its own.",
    )
    silence(probe.module)
    with without(probe.weights):
        expect(
            probe.forward(*inputs),
            x,
            "A residual is missing: with zeros in all weights each sub-layer adds "
            "nothing, so x should come through, normalised, and it doesn't; add x to "
            "each sub-layer's output.",
            tolerance=1e-3,
        )
    sublayers = sublayers_of(probe, inputs)
    if memory:
        with without(only(SELF, sublayers)):
            require(
                not close(probe.forward(*inputs)[:, 0], x[:, 0], 1e-3),
                "Position 0 doesn't see itself: the causal mask's diagonal is True.",
            )
    _heads(probe, sublayers, build(h=1), inputs)
    check_order(probe, sublayers, inputs)
    return probe, sublayers, inputs


def _normalised(found: Tensor) -> None:
    """Raises: Wrong unless each position leaves with mean 0 and variance 1."""
    expect(
        found,
        normalised(found),
        "Each position should leave with mean 0 and variance 1, but the first has "
        f"{found[0, 0].mean():.2f} and {found[0, 0].var(unbiased=False):.2f}: the "
        "paper's norm comes after the sum (post-norm), not before the sub-layer.",
        tolerance=1e-2,
    )


def _heads(
    probe: Probe, sublayers: dict[str, Weights], other: Probe, inputs: list[Tensor]
) -> None:
    """Raises: Wrong where an attention does the same with another number of heads."""
    silence(other.module)
    others = sublayers_of(other, inputs)
    for name in list(sublayers)[:-1]:
        with without(only(name, sublayers) + only(name, others)):
            require(
                not close(probe.forward(*inputs), other.forward(*inputs), 1e-3),
                f"h changes nothing in {name}: hand it the number of heads.",
            )


def _dropout(
    build: Build, probe: Probe, sublayers: dict[str, Weights], inputs: list[Tensor]
) -> None:
    """In training it falls on what each sub-layer gives, and nowhere else."""
    probe.module.train()
    for name in sublayers:
        with without(only(name, sublayers)):
            require(
                not close(probe.forward(*inputs), probe.forward(*inputs), 1e-3),
                f"Dropout does nothing to the output of {name} in training mode: hand "
                "it to each AddNorm.",
            )
    with without(probe.weights):
        expect(
            probe.forward(*inputs),
            inputs[0],
            "Dropout falls on x or on a sum: drop a sub-layer's output alone.",
            tolerance=1e-3,
        )
    probe = build(dropout=0.0)
    probe.module.train()
    require(
        close(probe.forward(*inputs), probe.forward(*inputs), 1e-3),
        "With dropout = 0 training still drops something: use the argument.",
    )


def _norms(module: nn.Module, sublayers: int) -> None:
    """Raises: Wrong for fewer gains than norms, unless there are none at all."""
    gains = [p for p in module.parameters() if p.dim() == 1 and (p == 1).all()]
    require(
        not gains or len(gains) >= sublayers,
        f"There is a norm for {len(gains)} of {sublayers} sub-layers: each has an "
        "AddNorm of its own.",
    )


# -- who sees whom ---------------------------------------------------------------------


def encoding(forward: Forward) -> None:
    """What an encoder does with positions and with a mask, one layer or many."""
    (x,) = _inputs(1)
    mask, everyone = _hiding(HIDDEN), range(SRC)
    before = forward(x)
    after = forward(disturb(x, 3))
    touched = changed(before, after)
    reasons = {
        (3,): "Another vector at position 3 changes the output there alone: "
        "self-attention is missing, or its result is lost.",
        (3, 4): "Position 0 doesn't see position 3: there is a causal mask, and an "
        "encoder has none.",
    }
    blind = [i for i in everyone if i not in touched]
    other = f"Positions {blind} don't see position 3; in an encoder each sees each."
    expect_changed(before, after, everyone, reasons.get(tuple(touched), other))
    order = torch.tensor([3, 0, 4, 1, 2])
    expect(
        forward(x[:, order]),
        before[:, order],
        "The same vectors in another order give other outputs: a layer doesn't know "
        "positions, those are in x already.",
    )
    masked = forward(x, mask)
    hidden, seen = (
        [i for i in changed(masked, forward(disturb(x, at), mask)) if i != at]
        for at in (HIDDEN, 0)
    )
    _mask(hidden, seen, "mask", "self-attention")
    after = forward(disturb(x, 3), mask)
    sentence = (
        "With a mask of padding some positions no longer see position 3: the mask "
        "alone says what an encoder sees."
    )
    expect_changed(masked[:, :4], after[:, :4], range(4), sentence)


def _mask(hidden: list[int], seen: list[int], name: str, attention: str) -> None:
    """Raises: Wrong where what a mask hides is seen, or what it shows isn't."""
    require(
        not hidden or seen,
        f"{name} is inverted: what it shows changes nothing, and what it hides does; "
        "True means “may attend”.",
    )
    require(
        not hidden,
        f"Padding that the mask hides still changes the output at {hidden}: hand "
        f"{name} to {attention}, in each layer.",
    )


def decoding(forward: Forward) -> None:
    """What a decoder does with the future, the source and its mask."""
    y, memory = _inputs(2)
    before = forward(y, memory)
    after = forward(y, disturb(memory, 3))
    touched = changed(before, after)
    require(touched, "memory isn't used: the attention to the source is missing.")
    sentence = (
        "Another source vector at position 3 changes the output there alone: query and "
        "memory are exchanged; y asks, and memory holds keys and values."
        if touched == [3]
        else f"Another source vector at position 3 changes the output at {touched} "
        "alone: each position of the target sees the whole source."
    )
    expect_changed(before, after, range(TGT), sentence)
    after = forward(disturb(y, LAST), memory)
    early = [i for i in changed(before, after) if i < LAST]
    sentence = (
        f"The last token changes the output at {early}, before it: self-attention "
        "needs causal_mask(y.size(1))."
    )
    expect_changed(before[:, :LAST], after[:, :LAST], [], sentence)
    require(
        LAST in changed(before, forward(disturb(y, 0), memory)),
        "The last position doesn't see the first: self-attention over y is missing, or "
        "its mask hides too much.",
    )
    order = torch.tensor([3, 0, 4, 1, 2])
    expect(
        forward(y, memory[:, order]),
        before,
        "The same source vectors in another order give other outputs: they should come "
        "in through source attention alone, which knows no order.",
    )
    _decoding_masked(forward, y, memory)


def _decoding_masked(forward: Forward, y: Tensor, memory: Tensor) -> None:
    mask = _hiding(HIDDEN)
    masked = forward(y, memory, mask)
    hidden, seen = (
        changed(masked, forward(y, disturb(memory, at), mask)) for at in (HIDDEN, 0)
    )
    _mask(hidden, seen, "src_mask", "the attention to the source")
    second = _hiding(1)
    before = forward(y, memory, second)
    require(
        LAST in changed(before, forward(disturb(y, 1), memory, second)),
        "src_mask hides positions of y, too: it is for the attention to the source "
        "alone.",
    )
    forward(y[:, :3], memory, mask)  # of different lengths


@check_of("EncoderLayer")
def encoder_layer(part: Part) -> str:
    """`EncoderLayer(d_model, h, d_ff, dropout)`, `forward(x, mask=None)`.

    Self-attention, then the feed-forward network, each in its AddNorm.
    """
    build = _builder("EncoderLayer", part)
    probe = build()
    encoding(probe.forward)
    require_gradients(probe.module, probe.forward(*_inputs(1)))
    _norms(probe.module, 2)
    _dropout(build, *check_layer(build, 1))
    return "two sub-layers, each added to its input and normalised"


@check_of("DecoderLayer")
def decoder_layer(part: Part) -> str:
    """`DecoderLayer(d_model, h, d_ff, dropout)`, `forward(y, memory, src_mask=None)`.

    Causal self-attention (it makes the mask itself), attention to the source, and the
    feed-forward network, each in its AddNorm.
    """
    build = _builder("DecoderLayer", part)
    probe = build()
    decoding(probe.forward)
    require_gradients(probe.module, probe.forward(*_inputs(2)))
    _norms(probe.module, 3)
    _dropout(build, *check_layer(build, 2))
    return "three sub-layers, blind to the future, with the source before them"


# -- stacks ----------------------------------------------------------------------------


def _stack(name: str, part: Part, kinds: int) -> None:
    """What holds for both stacks: N layers, each with its weights, one after the other.

    Raises: Wrong for shared layers, for a wrong number of them, or ones without effect.
    """
    builds = [_builder(name, part, n) for n in (1, 2, 3)]
    one, two, three = (build() for build in builds)
    inputs, seen = _inputs(kinds), decoding if kinds == 2 else encoding
    require_gradients(three.module, three.forward(*inputs))
    seen(one.forward)
    sizes = [size_of(probe.module.parameters()) for probe in (one, two, three)]
    step = sizes[1] - sizes[0]
    require(
        step > 0,
        f"{name} has as many weights with N = 2 as with N = 1: make N layers, each "
        "with weights of its own.",
    )
    require(sizes[2] - sizes[1] == step, f"{name} should have N equal layers.")
    _dropout(builds[0], *check_layer(builds[0], kinds))
    _chained(one, two, inputs)
    seen(two.forward)


def _chained(one: Probe, two: Probe, inputs: list[Tensor]) -> None:
    """Raises: Wrong unless two layers do what one does, and then the other."""
    x, *memory = inputs
    names = {name for name, _ in one.module.named_parameters()}
    new = [p for name, p in two.module.named_parameters() if name not in names]
    ids = {id(weight) for weight in new}
    silence(two.module)
    second = [weight for weight in two.weights if id(weight) in ids]
    first = [weight for weight in two.weights if id(weight) not in ids]
    if not second or not first:  # weights of all layers in one tensor
        return
    with without(second):
        y = two.forward(x, *memory)
    with without(first):
        right = two.forward(y, *memory)
        require(
            not memory or changed(right, two.forward(y, disturb(memory[0], 3))),
            "The last layer doesn't see the memory: hand each layer the encoder's "
            "output.",
        )
    sentence = (
        "Two layers together give other numbers than one and then the other: each "
        "reads what the one before it gave."
    )
    expect(two.forward(x, *memory).detach(), right.detach(), sentence, tolerance=1e-3)


@check_of("Encoder")
def encoder(part: Part) -> str:
    """`Encoder(N, d_model, h, d_ff, dropout)`, `forward(x, mask=None)`: N layers."""
    _stack("Encoder", part, 1)
    return "N layers, one after the other, each with the mask"


@check_of("Decoder")
def decoder(part: Part) -> str:
    """`Decoder(N, d_model, h, d_ff, dropout)`, `forward(y, memory, src_mask=None)`."""
    _stack("Decoder", part, 2)
    return "N layers, one after the other, each with the memory and its mask"
