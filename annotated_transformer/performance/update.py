"""An update of the weights in less time and memory: the same value and gradients.

The chapter on speed shows the loss in slices, and what each part is worth. A CPU gets
three faster forms that a GPU doesn't need: attention by the plain formula in bfloat16,
dropout from 16 random bits, and vectors in bfloat16 between the sub-layers.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from ..data.batch import Batch
from ..errors import UserError
from ..model.attention import attention, causal_mask
from ..model.transformer import Transformer
from ..training.loss import Objective


class SlicedLoss(torch.autograd.Function):
    """The sum of a loss over all tokens, `rows` of them at a time.

    `loss` takes some rows of `hidden` and their targets; `weight` is the matrix that it
    multiplies them by.
    """

    @staticmethod
    def forward(
        ctx: Any,
        loss: Callable[[Tensor, Tensor], Tensor],
        rows: int,
        hidden: Tensor,
        target: Tensor,
        weight: Tensor,
    ) -> Tensor:
        """The summed loss; both gradients are worked out while a slice is at hand."""
        sums, by_hidden, by_weight = [], [], torch.zeros_like(weight)
        for part, gold in zip(hidden.split(rows), target.split(rows), strict=True):
            with torch.set_grad_enabled(ctx.needs_input_grad[2]):  # not in validation
                part = part.detach().requires_grad_()
                summed = loss(part, gold)
            sums.append(summed.detach())
            if summed.requires_grad:
                slopes = torch.autograd.grad(summed, (part, weight))
                by_hidden.append(slopes[0])
                by_weight += slopes[1]
        ctx.save_for_backward(torch.cat(by_hidden or [hidden]), by_weight)
        return torch.stack(sums).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
        """The stored gradients, times that of whatever was computed from the loss."""
        by_hidden, by_weight = ctx.saved_tensors
        return None, None, by_hidden * upstream, None, by_weight * upstream


def dropout_mask(x: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"]:
    """What to multiply `x` by: 0 with probability p, else what keeps the mean."""
    dropped = min(round(p * 65_536), 65_535)
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    kept = words.view(torch.int16)[: x.numel()] >= dropped - 32_768
    return kept.view(x.shape).to(x.dtype).mul_(65_536 / (65_536 - dropped))


def working_dtype(x: Tensor) -> torch.dtype:
    """The type that matrix products run in here: autocast's, or that of the tensor."""
    kind = x.device.type
    casting = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if casting else x.dtype


def _dropout(
    x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """`F.dropout` with cheaper random numbers, in the type that products run in."""
    x = x.to(working_dtype(x))
    if not training or p in (0, 1) or torch.compiler.is_compiling():
        return F.dropout(x, p, training)
    return x * dropout_mask(x, p)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    **options: Any,
) -> Tensor:
    """`F.scaled_dot_product_attention`, by the plain formula in bfloat16."""
    if query.dtype != torch.bfloat16 or options:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal=is_causal, **options
        )
    if is_causal:
        attn_mask = causal_mask(query.size(2), query.device)
    return attention(query, key, value, attn_mask)[0]


class CPUFunctions(TorchFunctionMode):
    """Within the block a CPU computes dropout and attention in faster forms."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Called by PyTorch instead of `function`."""
        faster = {F.dropout: _dropout, F.scaled_dot_product_attention: _attention}
        return faster.get(function, function)(*args, **(kwargs or {}))


class FastObjective(Objective):
    """`Objective`, faster: the same value and gradients, but for rounding.

    Raises: UserError for a model that is not a plain `Transformer`.
    """

    model: Transformer

    def __init__(self, model: Transformer, smoothing: float, rows: int = 512):
        if type(model) is not Transformer:
            raise UserError(
                f"a {type(model).__name__} has parts of its own, which FastObjective "
                "doesn't know: take training.loss.Objective"
            )
        super().__init__(model, smoothing)
        self.rows = rows

    def forward(self, batch: Batch) -> Float[Tensor, ""]:
        """The loss of a batch, summed over real tokens, on the model's device."""
        weight = self.model.tgt_embedding.weight
        with CPUFunctions() if weight.device.type == "cpu" else nullcontext():
            return super().forward(batch)

    def loss(
        self, hidden: Float[Tensor, "tokens d_model"], target: Int[Tensor, "tokens"]
    ) -> Float[Tensor, ""]:
        """That of the decoder's outputs; not smoothed in evaluation mode."""
        weight = self.model.tgt_embedding.weight
        return SlicedLoss.apply(super().loss, self.rows, hidden, target, weight)


def fast_training(model: nn.Module, smoothing: float) -> FastObjective | Objective:
    """The fast objective of a plain Transformer, the readable one of another model."""
    if type(model) is Transformer:
        return FastObjective(model, smoothing)
    return Objective(model, smoothing)
