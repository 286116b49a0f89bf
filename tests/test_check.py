"""The checks of what a reader writes: each typical mistake gets its sentence, right
solutions of any style pass, and the hundred-line file learns.
"""

import copy
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from annotated_transformer import check
from annotated_transformer.check.file import import_file

FILE = Path(__file__).resolve().parent.parent / "nbs" / "my_transformer.py"
SOURCE = FILE.read_text(encoding="utf-8")
RIGHT = import_file(FILE)


def verdict(part, old="", new=""):
    """What the check of a part says when a piece of the hundred lines is another."""
    assert old in SOURCE, f"the file no longer holds {old!r}"
    start = SOURCE.index(f"{'class' if part[0].isupper() else 'def'} {part}(")
    source = SOURCE[:start] + SOURCE[start:].replace(old, new, 1)
    assert old == new or source != SOURCE, f"{part} has no {old!r}"
    names = {"__name__": "theirs"}
    exec(compile(source, "theirs.py", "exec"), names)
    return check.CHECKS[part](names[part])


def test_division_after_the_softmax_and_dropout_are_told():
    def late(query, key, value, mask=None):
        scores = query @ key.mT
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return scores.softmax(-1) / math.sqrt(key.size(-1)) @ value

    def dropped(query, key, value, mask=None):
        weights = RIGHT.attention(query, key, torch.eye(key.size(-2)), mask)
        return torch.dropout(weights, 0.1, train=True) @ value

    assert "after the softmax" in check.attention(late).sentence
    assert check.attention(dropped).sentence.startswith("Asked twice")


SCALED = "query @ key.transpose(-2, -1) / math.sqrt(key.size(-1))"
MASKED = "scores.masked_fill(~mask, -math.inf)"
SOFTMAX = "scores.softmax(dim=-1) @ value"
SPLIT = "x.unflatten(-1, (self.h, -1)).transpose(1, 2)"
HEADS = "heads.transpose(1, 2).flatten(2)"
ATTENDED = "attention(query, key, value, mask)"
RELU = "self.W_2(self.W_1(x).relu())"
SCALE, LOGITS = "self.weight[ids] * self.scale", "x @ self.weight.T"
ANGLE = "position / 10000 ** (torch.arange(0, d_model, 2) / d_model)"
STACKED = "torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)"
NORMED = "self.norm(x + self.dropout(sublayer_output))"
ENCODED = "x = self.add_norm[0](x, self.attention(x, x, mask))"
FED = "return self.add_norm[1](x, self.feed_forward(x))"
CAUSAL = "self.self_attention(y, y, causal_mask(y.size(1)))"
SOURCED = "self.source_attention(y, memory, src_mask)"
FED_LAST = "return self.add_norm[2](y, self.feed_forward(y))"
EMBEDDED = "x + sinusoids(ids.size(1), x.size(-1))"
SHIFTED = "model(src, tgt[:, :-1]), tgt[:, 1:]"
LOSS = "-((1 - smoothing) * right + smoothing * others)[real].mean()"
BEST = "best = model(src, tgt)[:, -1].argmax(dim=-1)"
GOING = "tgt.size(1) <= max_length and not (tgt == EOS).any(dim=1).all()"

EMBEDDING = SOURCE[SOURCE.index("        self.weight =") : SOURCE.index("def sinus")]
UNTIED = """
        self.weight = nn.Embedding(vocab_size, d_model)
        self.out = nn.Linear(d_model, vocab_size)
        self.out.weight.data.copy_(self.weight.weight)

    def forward(self, ids):
        return self.weight(ids) * self.scale

    def logits(self, x):
        return self.out(x)


"""

