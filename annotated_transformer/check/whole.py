"""The check of the whole model, Figure 1."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.modules.module import register_module_forward_hook

from ..model.position import sinusoids
from .assertions import Forward, changed, close, expect, require
from .parts import Part, check_of, depart
from .probes import Probe, normalised
from .stacks import D_MODEL, SIZES, check_layer, decoding, encoding, vectors
from .sublayers import UNSCALED
from .weights import (
    Weights,
    matrices_of,
    needed_weights,
    require_gradients,
    silence,
    size_of,
    without,
)

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

    def drops() -> bool:
        one, other = (inside.run(SOURCE, TARGET) for _ in range(2))
        return not close(one, other, 1e-3)

    # In training dropout falls on the sum of embedding and position, §5.4.
    with without(inside.others):
        require(drops(), "Dropout is missing where embedding and positions are added.")
        inside.fill(TARGET, 0.0)
        require(
            inside.positions or drops(),
            "Dropout falls on the embedding before the positions are added: drop their "
            "sum.",
        )


def _vectors(side: str, ids: Tensor, found: Tensor, inside: "Inside") -> None:
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


def _encoder_inside(module: nn.Module) -> Probe:
    inside = Inside.of(module, VOCAB)
    return Probe(module, inside.encode, inside.encoder(), vectors(1))


def _decoder_inside(module: nn.Module) -> Probe:
    """With zeros in the encoder it hands on what is normalised already."""
    inside = Inside.of(module, VOCAB)
    encoder = {id(weight) for weight in inside.encoder()}
    rest = [weight for weight in inside.others if id(weight) not in encoder]
    for weight in inside.others:
        weight.detach().mul_(id(weight) not in encoder)
    return Probe(module, inside.decode, rest, vectors(2))


@dataclass
class Inside:
    """A Transformer whose embedding table is ours to write, for vectors to go in.

    Each position of source and target has an id of its own, and the row of that id is
    chosen so that the vector arrives; id 0 stands at what a mask hides. The decoder's
    vectors are solved for from the logits.
    """

    module: nn.Module
    tables: list[Tensor]  # with a row to an id; untied ones hold the same
    others: Weights
    positions: Weights  # learned ones, if it has them
    last: nn.Module | None = None  # the encoder's, if a module gives the memory
    scale: float = 1.0

    @classmethod
    def of(cls, module: nn.Module, vocab_size: int) -> "Inside":
        """Raises: Wrong unless tables of that many rows are looked up."""
        silence(module)
        matrices = matrices_of(module)
        tables = [weight for weight in matrices if vocab_size in weight.shape]
        require(tables, "There should be a table of embeddings.")
        others = [weight for weight in matrices if vocab_size not in weight.shape]
        rows = [each if len(each) == vocab_size else each.T for each in tables]
        inside = cls(module, [each.detach() for each in rows], others, [])
        for table in inside.tables[1:]:
            table.copy_(inside.table)
        ids = torch.tensor([[1, 2, 3]])
        with without(others):
            before = inside.run(ids, ids)
        for weight in others:
            with without([other for other in others if other is not weight]):
                if changed(before, inside.run(ids, ids)):
                    inside.positions.append(weight)
        inside.last = inside.find_last()
        with without(others):
            come = normalised(inside.read(before))
        plain, scale = inside.vectors(ids), math.sqrt(inside.table.size(1))
        inside.scale = 1.0 if close(come, normalised(plain), 1e-3) else scale
        return inside

    def run(self, src: Tensor, tgt: Tensor) -> Tensor:
        """The logits, without what may be returned after them."""
        found = self.module(src, tgt)
        return found[0] if isinstance(found, tuple) else found

    @property
    def table(self) -> Tensor:
        return self.tables[0]

    def codes(self, n: int) -> Tensor:
        """The positions' codes, but for learned ones, which are turned off."""
        return sinusoids(n, self.table.size(1)) * (not self.positions)

    def vectors(self, ids: Tensor) -> Tensor:
        """What the layers get for ids."""
        return self.scale * self.table[ids] + self.codes(ids.size(1))

    def fill(self, ids: Tensor, rows: Tensor | float) -> None:
        """Rows of all tables."""
        for table in self.tables:
            table[ids] = rows

    def write(self, vectors: Tensor, first: int, mask: Tensor | None) -> Tensor:
        """The ids, counted from the first, that bring these vectors to the layers."""
        batch, n, _ = vectors.shape
        ids = torch.arange(first, first + batch * n).reshape(batch, n)
        if mask is not None:
            ids = ids.masked_fill(~mask[:, 0, 0], 0)
        self.fill(ids, (vectors.detach() - self.codes(n)) / self.scale)
        return ids

    def read(self, logits: Tensor) -> Tensor:
        """The decoder's vectors behind the logits, or behind log-probabilities."""
        back = torch.linalg.pinv(pad(self.table.double(), (0, 1), value=1.0).T)
        return (logits.double() @ back)[..., :-1].float()

    def decode(self, y: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the decoder makes of vectors and of the encoder's input."""
        src = self.write(memory, 1, mask)
        tgt = self.write(y, 1 + memory.size(0) * memory.size(1), None)
        with without(self.positions):
            return self.read(self.run(src, tgt))

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the encoder makes of vectors."""
        src = self.write(x, 1, mask)
        tgt = torch.arange(3).repeat(len(x), 1) + 1 + x.size(0) * x.size(1)
        with without(self.positions):
            return self.memory(src, tgt)

    def encoder(self) -> Weights:
        """The weights that change the memory; none where that is unseen."""
        if self.last is None:
            return []
        before = self.memory(SOURCE, TARGET)
        return needed_weights(
            self.others, lambda: not changed(before, self.memory(SOURCE, TARGET))
        )

    def memory(self, src: Tensor, tgt: Tensor) -> Tensor:
        """What the decoder reads, where it is known which module gives it."""
        seen = self._seen(src, tgt)
        return [result for module, result in seen if module is self.last][-1]

    def find_last(self) -> nn.Module | None:
        """The last module through which all goes that the source does."""
        logits = self.run(SOURCE, TARGET)
        for module, result in reversed(self._seen(SOURCE, TARGET)):

            def put(
                _: nn.Module, __: object, other: object, kept: Tensor = result
            ) -> Tensor | None:
                same = isinstance(other, Tensor) and other.shape == kept.shape
                return kept if same else None

            with module.register_forward_hook(put):
                other = self.run(SOURCE.roll(1, 0), TARGET)
            if close(other, logits, 1e-4):
                return module
        return None

    def _seen(self, src: Tensor, tgt: Tensor) -> list[tuple[nn.Module, Tensor]]:
        """What modules give of the source's shape, with the batch first."""
        seen: list[tuple[nn.Module, Tensor]] = []

        def note(module: nn.Module, _: object, result: object) -> None:
            if isinstance(result, Tensor) and result.dim() == 3:
                for each in (result, result.transpose(0, 1)):
                    if each.shape == (*src.shape, self.table.size(1)):
                        seen.append((module, each))

        with register_module_forward_hook(note):
            self.run(src, tgt)
        return seen
