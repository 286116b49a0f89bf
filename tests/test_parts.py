"""Parts that came after 2017: each against a reference, alone and together."""

from importlib.util import find_spec

import pytest
import torch
import torch.nn.functional as F
from tiny_run import refused, train_arguments, write_pairs
from torch import nn

from annotated_transformer import load
from annotated_transformer.after.configurable_attention import (
    ConfigurableAttention,
    attentions,
)
from annotated_transformer.after.language_model import (
    LanguageModel,
    LanguageModelConfig,
)
from annotated_transformer.after.long_texts import ALiBi, Rotary, rotate
from annotated_transformer.after.parts import RMSNorm, SwiGLU
from annotated_transformer.after.parts_by_name import (
    PARTS,
    GELUFeedForward,
    Since2017Config,
    assemble,
    exchange_parts,
)
from annotated_transformer.data.batch import Batch
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.decoding.search import greedy
from annotated_transformer.errors import UserError
from annotated_transformer.model.attention import causal_mask
from annotated_transformer.model.position import sinusoids
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import fast
from annotated_transformer.performance.update import fast_training
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.sentence_pairs import paper_schedule
from benchmarks.after.decay import decaying_adam, falling_cosine
from benchmarks.train import train_translation

TOGETHER = (
    "pre-norm",
    "rms-norm",
    "swiglu",
    "qk-norm",
    "rotary",
    "grouped-queries",
    "no-biases",
)
MIXED = [TOGETHER, ("gelu", "alibi", "pre-norm")]
CHOICES = [(), *((name,) for name in PARTS), *MIXED]
every = pytest.mark.parametrize("parts", CHOICES, ids="+".join)
mixed = pytest.mark.parametrize("parts", MIXED, ids="+".join)


def config(*parts: str, **sizes) -> Since2017Config:
    small = dict(N=2, d_model=32, d_ff=48, h=4, d_k=8, d_v=8, dropout=0.0)
    small |= dict(src_vocab_size=40, tgt_vocab_size=40, max_length=32)
    return Since2017Config(**small | sizes, parts=parts)