MISTAKES = [
    # attention
    ("attention", " / math.sqrt(key.size(-1))", "", "aren't divided by √d_k"),
    ("attention", "math.sqrt(key.size(-1))", "key.size(-1)", "divided by d_k;"),
    ("attention", "@ value", "@ key", "should return a tensor of the shape (2, 3, 6)"),
    ("attention", "~mask", "mask", "is inverted"),
    (
        "attention",
        f"        scores = {MASKED}\n    return {SOFTMAX}",
        "        return scores.softmax(dim=-1) * mask @ value\n    return " + SOFTMAX,
        "before the softmax, not the weights after it",
    ),
    ("attention", "transpose(-2, -1)", "transpose(1, 2)", "attention((2, 3, 2, 4)"),
    ("attention", "return " + SOFTMAX, "scores.softmax(-1)", "`return` missing"),
    ("attention", "@ value", "@ value, 3", "after it should be the weights"),
    # masks
    ("padding_mask", "!=", "==", "is inverted"),
    ("padding_mask", "[:, None, None, :]", "", "[:, None, None, :]"),
    ("padding_mask", "[:, None, None, :]", "[:, None, None].float()", "boolean"),
    ("causal_mask", ".tril()", ".triu()", "shows the future"),
    ("causal_mask", "(n, n, dtype=torch.bool)", "(n, n)", "boolean"),
    # heads
    (
        "MultiHeadAttention",
        SPLIT,
        "x.reshape(len(x), self.h, -1, 4)",
        "cut the positions",
    ),
    ("MultiHeadAttention", HEADS, "heads.reshape(x.shape)", "cut the positions"),
    (
        "MultiHeadAttention",
        f"{SPLIT}",
        "x[:, None]",
        "one head and not h",
    ),
    ("MultiHeadAttention", f"self.W_O({HEADS})", HEADS, "never reaches `W_O.weight`"),
    (
        "MultiHeadAttention",
        ATTENDED,
        ATTENDED.replace(", mask", ""),
        "the mask hides still changes",
    ),
    (
        "MultiHeadAttention",
        ATTENDED,
        ATTENDED.replace("mask", "None if mask is None else ~mask"),
        "is inverted",
    ),
    (
        "MultiHeadAttention",
        HEADS,
        "heads.flatten(2)",
        "raised RuntimeError",
    ),
    (
        "MultiHeadAttention",
        ATTENDED,
        "attention(query / self.h**0.5, key, value, mask)",
        "divided by √d_model",
    ),
    ("MultiHeadAttention", "attention(query", "attention(2 * query", "aren't divided"),
    ("MultiHeadAttention", "self.W_Q(x)", "self.W_Q(memory)", "should return a tensor"),
    ("MultiHeadAttention", "self.W_K(memory)", "self.W_K(x)", "raised RuntimeError"),
    # the feed-forward network
    ("FeedForward", ".relu()", "", "two linear layers in a row are one"),
    ("FeedForward", RELU, "self.W_2(self.W_1(x)).relu()", "belongs between them"),
    ("FeedForward", RELU, RELU + ".softmax(1)", "each position alone"),
    ("FeedForward", "(d_ff, d_model)", "(d_ff, d_model, False)", "has two biases"),
    # the embedding
    ("Embedding", SCALE, "self.weight[ids]", "multiplies the rows by 1,"),
    ("Embedding", "d_model) / self.scale", "d_model)", "a standard deviation of 4"),
    ("Embedding", SCALE, SCALE + " * self.scale", "multiplies the rows by 16,"),
    (
        "Embedding",
        SCALE,
        "self.weight[ids] / self.scale",
        "multiplies the rows by 0.25,",
    ),
    ("Embedding", LOGITS, LOGITS + " * self.scale", "logits scales the matrix"),
    ("Embedding", EMBEDDING, UNTIED, "isn't tied"),
    (
        "Embedding",
        f"return {LOGITS}",
        "return nn.functional.linear(x, self.other) + 0 * self.weight.sum()",
        "raised AttributeError",
    ),
    # positions
    (
        "sinusoids",
        STACKED,
        "torch.cat([angle.sin(), angle.cos()], dim=-1)",
        "two halves",
    ),
    (
        "sinusoids",
        "[angle.sin(), angle.cos()]",
        "[angle.cos(), angle.sin()]",
        "exchanged",
    ),
    (
        "sinusoids",
        STACKED,
        STACKED + ".T",
        "should return a tensor of the shape (12, 8)",
    ),
    # add and norm
    ("AddNorm", NORMED, "x + self.dropout(self.norm(sublayer_output))", "output alone"),
    (
        "AddNorm",
        NORMED,
        "self.norm(self.dropout(sublayer_output))",
        "residual is missing",
    ),
    ("AddNorm", NORMED, "x + self.dropout(sublayer_output)", "never reaches `norm"),
    ("AddNorm", NORMED, "self.norm(self.dropout(x + sublayer_output))", "on the sum"),
    ("AddNorm", "self.dropout(sublayer_output)", "sublayer_output", "does nothing"),
    (
        "AddNorm",
        "self.dropout(sublayer_output)",
        "nn.functional.dropout(sublayer_output)",
        "in evaluation mode",
    ),
    # the layers
    ("EncoderLayer", "self.attention(x, x, mask)", "x", "through self-attention each"),
    ("EncoderLayer", "(x, x, mask)", "(x, x)", "Padding that mask hides"),
    ("EncoderLayer", "x, mask))", "x, causal_mask(x.size(1))))", "has no causal mask"),
    (
        "EncoderLayer",
        FED,
        "return x + self.feed_forward(self.add_norm[1](x, 0 * x))",
        "post-norm",
    ),
    (
        "EncoderLayer",
        FED,
        "return self.add_norm[1](self.feed_forward(x), 0 * x)",
        "residual is missing",
    ),
    ("EncoderLayer", FED, FED.replace("[1]", "[0]"), "never reaches `add_norm.1"),
    (
        "EncoderLayer",
        "self.add_norm = nn.ModuleList(AddNorm(d_model, dropout) for _ in range(2))",
        "self.add_norm = [AddNorm(d_model, dropout)] * 2; self.one = self.add_norm[0]",
        "a norm for 1 of 2",
    ),
    ("EncoderLayer", "AddNorm(d_model, dropout)", "AddNorm(d_model, 0)", "Dropout"),
    ("DecoderLayer", ", causal_mask(y.size(1))", "", "needs causal_mask"),
    (
        "DecoderLayer",
        SOURCED,
        "self.source_attention(memory, y)",
        "y asks, and memory holds",
    ),
    (
        "DecoderLayer",
        "(y, memory, src_mask))",
        "(y, memory))",
        "Padding that src_mask hides",
    ),
    ("DecoderLayer", SOURCED, "self.source_attention(y, y)", "memory holds keys"),
    ("DecoderLayer", CAUSAL, "y", "self-attention over y"),
    (
        "DecoderLayer",
        FED_LAST,
        "return y + self.feed_forward(self.add_norm[2](y, 0 * y))",
        "post-norm",
    ),
    (
        "DecoderLayer",
        f"y = self.add_norm[1](y, {SOURCED})",
        f"y = self.add_norm[1]({SOURCED}, 0 * y)",
        "residual is missing",
    ),
    # the stacks
    (
        "Encoder",
        "(EncoderLayer(d_model, h, d_ff, dropout) for _ in range(N))",
        "[EncoderLayer(d_model, h, d_ff, dropout)] * N",
        "make N layers",
    ),
    ("Encoder", "nn.ModuleList(layers)", "list(layers)", "nn.ModuleList"),
    (
        "Encoder",
        "            x = layer(x, mask)\n        return x",
        "            y = layer(x, mask)\n        return y",
        "never reaches `layers.0",
    ),
    ("Encoder", "layer(x, mask)", "layer(x)", "in each layer"),
    ("Decoder", "layer(y, memory, src_mask)", "layer(y, memory)", "in each layer"),
    ("Decoder", "layer(y, memory, src_mask)", "layer(y, y)", "memory holds keys"),
    ("Decoder", "nn.ModuleList(layers)", "list(layers)", "nn.ModuleList"),
    (
        "Decoder",
        "(DecoderLayer(d_model, h, d_ff, dropout) for _ in range(N))",
        "[DecoderLayer(d_model, h, d_ff, dropout)] * N",
        "make N layers",
    ),
    # the whole model
    ("Transformer", EMBEDDED, "x", "add sinusoids"),
    (
        "Transformer",
        "self.embed(tgt)",
        "self.embedding(tgt)",
        "The target's positions are missing",
    ),
    (
        "Transformer",
        "self.embed(tgt)",
        "self.embed(tgt) + self.embed(tgt).mean(dim=1, keepdim=True)",
        "come through",
    ),
    (
        "Transformer",
        "self.encoder(self.embed(src), src_mask)",
        "0 * self.encoder(self.embed(src), src_mask)",
        "The source changes nothing",
    ),
    ("Transformer", "padding_mask(src, PAD)", "None", "make padding_mask(src, 0)"),
    ("Transformer", "memory, src_mask))", "memory))", "make padding_mask(src, 0)"),
    ("Transformer", ", src_mask))", ", src_mask)).softmax(-1)", "return the logits"),
    (
        "Transformer",
        "self.encoder(self.embed(src), src_mask)",
        "self.embed(src)",
        "never reaches `encoder",
    ),
    (
        "Transformer",
        "        self.dropout = nn.Dropout(dropout)\n",
        "        self.dropout = nn.Dropout(dropout)\n"
        "        self.out = Embedding(vocab_size, d_model)\n",
        "never reaches `out",
    ),
    # the loss
    ("smoothed_cross_entropy", "[real].mean()", ".mean()", "Padding counts"),
    ("smoothed_cross_entropy", "[real].mean()", "[real].sum()", "sum over tokens"),
    ("smoothed_cross_entropy", LOSS, "-right[real].mean()", "Smoothing changes"),
    (
        "smoothed_cross_entropy",
        LOSS,
        "nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), "
        "ignore_index=PAD, label_smoothing=smoothing)",
        "spread over all V",
    ),
    ("smoothed_cross_entropy", LOSS, LOSS + ".item()", "has no gradient"),
    # one step
    ("training_step", SHIFTED, "model(src, tgt), tgt", "isn't shifted"),
    ("training_step", "src, tgt[:, :-1]", "src, tgt[:, 1:]", "the begin token"),
    ("training_step", "(src, tgt[:, :-1])", "(tgt[:, :-1], src)", "should be src"),
    ("training_step", "    optimizer.zero_grad()\n", "", "still in the second"),
    (
        "training_step",
        "    loss.backward()\n",
        "",
        "backward(), optimizer.step(), in this order",
    ),
    (
        "training_step",
        "    optimizer.step()\n",
        "",
        "backward(), optimizer.step(), in this order",
    ),
    ("training_step", "smoothing=0.1", "smoothing=0.0", "isn't smoothed"),
    (
        "training_step",
        "    return loss.item()",
        "",
        "(model, optimizer, (2, 3), (2, 5)) returns nothing: is its `return` missing",
    ),
    (
        "training_step",
        "    optimizer.zero_grad()\n    loss.backward()\n",
        "    loss.backward()\n    optimizer.zero_grad()\n",
        "backward(), optimizer.step(), in this order",
    ),
    # greedy search
    ("greedy_search", " and not (tgt == EOS).any(dim=1).all()", "", "stop at the end"),
    (
        "greedy_search",
        "(src, tgt)",
        "(src, tgt[:, -1:])",
        "all that was written so far",
    ),
    ("greedy_search", "[:, -1].arg", "[:, 0].arg", "logits[:, -1]"),
    ("greedy_search", "BOS)", "PAD)", "has the begin token 1"),
    ("greedy_search", "tgt.size(1) <= max_length and ", "", "never stops"),
    ("greedy_search", "tgt.size(1) <= max", "tgt.size(1) <= 3 * max", "writes 18"),
    (
        "greedy_search",
        ".argmax(dim=-1)",
        ".softmax(-1).multinomial(1)[:, 0]",
        "take the argmax",
    ),
    ("greedy_search", "return tgt[:, 1:]", "return tgt[:1]", "the rows should be"),
]

