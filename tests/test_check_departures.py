"""What works, and otherwise than in the paper, departs: neither right nor a mistake."""

import pytest
from test_check_mutations import changed, part_of

from annotated_transformer import check

ATTENDED = "x = self.add_norm[0](x, self.attention(x, x, mask))"
FED = "self.add_norm[1](x, self.feed_forward(x))"
OWN = "y = self.add_norm[0](y, self.self_attention(y, y, causal_mask(y.size(1))))"
ASKED = "y = self.add_norm[1](y, self.source_attention(y, memory, src_mask))"
FED_LAST = "self.add_norm[2](y, self.feed_forward(y))"
ADDED = """        return self.norm(x + self.dropout(sublayer_output))

    def ahead(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))
"""
PRE_NORM = (
    "        return self.norm(x + self.dropout(sublayer_output))\n",
    ADDED,
    ATTENDED,
    "x = self.add_norm[0].ahead(x, lambda n: self.attention(n, n, mask))",
    FED,
    "self.add_norm[1].ahead(x, self.feed_forward)",
    OWN,
    "mask = causal_mask(y.size(1))\n"
    "        y = self.add_norm[0].ahead(y, lambda n: self.self_attention(n, n, mask))",
    ASKED,
    "y = self.add_norm[1].ahead(\n"
    "            y, lambda n: self.source_attention(n, memory, src_mask))",
    FED_LAST,
    "self.add_norm[2].ahead(y, self.feed_forward)",
)
KEPT = "self.layers = nn.ModuleList(layers)\n"
NORM_KEPT = KEPT.replace("\n", "; self.norm = nn.LayerNorm(d_model)\n")
# `changed` replaces the first that it finds: an encoder's, and then a decoder's.
FINAL_NORM = (
    KEPT,
    NORM_KEPT.replace("layers = ", "layers  = "),
    "x = layer(x, mask)\n        return x",
    "x = layer(x, mask)\n        return self.norm(x)",
    KEPT,
    NORM_KEPT,
    "memory, src_mask)\n        return y",
    "memory, src_mask)\n        return self.norm(y)",
)
BESSEL = (
    "class AddNorm",
    "class Bessel(nn.LayerNorm):\n"
    "    def forward(self, x):\n"
    "        x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)\n"
    "        return self.weight * x + self.bias\n\n\n"
    "class AddNorm",
    "nn.LayerNorm(d_model)",
    "Bessel(d_model)",
)
ROWS = "self.weight[ids] * self.scale"
START = "torch.randn(vocab_size, d_model) / self.scale"
LOGITS = "return self.embedding.logits(self.decoder("
UNTIED = (
    "self.dropout = nn.Dropout(dropout)\n        self.encoder",
    "self.dropout = nn.Dropout(dropout)\n"
    "        self.out = nn.Linear(d_model, vocab_size)\n        self.encoder",
    LOGITS,
    "return self.out(self.decoder(",
)
LEARNED = (
    "self.encoder = Encoder(N",
    "self.positions = nn.Parameter(torch.randn(64, d_model))\n"
    "        self.encoder = Encoder(N",
    "sinusoids(ids.size(1), x.size(-1))",
    "self.positions[: ids.size(1)]",
)

DEPARTURES = [
    ("EncoderLayer DecoderLayer", PRE_NORM, "pre-norm, x + sublayer(norm(x))"),
    ("Encoder Decoder Transformer", PRE_NORM + FINAL_NORM, "as GPT-2 has it"),
    ("Encoder Decoder", PRE_NORM, "and no norm at the stack's end"),
    (
        "EncoderLayer DecoderLayer Encoder Decoder Transformer",
        BESSEL,
        "PyTorch's std, with d_model − 1",
    ),
    ("FeedForward", ("self.W_1(x).relu()", "nn.functional.gelu(self.W_1(x))"), "GELU"),
    (
        "FeedForward",
        ("self.W_1(x).relu()", "nn.functional.gelu(self.W_1(x), approximate='tanh')"),
        "GELU in the place of ReLU",
    ),
    (
        "Embedding",
        (ROWS, "self.weight[ids]", START, "0.02 * " + START.partition(" /")[0]),
        "deviation of 0.02, as GPT-2's",
    ),
    (
        "Embedding Transformer",
        (ROWS, "self.weight[ids]", START, START.partition(" /")[0]),
        "isn't multiplied by √d_model",
    ),
    ("Transformer", UNTIED, "each token has 2 vectors"),
    ("Transformer", LEARNED, "learned positions"),
    (
        "Transformer",
        (
            LOGITS + "self.embed(tgt), memory, src_mask))",
            LOGITS + "self.embed(tgt), memory, src_mask)).log_softmax(-1)",
        ),
        "log-probabilities",
    ),
    ("Transformer", PRE_NORM + FINAL_NORM + UNTIED + LEARNED, "each token has 2"),
]


