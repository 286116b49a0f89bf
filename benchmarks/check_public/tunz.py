import torch
from model import transformer as theirs


def hiding(mask):
    return torch.zeros(1, 1, 1).bool() if mask is None else ~mask[:, 0]


class MultiHeadAttention(theirs.MultiHeadAttention):
    def __init__(self, d_model, h, dropout=0.0):
        super().__init__(d_model, dropout, head_size=h)

    def forward(self, x, memory, mask=None):
        return super().forward(x, memory, memory, hiding(mask))


def FeedForward(d_model, d_ff):
    return theirs.FeedForwardNetwork(d_model, d_ff, 0.0)


def with_heads(module, d_model, h, dropout):
    """Theirs always has eight heads."""
    for layer in module.modules():
        for name, each in list(layer.named_children()):
            if isinstance(each, theirs.MultiHeadAttention):
                setattr(layer, name, theirs.MultiHeadAttention(d_model, dropout, h))


class Encoder(theirs.Encoder):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__(d_model, d_ff, dropout, N)
        with_heads(self, d_model, h, dropout)

    def forward(self, x, mask=None):
        return super().forward(x, hiding(mask))


class Decoder(theirs.Decoder):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__(d_model, d_ff, dropout, N)
        with_heads(self, d_model, h, dropout)

    def forward(self, y, memory, src_mask=None):
        future = torch.ones(1, y.size(1), y.size(1)).triu(1).bool()
        return super().forward(y, memory, hiding(src_mask), future, None)


class EncoderLayer(theirs.EncoderLayer):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, d_ff, dropout)
        with_heads(self, d_model, h, dropout)

    def forward(self, x, mask=None):
        return super().forward(x, hiding(mask))


class DecoderLayer(theirs.DecoderLayer):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, d_ff, dropout)
        with_heads(self, d_model, h, dropout)

    def forward(self, y, memory, src_mask=None):
        future = torch.ones(1, y.size(1), y.size(1)).triu(1).bool()
        return super().forward(y, memory, future, hiding(src_mask), None)