# Without a reason of their own, they get the general one and the numbers.
RARE = [
    ("attention", "/ math", "* math", "should be softmax(query · key / √d_k)"),
    (
        "attention",
        "math.sqrt(key.size(-1))",
        "key.size(-2) ** 0.5",
        "should be softmax(query · key / √d_k)",
    ),
    ("attention", "dim=-1", "dim=-2", "sum to one over the keys"),
    ("attention", "dim=-1", "dim=0", "sum to one over the keys"),
    ("attention", SOFTMAX, "scores @ value", "sum to one over the keys"),
    ("attention", "-math.inf", "0", "write −inf"),
    ("attention", "-math.inf", "-1.0", "write −inf"),
    ("attention", MASKED, "scores", "write −inf"),
    ("padding_mask", "!= pad_id", "!= 0", "wherever ids != pad_id"),
    ("causal_mask", ".tril()", ".tril(-1)", "a position sees itself"),
    ("causal_mask", ".tril()", "", "a position sees itself"),
    (
        "MultiHeadAttention",
        "self.W_O = nn.Linear(d_model, d_model, bias=False)",
        "self.W_O = nn.Identity()",
        "look at the scale, the heads and W_O",
    ),
    ("smoothed_cross_entropy", "log_softmax(dim=-1)", "softmax(-1)", "mean of −log p"),
    (
        "smoothed_cross_entropy",
        "logits.log_softmax(dim=-1)",
        "logits.softmax(dim=-1).log_softmax(dim=-1)",
        "mean of −log p",
    ),
    (
        "smoothed_cross_entropy",
        "/ (logits.size(-1) - 1)",
        "",
        "each other one ε / (V − 1)",
    ),
    ("training_step", "tgt[:, 1:]", "tgt[:, :-1]", "should be smoothed_cross"),
    ("FeedForward", RELU, RELU + ".relu()", "between the layers alone"),
    ("FeedForward", RELU, "self.W_2(self.W_1(x.relu()))", "between the layers alone"),
    (
        "sinusoids",
        ANGLE,
        ANGLE.replace("/ d_model", "/ 2 / d_model"),
        "Position 1, column 2 should be sin(1 / 10000^(2/8))",
    ),
    (
        "sinusoids",
        ANGLE,
        ANGLE.replace("/ d_model", "* 2 / d_model"),
        "Position 1, column 2 should be sin(1 / 10000^(2/8))",
    ),
    (
        "sinusoids",
        "position / ",
        "position * ",
        "Position 1, column 2 should be sin(1 / 10000^(2/8))",
    ),
    (
        "sinusoids",
        "10000",
        "1000",
        "Position 1, column 2 should be sin(1 / 10000^(2/8))",
    ),
    ("FeedForward", RELU, "x + " + RELU, "between the layers alone"),
    ("smoothed_cross_entropy", "return -", "return ", "mean of −log p"),
    (
        "smoothed_cross_entropy",
        "[real].mean()",
        "[real].sum() / real.numel()",
        "mean of −log p",
    ),
    (
        "AddNorm",
        NORMED,
        "self.norm(x) + self.dropout(sublayer_output)",
        "It should be norm(x + sublayer_output)",
    ),
    ("causal_mask", ".tril()", ".triu(1)", "a position sees itself"),
    (
        "sinusoids",
        "torch.arange(n)",
        "torch.arange(1, n + 1)",
        "Position 0, column 0 should be sin(0",
    ),
]


