"""A Transformer that I write myself.

annotated-transformer check starter.py     says how far it is
"""

import math

import torch
from torch import nn


def attention(query, key, value, mask=None):
    """`attention(query, key, value, mask=None)`, equation (1).

    Query, key and value are (…, positions, size) with any axes before; True in the mask
    means "may attend". It returns the attended values, alone or with the weights.
    """
    raise NotImplementedError


def padding_mask(ids, pad_id):
    """`padding_mask(ids, pad_id)`: True at real tokens.

    ids are (batch, keys); the mask broadcasts to (batch, h, queries, keys).
    """
    raise NotImplementedError


def causal_mask(n):
    """`causal_mask(n)`: (n, n), True where the key isn't after the query."""
    raise NotImplementedError


class MultiHeadAttention(nn.Module):
    """`MultiHeadAttention(d_model, h)`, `forward(x, memory, mask=None)`, §3.2.2.

    x asks and memory answers; both are (batch, positions, d_model). Four matrices under
    any names, as you like with biases: each a parameter of two axes, or more.
    """

    def __init__(self, d_model, h):
        super().__init__()
        raise NotImplementedError

    def forward(self, x, memory, mask=None):
        raise NotImplementedError


class FeedForward(nn.Module):
    """`FeedForward(d_model, d_ff)`, `forward(x)`, equation (2)."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        raise NotImplementedError

    def forward(self, x):
        raise NotImplementedError


class Embedding(nn.Module):
    """`Embedding(vocab_size, d_model)` with `forward(ids)` and `logits(x)`, §3.4.

    forward looks rows up and multiplies them by √d_model; logits compares vectors with
    the same rows, unscaled.
    """

    def __init__(self, vocab_size, d_model):
        super().__init__()
        raise NotImplementedError

    def forward(self, ids):
        raise NotImplementedError

    def logits(self, x):
        raise NotImplementedError


def sinusoids(n, d_model):
    """`sinusoids(n, d_model)`: sines in the even columns, cosines in the odd, §3.5."""
    raise NotImplementedError


class AddNorm(nn.Module):
    """`AddNorm(d_model, dropout)`, `forward(x, sublayer_output)`, §3.1 and §5.4.

    LayerNorm(x + Dropout(sublayer_output)); both are (batch, positions, d_model).
    """

    def __init__(self, d_model, dropout):
        super().__init__()
        raise NotImplementedError

    def forward(self, x, sublayer_output):
        raise NotImplementedError


class EncoderLayer(nn.Module):
    """`EncoderLayer(d_model, h, d_ff, dropout)`, `forward(x, mask=None)`.

    Self-attention, then the feed-forward network, each in its AddNorm.
    """

    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        raise NotImplementedError

    def forward(self, x, mask=None):
        raise NotImplementedError


class DecoderLayer(nn.Module):
    """`DecoderLayer(d_model, h, d_ff, dropout)`, `forward(y, memory, src_mask=None)`.

    Causal self-attention (it makes the mask itself), attention to the source, and the
    feed-forward network, each in its AddNorm.
    """

    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        raise NotImplementedError

    def forward(self, y, memory, src_mask=None):
        raise NotImplementedError


class Encoder(nn.Module):
    """`Encoder(N, d_model, h, d_ff, dropout)`, `forward(x, mask=None)`: N layers."""

    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__()
        raise NotImplementedError

    def forward(self, x, mask=None):
        raise NotImplementedError


class Decoder(nn.Module):
    """`Decoder(N, d_model, h, d_ff, dropout)`, `forward(y, memory, src_mask=None)`."""

    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__()
        raise NotImplementedError

    def forward(self, y, memory, src_mask=None):
        raise NotImplementedError


class Transformer(nn.Module):
    """`Transformer(vocab_size, N, d_model, h, d_ff, dropout)`, `forward(src, tgt)`.

    Ids in, (batch, tgt, vocab_size) logits out; id 0 is padding. One embedding serves
    source, target and output. More arguments must have defaults, such as a max_length.
    """

    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        super().__init__()
        raise NotImplementedError

    def forward(self, src, tgt):
        raise NotImplementedError


def smoothed_cross_entropy(logits, target, smoothing):
    """`smoothed_cross_entropy(logits, target, smoothing)`: one number, in nats.

    logits are (batch, n, vocab), target (batch, n) with 0 for padding, which doesn't
    count. The right token should have 1 − ε and each other one ε / (V − 1); PyTorch's
    label_smoothing spreads ε over all V. The mean over real tokens.
    """
    raise NotImplementedError


def training_step(model, optimizer, src, tgt):
    """`training_step(model, optimizer, src, tgt)`: one update; it returns the loss.

    tgt is (batch, n), from the begin token 1 to the end token 2, with 0 for padding.
    model(src, tgt) gives logits; the loss is `smoothed_cross_entropy` with ε = 0.1.
    """
    raise NotImplementedError


def greedy_search(model, src, max_length):
    """`greedy_search(model, src, max_length)`: ids, row by row, a tensor or lists.

    src is (batch, n); model(src, tgt) gives logits. Begin with 1, add the best token of
    the last position, and stop when each row has written 2, or after max_length tokens.
    With the begin token in front or without; what follows an end token doesn't count.
    """
    raise NotImplementedError
