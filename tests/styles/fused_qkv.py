"""A right Transformer as GPTs are written: one matrix for query, key and value."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def attention(query, key, value, mask=None):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def padding_mask(ids, pad_id):
    return (ids != pad_id).unsqueeze(1).unsqueeze(2)


def causal_mask(n):
    return ~torch.triu(torch.ones(1, 1, n, n), diagonal=1).bool()


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask=None):
        B, T, C = x.shape
        if memory is x:
            q, k, v = self.qkv(x).split(C, dim=-1)
        else:
            weights, biases = self.qkv.weight, self.qkv.bias
            q = F.linear(x, weights[:C], biases[:C])
            k, v = F.linear(memory, weights[C:], biases[C:]).chunk(2, dim=-1)
        q, k, v = (
            each.reshape(B, -1, self.h, C // self.h).permute(0, 2, 1, 3)
            for each in (q, k, v)
        )
        out = attention(q, k, v, mask)
        return self.proj(out.permute(0, 2, 1, 3).reshape(B, T, C))


def FeedForward(d_model, d_ff):
    return nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))


class Embedding(nn.Embedding):
    def reset_parameters(self):
        nn.init.normal_(self.weight, std=1 / math.sqrt(self.embedding_dim))

    def forward(self, ids):
        return math.sqrt(self.embedding_dim) * super().forward(ids)

    def logits(self, x):
        return F.linear(x, self.weight)


def sinusoids(n, d_model):
    pe = torch.zeros(n, d_model)
    position = torch.arange(0, n).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


class AddNorm(nn.LayerNorm):
    def __init__(self, d_model, dropout):
        super().__init__(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer_output):
        return super().forward(x + self.dropout(sublayer_output))


class Block(nn.Module):
    """A layer of either stack, with attention to a memory or without."""

    def __init__(self, d_model, h, d_ff, dropout, cross):
        super().__init__()
        self.attn, self.ln_1 = MultiHeadAttention(d_model, h), AddNorm(d_model, dropout)
        if cross:
            self.cross = MultiHeadAttention(d_model, h)
            self.ln_2 = AddNorm(d_model, dropout)
        self.mlp, self.ln_3 = FeedForward(d_model, d_ff), AddNorm(d_model, dropout)

    def step(self, x, mask, memory=None, memory_mask=None):
        x = self.ln_1(x, self.attn(x, x, mask))
        if memory is not None:
            x = self.ln_2(x, self.cross(x, memory, memory_mask))
        return self.ln_3(x, self.mlp(x))


class EncoderLayer(Block):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, h, d_ff, dropout, cross=False)

    def forward(self, x, mask=None):
        return self.step(x, mask)


class DecoderLayer(Block):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__(d_model, h, d_ff, dropout, cross=True)

    def forward(self, y, memory, src_mask=None):
        return self.step(y, causal_mask(y.size(1)), memory, src_mask)


class Stack(nn.Module):
    def __init__(self, N, *sizes):
        super().__init__()
        self.blocks = nn.ModuleList([self.kind(*sizes) for _ in range(N)])

    def forward(self, x, *others):
        for block in self.blocks:
            x = block(x, *others)
        return x


class Encoder(Stack):
    kind = EncoderLayer


class Decoder(Stack):
    kind = DecoderLayer


class Transformer(nn.Module):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        super().__init__()
        self.wte, self.drop = Embedding(vocab_size, d_model), nn.Dropout(dropout)
        self.encoder = Encoder(N, d_model, h, d_ff, dropout)
        self.decoder = Decoder(N, d_model, h, d_ff, dropout)

    def embed(self, ids):
        B, T = ids.shape
        return self.drop(self.wte(ids) + sinusoids(T, self.wte.embedding_dim))

    def forward(self, src, tgt):
        mask = padding_mask(src, 0)
        memory = self.encoder(self.embed(src), mask)
        return self.wte.logits(self.decoder(self.embed(tgt), memory, mask))


def smoothed_cross_entropy(logits, target, smoothing):
    V = logits.size(-1)
    # PyTorch shares ε among all tokens, the right one too.
    return F.cross_entropy(
        logits.view(-1, V),
        target.reshape(-1),
        ignore_index=0,
        label_smoothing=smoothing * V / (V - 1),
    )


def training_step(model, optimizer, src, tgt):
    model.train()
    x, y = tgt[:, :-1], tgt[:, 1:]
    loss = smoothed_cross_entropy(model(src, x), y, 0.1)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.inference_mode()
def greedy_search(model, src, max_length):
    idx = torch.full((src.size(0), 1), 1, dtype=torch.long)
    while idx.size(1) <= max_length:
        idx_next = torch.topk(model(src, idx)[:, -1, :], 1, dim=-1).indices
        idx = torch.cat((idx, idx_next), dim=1)
        if (idx == 2).any(dim=1).all():
            break
    return idx[:, 1:]