@pytest.mark.parametrize("part, old, new, words", MISTAKES)
def test_a_mistake_gets_its_sentence(part, old, new, words):
    found = verdict(part, old, new)
    assert not found and words in found.sentence, found
    assert "\n" not in found.sentence and "Traceback" not in found.sentence


@pytest.mark.parametrize("part, old, new, words", RARE)
def test_a_rare_mistake_shows_what_was_expected(part, old, new, words):
    found = verdict(part, old, new)
    assert not found and words in found.sentence, found
    assert found.numbers.split()[0] == "expected"


def test_each_part_has_three_mistakes_and_more():
    rows = MISTAKES + RARE
    counts = {name: sum(row[0] == name for row in rows) for name in check.CHECKS}
    assert min(counts.values()) >= 3, counts


def fused_attention(query, key, value, mask=None):
    return nn.functional.scaled_dot_product_attention(query, key, value, mask)


def finite_attention(query, key, value, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", query, key) * key.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + (~mask) * -1e9
    weights = nn.functional.softmax(scores, -1)
    return torch.einsum("...qk,...kd->...qd", weights, value), weights


def compared_positions(n):
    return (torch.arange(n)[:, None] >= torch.arange(n))[None, None]


class TorchHeads(nn.Module):
    """PyTorch's own, with biases and one packed matrix."""

    def __init__(self, d_model, h):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, h, batch_first=True)

    def forward(self, x, memory, mask=None):
        padding = None if mask is None else ~mask[:, 0, 0]
        return self.inner(x, memory, memory, key_padding_mask=padding)[0]


