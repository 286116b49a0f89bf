"""The encoder and the decoder inside a reader's Transformer, as functions of vectors.

They are found by what goes in and what comes out; names tell nothing here.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.modules.module import register_module_forward_hook

from ..model.position import sinusoids
from .assertions import changed, close, require
from .probes import normalised
from .weights import Weights, matrices_of, needed, silence, without

SRC_IDS, TGT_IDS = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[7, 8], [9, 3]])


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
        """The encoder's weights: those that change the memory. None if it is unseen."""
        if self.last is None:
            return []
        before = self.memory(SRC_IDS, TGT_IDS)
        return needed(
            self.others, lambda: not changed(before, self.memory(SRC_IDS, TGT_IDS))
        )

    def memory(self, src: Tensor, tgt: Tensor) -> Tensor:
        """What the decoder reads, where it is known which module gives it."""
        seen = self._seen(src, tgt)
        return [result for module, result in seen if module is self.last][-1]

    def find_last(self) -> nn.Module | None:
        """The last module through which all goes that the source does."""
        logits = self.run(SRC_IDS, TGT_IDS)
        for module, result in reversed(self._seen(SRC_IDS, TGT_IDS)):

            def put(
                _: nn.Module, __: object, other: object, kept: Tensor = result
            ) -> Tensor | None:
                same = isinstance(other, Tensor) and other.shape == kept.shape
                return kept if same else None

            with module.register_forward_hook(put):
                other = self.run(SRC_IDS.roll(1, 0), TGT_IDS)
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
