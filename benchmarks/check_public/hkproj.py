import model as theirs
import torch
from torch import nn


def attention(query, key, value, mask=None):
    return theirs.MultiHeadAttentionBlock.attention(query, key, value, mask, None)


def future(n):
    return torch.ones(n, n).tril()


class MultiHeadAttention(theirs.MultiHeadAttentionBlock):
    def __init__(self, d_model, h, dropout=0.0):
        super().__init__(d_model, h, dropout)

    def forward(self, x, memory, mask=None):
        return super().forward(x, memory, memory, mask)


def FeedForward(d_model, d_ff):
    return theirs.FeedForwardBlock(d_model, d_ff, 0.0)


def sinusoids(n, d_model):
    return theirs.PositionalEncoding(d_model, n, 0.0).pe[0]


def parts(count, d_model, h, d_ff, dropout):
    heads = [theirs.MultiHeadAttentionBlock(d_model, h, dropout) for _ in range(count)]
    network = theirs.FeedForwardBlock(d_model, d_ff, dropout)
    return d_model, *heads, network, dropout


class EncoderLayer(theirs.EncoderBlock):
    def __init__(self, *sizes):
        super().__init__(*parts(1, *sizes))

    def forward(self, x, mask=None):
        return super().forward(x, mask)


class DecoderLayer(theirs.DecoderBlock):
    def __init__(self, *sizes):
        super().__init__(*parts(2, *sizes))

    def forward(self, y, memory, src_mask=None, tgt_mask=None):
        return super().forward(y, memory, src_mask, future(y.size(1)))


class Encoder(theirs.Encoder):
    def __init__(self, N, d_model, *sizes):
        layers = nn.ModuleList(EncoderLayer(d_model, *sizes) for _ in range(N))
        super().__init__(d_model, layers)

    def forward(self, x, mask=None):
        return super().forward(x, mask)


class Decoder(theirs.Decoder):
    def __init__(self, N, d_model, *sizes):
        layers = nn.ModuleList(DecoderLayer(d_model, *sizes) for _ in range(N))
        super().__init__(d_model, layers)

    def forward(self, y, memory, src_mask=None):
        return super().forward(y, memory, src_mask, None)


class Transformer(nn.Module):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        super().__init__()
        both = vocab_size, vocab_size, 512, 512
        self.inner = theirs.build_transformer(*both, d_model, N, h, dropout, d_ff)

    def forward(self, src, tgt):
        mask = (src != 0)[:, None, None]
        memory = self.inner.encode(src, mask)
        found = self.inner.decode(memory, mask, tgt, future(tgt.size(1)))
        return self.inner.project(found)