class ListedHeads(nn.Module):
    """A small layer for each head, and the heads joined by cat."""

    def __init__(self, d_model, h):
        super().__init__()
        self.parts = nn.ModuleList(
            nn.ModuleList(nn.Linear(d_model, d_model // h) for _ in range(3))
            for _ in range(h)
        )
        self.join = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask=None):
        mask = None if mask is None else mask[:, 0]
        heads = [
            RIGHT.attention(ask(x), key(memory), value(memory), mask)
            for ask, key, value in self.parts
        ]
        return self.join(torch.cat(heads, -1)), "weights that nobody asked for"


class EinsumHeads(nn.Module):
    """Tensors of three axes; the features of a head lie next to each other or not."""

    def __init__(self, d_model, h):
        super().__init__()
        self.into = nn.Parameter(torch.randn(3, d_model, d_model // h, h) * 1e-3)
        self.out = nn.Parameter(torch.zeros(d_model // h, h, d_model))

    def forward(self, x, memory, mask=None):
        q, k, v = (
            torch.einsum("bnm,mdh->bhnd", each, weight)
            for each, weight in zip((x, memory, memory), self.into, strict=True)
        )
        heads = RIGHT.attention(q, k, v, mask)
        return torch.einsum("bhnd,dhm->bnm", heads, self.out)


class SequentialFeedForward(nn.Sequential):
    def __init__(self, d_model, d_ff):
        layers = nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
        super().__init__(*layers)


class TiedEmbedding(nn.Module):
    """A torch layer each way, with one parameter, and a bias on the way out."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.look_up = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.look_up.weight, std=d_model**-0.5)
        self.logits = nn.Linear(d_model, vocab_size)
        self.logits.weight = self.look_up.weight

    def forward(self, ids):
        return self.look_up(ids) * self.look_up.embedding_dim**0.5


def looped_sinusoids(n, d_model):
    table = torch.zeros(n, d_model)
    for i in range(0, d_model, 2):
        rate = math.exp(-math.log(10000) * i / d_model)
        table[:, i] = torch.sin(torch.arange(n) * rate)
        table[:, i + 1] = torch.cos(torch.arange(n) * rate)
    return table


class OwnNorm(nn.Module):
    """Mean and variance by hand, and no gain."""

    def __init__(self, d_model, dropout):
        super().__init__()
        self.dropout = dropout

    def forward(self, x, sublayer_output):
        kept = nn.functional.dropout(sublayer_output, self.dropout, self.training)
        total = x + kept
        centred = total - total.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt()


class TorchEncoderLayer(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(*sizes, batch_first=True)

    def forward(self, x, mask=None):
        padding = None if mask is None else ~mask[:, 0, 0]
        return self.inner(x, src_key_padding_mask=padding)


class TorchDecoderLayer(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.inner = nn.TransformerDecoderLayer(*sizes, batch_first=True)

    def forward(self, y, memory, src_mask=None):
        padding = None if src_mask is None else ~src_mask[:, 0, 0]
        future = ~RIGHT.causal_mask(y.size(1))
        return self.inner(y, memory, tgt_mask=future, memory_key_padding_mask=padding)


class CopiedEncoder(nn.Module):
    """Copies of one layer, alike at the start, and a norm after the last."""

    def __init__(self, N, d_model, *others):
        super().__init__()
        layer = RIGHT.EncoderLayer(d_model, *others)
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(N))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class TorchTransformer(nn.Module):
    """PyTorch's stacks, positions up to a length, and a bias at the output."""

    def __init__(self, vocab_size, N, d_model, h, d_ff, dropout, max_length=256):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.register_buffer("positions", RIGHT.sinusoids(max_length, d_model))
        self.out = nn.Linear(d_model, vocab_size)
        self.out.weight = self.embedding.weight
        self.dropout, self.scale = nn.Dropout(dropout), d_model**0.5
        self.stacks = nn.Transformer(d_model, h, N, N, d_ff, dropout, batch_first=True)

    def forward(self, src, tgt):
        x, y = (
            self.dropout(
                self.embedding(ids) * self.scale + self.positions[: ids.size(1)]
            )
            for ids in (src, tgt)
        )
        padding, future = src == 0, ~RIGHT.causal_mask(tgt.size(1))
        hidden = self.stacks(
            x,
            y,
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.out(hidden), hidden


def torch_loss(logits, target, smoothing):
    vocab = logits.size(-1)
    return nn.functional.cross_entropy(
        logits.transpose(1, 2),
        target,
        ignore_index=0,
        label_smoothing=smoothing * vocab / (vocab - 1),
    )


def step_that_reads_all(model, optimizer, src, tgt):
    """The whole target goes in, and its last output is left out; zeros at the end."""
    model.train()
    loss = torch_loss(model(src, tgt)[:, :-1], tgt[:, 1:], 0.1)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def search_row_by_row(model, src, max_length):
    rows = []
    for source in src:
        written = [1]
        while written[-1] != 2 and len(written) < max_length:
            logits = model(source[None], torch.tensor([written]))
            written.append(int(logits[0, -1].argmax()))
        rows.append(written)
    return rows


@pytest.mark.parametrize(
    "name, part",
    [
        *((name, getattr(RIGHT, name)) for name in check.CHECKS),
        ("attention", fused_attention),
        ("attention", finite_attention),
        ("padding_mask", lambda ids, pad_id: ids.ne(pad_id).view(len(ids), 1, 1, -1)),
        ("causal_mask", compared_positions),
        ("MultiHeadAttention", TorchHeads),
        ("MultiHeadAttention", ListedHeads),
        ("MultiHeadAttention", EinsumHeads),
        ("FeedForward", SequentialFeedForward),
        ("Embedding", TiedEmbedding),
        ("sinusoids", looped_sinusoids),
        ("AddNorm", OwnNorm),
        ("EncoderLayer", TorchEncoderLayer),
        ("DecoderLayer", TorchDecoderLayer),
        ("Encoder", CopiedEncoder),
        ("Transformer", TorchTransformer),
        ("smoothed_cross_entropy", torch_loss),
        ("training_step", step_that_reads_all),
        ("greedy_search", search_row_by_row),
    ],
)
def test_a_right_solution_of_any_style_passes(name, part):
    torch.manual_seed(3)
    expected = torch.get_rng_state()
    found = check.CHECKS[name](part)
    assert found and str(found).startswith(f"{name} is right: "), found
    assert torch.equal(torch.get_rng_state(), expected), "the reader's seed is moved"


def test_an_error_is_a_sentence_with_the_call_the_message_and_the_line(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "def attention(query, key, value, mask=None):\n    return query @ key"
    )
    sentence = str(check.progress(path)["attention"])
    assert "attention((2, 3, 4), (2, 5, 4), (2, 5, 6)) raised RuntimeError" in sentence
    assert "in the line `return query @ key`" in sentence and "\n" not in sentence


class Untied(RIGHT.Transformer):
    def __init__(self, vocab_size, N, d_model, *others):
        super().__init__(vocab_size, N, d_model, *others)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, src, tgt):
        mask = RIGHT.padding_mask(src, 0)
        memory = self.encoder(self.embed(src), mask)
        return self.out(self.decoder(self.embed(tgt), memory, mask))


def test_an_output_layer_of_its_own_is_noticed():
    assert "each token has 2 vectors" in check.transformer(Untied).sentence


@pytest.mark.parametrize(
    "part, words",
    [
        (lambda *_: torch.full((2, 3, 6), math.nan), "NaN"),
        (lambda *_: "soon", "should return a tensor"),
        (
            lambda query, key, value, mask=None: key,
            "should return a tensor of the shape (2, 3, 6)",
        ),
    ],
)
def test_what_is_no_answer_at_all_is_named(part, words):
    assert words in check.attention(part).sentence


def test_a_class_that_is_no_module_or_holds_no_weights_is_named():
    assert "no nn.Module" in str(check.feed_forward(lambda *_: SimpleNamespace()))
    assert "no parameters" in str(check.feed_forward(lambda *_: nn.Identity()))


def test_what_only_raises_not_implemented_is_not_yet_written():
    def attention(query, key, value, mask=None):
        raise NotImplementedError

    found = check.attention(attention)
    assert not found and not found.written and repr(found) == "not yet written"


def test_the_command_shows_how_far_a_file_is(run, tmp_path):
    status, out, _ = run("check", FILE)
    assert status == 0 and out.count(" done\n") == 16
    assert out.endswith("16 of 16 parts are right\n")
    path = tmp_path / "mine.py"
    wrong = SOURCE.replace(" / math.sqrt(key.size(-1))", "")
    path.write_text(wrong.replace("def greedy_search", "def greedy"), "utf-8")
    status, out, _ = run("check", path)
    numbers, sentence = out.split("padding_mask")[0].rsplit("\n", 2)[:2]
    assert status == 1 and "√d_k" in sentence
    assert "expected" in numbers.splitlines()[0] and "found" in numbers.splitlines()[0]
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert lines["MultiHeadAttention"] == "uses attention; mend that first"
    assert lines["padding_mask"] == "done"
    assert lines["greedy_search"] == "not yet written"


@pytest.mark.parametrize(
    "text, words",
    [
        (None, "is no file"),
        ("x = 1\ndef attention(:\n", "line 2 can't be imported (SyntaxError"),
        ("\nimport torch\nx = y\n", "line 3 can't be imported (NameError"),
        ("import sys\nsys.exit(0)\n", "line 2 can't be imported (SystemExit"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line_and_status_2(
    run, tmp_path, text, words
):
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    status, out, err = run("check", path)
    assert status == 2 and not out and words in err and err.count("\n") == 1


def test_a_file_may_import_its_neighbour_and_hold_a_dataclass(tmp_path):
    (tmp_path / "neighbour.py").write_text(SOURCE, "utf-8")
    path = tmp_path / "mine.py"
    head = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    sizes = "@dataclass\nclass Sizes:\n    h: int = 8\n"
    path.write_text(f"{head}from neighbour import *\n{sizes}")
    assert check.progress(path)["attention"]


@pytest.mark.parametrize(
    "line, words",
    [
        ("__import__('sys').exit(0)", "raised SystemExit: 0, in the line"),
        ("raise BaseException('no')", "raised BaseException: no, in the line"),
        ("__import__('os')._exit(0)", "attention ends Python"),
        ("__import__('time').sleep(600)", "attention takes more than 20 seconds"),
    ],
)
def test_a_part_that_ends_the_program_or_never_ends_gets_a_verdict(
    tmp_path, line, words, monkeypatch, run
):
    if "seconds" in words:
        monkeypatch.setattr("annotated_transformer.check.report.SECONDS", 20)
    path = tmp_path / "mine.py"
    first = SOURCE[: SOURCE.index("class MultiHeadAttention")]
    path.write_text(f"{first}\n\ndef attention(*given):\n    {line}\n", "utf-8")
    status, out, _ = run("check", path)
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert status == 1 and words in lines["attention"]
    assert lines["padding_mask"] == "done"


def test_a_file_that_never_ends_is_one_line(tmp_path, monkeypatch, run):
    monkeypatch.setattr("annotated_transformer.check.report.SECONDS", 8)
    (tmp_path / "mine.py").write_text("import time\ntime.sleep(600)\n")
    _, out, err = run("check", tmp_path / "mine.py")
    assert not out and "can't be imported: it takes more than 8 seconds" in err


def test_a_folder_of_files_is_a_line_each_or_json(tmp_path, run):
    right = FILE.read_text(encoding="utf-8")
    (tmp_path / "anna.py").write_text(right, encoding="utf-8")
    wrong = right.replace("self.norm(x + self.dropout", "self.norm(self.dropout")
    (tmp_path / "ben.py").write_text(wrong, encoding="utf-8")
    (tmp_path / "cem.py").write_text("import (")
    (tmp_path / "notes.txt").write_text("no Python")
    status, out, _ = run("check", tmp_path)
    anna, ben, cem = out.splitlines()
    assert status == 1 and anna.split() == ["anna.py", "16", "of", "16"]
    assert ben.startswith("ben.py") and "of 16  AddNorm: The residual is missing" in ben
    assert "line 1 can't be imported" in cem
    start = SOURCE[: SOURCE.index("class MultiHeadAttention")]
    (tmp_path / "anna.py").write_text(start, encoding="utf-8")
    (tmp_path / "ben.py").write_text(
        wrong[: wrong.index("class DecoderLayer")], "utf-8"
    )
    status, out, _ = run("check", tmp_path, "--json")
    found = json.loads(out)
    right = [name for name, part in found["anna.py"].items() if part["right"]]
    assert status == 1 and right == ["attention", "padding_mask", "causal_mask"]
    assert found["ben.py"]["EncoderLayer"]["waits_for"] == "AddNorm"
    assert isinstance(found["cem.py"], str)
    alone = json.loads(run("check", tmp_path / "ben.py", "--json")[1])
    assert alone == found["ben.py"]


def test_a_folder_without_files_is_refused(tmp_path, run):
    status, _, err = run("check", tmp_path)
    assert status == 2 and "holds no Python file" in err


def test_the_file_is_about_a_hundred_lines_of_torch_and_math():
    model = SOURCE[: SOURCE.index("# What it learns")]
    imported_names = re.findall(r"^(?:import|from) (\w+)", SOURCE, re.M)
    assert set(imported_names) == {"math", "torch"}
    assert sum(bool(line.strip()) for line in model.splitlines()) < 140


def test_it_learns_to_reverse_short_words(capsys, monkeypatch):
    def short(seed, letters):
        return (pair for pair in words(seed, letters) if len(pair[0]) < 4)

    words = RIGHT.words
    monkeypatch.setattr(RIGHT, "words", short)
    assert RIGHT.reverse_words(steps=250) > 0.8
    assert "attention → " in capsys.readouterr().out


@pytest.mark.slow
def test_it_learns_to_reverse_words():
    assert RIGHT.reverse_words() > 0.98


@pytest.mark.slow
def test_it_learns_the_dates_of_the_phrasebook(capsys):
    assert RIGHT.translate_dates() > 0.9
    assert "→ der einundzwanzigste März\n" in capsys.readouterr().out