@pytest.mark.parametrize(
    "part, pieces, words",
    [
        (part, pieces, words)
        for parts, pieces, words in DEPARTURES
        for part in parts.split()
    ],
)
def test_a_departure_is_named(part, pieces, words):
    found = check.CHECKS[part](part_of(changed(*pieces), part))
    assert found.departs and not found, found
    assert found.sentence.startswith(f"≈ {part} departs from the paper: ")
    assert words in found.sentence
    assert ("stack's end" in found.sentence) == ("stack's end" in words)


MISTAKES = [
    ("EncoderLayer", ("attention(n, n, mask)", "attention(n, n)"), "Padding"),
    ("Encoder", ("attention(n, n, mask)", "attention(n, n)"), "Padding"),
    (
        "EncoderLayer",
        ("return x + self.dropout(sublayer(self.norm(x)))",
         "return self.dropout(sublayer(self.norm(x)))"),
        ("residual is missing", "mean 0"),
    ),
    (
        "DecoderLayer",
        ("self.self_attention(n, n, mask)", "self.self_attention(n, n)"),
        "needs causal_mask",
    ),
    (
        "DecoderLayer",
        ("self.source_attention = MultiHeadAttention(d_model, h)",
         "self.source_attention = self.self_attention"),
        "One attention module serves as both",
    ),
    (
        "EncoderLayer",
        ("FeedForward(d_model, d_ff)", "FeedForward(d_model, 4 * d_model)"),
        "d_ff changes nothing",
    ),
    (
        "EncoderLayer",
        ("return x + self.dropout(sublayer(self.norm(x)))",
         "return x + self.norm(self.dropout(sublayer(x)))"),
        "mean 0 and variance 1",
    ),
]  # fmt: skip


@pytest.mark.parametrize("part, pieces, words", MISTAKES)
def test_a_mistake_beside_a_departure_is_a_mistake(part, pieces, words):
    found = check.CHECKS[part](part_of(changed(*PRE_NORM, *pieces), part))
    assert not found and not found.departs, found
    wanted = (words,) if isinstance(words, str) else words
    assert any(each in found.sentence for each in wanted), found


def test_a_table_drawn_for_the_scale_that_is_not_scaled_is_a_mistake():
    pieces = ROWS, "self.weight[ids]"
    assert not check.embedding(part_of(changed(*pieces), "Embedding")).departs
    found = check.transformer(part_of(changed(*pieces), "Transformer"))
    assert not found.departs and "too small beside its positions" in found.sentence


def test_the_command_counts_departures_apart(run, tmp_path):
    path = tmp_path / "mine.py"
    source = changed("self.W_1(x).relu()", "nn.functional.gelu(self.W_1(x))")
    path.write_text(source, "utf-8")
    status, out, _ = run("check", path)
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert status == 1 and lines["FeedForward"].startswith("≈ FeedForward departs")
    assert lines["EncoderLayer"] == "uses FeedForward; mend that first"
    assert out.endswith("10 of 16 parts are right, 1 departs\n")


def test_a_line_of_a_folder_names_what_is_wrong_before_what_departs(tmp_path, run):
    gelu = ("self.W_1(x).relu()", "nn.functional.gelu(self.W_1(x))")
    worst = ("[:, -1].argmax(dim=-1)", "[:, -1].argmin(dim=-1)")
    (tmp_path / "departs.py").write_text(changed(*gelu), encoding="utf-8")
    (tmp_path / "both.py").write_text(changed(*gelu, *worst), encoding="utf-8")
    status, out, _ = run("check", tmp_path)
    both, departs = out.splitlines()
    assert status == 1 and "≈ FeedForward departs" in departs
    assert "greedy_search: " in both and "≈" not in both
