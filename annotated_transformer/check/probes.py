"""A reader's layers as functions of vectors, with sub-layers that can be turned off.

Names tell nothing here. A sub-layer is found by what is lost without its weights, and
the encoder and decoder inside a Transformer by what goes in and what comes out.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import permutations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..model.position import sinusoids
from .assertions import changed, close, disturb, expect, matrices_of, require, silence

Forward = Callable[..., Tensor]
Weights = list[nn.Parameter]
Sublayers = dict[str, Weights]
SRC_IDS, TGT_IDS = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[7, 8], [9, 3]])


@dataclass
class Probe:
    """A layer or a stack: its function of vectors, and the weights inside."""

    module: nn.Module
    forward: Forward
    weights: Weights
    chains: bool = True  # what it gives can be given to a next one; not below a norm


@contextmanager
def without(weights: Iterable[nn.Parameter], keep: float = 0.0) -> Iterator[None]:
    """Zeros in some weights, or a part of them, for a while."""
    kept = [(weight, weight.detach().clone()) for weight in weights]
    with torch.no_grad():
        for weight, _ in kept:
            weight.mul_(keep)
    try:
        yield
    finally:
        with torch.no_grad():
            for weight, values in kept:
                weight.copy_(values)


def normalised(vectors: Tensor) -> Tensor:
    """Mean 0 and variance 1 at each position, as a norm leaves them."""
    return F.layer_norm(vectors, vectors.shape[-1:])


SELF, SOURCE, NETWORK = "self-attention", "source attention", "feed-forward"


def sublayers_of(probe: Probe, inputs: list[Tensor]) -> Sublayers:
    """The weights without which a sub-layer does nothing, by its name.

    Raises: Wrong when two of them can't be told apart.
    """
    forward, last = probe.forward, inputs[0].size(1) - 1
    x, *memory = inputs
    found: Sublayers = {SELF: []}
    if memory:
        found[SOURCE] = []
    for weight in probe.weights:
        with without([weight]):
            before = forward(*inputs)
            if last not in changed(before, forward(disturb(x, 0), *memory)):
                found[SELF].append(weight)
            if memory and not changed(before, forward(x, disturb(memory[0], 0))):
                found[SOURCE].append(weight)
    shared = {id(w) for w in found[SELF]} & {id(w) for w in found.get(SOURCE, [])}
    require(
        not shared,
        "One attention module serves as both of the decoder's, so neither can learn "
        "its own task: make two MultiHeadAttentions.",
    )
    attentions = [weight for weights in found.values() for weight in weights]
    found[NETWORK] = []
    with without(attentions):
        before = forward(*inputs)
        for weight in probe.weights:
            with without([weight]):
                if changed(before, forward(*inputs)):
                    found[NETWORK].append(weight)
    require(
        found[NETWORK],
        "Without the feed-forward network attention is lost, too: each residual "
        "should carry on what the sub-layer before it gave.",
    )
    return found


def only(name: str, sublayers: Sublayers) -> Weights:
    """The weights to be without, for one sub-layer alone to work."""
    return [w for other in sublayers if other != name for w in sublayers[other]]


def check_order(probe: Probe, sublayers: Sublayers, inputs: list[Tensor]) -> None:
    """Raises: Wrong unless all sub-layers together do what they do one by one."""
    x, *memory = inputs

    def one_by_one(order: Iterable[str]) -> Tensor:
        y = x
        for name in order:
            with without(only(name, sublayers)):
                y = probe.forward(y, *memory)
        return y

    paper = ", ".join(sublayers)
    mistakes = {
        f"The order is {', '.join(order)}; in the paper it is {paper}.": (
            one_by_one(order)
        )
        for order in permutations(sublayers)
    }
    sentence = (
        f"Together the sub-layers give other numbers than one after the other, {paper}:"
        " each should read, and add to, what the one before it gave."
    )
    right = one_by_one(sublayers)
    expect(probe.forward(*inputs), right, sentence, mistakes, tolerance=1e-3)


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
        with without(others):
            ids = torch.tensor([[1, 2, 3]])
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
        table = self.table.double()
        back = torch.linalg.pinv(nn.functional.pad(table, (0, 1), value=1.0).T)
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
            memory = self.memory(src, tgt)
        assert memory is not None
        return memory

    def encoder(self) -> Weights:
        """The encoder's weights: those that change the memory. None if it is unseen."""
        before, found = self.memory(SRC_IDS, TGT_IDS), []
        for weight in self.others if before is not None else ():
            with without([weight]):
                after = self.memory(SRC_IDS, TGT_IDS)
            if before is not None and (after is None or changed(before, after)):
                found.append(weight)
        return found

    def memory(self, src: Tensor, tgt: Tensor) -> Tensor | None:
        """What the decoder reads, where it is known which module gives it."""
        seen = self._seen([self.last], src, tgt) if self.last else []
        return seen[-1][1] if seen else None

    def find_last(self) -> nn.Module | None:
        """The last module through which all goes that the source does."""
        logits = self.run(SRC_IDS, TGT_IDS)
        seen = self._seen(self.module.modules(), SRC_IDS, TGT_IDS)
        for module, result in reversed(seen):

            def put(
                _: nn.Module, __: object, other: object, kept: Tensor = result
            ) -> Tensor | None:
                same = isinstance(other, Tensor) and other.shape == kept.shape
                return kept if same else None

            other = self._hooked(put, [module], SRC_IDS.roll(1, 0), TGT_IDS)
            if close(other, logits, 1e-4):
                return module
        return None

    def _seen(
        self, modules: Iterable[nn.Module], src: Tensor, tgt: Tensor
    ) -> list[tuple[nn.Module, Tensor]]:
        """What modules give of the source's shape, with the batch first."""
        seen: list[tuple[nn.Module, Tensor]] = []

        def note(module: nn.Module, _: object, result: object) -> None:
            if isinstance(result, Tensor) and result.dim() == 3:
                for each in (result, result.transpose(0, 1)):
                    if each.shape == (*src.shape, self.table.size(1)):
                        seen.append((module, each))

        self._hooked(note, modules, src, tgt)
        return seen

    def _hooked(
        self,
        hook: Callable[..., Tensor | None],
        modules: Iterable[nn.Module],
        src: Tensor,
        tgt: Tensor,
    ) -> Tensor:
        handles = [module.register_forward_hook(hook) for module in modules]
        try:
            return self.run(src, tgt)
        finally:
            for handle in handles:
                handle.remove()
