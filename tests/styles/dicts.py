"""A right Transformer of functions: what is learned lies in a dict that they are given.

One class, so that PyTorch finds the numbers; `made` puts a dict and a function into it.
"""

from functools import partial

import torch
from torch import nn
from torch.nn.functional import dropout, layer_norm, relu


class Made(nn.Module):
    def __init__(self, numbers, **functions):
        super().__init__()
        self.numbers, self.functions = numbers, functions
        for name, value in flat(numbers):
            self.register_parameter(name.replace(".", "_"), value)

    def forward(self, *given):
        return self.functions["forward"](self.numbers, *given, training=self.training)

    def logits(self, x):
        return self.functions["logits"](self.numbers, x)


def flat(numbers, prefix=""):
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + str(name), value


def matrix(*shape):
    return nn.Parameter(torch.randn(*shape) * shape[-1] ** -0.5)


def zeros(n):
    return nn.Parameter(torch.zeros(n))


# Attention


def attention(query, key, value, mask=None):
    scores = query @ key.mT / key.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -1e9)
    return torch.softmax(scores, -1) @ value


def padding_mask(ids, pad_id):
    return torch.not_equal(ids, pad_id)[:, None, None]


def causal_mask(n):
    return torch.stack([torch.arange(n) <= i for i in range(n)])


def heads_numbers(d_model):
    return {name: matrix(d_model, d_model) for name in ("q", "k", "v", "o")}


def attend(p, h, x, memory, mask=None, training=False):
    q, k, v = (
        torch.stack((each @ p[name]).chunk(h, -1), 1)
        for each, name in ((x, "q"), (memory, "k"), (memory, "v"))
    )
    return torch.cat(attention(q, k, v, mask).unbind(1), -1) @ p["o"]


def MultiHeadAttention(d_model, h):
    def forward(p, *given, training):
        return attend(p, h, *given)

    return Made(heads_numbers(d_model), forward=forward)


# The other sub-layers


def network_numbers(d_model, d_ff):
    return {
        "w1": matrix(d_model, d_ff),
        "b1": zeros(d_ff),
        "w2": matrix(d_ff, d_model),
        "b2": zeros(d_model),
    }


def feed(p, x, training=False):
    return relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def FeedForward(d_model, d_ff):
    return Made(network_numbers(d_model, d_ff), forward=feed)


def embed(p, ids, training=False):
    return p["table"][ids] * p["table"].shape[1] ** 0.5


def score(p, x):
    return x @ p["table"].T


def Embedding(vocab_size, d_model):
    table = {"table": matrix(vocab_size, d_model)}
    return Made(table, forward=embed, logits=score)


def sinusoids(n, d_model):
    columns = []
    for i in range(0, d_model, 2):
        angle = torch.arange(n) / 10000 ** (i / d_model)
        columns += [torch.sin(angle), torch.cos(angle)]
    return torch.stack(columns, 1)


def norm_numbers(d_model):
    return {"gain": nn.Parameter(torch.ones(d_model)), "shift": zeros(d_model)}


def add_norm(p, rate, x, sublayer_output, training=False):
    x = x + dropout(sublayer_output, rate, training)
    return layer_norm(x, x.shape[-1:], p["gain"], p["shift"])


def AddNorm(d_model, dropout):
    def forward(p, x, sublayer_output, training):
        return add_norm(p, dropout, x, sublayer_output, training)

    return Made(norm_numbers(d_model), forward=forward)


# Layers and stacks


def layer_numbers(d_model, d_ff, kinds):
    numbers = {"network": network_numbers(d_model, d_ff)}
    numbers |= {kind: heads_numbers(d_model) for kind in kinds}
    return numbers | {f"{kind} norm": norm_numbers(d_model) for kind in numbers}


def encode_layer(p, h, rate, x, mask=None, training=False):
    x = add_norm(p["own norm"], rate, x, attend(p["own"], h, x, x, mask), training)
    return add_norm(p["network norm"], rate, x, feed(p["network"], x), training)


def decode_layer(p, h, rate, y, memory, src_mask=None, training=False):
    own = attend(p["own"], h, y, y, causal_mask(y.shape[1]))
    y = add_norm(p["own norm"], rate, y, own, training)
    found = attend(p["source"], h, y, memory, src_mask)
    y = add_norm(p["source norm"], rate, y, found, training)
    return add_norm(p["network norm"], rate, y, feed(p["network"], y), training)


def through(layer, p, h, rate, x, *others, training=False):
    for i in sorted(p):
        x = layer(p[i], h, rate, x, *others, training=training)
    return x


def with_sizes(function, h, rate):
    return lambda p, *given, training: function(p, h, rate, *given, training=training)


def EncoderLayer(d_model, h, d_ff, dropout):
    numbers = layer_numbers(d_model, d_ff, ["own"])
    return Made(numbers, forward=with_sizes(encode_layer, h, dropout))


def DecoderLayer(d_model, h, d_ff, dropout):
    numbers = layer_numbers(d_model, d_ff, ["own", "source"])
    return Made(numbers, forward=with_sizes(decode_layer, h, dropout))


def Encoder(N, d_model, h, d_ff, dropout):
    numbers = {i: layer_numbers(d_model, d_ff, ["own"]) for i in range(N)}
    encode = partial(through, encode_layer)
    return Made(numbers, forward=with_sizes(encode, h, dropout))


def Decoder(N, d_model, h, d_ff, dropout):
    numbers = {i: layer_numbers(d_model, d_ff, ["own", "source"]) for i in range(N)}
    decode = partial(through, decode_layer)
    return Made(numbers, forward=with_sizes(decode, h, dropout))


def translate(p, h, rate, src, tgt, training=False):
    mask = padding_mask(src, 0)
    x, y = (
        dropout(
            embed(p, ids) + sinusoids(*ids.shape[1:], p["table"].shape[1]),
            rate,
            training,
        )
        for ids in (src, tgt)
    )
    memory = through(encode_layer, p["encoder"], h, rate, x, mask, training=training)
    y = through(decode_layer, p["decoder"], h, rate, y, memory, mask, training=training)
    return score(p, y)


def Transformer(vocab_size, N, d_model, h, d_ff, dropout):
    numbers = {
        "table": matrix(vocab_size, d_model),
        "encoder": {i: layer_numbers(d_model, d_ff, ["own"]) for i in range(N)},
        "decoder": {
            i: layer_numbers(d_model, d_ff, ["own", "source"]) for i in range(N)
        },
    }
    return Made(numbers, forward=with_sizes(translate, h, dropout))


# Learning and use


def smoothed_cross_entropy(logits, target, smoothing):
    losses = []
    for scores, row in zip(logits.log_softmax(-1), target, strict=True):
        for log_p, token in zip(scores, row, strict=True):
            if token != 0:
                share = smoothing / (len(log_p) - 1)
                wanted = torch.full_like(log_p, share)
                wanted[token] = 1 - smoothing
                losses.append(-(wanted * log_p).sum())
    return sum(losses) / len(losses)


def training_step(model, optimizer, src, tgt):
    loss = smoothed_cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:], 0.1)
    numbers = [p for group in optimizer.param_groups for p in group["params"]]
    for p, gradient in zip(numbers, torch.autograd.grad(loss, numbers), strict=True):
        p.grad = gradient
    optimizer.step()
    return loss.item()


def greedy_search(model, src, max_length):
    rows = [[1] for _ in src]
    for _ in range(max_length):
        best = model(src, torch.tensor(rows))[:, -1].argmax(-1).tolist()
        rows = [[*row, token] for row, token in zip(rows, best, strict=True)]
        if all(2 in row for row in rows):
            break
    return rows
