"""Forty wrong files and more: none passes, and each reason names what was changed."""

from pathlib import Path

import pytest
from mutants import drawn

from annotated_transformer import check
from annotated_transformer.check.file import names_in

FILE = Path(__file__).resolve().parent.parent / "nbs" / "my_transformer.py"
SOURCE = FILE.read_text(encoding="utf-8")


def part_of(source, name):
    names = {"__name__": "theirs"}
    exec(compile(source, "theirs.py", "exec"), names)
    return names[name]


def changed(*pieces):
    """The hundred lines with some pieces replaced, each of which they hold."""
    source = SOURCE
    for old, new in zip(pieces[::2], pieces[1::2], strict=True):
        assert old in source, f"the file no longer holds {old!r}"
        source = source.replace(old, new, 1)
    return source


ATTENDED = "        x = self.add_norm[0](x, self.attention(x, x, mask))\n"
FED = "        return self.add_norm[1](x, self.feed_forward(x))\n"
SELF = "y = self.add_norm[0](y, self.self_attention(y, y, causal_mask(y.size(1))))"
ASKED = "y = self.add_norm[1](y, self.source_attention(y, memory, src_mask))"
FED_LAST = "return self.add_norm[2](y, self.feed_forward(y))"
FED_THIRD = "y = self.add_norm[2](y, self.feed_forward(y))"
SOURCE_ATTENTION = "self.source_attention = MultiHeadAttention(d_model, h)"
LAYERS = "(EncoderLayer(d_model, h, d_ff, dropout) for _ in range(N))"
EMBEDDED = "self.dropout(x + sinusoids(ids.size(1), x.size(-1)))"
LOOP = "            x = layer(x, mask)\n"
DECODED = "y = layer(y, memory, src_mask)"
KEYS = "key, value = self.split(self.W_K(memory)), self.split(self.W_V(memory))"
CALLED = "attention(query, key, value, mask)"

