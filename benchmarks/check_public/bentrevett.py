import notebook as theirs
import torch


class MultiHeadAttention(theirs.MultiHeadAttentionLayer):
    def __init__(self, d_model, h, dropout=0.0):
        super().__init__(d_model, h, dropout, "cpu")

    def forward(self, x, memory, mask=None):
        return super().forward(x, memory, memory, mask)


def FeedForward(d_model, d_ff):
    return theirs.PositionwiseFeedforwardLayer(d_model, d_ff, 0.0)


class EncoderLayer(theirs.EncoderLayer):
    def __init__(self, *sizes):
        super().__init__(*sizes, "cpu")

    def forward(self, x, mask=None):
        return super().forward(x, mask)


class DecoderLayer(theirs.DecoderLayer):
    def __init__(self, *sizes):
        super().__init__(*sizes, "cpu")

    def forward(self, y, memory, src_mask=None):
        future = torch.ones(y.size(1), y.size(1)).tril()
        return super().forward(y, memory, future, src_mask)


class Transformer(theirs.Seq2Seq):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        sizes = vocab_size, d_model, N, h, d_ff, dropout, "cpu"
        super().__init__(theirs.Encoder(*sizes), theirs.Decoder(*sizes), 0, 0, "cpu")
