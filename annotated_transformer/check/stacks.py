"""Checks of both layers and both stacks, §3.1 and Figure 1."""

from collections.abc import Callable

import torch
from torch import Tensor

from .assertions import (
    Forward,
    changed,
    close,
    disturb,
    expect,
    expect_masked,
    expect_touched,
    require,
)
from .parts import Part, check_of, forward_of
from .probes import SELF, Probe, normalised
from .weights import matrices_of, require_gradients, silence, size_of, without

D_MODEL = 8
# Unless others are said.
SIZES: dict[str, int | float] = {"h": 2, "d_ff": 16, "dropout": 0.5}
BATCH, TGT, SRC = 2, 5, 5  # as long as each other, so that an exchange shows
LAST, HIDDEN = TGT - 1, SRC - 1  # the newest position, and the one under the mask
Build = Callable[..., Probe]  # with other sizes, by name


def _builder(part: Part, kinds: int, *first: int) -> Build:
    """Makes a layer, or a stack of `first` layers, as a probe."""

    def build(**sizes: int | float) -> Probe:
        module = part.module(*first, D_MODEL, *(SIZES | sizes).values())
        return Probe(module, forward_of(module), matrices_of(module), vectors(kinds))

    return build


def vectors(kinds: int) -> list[Tensor]:
    """Vectors for an encoder (1), or for a decoder and its memory (2)."""
    return [normalised(torch.randn(BATCH, SRC, D_MODEL)) for _ in range(kinds)]


def _hiding(position: int) -> Tensor:
    return (torch.arange(SRC) != position)[None, None, None].expand(BATCH, 1, 1, SRC)


def check_layer(build: Build, stack: bool = False) -> Probe:
    """Its norms, sizes, residuals and order; the layer, with its sub-layers found."""
    probe = build()
    probe.check_norms(stack)
    wider = build(d_ff=SIZES["d_ff"] + 1)
    require(
        size_of(wider.weights) > size_of(probe.weights),
        "d_ff changes nothing: the feed-forward network is missing, or has a size of "
        "its own.",
    )
    silence(probe.module)
    sentence = (
        "A residual is missing: with zeros in all weights each sub-layer adds nothing, "
        "so x should come through, normalised; add x to each sub-layer's output."
    )
    x, *memory = probe.inputs
    with without(probe.weights):
        expect(probe.output(), x, sentence, tolerance=1e-3)
    probe.find_sublayers()
    if memory:
        with probe.alone(SELF):
            require(
                not close(probe.output()[:, 0], x[:, 0], 1e-3),
                "Position 0 doesn't see itself: the causal mask's diagonal is True.",
            )
    _heads(probe, build(h=1))
    if probe.chains:
        probe.check_order()
    return probe


def _heads(probe: Probe, other: Probe) -> None:
    """Raises: Wrong where an attention does the same with another number of heads."""
    silence(other.module)
    other.inputs = probe.inputs
    other.find_sublayers()
    for name in list(probe.sublayers)[:-1]:
        with probe.alone(name), other.alone(name):
            require(
                not close(probe.output(), other.output(), 1e-3),
                f"h changes nothing in {name}: hand it the number of heads.",
            )


def _dropout(build: Build, probe: Probe) -> None:
    """In training it falls on what each sub-layer gives, and nowhere else."""
    probe.module.train()
    for name in probe.sublayers:
        with probe.alone(name):
            require(
                probe.drops(),
                f"Dropout does nothing to the output of {name} in training mode: hand "
                "it to each AddNorm.",
            )
    sentence = "Dropout falls on x or on a sum: drop a sub-layer's output alone."
    with without(probe.weights):
        expect(probe.output(), probe.inputs[0], sentence, tolerance=1e-3)
    probe = build(dropout=0.0)
    probe.module.train()
    require(
        not probe.drops(),
        "With dropout = 0 training still drops something: use the argument.",
    )


ORDER = torch.tensor([3, 0, 4, 1, 2])
ORDERLESS = (
    "The same vectors in another order give other outputs: attention knows no order; "
    "positions are in the vectors already."
)


def encoding(forward: Forward) -> None:
    """What an encoder does with positions and with a mask, one layer or many."""
    (x,) = vectors(1)
    mask, everyone, before = _hiding(HIDDEN), range(SRC), forward(x)
    hint = (
        "through self-attention each position of x sees each, and an encoder has no "
        "causal mask"
    )
    expect_touched(forward, x, 3, everyone, hint)
    expect(forward(x[:, ORDER]), before[:, ORDER], ORDERLESS)
    expect_masked(lambda x: forward(x, mask), x, "mask", own=True)
    hint = "the mask of padding alone says what an encoder sees"
    expect_touched(lambda x: forward(x, mask)[:, :4], x, 3, everyone[:4], hint)


