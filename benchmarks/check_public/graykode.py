import torch
import Transformer as theirs
from torch import nn


class Sized(nn.Module):
    """Theirs has its sizes in the names of its module, when it is made and called."""

    def __init__(self, kind, **sizes):
        super().__init__()
        self.sizes = sizes
        vars(theirs).update(sizes)
        self.inner = kind()

    def call(self, *given):
        vars(theirs).update(self.sizes)
        return self.inner(*given)


def hiding(mask, x, memory):
    shape = len(x), x.size(1), memory.size(1)
    if mask is None:
        return torch.zeros(shape, dtype=torch.bool)
    return ~mask[:, 0].expand(shape)


def attention(query, key, value, mask=None):
    theirs.d_k = key.size(-1)
    hidden = torch.zeros(1, dtype=torch.bool) if mask is None else ~mask
    return theirs.ScaledDotProductAttention()(query, key, value, hidden)


def sinusoids(n, d_model):
    return theirs.get_sinusoid_encoding_table(n, d_model)


def sizes(d_model, h, d_ff, dropout):
    return {"d_model": d_model, "n_heads": h, "d_ff": d_ff} | dict.fromkeys(
        ("d_k", "d_v"), d_model // h
    )


class EncoderLayer(Sized):
    def __init__(self, *given):
        super().__init__(theirs.EncoderLayer, **sizes(*given))

    def forward(self, x, mask=None):
        return self.call(x, hiding(mask, x, x))


class DecoderLayer(Sized):
    def __init__(self, *given):
        super().__init__(theirs.DecoderLayer, **sizes(*given))

    def forward(self, y, memory, src_mask=None):
        future = theirs.get_attn_subsequent_mask(y[:, :, 0]).bool()
        return self.call(y, memory, future, hiding(src_mask, y, memory))
