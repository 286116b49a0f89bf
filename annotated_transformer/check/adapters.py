"""Other people's code under this book's sizes, argument order and masks.

How a part wants to be called is found by trying on its own check.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from ..model.attention import causal_mask
from .parts import Check, Function
from .verdict import Verdict

LAYER = "d_model h d_ff dropout"
SIZES = {
    "MultiHeadAttention": "d_model h",
    "FeedForward": "d_model d_ff",
    "Embedding": "vocab_size d_model",
    "AddNorm": "d_model dropout",
    "EncoderLayer": LAYER,
    "DecoderLayer": LAYER,
    "Encoder": f"N {LAYER}",
    "Decoder": f"N {LAYER}",
    "Transformer": f"vocab_size N {LAYER}",
}
OTHER_NAMES = {
    "d_model": "dim embed_dim emb_dim hidden_dim hidden_size num_hiddens emb size",
    "h": "num_heads n_heads nhead n_head heads",
    "d_ff": "dim_feedforward d_hid d_inner ffn_dim ffn_num_hiddens hidden pf_dim",
    "dropout": "p dropout_rate dropout_p drop",
    "N": "num_layers n_layers num_blks depth n_layer layers",
    "vocab_size": "num_embeddings n_vocab vocab src_vocab_size",
}
# A mask of theirs from the book's, and the book's from one of theirs.
MASKS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "where True may attend": (lambda mask: mask, lambda mask: mask),
    "where True is hidden": (torch.logical_not, torch.logical_not),
    "of floats, added to the scores": (
        lambda mask: torch.zeros(mask.shape).masked_fill(~mask, -torch.inf),
        lambda mask: mask > -1,
    ),
}


def _is_mask(given: object) -> bool:
    return isinstance(given, Tensor) and given.dtype == torch.bool


@dataclass
class Way:
    """A way to call: what differs from the book's, and how far a check came with it."""

    mask: str = "where True may attend"
    axes: int = 0  # of size one that a mask of padding lacks
    mask_name: str = ""
    causal_name: str = ""
    thrice: bool = False  # query, key and value, where the book has x and memory
    batch_second: bool = False
    calls: int = field(default=0, compare=False)

    def __str__(self) -> str:
        said = {
            f"a mask {self.mask}": self.mask != Way.mask,
            f"a mask of {4 - self.axes} axes": self.axes,
            f"the mask as {self.mask_name}": self.mask_name,
            f"the causal mask as {self.causal_name}": self.causal_name,
            "memory as key and as value": self.thrice,
            "the batch second": self.batch_second,
        }
        return ", ".join(words for words, differs in said.items() if differs)

    def call(self, part: Function, *given: Any) -> Any:
        """What the part gives for the book's arguments, in the book's axes."""
        self.calls += 1
        theirs, _ = MASKS[self.mask]
        others = [self.turned(each) for each in given if not _is_mask(each)]
        named = dict[str, Tensor]()
        for mask in filter(_is_mask, given):
            for _ in range(self.axes):
                mask = mask[:, 0]
            named[self.mask_name] = theirs(mask)
        if self.causal_name:
            named[self.causal_name] = theirs(causal_mask(given[0].size(1)))
        if self.thrice:
            others.append(others[-1])
        if "" in named:
            others.append(named.pop(""))
        found = part(*others, **named)
        found = found[0] if isinstance(found, tuple) and self.batch_second else found
        return self.turned(found)

    def turned(self, given: Any) -> Any:
        """Other axes first, where the batch is second; a model turns what it gets.

        The batch is first in a mask, as it is in the scores, in either way.
        """
        if not self.batch_second:
            return given
        if isinstance(given, nn.Module):
            return Adapted(given, Way(batch_second=True))
        turns = isinstance(given, Tensor) and given.dim() > 1 and not _is_mask(given)
        return given.transpose(0, 1) if turns else given

    def read(self, mask: Any) -> Any:
        """A mask that the part made, as the book has it."""
        if isinstance(mask, Tensor):
            mask = MASKS[self.mask][1](mask)
            for _ in range(self.axes):
                mask = mask[:, None]
        return mask


class Adapted(nn.Module):
    """A module that is called in a way of its own."""

    def __init__(self, inner: nn.Module, way: Way):
        super().__init__()
        self.inner, self.way = inner, way

    def forward(self, *given: Tensor | None) -> Any:
        return self.way.call(self.inner, *(each for each in given if each is not None))


def built(name: str, part: Function, sizes: tuple[int | float, ...]) -> Any:
    """The part made with sizes under its own names, or else in the book's order."""
    ours = dict(zip(SIZES[name].split(), sizes, strict=True))
    if "h" in ours:
        ours |= dict.fromkeys(("d_k", "d_v"), int(ours["d_model"] // ours["h"]))
    theirs, named = inspect.signature(part).parameters, dict[str, int | float]()
    for size, value in ours.items():
        options = [size, *OTHER_NAMES.get(size, "").split()]
        named |= {option: value for option in options if option in theirs}
    needed = [each for each in theirs.values() if each.default is each.empty]
    known = all(each.name in named or each.kind > 1 for each in needed)
    return part(**named) if known and len(named) >= len(sizes) else part(*sizes)


def ways(part: Function) -> Iterator[Way]:
    """All ways that the part's signature allows, the book's own first."""
    called = part.forward if inspect.isclass(part) else part  # type: ignore[attr-defined]
    names = [each for each in inspect.signature(called).parameters if "mask" in each]
    causal = [each for each in names if each.startswith(("tgt", "trg", "attn", "look"))]
    for second, thrice, causal_name, mask_name, axes, mask in product(
        (False, True), (False, True), ["", *causal], ["", *names], (0, 1, 2), MASKS
    ):
        if not mask_name or mask_name != causal_name:
            yield Way(mask, axes, mask_name, causal_name, thrice, second)


def adapted(name: str, check: Check, part: Function) -> Verdict:
    """The verdict in the first way that passes, or in the one that comes furthest."""
    best, furthest = check(part), 0
    if best or best.departs:
        return best
    for way in ways(part):

        def theirs(*given: Any, way: Way = way) -> Any:
            if name in SIZES:
                return Adapted(built(name, part, given), way)
            result = way.call(part, *(each for each in given if each is not None))
            return way.read(result) if name.endswith("_mask") else result

        verdict = check(theirs)
        if verdict or verdict.departs:
            called = f"{verdict} Called with {way or 'other names'}."
            return replace(verdict, sentence=called)
        if way.calls > furthest:
            best, furthest = verdict, way.calls
    return best
