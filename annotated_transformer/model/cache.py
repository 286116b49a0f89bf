"""What an attention keeps between two steps: keys and values of what it has read."""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


class KVCache:
    """The keys and values of the positions read so far, in buffers with spare room.

    `seen` says which of them a query may see; None is all, as for a single beam.
    """

    seen: Bool[Tensor, "batch 1 beam n"] | None = None

    def __init__(
        self, key: Float[Tensor, "batch h n d_k"], value: Float[Tensor, "batch h n d_v"]
    ):
        self.key, self.value = key.contiguous(), value.contiguous()
        self.length = key.size(2)

    def update(
        self,
        key: Float[Tensor, "batch h new d_k"],
        value: Float[Tensor, "batch h new d_v"],
    ) -> tuple[Float[Tensor, "batch h n d_k"], Float[Tensor, "batch h n d_v"]]:
        """Write new positions behind the others; keys and values up to the last.

        Full buffers are doubled, so most steps copy nothing.
        """
        start, self.length = self.length, self.length + key.size(2)
        if self.length > self.key.size(2):
            room = (0, 0, 0, self.length)
            self.key, self.value = F.pad(self.key, room), F.pad(self.value, room)
        self.key[:, :, start : self.length] = key
        self.value[:, :, start : self.length] = value
        return self.key[:, :, : self.length], self.value[:, :, : self.length]

    def reorder(self, rows: Int[Tensor, "kept"]) -> None:
        """Go on with these rows, in this order; a row may occur more than once."""
        self.key, self.value = self.key[rows], self.value[rows]
