"""A right Transformer around nn.MultiheadAttention, in whose masks True hides."""

import torch
from torch import nn


def padding_mask(ids, pad_id):
    return ids == pad_id


def causal_mask(n):
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, h, batch_first=True)

    def forward(self, x, memory, mask=None):
        out, _ = self.inner(
            x, memory, memory, key_padding_mask=mask, need_weights=False
        )
        return out


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.ReLU(inplace=True), nn.Linear(d_ff, d_model)
        )

    def forward(self, x):
        return self.layers(x)


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.logits = nn.Linear(d_model, vocab_size, bias=False)
        self.logits.weight = self.table.weight
        self.scale = d_model**0.5

    def forward(self, ids):
        return self.table(ids) * self.scale


def sinusoids(n, d_model):
    rows = [
        [position / 10000 ** (2 * (i // 2) / d_model) for i in range(d_model)]
        for position in range(n)
    ]
    table = torch.tensor(rows)
    even = torch.arange(d_model) % 2 == 0
    return torch.where(even, table.sin(), table.cos())


class AddNorm(nn.Module):
    def __init__(self, d_model, dropout):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(d_model), nn.Dropout(dropout)

    def forward(self, x, sublayer_output):
        return self.norm(x + self.dropout(sublayer_output))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, h, dropout, batch_first=True)
        self.network = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = AddNorm(d_model, dropout), AddNorm(d_model, dropout)

    def forward(self, x, mask=None):
        attended, _ = self.attention(x, x, x, key_padding_mask=mask)
        x = self.norm1(x, attended)
        return self.norm2(x, self.network(x))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, h, dropout, batch_first=True)
        self.source = nn.MultiheadAttention(d_model, h, dropout, batch_first=True)
        self.network = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = AddNorm(d_model, dropout), AddNorm(d_model, dropout)
        self.norm3 = AddNorm(d_model, dropout)

    def forward(self, y, memory, src_mask=None):
        future = causal_mask(y.size(1))
        y = self.norm1(y, self.attention(y, y, y, attn_mask=future)[0])
        attended, _ = self.source(y, memory, memory, key_padding_mask=src_mask)
        y = self.norm2(y, attended)
        return self.norm3(y, self.network(y))


class Encoder(nn.Module):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(N):
            self.layers.append(EncoderLayer(d_model, h, d_ff, dropout))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Decoder(nn.Module):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(N):
            self.layers.append(DecoderLayer(d_model, h, d_ff, dropout))

    def forward(self, y, memory, src_mask=None):
        for layer in self.layers:
            y = layer(y, memory, src_mask)
        return y


class Transformer(nn.Module):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout, max_length=300):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.register_buffer("positions", sinusoids(max_length, d_model))
        self.dropout = nn.Dropout(dropout)
        self.encoder = Encoder(N, d_model, h, d_ff, dropout)
        self.decoder = Decoder(N, d_model, h, d_ff, dropout)

    def embed(self, ids):
        return self.dropout(self.embedding(ids) + self.positions[: ids.size(1)])

    def forward(self, src, tgt):
        padding = padding_mask(src, pad_id=0)
        memory = self.encoder(self.embed(src), padding)
        hidden = self.decoder(self.embed(tgt), memory, padding)
        return self.embedding.logits(hidden)


def smoothed_cross_entropy(logits, target, smoothing):
    wanted = torch.full_like(logits, smoothing / (logits.size(-1) - 1))
    wanted.scatter_(-1, target.unsqueeze(-1), 1 - smoothing)
    losses = nn.functional.cross_entropy(
        logits.transpose(1, 2), wanted.transpose(1, 2), reduction="none"
    )
    return losses[target != 0].mean()


def training_step(model, optimizer, src, tgt):
    optimizer.zero_grad()
    logits = model(src, tgt[:, :-1])
    loss = smoothed_cross_entropy(logits, tgt[:, 1:], smoothing=0.1)
    loss.backward()
    optimizer.step()
    return loss.item()


def greedy_search(model, src, max_length):
    written = torch.ones(src.size(0), 1, dtype=torch.long)
    with torch.no_grad():
        for _ in range(max_length):
            best = model(src, written)[:, -1:].argmax(-1)
            written = torch.cat([written, best], dim=1)
            if all(2 in row for row in written.tolist()):
                break
    return written.tolist()
