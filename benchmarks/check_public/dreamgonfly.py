import embeddings
import torch
from torch import nn

import models as theirs


def hiding(mask, n):
    return mask if mask is None else ~mask[:, 0].expand(-1, n, -1)


def future(y):
    n = y.size(1)
    return torch.ones(len(y), n, n).triu(1).bool()


class MultiHeadAttention(theirs.MultiHeadAttention):
    def __init__(self, d_model, h, dropout=0.0):
        super().__init__(h, d_model, dropout)

    def forward(self, x, memory, mask=None):
        return super().forward(x, memory, memory, hiding(mask, x.size(1)))


def FeedForward(d_model, d_ff):
    return theirs.PointwiseFeedForwardNetwork(d_ff, d_model, 0.0)


def sinusoids(n, d_model):
    return embeddings.PositionalEncoding(1, d_model, d_model, max_len=n).pe[0]


class EncoderLayer(theirs.TransformerEncoderLayer):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, h, d_ff, dropout)

    def forward(self, x, mask=None):
        return super().forward(x, hiding(mask, x.size(1)))


class DecoderLayer(theirs.TransformerDecoderLayer):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, h, d_ff, dropout)

    def forward(self, y, memory, src_mask=None):
        return super().forward(y, memory, hiding(src_mask, y.size(1)), future(y))


class Transformer(nn.Module):
    """Theirs, but for masks of bytes, which PyTorch no longer takes."""

    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        super().__init__()
        names = "layers_count d_model heads_count d_ff dropout_prob".split()
        config = dict(zip(names, (N, d_model, h, d_ff, dropout), strict=True))
        config["positional_encoding"] = True
        self.inner = theirs.build_model(config, vocab_size, vocab_size)

    def forward(self, src, tgt):
        mask = (src != 0)[:, None, None]
        memory = self.inner.encoder(src, hiding(mask, src.size(1)))
        return self.inner.decoder(tgt, memory, hiding(mask, tgt.size(1)), future(tgt))
