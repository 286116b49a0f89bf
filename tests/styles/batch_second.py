"""A right Transformer in the axes of fairseq: (length, batch, d_model) throughout."""

import math

import torch
from torch import nn


def attention(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    return torch.matmul(torch.softmax(scores, dim=-1), value)


def padding_mask(ids, pad_id):
    """(length, batch) in, (batch, 1, 1, length) out."""
    return ids.t().ne(pad_id)[:, None, None]


def causal_mask(n):
    return torch.tril(torch.ones(n, n)) > 0


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        self.h, self.d_k = h, d_model // h
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def heads(self, x):
        length, batch, _ = x.shape
        return x.view(length, batch, self.h, self.d_k).permute(1, 2, 0, 3)

    def forward(self, x, memory, mask=None):
        q = self.heads(self.q_proj(x))
        k, v = self.heads(self.k_proj(memory)), self.heads(self.v_proj(memory))
        out = attention(q, k, v, mask)
        return self.out_proj(out.permute(2, 0, 1, 3).reshape(x.shape))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, 0, d_model**-0.5)

    def forward(self, ids):
        rows = nn.functional.embedding(ids, self.weight)
        return rows * math.sqrt(self.weight.size(1))

    def logits(self, x):
        return x.matmul(self.weight.t())


def sinusoids(n, d_model):
    rates = torch.pow(10000.0, torch.arange(0, d_model, 2) / -d_model)
    angles = torch.outer(torch.arange(n), rates)
    return torch.stack((angles.sin(), angles.cos()), 2).view(n, d_model)


class AddNorm(nn.Module):
    def __init__(self, d_model, dropout):
        super().__init__()
        self.p, self.layer_norm = dropout, nn.LayerNorm(d_model)

    def forward(self, x, sublayer_output):
        dropped = nn.functional.dropout(sublayer_output, self.p, self.training)
        return self.layer_norm(x + dropped)


class EncoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, h)
        self.ffn = FeedForward(d_model, d_ff)
        self.norms = nn.ModuleList([AddNorm(d_model, dropout) for _ in range(2)])

    def forward(self, x, mask=None):
        x = self.norms[0](x, self.self_attn(x, x, mask))
        return self.norms[1](x, self.ffn(x))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, h)
        self.encoder_attn = MultiHeadAttention(d_model, h)
        self.ffn = FeedForward(d_model, d_ff)
        self.norms = nn.ModuleList([AddNorm(d_model, dropout) for _ in range(3)])

    def forward(self, y, memory, src_mask=None):
        y = self.norms[0](y, self.self_attn(y, y, causal_mask(len(y))))
        y = self.norms[1](y, self.encoder_attn(y, memory, src_mask))
        return self.norms[2](y, self.ffn(y))


class Encoder(nn.Module):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__()
        layers = [EncoderLayer(d_model, h, d_ff, dropout) for _ in range(N)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Decoder(nn.Module):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__()
        layers = [DecoderLayer(d_model, h, d_ff, dropout) for _ in range(N)]
        self.layers = nn.ModuleList(layers)

    def forward(self, y, memory, src_mask=None):
        for layer in self.layers:
            y = layer(y, memory, src_mask)
        return y


class Transformer(nn.Module):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.dropout = nn.Dropout(dropout)
        self.encoder = Encoder(N, d_model, h, d_ff, dropout)
        self.decoder = Decoder(N, d_model, h, d_ff, dropout)

    def embed(self, ids):
        x = self.embedding(ids)
        return self.dropout(x + sinusoids(len(ids), x.size(-1)).unsqueeze(1))

    def forward(self, src, tgt):
        src_mask = padding_mask(src, 0)
        memory = self.encoder(self.embed(src), src_mask)
        return self.embedding.logits(self.decoder(self.embed(tgt), memory, src_mask))


def smoothed_cross_entropy(logits, target, smoothing):
    """Over (length, batch, vocab_size) and (length, batch)."""
    losses = -logits.log_softmax(-1)
    right = losses.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    share = smoothing / (logits.size(-1) - 1)
    losses = (1 - smoothing - share) * right + share * losses.sum(-1)
    real = target.ne(0)
    return losses.masked_fill(~real, 0).sum() / real.sum()


def training_step(model, optimizer, src, tgt):
    logits = model(src, tgt[:-1])
    loss = smoothed_cross_entropy(logits, tgt[1:], 0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def greedy_search(model, src, max_length):
    """(length, batch) in and out."""
    tokens = torch.ones(1, src.size(1), dtype=torch.long)
    while len(tokens) <= max_length and not tokens.eq(2).any(0).all():
        tokens = torch.cat([tokens, model(src, tokens)[-1:].argmax(-1)])
    return tokens[1:]