BY_HAND = [
    # an encoder layer
    (
        ("EncoderLayer", "Encoder", "Transformer"),
        ("(x, x, mask)", "(x, x, causal_mask(x.size(1)))"),
        "has no causal mask",
    ),
    (
        ("EncoderLayer", "Encoder"),
        ("(x, x, mask)", "(x, x, mask if mask is None else mask & causal_mask(5))"),
        "mask of padding alone says",
    ),
    (
        ("EncoderLayer", "Encoder", "Transformer"),
        (
            ATTENDED + FED,
            "        x = self.add_norm[1](x, self.feed_forward(x))\n"
            "        return self.add_norm[0](x, self.attention(x, x, mask))\n",
        ),
        "The order is feed-forward, self-attention",
    ),
    (
        ("EncoderLayer", "Encoder", "Transformer"),
        (
            ATTENDED + FED,
            "        a = self.attention(x, x, mask) + self.feed_forward(x)\n"
            "        return self.add_norm[1](self.add_norm[0](x, a), 0 * a)\n",
        ),
        "one after the other",
    ),
    (
        ("EncoderLayer", "Encoder", "Transformer"),
        (
            ATTENDED + FED,
            ATTENDED.replace("x = ", "z = ") + FED.replace("(x))", "(z))"),
        ),
        "each residual should carry on",
    ),
    (
        ("EncoderLayer", "Encoder", "Transformer"),
        (FED, FED.replace("(x, self", "(0 * x, self")),
        ("residual is missing", "come through"),
    ),
    (
        ("EncoderLayer", "Encoder", "Transformer"),
        ("self.attention = MultiHeadAttention(d_model, h)",
         "self.attention = MultiHeadAttention(d_model, 1)"),
        "h changes nothing",
    ),
    (
        ("EncoderLayer", "Encoder", "Transformer"),
        ("FeedForward(d_model, d_ff)", "FeedForward(d_model, 4 * d_model)"),
        ("d_ff changes nothing", "should grow by"),
    ),
    (
        ("EncoderLayer", "Encoder"),
        ("(AddNorm(d_model, dropout) for _ in range(2))",
         "([AddNorm(d_model, dropout), AddNorm(d_model, 0.0)])"),
        "Dropout does nothing to the output of feed-forward",
    ),
    (
        ("EncoderLayer", "Encoder"),
        ("AddNorm(d_model, dropout) for _ in range(2)",
         "AddNorm(d_model, 0.1) for _ in range(2)"),
        "With dropout = 0",
    ),
    (
        ("EncoderLayer", "Encoder", "Transformer"),
        ("(x, x, mask)", "(x, x, None if mask is None else ~mask)"),
        ("mask is inverted", "NaN"),
    ),
    (
        ("EncoderLayer", "Encoder", "Transformer"),
        ("self.attention(x, x, mask)", "self.attention(x, x.roll(1, 1), mask)"),
        ("in another order", "Padding"),
    ),
    # a decoder layer
    (
        ("DecoderLayer", "Decoder", "Transformer"),
        (SOURCE_ATTENTION, "self.source_attention = self.self_attention"),
        ("One attention module serves as both", "should grow by"),
    ),
    (
        ("DecoderLayer", "Decoder", "Transformer"),
        (f"{SELF}\n        {ASKED}", f"{ASKED}\n        {SELF}"),
        "The order is source attention, self-attention, feed-forward",
    ),
    (
        ("DecoderLayer", "Decoder", "Transformer"),
        (
            f"{ASKED}\n        {FED_LAST}",
            f"{FED_THIRD}\n        {ASKED.replace('y =', 'return')}",
        ),
        "The order is self-attention, feed-forward, source attention",
    ),
    (
        ("DecoderLayer", "Decoder", "Transformer"),
        (
            f"{SELF}\n        {ASKED}\n        {FED_LAST}",
            f"{FED_THIRD}\n        {SELF}\n        {ASKED.replace('y =', 'return')}",
        ),
        "The order is feed-forward, self-attention, source attention",
    ),
    (
        ("DecoderLayer", "Decoder", "Transformer"),
        (ASKED, ASKED.replace("(y, memory", "(0 * y, memory")),
        "W_Q.weight` is zero",
    ),
    (
        ("DecoderLayer", "Decoder", "Transformer"),
        ("(y, memory, src_mask))", "(y, memory, causal_mask(y.size(1))))"),
        ("sees the whole source", "raised", "Padding"),
    ),
    (
        ("DecoderLayer", "Decoder"),
        ("causal_mask(y.size(1))))",
         "causal_mask(5) if src_mask is None else causal_mask(5) & src_mask))"),
        ("hides nothing of y", "raised"),
    ),
    (
        ("DecoderLayer", "Decoder", "Transformer"),
        ("causal_mask(y.size(1))))", "causal_mask(y.size(1)).T))"),
        "needs causal_mask",
    ),
    (
        ("DecoderLayer", "Decoder", "Transformer"),
        (ASKED, ASKED.replace("y, self", "memory[:, :1], self")),
        ("in another order", "one after the other", "missing", "come through"),
    ),
    (
        ("DecoderLayer", "Decoder", "Transformer"),
        (SOURCE_ATTENTION, "self.source_attention = MultiHeadAttention(d_model, 1)"),
        "h changes nothing in source attention",
    ),
    # stacks
    (("Encoder",), (LOOP, LOOP.replace("x, mask", "x, mask if x is None else None")),
     "Padding that mask hides"),
    (
        ("Encoder",),
        ("for layer in self.layers:\n" + LOOP + "        return x",
         "start, x = x, 0 * x\n        for layer in self.layers:\n"
         "            x = x + layer(start, mask)\n        return "
         "nn.functional.layer_norm(x, x.shape[-1:])"),
        "Two layers together",
    ),
    (
        ("Encoder",),
        (LOOP, LOOP + LOOP),
        "one after the other",
    ),
    (
        ("Decoder",),
        (DECODED, DECODED + "\n            memory = y"),
        "The last layer doesn't see the memory",
    ),
    # the whole
    (
        ("Transformer",),
        ("x = self.embedding(ids)", "x = self.embedding.weight[ids]"),
        "too small beside its positions",
    ),
    (
        ("Transformer",),
        ("self.encoder(self.embed(src)",
         "self.encoder(self.embed(src) - self.embedding(src) + "
         "self.embedding.weight[src]"),
        "The source's embedding is too small",
    ),
    (
        ("Transformer",),
        (EMBEDDED, "self.dropout(x) + sinusoids(ids.size(1), x.size(-1))"),
        "before the positions are added",
    ),
    (("Transformer",), (EMBEDDED, EMBEDDED[12:]), "Dropout is missing where"),
    (("Transformer",), (EMBEDDED, EMBEDDED.replace("x +", "2 * x +")), "come through"),
    (
        ("Transformer",),
        (EMBEDDED, EMBEDDED.replace("size(1), x.size(-1))", "size(1) + 1, 8)[1:]")),
        "from 0 on",
    ),
    (
        ("Transformer",),
        ("self.encoder = Encoder(N, ", "self.encoder = Encoder(1, "),
        "should grow by",
    ),
    (
        ("Transformer",),
        ("self.decoder(self.embed(tgt), memory, src_mask)",
         "self.decoder(self.embed(tgt), self.embed(src), src_mask)"),
        "never reaches `encoder",
    ),
    # heads
    (
        ("MultiHeadAttention",),
        (CALLED, "(query @ key.transpose(-2, -1) / math.sqrt(key.size(-1)))"
         ".softmax(-2) @ value"),
        "single key should get the weight 1",
    ),
    (
        ("MultiHeadAttention",),
        (CALLED, "(query @ key.transpose(-2, -1) / math.sqrt(key.size(-1)))"
         ".softmax(1) @ value"),
        "as one does",
    ),
    (
        ("MultiHeadAttention",),
        (KEYS, "key = value = self.split(self.W_K(memory)) + 0 * self.split("
         "self.W_V(memory))"),
        "W_V.weight` is zero",
    ),
    (
        ("MultiHeadAttention",),
        ("self.W_K = nn.Linear(d_model, d_model, bias=False)", "self.W_K = self.W_Q"),
        "576 numbers",
    ),
    (
        ("MultiHeadAttention",),
        ("self.h = h", "self.h = 1"),
        "one head and not h",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    "part, pieces, words",
    [(part, pieces, words) for parts, pieces, words in BY_HAND for part in parts],
)
def test_no_mutation_by_hand_passes(part, pieces, words):
    found = check.CHECKS[part](part_of(changed(*pieces), part))
    assert not found, "passes"
    wanted = (words,) if isinstance(words, str) else words
    assert any(each in found.sentence for each in wanted), found


EQUIVALENT = (
    "transpose(-1, -2)",  # the same two axes
    "transpose(2, 1)",
    "padding_mask(PAD, src)",  # compares the other way round
)


DRAWN = drawn(SOURCE, list(check.CHECKS), 40)


@pytest.mark.parametrize("part, source", DRAWN, ids=[part for part, _ in DRAWN])
def test_no_drawn_mutation_passes(part, source):
    if any(piece in source for piece in EQUIVALENT):
        pytest.skip("another way to write the same")
    assert not check.CHECKS[part](part_of(source, part)), source


def test_a_kernel_that_is_missing_is_no_part_not_yet_written():
    source = changed(
        "logits.log_softmax(dim=-1), target", "target.log_softmax(0), target"
    )
    part = part_of(source, "smoothed_cross_entropy")
    found = check.smoothed_cross_entropy(part)
    assert found.written and "not implemented for" in found.sentence


def test_a_failed_part_shows_what_was_expected_beside_what_was_found():
    found = check.causal_mask(part_of(changed(".tril()", ".triu()"), "causal_mask"))
    assert str(found) == f"{found.numbers}\n{found.sentence}"
    head, first, *_ = found.numbers.splitlines()
    assert head.split() == ["expected", "|", "found"]
    assert first.split() == ["1", "0", "0", "0", "|", "1", "1", "1", "1"]


def test_what_uses_a_wrong_part_waits_for_it(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(changed(" / math.sqrt(key.size(-1))", ""), "utf-8")
    verdicts = check.progress(path)
    waiting = {name: v.sentence for name, v in verdicts.items() if v.waits_for}
    assert set(waiting.values()) == {"uses attention; mend that first"}
    stacks = "MultiHeadAttention EncoderLayer DecoderLayer Encoder Decoder Transformer"
    assert set(waiting) == set(stacks.split())
    assert "√d_k" in verdicts["attention"].sentence and verdicts["FeedForward"]


def test_names_in_nested_functions_and_methods_are_found():
    encoder = part_of(SOURCE, "Encoder")
    assert {"EncoderLayer", "attention"} <= names_in(encoder)
    assert "sinusoids" not in names_in(encoder)
