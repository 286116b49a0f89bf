"""A Transformer in about a hundred lines: each part of the paper once, nothing else.

python my_transformer.py                learns to reverse words
python my_transformer.py --phrasebook   learns dates, from English to German
"""

import math

import torch
from torch import nn

PAD, BOS, EOS = 0, 1, 2


def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(key.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ value


def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]


def causal_mask(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        self.h = h
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def split(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def forward(self, x, memory, mask=None):
        query = self.split(self.W_Q(x))
        key, value = self.split(self.W_K(memory)), self.split(self.W_V(memory))
        heads = attention(query, key, value, mask)
        return self.W_O(heads.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1, self.W_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.W_2(self.W_1(x).relu())


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / self.scale)

    def forward(self, ids):
        return self.weight[ids] * self.scale

    def logits(self, x):
        return x @ self.weight.T


def sinusoids(n, d_model):
    position = torch.arange(n)[:, None]
    angle = position / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


class AddNorm(nn.Module):
    def __init__(self, d_model, dropout):
        super().__init__()
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(d_model)

    def forward(self, x, sublayer_output):
        return self.norm(x + self.dropout(sublayer_output))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.add_norm = nn.ModuleList(AddNorm(d_model, dropout) for _ in range(2))

    def forward(self, x, mask=None):
        x = self.add_norm[0](x, self.attention(x, x, mask))
        return self.add_norm[1](x, self.feed_forward(x))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, h)
        self.source_attention = MultiHeadAttention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.add_norm = nn.ModuleList(AddNorm(d_model, dropout) for _ in range(3))

    def forward(self, y, memory, src_mask=None):
        y = self.add_norm[0](y, self.self_attention(y, y, causal_mask(y.size(1))))
        y = self.add_norm[1](y, self.source_attention(y, memory, src_mask))
        return self.add_norm[2](y, self.feed_forward(y))


class Encoder(nn.Module):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__()
        layers = (EncoderLayer(d_model, h, d_ff, dropout) for _ in range(N))
        self.layers = nn.ModuleList(layers)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Decoder(nn.Module):
    def __init__(self, N, d_model, h, d_ff, dropout):
        super().__init__()
        layers = (DecoderLayer(d_model, h, d_ff, dropout) for _ in range(N))
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
        return self.dropout(x + sinusoids(ids.size(1), x.size(-1)))

    def forward(self, src, tgt):
        src_mask = padding_mask(src, PAD)
        memory = self.encoder(self.embed(src), src_mask)
        return self.embedding.logits(self.decoder(self.embed(tgt), memory, src_mask))


def smoothed_cross_entropy(logits, target, smoothing):
    log_probs, real = logits.log_softmax(dim=-1), target != PAD
    right = log_probs.gather(-1, target[..., None])[..., 0]
    others = (log_probs.sum(dim=-1) - right) / (logits.size(-1) - 1)
    return -((1 - smoothing) * right + smoothing * others)[real].mean()


def training_step(model, optimizer, src, tgt):
    loss = smoothed_cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:], smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def greedy_search(model, src, max_length):
    tgt = torch.full((len(src), 1), BOS)
    while tgt.size(1) <= max_length and not (tgt == EOS).any(dim=1).all():
        best = model(src, tgt)[:, -1].argmax(dim=-1)
        tgt = torch.cat([tgt, best[:, None]], dim=1)
    return tgt[:, 1:]


# What it learns: pairs of texts, read and written letter by letter.


def encode(texts, letters):
    rows = [[BOS, *(3 + letters.index(c) for c in text), EOS] for text in texts]
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def decode(ids, letters):
    ids = [*ids.tolist(), EOS]
    return "".join(letters[i - 3] for i in ids[: ids.index(EOS)] if i > EOS)


def train(model, pairs, letters, steps, batch_size, peak=5e-4, warmup=100):
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, steps + 1):
        rate = peak * min(step / warmup, (warmup / step) ** 0.5)
        optimizer.param_groups[0]["lr"] = rate
        src, tgt = zip(*(next(pairs) for _ in range(batch_size)), strict=True)
        batch = encode(src, letters), encode(tgt, letters)
        loss = training_step(model, optimizer, *batch)
        if step % 100 == 0:
            print(f"step {step}: loss {loss:.2f}", flush=True)


def learn(pairs, unseen, letters, steps, batch_size=64):
    torch.manual_seed(0)
    model = Transformer(3 + len(letters), N=2, d_model=64, h=4, d_ff=256, dropout=0.0)
    fresh = (pair for pair in pairs if pair not in unseen)
    train(model, fresh, letters, steps, batch_size)
    sources, targets = zip(*unseen, strict=True)
    found = greedy_search(model.eval(), encode(sources, letters), max_length=80)
    found = [decode(ids, letters) for ids in found]
    accuracy = sum(map(str.__eq__, found, targets)) / len(found)
    print(f"{sources[0]} → {found[0]}")
    print(f"{accuracy:.1%} of {len(found)} unseen ones are right to the last letter")
    return accuracy


def words(seed, letters):
    draw = torch.Generator().manual_seed(seed)
    while True:
        length = int(torch.randint(2, 11, (1,), generator=draw))
        places = torch.randint(len(letters), (length,), generator=draw)
        word = "".join(letters[i] for i in places)
        yield word, word[::-1]


def reverse_words(steps=1000):
    letters = "abcdefghijklmnopqrstuvwxyz"
    test = words(1, letters)
    unseen = [("attention", "noitnetta"), *(next(test) for _ in range(299))]
    return learn(words(0, letters), unseen, letters, steps)


def dates(split):
    from annotated_transformer.data.phrasebook import meanings

    for phrase in meanings(split):
        if phrase.pattern.topic == "dates in words":
            yield phrase.say("en"), phrase.say("de")


def translate_dates(steps=2000):
    train_pairs, test = dates("train"), dates("test")
    sample = [text for _ in range(1000) for text in next(train_pairs)]
    letters = sorted(set("".join(sample)))
    example = "the twenty-first of March", "der einundzwanzigste März"
    unseen = [example, *(next(test) for _ in range(299))]
    return learn(train_pairs, unseen, letters, steps, batch_size=32)


if __name__ == "__main__":
    import sys

    torch.set_num_threads(1)
    translate_dates() if "--phrasebook" in sys.argv else reverse_words()
