"""A trained model prepared for search: the same scores, up to rounding, in less time.

Layers, masks, positions and norms are the model's own, called as they are; only the
matrices are prepared, and all beams of a sentence share one cache, in which each
remembers whose past is its own.
"""

from collections.abc import Iterator
from copy import deepcopy
from itertools import chain
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..cache import Cache
from ..decoding.model_search import ModelSearch
from ..decoding.step_model import StepModel
from ..errors import UserError, nearest
from ..model.attention import padding_mask
from ..model.cache import KVCache
from ..model.transformer import Transformer


def search_matrix(
    weight: Float[Tensor, "outputs inputs"], dtype: torch.dtype
) -> nn.Parameter:
    """The same matrix; in float32 each of its columns lies in one piece in memory."""
    laid_out = weight.detach().to(dtype)
    if dtype == torch.float32:
        laid_out = laid_out.t().contiguous().t()
    return nn.Parameter(laid_out)


class SearchLinear(nn.Linear):
    """A linear layer with a `search_matrix`, which rounds its inputs as its weights."""

    def __init__(self, plain: nn.Linear, dtype: torch.dtype):
        nn.Module.__init__(self)
        self.weight, bias = search_matrix(plain.weight, dtype), plain.bias
        self.bias = None if bias is None else nn.Parameter(bias.detach().to(dtype))

    def forward(
        self, x: Float[Tensor, "*batch inputs"]
    ) -> Float[Tensor, "*batch outputs"]:
        """x Wᵀ + b."""
        return super().forward(x.to(self.weight.dtype))


def search_copy(model: Transformer, dtype: torch.dtype) -> Transformer:
    """A copy of a model with `SearchLinear` in the place of each linear layer.

    It shares all that is not a linear layer's.
    """
    shared = {id(each): each for each in chain(model.parameters(), model.buffers())}
    copy = deepcopy(model, shared).eval()
    for owner in list(copy.modules()):
        for name, part in list(owner.named_children()):
            if type(part) is nn.Linear:
                setattr(owner, name, SearchLinear(part, dtype))
    copy.tgt_embedding = deepcopy(copy.tgt_embedding, shared)  # for the logits alone
    copy.tgt_embedding.weight = search_matrix(copy.tgt_embedding.weight, dtype)
    return copy


def compact_rows(
    rows: Float[Tensor, "sentence *rest"],
    active: Int[Tensor, "kept"],
    moved: Int[Tensor, "moved"],
) -> Float[Tensor, "kept *rest"]:
    """The sentences that go on; only those at the places `moved` are copied."""
    rows[moved] = rows[active[moved]]
    return rows[: len(active)]


class BeamCache(Cache):
    """A decoder's caches, all beams of a sentence side by side in each of them."""

    src_mask: Bool[Tensor, "sentence 1 1 src"]

    def __init__(
        self,
        layers: tuple[tuple[KVCache, KVCache], ...],
        src_mask: Bool[Tensor, "sentence 1 1 src"],
        beam_size: int,
    ):
        super().__init__(layers=layers, src_mask=src_mask)
        self.beams = torch.arange(beam_size, device=src_mask.device)
        self.ancestors = self.beams.new_empty(len(src_mask), beam_size, 0)

    def advance(self) -> None:
        """Each beam is its own ancestor at the next position: whose keys it may see."""
        self.length += 1
        if len(self.beams) == 1:
            return
        itself = self.beams[:, None].expand(len(self.ancestors), -1, -1)
        self.ancestors = torch.cat([self.ancestors, itself], dim=2)
        seen = (self.ancestors[:, None, ..., None] == self.beams).flatten(3)
        for past, _ in self.layers:
            past.seen = seen

    @torch.inference_mode()
    def reorder(self, rows: Int[Tensor, "kept"]) -> None:
        """Row i continues old row `rows[i]`; sentences may leave, none may double."""
        size = len(self.beams)
        active, parents = rows.view(-1, size)[:, 0] // size, rows.view(-1, size) % size
        wide = parents[..., None].expand(-1, -1, self.ancestors.size(2))
        fewer = len(active) < len(self.ancestors)
        self.ancestors = self.ancestors[active].gather(1, wide)
        positions = torch.arange(len(active), device=active.device)
        moved = (active != positions).nonzero().squeeze(1)
        if len(moved) or fewer:
            for cache in chain.from_iterable(self.layers):
                cache.key = compact_rows(cache.key, active, moved)
                cache.value = compact_rows(cache.value, active, moved)
            self.src_mask = self.src_mask[active]