def decoding(forward: Forward) -> None:
    """What a decoder does with the future, the source and its mask."""
    y, memory = vectors(2)
    everyone, before = range(TGT), forward(y, memory)
    hint = (
        "y asks, and memory holds keys and values, so that each position of the target "
        "sees the whole source"
    )
    expect_touched(lambda memory: forward(y, memory), memory, 3, everyone, hint)
    hint = "self-attention over y needs causal_mask(y.size(1))"
    expect_touched(lambda y: forward(y, memory), y, LAST, [LAST], hint)
    hint = "self-attention over y is missing, or its mask hides too much"
    expect_touched(lambda y: forward(y, memory), y, 0, everyone, hint)
    expect(forward(y, memory[:, ORDER]), before, ORDERLESS)
    mask = _hiding(HIDDEN)
    expect_masked(lambda memory: forward(y, memory, mask), memory, "src_mask")
    second = _hiding(1)
    hint = "src_mask is for the attention to the source alone, and hides nothing of y"
    expect_touched(lambda y: forward(y, memory, second), y, 1, everyone[1:], hint)
    forward(y[:, :3], memory, mask)  # of different lengths


@check_of("EncoderLayer")
def encoder_layer(part: Part) -> str:
    """`EncoderLayer(d_model, h, d_ff, dropout)`, `forward(x, mask=None)`.

    Self-attention, then the feed-forward network, each in its AddNorm.
    """
    _layer(part, encoding, 1)
    return "two sub-layers, each added to its input and normalised"


@check_of("DecoderLayer")
def decoder_layer(part: Part) -> str:
    """`DecoderLayer(d_model, h, d_ff, dropout)`, `forward(y, memory, src_mask=None)`.

    Causal self-attention (it makes the mask itself), attention to the source, and the
    feed-forward network, each in its AddNorm.
    """
    _layer(part, decoding, 2)
    return "three sub-layers, blind to the future, with the source before them"


def _layer(part: Part, seen: Callable[[Forward], None], kinds: int) -> None:
    """What holds for both layers."""
    build = _builder(part, kinds)
    probe = build()
    seen(probe.forward)
    require_gradients(probe.module, probe.output())
    gains = [p for p in probe.module.parameters() if p.dim() == 1 and (p == 1).all()]
    require(
        not gains or len(gains) > kinds,
        f"There is a norm for {len(gains)} of {kinds + 1} sub-layers: each has an "
        "AddNorm of its own.",
    )
    _dropout(build, check_layer(build))


def _stack(part: Part, seen: Callable[[Forward], None], kinds: int) -> None:
    """What holds for both stacks: N layers, each with its weights, one after the other.

    Raises: Wrong for shared layers, for a wrong number of them, or ones without effect.
    """
    builds = [_builder(part, kinds, n) for n in (1, 2, 3)]
    one, two, three = (build() for build in builds)
    require_gradients(three.module, three.output())
    seen(one.forward)
    sizes = [size_of(probe.module.parameters()) for probe in (one, two, three)]
    step = sizes[1] - sizes[0]
    require(
        step > 0 and sizes[2] - sizes[1] == step,
        f"With N = 1, 2 and 3, {part.name} has {sizes} numbers to learn: make N "
        "layers, each with weights of its own.",
    )
    layer = check_layer(builds[0], stack=True)
    _dropout(builds[0], layer)
    if layer.chains:
        _chained(one, two)
    seen(two.forward)


def _chained(one: Probe, two: Probe) -> None:
    """Raises: Wrong unless two layers do what one does, and then the other."""
    names = {name for name, _ in one.module.named_parameters()}
    ids = {id(p) for name, p in two.module.named_parameters() if name not in names}
    silence(two.module)
    two.sublayers = {
        "first": [weight for weight in two.weights if id(weight) not in ids],
        "last": [weight for weight in two.weights if id(weight) in ids],
    }
    if not all(two.sublayers.values()):  # weights of all layers in one tensor
        return
    right, (x, *memory) = two.one_by_one(["first", "last"]), two.inputs
    with two.alone("last"):
        require(
            not memory or changed(two.output(), two.forward(x, disturb(memory[0], 3))),
            "The last layer doesn't see the memory: hand each layer the encoder's "
            "output.",
        )
    sentence = (
        "Two layers together give other numbers than one and then the other: each "
        "reads what the one before it gave."
    )
    expect(two.output(), right, sentence, tolerance=1e-3)


@check_of("Encoder")
def encoder(part: Part) -> str:
    """`Encoder(N, d_model, h, d_ff, dropout)`, `forward(x, mask=None)`: N layers."""
    _stack(part, encoding, 1)
    return "N layers, one after the other, each with the mask"


@check_of("Decoder")
def decoder(part: Part) -> str:
    """`Decoder(N, d_model, h, d_ff, dropout)`, `forward(y, memory, src_mask=None)`."""
    _stack(part, decoding, 2)
    return "N layers, one after the other, each with the memory and its mask"