def model_of(*parts: str, **sizes) -> Transformer:
    """A built model whose every parameter was moved, so that none hides a mistake."""
    torch.manual_seed(0)
    model = assemble(config(*parts, **sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def ids(rows: int, n: int, padded: int = 0) -> torch.Tensor:
    torch.manual_seed(1)
    found = torch.randint(4, 40, (rows, n))
    if padded:
        found[-1, -padded:] = 0
    return found


def test_without_parts_it_is_the_papers_model():
    torch.manual_seed(3)
    plain = Transformer(config()).eval()
    torch.manual_seed(3)
    opened = assemble(config()).eval()
    src, tgt = ids(3, 7, 2), ids(3, 5)
    assert all(type(each) is ConfigurableAttention for each in attentions(opened))
    assert torch.equal(plain(src, tgt), opened(src, tgt))
    torch.manual_seed(3)
    changed = assemble(config("rotary"))
    for name, weight in changed.named_parameters():
        assert torch.equal(weight, dict(plain.named_parameters())[name])


def test_rms_norm_is_pytorchs():
    x, ours, theirs = torch.randn(3, 5, 16), RMSNorm(16), nn.RMSNorm(16, eps=1e-5)
    with torch.no_grad():
        theirs.weight.copy_(ours.gain.normal_())
    assert torch.allclose(ours(x), theirs(x), atol=1e-6)


def test_gelu_is_x_times_the_chance_to_be_below_x():
    network, x = GELUFeedForward(8, 16), torch.randn(2, 3, 8)
    by_hand = network.W_1(x) * (1 + torch.erf(network.W_1(x) / 2**0.5)) / 2
    assert torch.allclose(network(x), network.W_2(by_hand), atol=1e-6)


def test_swiglu_gates_with_swish_and_costs_as_much():
    network, x = SwiGLU(64, 256), torch.randn(2, 3, 64)
    expected = network.W_2(F.silu(network.W_1(x)) * network.V(x))
    assert torch.allclose(network(x), expected, atol=1e-6)
    size = sum(each.numel() for each in network.parameters())
    assert abs(size / (2 * 64 * 256 + 256 + 64) - 1) < 0.005


def test_rotary_turns_pairs_as_complex_numbers():
    x, codes = torch.randn(8), sinusoids(40, 8)
    turn = torch.polar(torch.ones(4), 3 * 10000.0 ** (-torch.arange(4) / 4))
    by_hand = torch.view_as_real(torch.view_as_complex(x.view(4, 2)) * turn).flatten()
    assert torch.allclose(rotate(x.expand(40, 8), codes)[3], by_hand, atol=1e-5)


def test_rotary_refuses_what_is_longer_than_its_table():
    query = torch.randn(1, 2, 9, 8)
    with pytest.raises(UserError, match="max_length"):
        Rotary(8, 8)(query, query)


def test_alibi_has_the_papers_slopes():
    assert ALiBi(8).slopes.tolist() == [2.0**-i for i in range(1, 9)]
    bias = ALiBi(8)(3, 3)
    ahead = 2.0**-8
    rows = [[0, -ahead, -2 * ahead], [-0.5, 0, -ahead], [-1, -0.5, 0]]
    assert bias[0].tolist() == rows
    assert torch.equal(ALiBi(8)(1, 3)[:, 0], bias[:, -1])


def test_grouped_queries_are_pytorchs():
    model = model_of("grouped-queries", h=8, d_k=4, d_v=4)
    x, mask = torch.randn(2, 6, 32), causal_mask(6)
    assert model.encoder.layers[0].self_attention.groups == 8
    attention = model.decoder.layers[0].self_attention
    query, (key, value) = attention.queries(x), attention.keys_values(x)
    assert query.size(1) == 8 and key.size(1) == value.size(1) == 2
    heads = F.scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)
    expected = attention.W_O(heads.transpose(1, 2).flatten(2))
    assert torch.allclose(attention(x, x, mask), expected, atol=1e-6)


def test_pre_norm_is_x_plus_sublayer_of_norm_of_x():
    model = model_of("pre-norm")
    layer, top = model.encoder.layers
    x, mask = torch.randn(2, 6, 32), torch.ones(2, 1, 1, 6, dtype=torch.bool)
    attention, network = layer.self_attention, layer.feed_forward
    z = attention.norm(x)
    query, key, value = attention.W_Q(z), attention.W_K(z), attention.W_V(z)
    heads = [each.unflatten(-1, (4, 8)).transpose(1, 2) for each in (query, key, value)]
    attended = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    y = x + attention.W_O(attended)
    y = y + network[1](network[0](y))
    assert torch.allclose(layer(x, mask), y, atol=1e-5)
    assert type(top.after_feed_forward).__name__ == "AddNorm"
    lengths = top(100 * x, mask).std(-1)
    assert lengths.max() < 2  # the stack's top is normalised


def test_no_biases_leaves_none():
    names = [name for name, _ in model_of("no-biases").named_parameters()]
    assert not [name for name in names if "bias" in name or "b_" in name]
    assert any("bias" in name for name, _ in model_of().named_parameters())


@every
def test_step_by_step_is_the_whole_pass(parts):
    model, src, tgt = model_of(*parts), ids(3, 7, padded=3), ids(3, 6)
    with torch.no_grad():
        whole, cache = model(src, tgt), model.start(src)
        for place in range(6):
            assert torch.allclose(
                model.step(tgt[:, place], cache), whole[:, place], atol=1e-4
            )


@every
@torch.no_grad()
def test_order_counts_and_the_future_and_padding_do_not(parts):
    model, src, tgt = model_of(*parts), ids(2, 7), ids(2, 6)
    other, scores = tgt.clone(), model(src, tgt)
    other[:, 4:] = (other[:, 4:] + 7) % 36 + 4
    later = model(src, other)
    assert torch.equal(scores[:, :4], later[:, :4])
    assert not torch.allclose(scores[:, 4:], later[:, 4:])
    assert torch.allclose(scores, model(F.pad(src, (0, 3)), tgt), atol=1e-4)
    assert not torch.allclose(scores, model(src.flip(1), tgt), atol=1e-3)


@every
def test_weights_are_those_that_attend_uses(parts):
    model, x = model_of(*parts), torch.randn(2, 5, 32)
    attention, mask = model.decoder.layers[0].self_attention, causal_mask(5)
    weights = attention.weights(x, x, mask)
    value = attention.keys_values(x)[1].repeat_interleave(
        attention.h // attention.groups, dim=1
    )
    expected = attention.W_O((weights @ value).transpose(1, 2).flatten(2))
    assert torch.allclose(weights.sum(-1), torch.ones(2, 4, 5), atol=1e-5)
    assert torch.allclose(attention(x, x, mask), expected, atol=1e-5)


@mixed
def test_the_fast_forms_agree(parts):
    model, src, tgt = model_of(*parts), ids(3, 7, 2), ids(3, 6)
    first, second = (greedy(each, src) for each in (fast(model), model))
    assert [h.tokens for h in first] == [h.tokens for h in second]
    batch = Batch(src, tgt[:, :-1], tgt[:, 1:])
    readable, other = Objective(model, 0.1), fast_training(model, 0.1)
    assert torch.allclose(readable(batch), other(batch))


# -- training, folders, commands -------------------------------------------------------


@pytest.fixture(scope="module")
def phrases():
    """Pairs of the phrasebook, tokenized, and their tokenizer."""
    pairs = phrasebook("en", "de", "train", 300)
    tokenizer = train_tokenizer(pairs, "en", "de", vocab_size=300)
    return TokenizedPairs.build(pairs, tokenizer), tokenizer


@pytest.mark.parametrize("today", [False, True])
def test_all_together_are_trained_by_either_recipe(today, phrases):
    pairs, tokenizer = phrases
    size = tokenizer.tgt_vocab_size
    torch.manual_seed(0)
    model = assemble(config(*TOGETHER, src_vocab_size=size, tgt_vocab_size=size))
    settings = TrainingConfig(
        steps=20, batch_tokens=128, warmup=10, label_smoothing=0.0
    )
    optimizer = decaying_adam(model) if today else adam(model)
    falling = falling_cosine(settings, 32) if today else paper_schedule(settings, 32)
    how = Objective(model, 0.0), optimizer, pairs, settings
    updates = [*train_translation(*how, schedule=falling)]
    assert updates[-1].loss.isfinite()
    rates = [each.lr for each in updates]
    assert max(rates) == pytest.approx((32 * 10) ** -0.5) == rates[9]
    assert (rates[-1] < 1e-9) == today


def test_decay_shrinks_matrices_alone():
    layer = nn.Linear(4, 4)
    nn.init.ones_(layer.weight), nn.init.ones_(layer.bias)
    optimizer = decaying_adam(layer, decay=0.1)
    for group in optimizer.param_groups:
        group["lr"] = 0.5
    for parameter in layer.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    assert torch.allclose(layer.weight, torch.tensor(0.95))
    assert torch.allclose(layer.bias, torch.tensor(1.0))


@mixed
def test_saved_and_opened_it_translates_the_same(parts, phrases, tmp_path):
    size = phrases[1].tgt_vocab_size
    model = model_of(*parts, src_vocab_size=size, tgt_vocab_size=size)
    save_model(tmp_path / "model", model, phrases[1])
    opened = load(tmp_path / "model")
    assert opened.model.config == model.config
    src, tgt = ids(2, 5), ids(2, 4)
    with torch.no_grad():
        assert torch.equal(opened.model(src, tgt), model(src, tgt))
    look = opened.attention("the first of May", "der erste Mai")
    assert look.encoder.shape[:2] == (2, 4)


@pytest.mark.parametrize(
    "parts, sizes, words",
    [
        (("rotery",), {}, "did you mean 'rotary'"),
        (("rotary", "alibi"), {}, "choose one"),
        (("swiglu", "gelu"), {}, "choose one"),
        (("grouped-queries",), {"h": 6}, "multiple of 4"),
        (("rotary",), {"d_k": 7}, "even"),
    ],
)
def test_parts_that_are_unknown_or_don_t_fit(parts, sizes, words):
    with pytest.raises(UserError, match=words):
        config(*parts, **sizes)


def test_a_folder_of_other_weights_or_for_another_engine_is_refused(phrases, tmp_path):
    size = phrases[1].tgt_vocab_size
    model = model_of("rms-norm", src_vocab_size=size, tgt_vocab_size=size)
    save_model(tmp_path / "model", model, phrases[1])
    if find_spec("ctranslate2"):
        with pytest.raises(UserError, match="transformer-since-2017"):
            load(tmp_path / "model", engine="ctranslate2")
    about = tmp_path / "model" / "config.json"
    for old, new, words in (
        ("rms-norm", "no-biases", "another architecture"),
        ("no-biases", "nonsense", "unknown part 'nonsense'"),
        ('"nonsense"', "7", "parts"),
    ):
        about.write_text(about.read_text().replace(old, new))
        with pytest.raises(UserError, match=words):
            load(tmp_path / "model")


def test_the_command_trains_goes_on_and_translates(run, tmp_path):
    out, parts = tmp_path / "run", "pre-norm, rms-norm,swiglu,rotary"
    sizes = "steps=4 save_every=2 N=1 d_model=16 d_ff=24 h=2 d_k=8 d_v=8 vocab_size=200"
    plain = train_arguments(write_pairs(tmp_path), out, sizes)
    asked = [*plain, "--parts", parts]
    assert run(*asked)[0] == 0
    refused(run(*plain), "another run", "parts")
    assert run(*asked, "--set", "steps=6")[0] == 0
    assert load(out).model.config.parts == tuple(parts.replace(" ", "").split(","))
    status, said, _ = run("translate", "the first of May", "-m", out, "--device", "cpu")
    assert status == 0 and len(said.splitlines()) == 1
    assert run("info", out)[0] == 0
    marian = run("export", "marian", "-o", tmp_path / "marian", "-m", out)
    refused(marian, "transformer-since-2017")


def test_bad_input_ends_in_one_line(run, tmp_path):
    for words, *options in (
        ("did you mean 'swiglu'", "--parts", "swigly"),
        ("and --parts, or --from", "--parts", "gelu", "--from", "phrasebook-en-de"),
        ("unknown setting 'parts'", "--parts", "gelu", "--set", "parts=rotary"),
    ):
        refused(run("train", "phrasebook", "--out", tmp_path, *options), words)
    assert not any(tmp_path.iterdir())


@every
def test_a_language_model_with_parts_sees_no_future_and_writes_as_it_reads(parts):
    """A later token changes no earlier score; step by step the scores are the same."""
    torch.manual_seed(1)
    sizes = dict(N=2, d_model=32, d_ff=48, h=4, vocab_size=40, max_length=12)
    model = LanguageModel(LanguageModelConfig(**sizes)).eval()
    exchange_parts(model, parts)
    ids = torch.randint(40, (2, 9))
    other = ids.clone()
    other[:, 6:] = (ids[:, 6:] + 1) % 40
    with torch.no_grad():
        whole, changed, caches = model(ids), model(other), model.start(2)
        steps = [model.step(ids[:, :4], caches)]
        steps += [model.step(ids[:, i : i + 1], caches) for i in range(4, 9)]
    assert torch.equal(whole[:, :6], changed[:, :6])
    assert not torch.allclose(whole[:, 6:], changed[:, 6:])
    assert torch.allclose(torch.cat(steps, dim=1), whole, atol=1e-5)
