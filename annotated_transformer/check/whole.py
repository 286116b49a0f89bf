"""The check of the whole model, Figure 1."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .assertions import changed, close, expect, require
from .inside import Inside
from .parts import Forward, Part, check_of, depart
from .probes import Probe, normalised
from .stacks import D_MODEL, SIZES, check_layer, decoding, encoding, vectors
from .sublayers import UNSCALED
from .weights import matrices_of, require_gradients, silence, size_of, without

VOCAB = 23  # enough for ids of their own at each position
SOURCE = torch.tensor([[1, 5, 6, 7, 2], [1, 8, 9, 3, 2]])
TARGET = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9]])


@check_of("Transformer")
def transformer(part: Part) -> str:
    """`Transformer(vocab_size, N, d_model, h, d_ff, dropout)`, `forward(src, tgt)`.

    Ids in, (batch, tgt, vocab_size) logits out; id 0 is padding. One embedding serves
    source, target and output. More arguments must have defaults, such as a max_length.
    """

    def made(N: int = 1, vocab_size: int = VOCAB, **sizes: int | float) -> nn.Module:
        others = (SIZES | sizes).values()
        return part.module(vocab_size, N, D_MODEL, *others)

    module = made()
    whole = Part("forward", module)

    def forward(src: Tensor, tgt: Tensor) -> Tensor:
        return whole.tensor(src, tgt, shape=(*tgt.shape, VOCAB))

    before = forward(SOURCE, TARGET)
    if close(before.exp().sum(-1), torch.ones(TARGET.shape), 1e-4):
        depart("log-probabilities come out, the logits less a number in each row")
    require(
        not close(before.sum(-1), torch.ones(TARGET.shape), 1e-4),
        "These are probabilities: return the logits; the softmax belongs to the loss.",
    )
    _source_seen(forward, before)
    require_gradients(module, before)
    _sizes(module, made(vocab_size=VOCAB + 1), made(N=2))
    whole(SOURCE.repeat(1, 10), TARGET.repeat(1, 16))
    # As the reader's class draws it; `made` has drawn its own.
    drawn = Inside.of(part(VOCAB, 1, D_MODEL, *SIZES.values()).eval(), VOCAB)
    _embedded(made(), drawn.table.std().item())
    _stacks(made)
    return "Figure 1 from ids to logits, one embedding for all three places"


def _stacks(made: Callable[..., nn.Module]) -> None:
    """The encoder, where it can be seen, and the decoder, each as a layer."""
    encoder = _encoder_inside(made())
    if encoder.weights:
        encoding(encoder.forward)
        check_layer(lambda **sizes: _encoder_inside(made(**sizes)), stack=True)
    decoding(_decoder_inside(made()).forward)
    check_layer(lambda **sizes: _decoder_inside(made(**sizes)), stack=True)


def _sizes(module: nn.Module, wider: nn.Module, deeper: nn.Module) -> None:
    """A new token takes one row, and perhaps a bias; another layer in both stacks has
    twelve d² of attention and four d·d_ff.
    """
    more = size_of(wider.parameters()) - size_of(module.parameters())
    require(more // D_MODEL in (1, 2, 3), "vocab_size isn't the number of embeddings.")
    if more // D_MODEL > 1:
        depart(f"each token has {more // D_MODEL} vectors in place of one, §3.4")
    more = size_of(matrices_of(deeper)) - size_of(matrices_of(module))
    wanted = 12 * D_MODEL**2 + 4 * D_MODEL * int(SIZES["d_ff"])
    require(
        more == wanted,
        f"From N = 1 to N = 2 the matrices should grow by {wanted} numbers, a layer "
        f"of the encoder and one of the decoder, and grow by {more}: hand N, d_model "
        "and d_ff to both stacks.",
    )


def _source_seen(forward: Forward, before: Tensor) -> None:
    """The source is seen, and its padding isn't."""
    other = SOURCE.clone()
    other[:, 1] = 10
    require(
        changed(before, forward(other, TARGET)),
        "The source changes nothing: hand the encoder's output to the decoder.",
    )
    padded = torch.cat([SOURCE, torch.zeros(2, 2, dtype=torch.long)], 1)
    require(
        not changed(before, forward(padded, TARGET)),
        "Padding after the source changes the logits: make padding_mask(src, 0) and "
        "hand it to the encoder and to the decoder.",
    )


def _embedded(module: nn.Module, spread: float) -> None:
    """With zeros in all layers, each token's vector comes through, normalised."""
    silence(module)
    inside = Inside.of(module, VOCAB)
    if inside.positions:
        depart("learned positions, which Table 3 (E) finds as good")
    if inside.scale == 1 and spread > 2 / math.sqrt(D_MODEL):
        depart(UNSCALED.format(spread=spread))
    else:
        inside.scale = math.sqrt(D_MODEL)
    with without(inside.others):
        logits = inside.run(SOURCE, TARGET)
        _vectors("target", TARGET, inside.read(logits), inside)
        if inside.last is not None:
            _vectors("source", SOURCE, inside.memory(SOURCE, TARGET), inside)
    module.train()
    with without(inside.others):
        _embedding_dropout(inside)


def _vectors(side: str, ids: Tensor, found: Tensor, inside: Inside) -> None:
    """Raises: Wrong unless they are √d_model times rows, plus the positions' codes."""
    rows, codes = inside.table[ids], inside.codes(ids.size(1))
    mistakes = {
        f"The {side}'s positions are missing: add sinusoids to its embedding.": (
            normalised(rows)
        ),
        f"The {side}'s embedding is too small beside its positions: multiply its rows "
        "by √d_model, and then add the position codes.": normalised(rows + codes),
    }
    sentence = (
        f"With zeros in all layers each {side} token's vector should come through, "
        "normalised: √d_model times its row, plus its position's code, from 0 on."
    )
    right = normalised(inside.vectors(ids))
    expect(normalised(found), right, sentence, mistakes, tolerance=1e-3)


def _embedding_dropout(inside: Inside) -> None:
    """In training it falls on the sum of embedding and position, §5.4."""

    def drops() -> bool:
        one, other = (inside.run(SOURCE, TARGET) for _ in range(2))
        return not close(one, other, 1e-3)

    require(drops(), "Dropout is missing where embedding and positions are added.")
    if not inside.positions:
        inside.fill(TARGET, 0.0)
        require(
            drops(),
            "Dropout falls on the embedding before the positions are added: drop their "
            "sum.",
        )


def _encoder_inside(module: nn.Module) -> Probe:
    inside = Inside.of(module, VOCAB)
    return Probe(module, inside.encode, inside.encoder(), vectors(1))


def _decoder_inside(module: nn.Module) -> Probe:
    """With zeros in the encoder it hands on what is normalised already."""
    inside = Inside.of(module, VOCAB)
    encoder = {id(weight) for weight in inside.encoder()}
    rest = [weight for weight in inside.others if id(weight) not in encoder]
    with torch.no_grad():
        for weight in inside.others:
            weight.mul_(id(weight) not in encoder)
    return Probe(module, inside.decode, rest, vectors(2))
