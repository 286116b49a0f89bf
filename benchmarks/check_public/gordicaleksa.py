import torch
from models.definitions import transformer_model as theirs
from torch import nn


def future(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


class MultiHeadAttention(theirs.MultiHeadedAttention):
    def __init__(self, d_model, h, dropout=0.0):
        super().__init__(d_model, h, dropout, False)

    def forward(self, x, memory, mask=None):
        return super().forward(x, memory, memory, mask)


def FeedForward(d_model, d_ff, dropout=0.0):
    """Theirs always has 4 · d_model in the middle."""
    network = theirs.PositionwiseFeedForwardNet(d_model, dropout)
    network.linear1, network.linear2 = (
        nn.Linear(d_model, d_ff),
        nn.Linear(d_ff, d_model),
    )
    return network


def sinusoids(n, d_model):
    return theirs.PositionalEncoding(d_model, 0.0, n).positional_encodings_table


def parts(d_model, h, d_ff, dropout):
    heads = theirs.MultiHeadedAttention(d_model, h, dropout, False)
    return d_model, dropout, heads, FeedForward(d_model, d_ff, dropout)


class EncoderLayer(theirs.EncoderLayer):
    def __init__(self, *sizes):
        super().__init__(*parts(*sizes))

    def forward(self, x, mask=None):
        return super().forward(x, mask)


class DecoderLayer(theirs.DecoderLayer):
    def __init__(self, *sizes):
        super().__init__(*parts(*sizes))

    def forward(self, y, memory, src_mask=None, ours=None):
        src_mask = src_mask if ours is None else ours  # the stack's order
        return super().forward(y, memory, future(y.size(1)), src_mask)


class Encoder(theirs.Encoder):
    def __init__(self, N, *sizes):
        super().__init__(EncoderLayer(*sizes), N)

    def forward(self, x, mask=None):
        return super().forward(x, mask)


class Decoder(theirs.Decoder):
    def __init__(self, N, *sizes):
        super().__init__(DecoderLayer(*sizes), N)

    def forward(self, y, memory, src_mask=None):
        return super().forward(y, memory, None, src_mask)


class Transformer(theirs.Transformer):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        super().__init__(d_model, vocab_size, vocab_size, h, N, dropout)
        for layer in (*self.encoder.encoder_layers, *self.decoder.decoder_layers):
            layer.pointwise_net = FeedForward(d_model, d_ff, dropout)

    def forward(self, src, tgt):
        masks = (src != 0)[:, None, None], future(tgt.size(1))
        return super().forward(src, tgt, *masks).view(*tgt.shape, -1)
