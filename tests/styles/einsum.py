"""A right Transformer in einsum: tensors of three axes, one axis for the heads."""

import torch
from torch import einsum, nn


def attention(query, key, value, mask=None):
    scores = einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = weights / einsum("...qk->...q", weights)[..., None]
    return einsum("...qk,...kd->...qd", weights, value), weights


def padding_mask(ids, pad_id):
    return ids.ne(pad_id).view(len(ids), 1, 1, -1)


def causal_mask(n):
    position = torch.arange(n)
    return position[:, None] >= position


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        into = torch.randn(3, h, d_model, d_model // h) * d_model**-0.5
        self.query, self.key, self.value = map(nn.Parameter, into)
        out = torch.randn(h, d_model // h, d_model) * d_model**-0.5
        self.out = nn.Parameter(out)

    def forward(self, x, memory, mask=None):
        query = einsum("bqm,hmd->bhqd", x, self.query)
        key = einsum("bkm,hmd->bhkd", memory, self.key)
        value = einsum("bkm,hmd->bhkd", memory, self.value)
        heads, _ = attention(query, key, value, mask)
        return einsum("bhqd,hdm->bqm", heads, self.out)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up = nn.Parameter(torch.randn(d_ff, d_model) * d_model**-0.5)
        self.up_bias = nn.Parameter(torch.zeros(d_ff))
        self.down = nn.Parameter(torch.randn(d_model, d_ff) * d_ff**-0.5)
        self.down_bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        hidden = einsum("bnm,fm->bnf", x, self.up) + self.up_bias
        return einsum("bnf,mf->bnm", hidden.clamp(min=0), self.down) + self.down_bias


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(vocab_size, d_model) * d_model**-0.5)

    def forward(self, ids):
        one_hot = nn.functional.one_hot(ids, len(self.rows)).float()
        return einsum("bnv,vm->bnm", one_hot, self.rows) * self.rows.shape[1] ** 0.5

    def logits(self, x):
        return einsum("bnm,vm->bnv", x, self.rows)


def sinusoids(n, d_model):
    rates = 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = einsum("n,i->ni", torch.arange(n).float(), rates)
    table = torch.empty(n, d_model)
    table[:, ::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


class AddNorm(nn.Module):
    def __init__(self, d_model, dropout):
        super().__init__()
        self.rate = dropout
        self.gain, self.shift = (
            nn.Parameter(torch.ones(d_model)),
            nn.Parameter(torch.zeros(d_model)),
        )

    def forward(self, x, sublayer_output):
        x = x + nn.functional.dropout(sublayer_output, self.rate, self.training)
        x = x - einsum("bnm->bn", x)[..., None] / x.shape[-1]
        variance = einsum("bnm,bnm->bn", x, x)[..., None] / x.shape[-1]
        return self.gain * x * (variance + 1e-6).rsqrt() + self.shift


class EncoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        self.attend, self.feed = (
            MultiHeadAttention(d_model, h),
            FeedForward(d_model, d_ff),
        )
        self.first, self.second = AddNorm(d_model, dropout), AddNorm(d_model, dropout)

    def forward(self, x, mask=None):
        x = self.first(x, self.attend(x, x, mask))
        return self.second(x, self.feed(x))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        self.attend, self.look = (MultiHeadAttention(d_model, h) for _ in range(2))
        self.feed = FeedForward(d_model, d_ff)
        self.first, self.second, self.third = (
            AddNorm(d_model, dropout) for _ in range(3)
        )

    def forward(self, y, memory, src_mask=None):
        y = self.first(y, self.attend(y, y, causal_mask(y.shape[1])))
        y = self.second(y, self.look(y, memory, src_mask))
        return self.third(y, self.feed(y))


class Encoder(nn.ModuleList):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__(EncoderLayer(d_model, h, d_ff, dropout) for _ in range(N))

    def forward(self, x, mask=None):
        for layer in self:
            x = layer(x, mask)
        return x


class Decoder(nn.ModuleList):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__(DecoderLayer(d_model, h, d_ff, dropout) for _ in range(N))

    def forward(self, y, memory, src_mask=None):
        for layer in self:
            y = layer(y, memory, src_mask)
        return y


class Transformer(nn.Module):
    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout, max_length=512):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.register_buffer("codes", sinusoids(max_length, d_model), persistent=False)
        self.encoder = Encoder(N, d_model, h, d_ff, dropout)
        self.decoder = Decoder(N, d_model, h, d_ff, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, src, tgt):
        mask = padding_mask(src, 0)
        x, y = (
            self.dropout(self.embedding(ids) + self.codes[: ids.shape[1]])
            for ids in (src, tgt)
        )
        return self.embedding.logits(self.decoder(y, self.encoder(x, mask), mask))


def smoothed_cross_entropy(logits, target, smoothing):
    vocab_size = logits.shape[-1]
    one_hot = nn.functional.one_hot(target, vocab_size)
    wanted = (1 - smoothing) * one_hot + smoothing / (vocab_size - 1) * (1 - one_hot)
    real = target.ne(0).float()
    loss = einsum("bnv,bnv,bn->", wanted, logits.log_softmax(-1), real)
    return -loss / real.sum()


def training_step(model, optimizer, src, tgt):
    optimizer.zero_grad()
    loss = smoothed_cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:], 0.1)
    loss.backward()
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def greedy_search(model, src, max_length):
    tgt, ended = src.new_ones(len(src), 1), torch.zeros(len(src), dtype=torch.bool)
    for _ in range(max_length):
        token = model(src, tgt)[:, -1].argmax(-1)
        tgt, ended = torch.cat([tgt, token[:, None]], 1), ended | (token == 2)
        if ended.all():
            break
    return tgt
