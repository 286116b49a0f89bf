"""Parts in the manner of other people: their names, axes and masks."""

import math

from torch import nn


def attention_hiding(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(key.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    return scores.softmax(-1) @ value


def attention_adding(q, k, v, attn_mask=0.0):
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
    return (scores + attn_mask).softmax(-1) @ v


def attention_unscaled_hiding(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    return scores.softmax(-1) @ value


class ThreeArguments(nn.Module):
    """query, key, value and (batch, 1, keys), the number of heads first."""

    def __init__(self, n_head, d_model, d_k, d_v):
        super().__init__()
        self.n_head = n_head
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            layer(each).unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for layer, each in zip(
                (self.w_qs, self.w_ks, self.w_vs), (q, k, v), strict=True
            )
        )
        scores = q @ k.transpose(2, 3) / k.size(-1) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        return self.fc((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)), scores


class Packed(nn.Module):
    """PyTorch's attention as it is called there: batch second, True is hidden."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(embed_dim, num_heads)

    def forward(self, query, key, value, key_padding_mask=None):
        return self.inner(query, key, value, key_padding_mask=key_padding_mask)


class TorchStack(nn.TransformerEncoder):
    def __init__(self, num_layers, d_model, nhead, dim_feedforward, dropout):
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward, dropout)
        super().__init__(layer, num_layers)


class PreNorm(nn.TransformerEncoderLayer):
    def __init__(self, d_model, nhead, dim_feedforward, dropout):
        super().__init__(d_model, nhead, dim_feedforward, dropout, norm_first=True)


RIGHT = [
    ("attention", attention_hiding, "True is hidden"),
    ("attention", attention_adding, "floats"),
    ("MultiHeadAttention", ThreeArguments, "a mask of 3 axes"),
    ("MultiHeadAttention", nn.MultiheadAttention, "batch second"),
    ("MultiHeadAttention", Packed, "True is hidden"),
    ("EncoderLayer", nn.TransformerEncoderLayer, "src_key_padding_mask"),
    ("DecoderLayer", nn.TransformerDecoderLayer, "causal mask as tgt_mask"),
    ("Encoder", TorchStack, "src_key_padding_mask"),
]
WRONG = [
    ("attention", attention_unscaled_hiding, "aren't divided by √d_k"),
    ("EncoderLayer", PreNorm, "post-norm"),
]
