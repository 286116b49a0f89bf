import Embed
import Layers
import Models
import Sublayers
import torch


def attention(query, key, value, mask=None):
    mask = mask if mask is None else mask[:, 0] if mask.dim() == 4 else mask
    if query.dim() == 4:
        return Sublayers.attention(query, key, value, key.size(-1), mask)
    given = query[:, None], key[:, None], value[:, None]
    return Sublayers.attention(*given, key.size(-1), mask)[:, 0]


def future(n):
    return torch.ones(1, n, n).tril()


class MultiHeadAttention(Sublayers.MultiHeadAttention):
    def __init__(self, d_model, h, dropout=0.1):
        super().__init__(h, d_model, dropout)

    def forward(self, x, memory, mask=None):
        return super().forward(x, memory, memory, mask if mask is None else mask[:, 0])


FeedForward = Sublayers.FeedForward


def sinusoids(n, d_model):
    return Embed.PositionalEncoder(d_model, n).pe[0]


class EncoderLayer(Layers.EncoderLayer):
    """Theirs always has 2048 in the feed-forward network."""

    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, h, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout)

    def forward(self, x, mask=None):
        return super().forward(x, mask if mask is None else mask[:, 0])


class DecoderLayer(Layers.DecoderLayer):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, h, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout)

    def forward(self, y, memory, src_mask=None):
        src_mask = src_mask if src_mask is None else src_mask[:, 0]
        return super().forward(y, memory, src_mask, future(y.size(1)))


class Transformer(Models.Transformer):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        super().__init__(vocab_size, vocab_size, d_model, N, h, dropout)
        for layer in (*self.encoder.layers, *self.decoder.layers):
            layer.ff = FeedForward(d_model, d_ff, dropout)

    def forward(self, src, tgt):
        return super().forward(src, tgt, (src != 0)[:, None], future(tgt.size(1)))
