import torch
from transformer import Layers, Models
from transformer.Modules import ScaledDotProductAttention


def attention(query, key, value, mask=None):
    inner = ScaledDotProductAttention(key.size(-1) ** 0.5, attn_dropout=0.0)
    if query.dim() == 4:
        return inner(query, key, value, mask)
    mask = mask if mask is None else mask[:, None]
    return inner(query[:, None], key[:, None], value[:, None], mask)[0][:, 0]


def causal_mask(n):
    return Models.get_subsequent_mask(torch.zeros(1, n))


def padding_mask(ids, pad_id):
    return Models.get_pad_mask(ids, pad_id)[:, None]


def sinusoids(n, d_model):
    return Models.PositionalEncoding(d_model, n).pos_table[0]


class EncoderLayer(Layers.EncoderLayer):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, d_ff, h, d_model // h, d_model // h, dropout)

    def forward(self, x, mask=None):
        return super().forward(x, mask if mask is None else mask[:, 0])


class DecoderLayer(Layers.DecoderLayer):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, d_ff, h, d_model // h, d_model // h, dropout)

    def forward(self, y, memory, src_mask=None):
        src_mask = src_mask if src_mask is None else src_mask[:, 0]
        return super().forward(y, memory, causal_mask(y.size(1)), src_mask)


class Transformer(Models.Transformer):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        heads = N, h, d_model // h, d_model // h, dropout
        both = vocab_size, vocab_size, 0, 0, d_model, d_model, d_ff
        super().__init__(*both, *heads, scale_emb_or_prj="emb")

    def forward(self, src, tgt):
        return super().forward(src, tgt).view(*tgt.shape, -1)