LEAST = 16  # sentences of like length that are encoded together


class FastTransformer:
    """A trained model prepared for search: the same function in another form."""

    training = False

    def __init__(self, model: Transformer, dtype: torch.dtype = torch.float32):
        self.model, self.config, self.dtype = model, model.config, dtype
        self.prepared = search_copy(model, dtype)

    def parameters(self) -> Iterator[nn.Parameter]:
        """Those of the readable model, of which this one holds copies."""
        return self.model.parameters()

    def to(self, device: str | torch.device) -> "FastTransformer":
        """The model moved to a device, and prepared there."""
        return FastTransformer(self.model.to(device), self.dtype)

    def encode(
        self, src: Int[Tensor, "batch src"]
    ) -> Float[Tensor, "batch src d_model"]:
        """The encoder's output; little padding is multiplied, and its own is zero."""
        real = src != self.config.pad_id
        memory = torch.zeros(*src.shape, self.config.d_model, device=src.device)
        size = max(LEAST, len(src) // 4)
        for rows in real.sum(dim=1).argsort(descending=True).split(size):
            width = int(real[rows].any(dim=0).nonzero().max()) + 1
            memory[rows, :width] = self.prepared.encode(src[rows, :width])[0]
        return memory

    @torch.inference_mode()
    def start(self, src: Int[Tensor, "batch src"], beam_size: int = 1) -> BeamCache:
        """Read the sources once; the cache has `beam_size` rows for each of them."""
        memory = self.encode(src)
        stack = self.prepared.decoder.layers
        layers = tuple(layer.start(memory) for layer in stack)
        return BeamCache(layers, padding_mask(src, self.config.pad_id), beam_size)

    @torch.inference_mode()
    def step(
        self, tokens: Int[Tensor, "rows"], cache: BeamCache
    ) -> Float[Tensor, "rows vocab"]:
        """Feed one token to each beam of each sentence; scores for the next."""
        model, sentences = self.prepared, len(cache.src_mask)
        y = model.embed(self.model.tgt_embedding, tokens[:, None], cache.length)
        y = y.view(sentences, -1, self.config.d_model)
        cache.advance()
        for layer, caches in zip(model.decoder.layers, cache.layers, strict=True):
            y = layer.step(y, *caches, cache.src_mask)
        return model.logits(y.flatten(0, 1).to(self.dtype))


# Where the parts are defined that it can search with; others add their module.
PART_MODULES = ["annotated_transformer.model.", "torch.nn.modules."]


def fast(model: Any, precision: str = "float32") -> StepModel:
    """The fast form of a model; one with parts that were wrapped or exchanged as it is.

    Raises: UserError for an unknown precision, or for one that it can't have.
    """
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if precision not in dtypes:
        raise UserError(
            f"unknown precision {precision!r}: {nearest(precision, dtypes)}"
        )
    homes = tuple(PART_MODULES)
    if all(type(part).__module__.startswith(homes) for part in model.modules()):
        return FastTransformer(model, dtypes[precision])
    if precision != "float32":
        raise UserError(f"precision is {precision!r}: this model runs in float32 only")
    return model


def fast_engine(model: Any, tokenizer: Any, dtype: str) -> ModelSearch:
    """A search over the fast form. Raises: UserError as `fast`."""
    return ModelSearch(fast(model, dtype))
