"""GPT-2 and BERT in our parts: equal to `transformers` in every number, in and out, and
one clear error for each bad folder.
"""

import shutil
from pathlib import Path

import pytest
import torch
from published import (
    WORDS,
    as_pickle,
    change,
    change_tensors,
    make_bert,
    make_gpt2,
    remove,
    transformers,
    with_tensor,
    without_tensor,
    write,
)
from tiny_run import refused

from annotated_transformer import load
from annotated_transformer.errors import UserError
from annotated_transformer.interop.bert import BertConfig, BertFiller
from annotated_transformer.interop.gpt2 import GPT2Config, GPT2Generator
from annotated_transformer.interop.text_models import read_published_tokenizer

CLASSES = {"gpt2": GPT2Generator, "bert": BertFiller}


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """Their random GPT-2, and its folder."""
    folder = tmp_path_factory.mktemp("gpt2")
    return make_gpt2(folder), folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Their random BERT, and its folder."""
    folder = tmp_path_factory.mktemp("bert")
    return make_bert(folder), folder


@pytest.fixture
def spoiled(gpt2, bert, tmp_path):
    """A copy of a folder, spoiled."""

    def make(model_type: str, *faults) -> Path:
        folder = {"gpt2": gpt2, "bert": bert}[model_type][1]
        new = Path(shutil.copytree(folder, tmp_path / model_type))
        for fault in faults:
            fault(new)
        return new

    return make


# ---- equal numbers ----


@torch.inference_mode()
def test_gpt2_has_equal_scores_and_cached_steps(gpt2):
    theirs, folder = gpt2
    model = load(folder, device="cpu").model
    ids, past = torch.randint(model.config.vocab_size, (3, 12)), model.start(3)
    whole = theirs(ids).logits
    torch.testing.assert_close(model(ids), whole, atol=1e-4, rtol=1e-4)
    steps = [model.step(part, past) for part in ids.split([5, 1, 3, 1, 2], dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-4, rtol=1e-4)


def test_gpt2_writes_what_theirs_writes(gpt2):
    theirs, folder = gpt2
    writer = load(folder, device="cpu")
    assert isinstance(writer, GPT2Generator)
    ids = torch.tensor([writer.tokenizer.encode("the cat")])
    wanted = theirs.generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=0)
    found = writer.generate("the cat", 20, top_k=1)
    assert found == writer.tokenizer.decode(wanted[0, ids.size(1) :].tolist())


@torch.inference_mode()
def test_bert_has_equal_scores_with_padding_and_segments(bert):
    theirs, folder = bert
    model = load(folder, device="cpu").model
    ids = torch.randint(5, len(WORDS), (3, 40))
    ids[1, 30:] = ids[2, 7:] = 0
    segments = (torch.arange(40) > 12).long().expand(3, -1)
    real = ids != 0
    given = dict(attention_mask=real.long(), token_type_ids=segments)
    wanted = theirs(ids, **given).logits[real]
    ours = model(ids, segments)[real]
    torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_bert_fills_as_theirs(bert):
    theirs, folder = bert
    filler = load(folder, device="cpu")
    assert isinstance(filler, BertFiller)
    ids = filler.tokenizer.encode("The cat [MASK] on the [MASK].").ids
    assert [WORDS[i] for i in ids][:3] == ["[CLS]", "the", "cat"]
    chances = theirs(torch.tensor([ids])).logits[0].softmax(dim=1)
    found = filler.fill("The cat [MASK] on the [MASK].", count=3)
    for position, best in zip((3, 6), found, strict=True):
        wanted = chances[position].topk(3)
        assert [token for token, _ in best] == [WORDS[i] for i in wanted.indices]
        assert [p for _, p in best] == pytest.approx(wanted.values.tolist(), abs=1e-5)


def test_bert_says_no_token_that_its_tokenizer_lacks(bert, tmp_path):
    """Published matrices may have more rows than the word list has words."""
    folder = Path(shutil.copytree(bert[1], tmp_path / "padded"))
    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    (folder / "vocab.txt").write_text("\n".join(words[:-3]), encoding="utf-8")
    filler, text = load(folder, device="cpu"), "the cat [MASK] on."
    [gap] = filler.fill(text, count=len(words) - 3)
    assert all(isinstance(token, str) for token, _ in gap)
    with pytest.raises(UserError, match=f"ask for 1 to {len(words) - 3} tokens"):
        filler.fill(text, count=len(words))


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_out_and_in_again(name, tmp_path, request):
    theirs, folder = request.getfixturevalue(name)
    model = load(folder, device="cpu")
    model.save_pretrained(tmp_path / "out")
    other = type(theirs).from_pretrained(tmp_path / "out")
    pairs = zip(other.named_parameters(), theirs.named_parameters(), strict=True)
    for (ours, tensor), (name_there, wanted) in pairs:
        assert ours == name_there and torch.equal(tensor, wanted)
    assert load(tmp_path / "out", device="cpu").config == model.config
    with pytest.raises(UserError, match="out"):
        model.save_pretrained(tmp_path / "out")


SHAPES = {
    "distilgpt2": (6, 768, 12, 81_912_576),
    "bert-tiny": (2, 128, 2, 4_416_698, 30522),
}


@pytest.mark.parametrize("name", SHAPES)
def test_released_shapes(name, tmp_path):
    """Each published configuration is read, and has the parameters of theirs."""
    N, d_model, h, count, *vocab = SHAPES[name]
    if vocab:
        sizes = dict(hidden_size=d_model, num_hidden_layers=N, num_attention_heads=h)
        sizes |= dict(intermediate_size=4 * d_model, vocab_size=vocab[0])
        config, theirs = transformers.BertConfig(**sizes), transformers.BertForMaskedLM
    else:
        config = transformers.GPT2Config(n_embd=d_model, n_layer=N, n_head=h)
        theirs = transformers.GPT2LMHeadModel
    opener = CLASSES["bert" if vocab else "gpt2"]
    ours = opener.read_config(config.to_dict(), tmp_path)
    assert (ours.N, ours.d_model, ours.h) == (N, d_model, h)
    with torch.device("meta"):
        for model in (opener.model_class(ours), theirs(config)):
            assert sum(each.numel() for each in model.parameters()) == count


def test_defaults_are_the_published_ones(tmp_path):
    for opener, theirs, ours in (
        (GPT2Generator, transformers.GPT2Config(), GPT2Config()),
        (BertFiller, transformers.BertConfig(), BertConfig()),
    ):
        assert opener.read_config(theirs.to_dict(), tmp_path) == ours


def old_gpt2(tensors):
    """No prefix, a stored mask and a second copy."""
    found = {name.removeprefix("transformer."): t for name, t in tensors.items()}
    found["h.0.attn.bias"] = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    return found | {"lm_head.weight": found["wte.weight"].clone()}


def old_bert(tensors):
    """gamma and beta, positions, and a pooler."""
    found = {
        "bert.pooler.dense.weight": torch.zeros(32, 32),
        "bert.embeddings.position_ids": torch.arange(40),
    }
    for name, tensor in tensors.items():
        name = name.replace("Norm.weight", "Norm.gamma")
        found[name.replace("Norm.bias", "Norm.beta")] = tensor
    return found


@pytest.mark.parametrize("old", [old_gpt2, old_bert])
def test_old_files(old, spoiled, request):
    name = old.__name__[4:]
    folders = spoiled(name, change_tensors(old)), request.getfixturevalue(name)[1]
    older, newer = (load(each, device="cpu").model for each in folders)
    for ours, other in zip(older.parameters(), newer.parameters(), strict=True):
        assert torch.equal(ours, other)


# ---- bad folders ----

SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
SPLIT |= {"pattern": {"Regex": "(a+)+$"}}
ENDS = {"type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": False}
ENDS |= {"sep": ["a", 99999], "cls": ["b", 99999]}
FAULTS = {
    "lacks": (without_tensor("wpe.weight"), "lacks the tensor 'wpe.weight'"),
    "strange": (with_tensor("strange", torch.ones(2)), "no place for the tensor 'stra"),
    "untied": (with_tensor("lm_head.weight", torch.ones(2)), "only tied matrices"),
    "longer": (change(n_positions=41), "has shape"),
    "scaled": (change(scale_attn_by_inverse_layer_idx=True), "knows only False"),
    "activation": (change(activation_function="gelo_new"), "did you mean 'gelu_new'"),
    "heads": (change(n_head=5), "the heads must share it"),
    "no layers": (change(n_layer=0), "whole number"),
    "few tokens": (change(vocab_size=7), "don't belong together"),
    "too wide": (change(n_inner=2**30), "has shape"),
    "no JSON": (write("tokenizer.json", b"{"), "not a readable tokenizer"),
    "no tokenizer": (remove("tokenizer.json"), "has no tokenizer"),
    "no weights": (write("model.safetensors", b"1234"), "damaged"),
    "pattern": (
        change("tokenizer.json", pre_tokenizer=SPLIT),
        "a pattern that is none of this package's",
    ),
    "id outside": (
        change("tokenizer.json", post_processor=ENDS),
        "ids up to 99999 and the model",
    ),
}
BERT_FAULTS = {
    "segments": (change(type_vocab_size=True), "segments is True"),
    "padding": (change(pad_token_id=10**30), "pad_id is 1000"),
    "positions": (change(max_position_embeddings=2 * 10**7), "max_length is 20000000"),
    "layers": (change(num_hidden_layers=10**7), "don't belong together"),
    "eight bits": (
        with_tensor("cls.predictions.bias", torch.zeros(17).to(torch.float8_e4m3fn)),
        "of type torch.float8_e4m3fn",
    ),
    "not finite": (
        with_tensor("cls.predictions.bias", torch.full((17,), torch.inf)),
        "no finite numbers",
    ),
}


@pytest.mark.parametrize(
    ("name", "fault"),
    [("gpt2", each) for each in FAULTS] + [("bert", each) for each in BERT_FAULTS],
)
def test_a_bad_folder_is_one_error_that_names_it(spoiled, name, fault):
    spoil, words = (FAULTS if name == "gpt2" else BERT_FAULTS)[fault]
    with pytest.raises(UserError, match=words) as error:
        load(spoiled(name, spoil), device="cpu")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_a_pickle_is_refused_with_the_line_that_converts_it(name, spoiled, request):
    theirs = request.getfixturevalue(name)[0]
    folder = spoiled(name, as_pickle(theirs))
    with pytest.raises(UserError, match=f"import {type(theirs).__name__} as M"):
        load(folder, device="cpu")


# ---- tokenizers ----


def test_the_word_list_cuts_as_theirs(bert):
    folder, text = bert[1], "The CATS, the cat's mat."
    theirs = transformers.BertTokenizer(str(folder / "vocab.txt"))
    ours = read_published_tokenizer(folder, len(WORDS))
    assert ours.encode(text).ids == theirs(text).input_ids


def test_the_tokenizers_of_published_models_are_allowed(bert, tmp_path):
    """BERT's, as `transformers` writes it today."""
    theirs = transformers.BertTokenizerFast(str(bert[1] / "vocab.txt"))
    theirs.save_pretrained(tmp_path)
    ours, text = read_published_tokenizer(tmp_path, 17), "The CATS, the cat's mat."
    assert ours.encode(text).ids == theirs(text).input_ids


# ---- the command line ----


@pytest.mark.parametrize(
    ("folder", "arguments", "words"),
    [
        ("bert", ["no gap"], "no gap: write"),
        ("bert", ["[MASK] " * 60], "max_length of 40"),
        ("gpt2", ["[MASK]"], "which is no MaskFiller"),
    ],
)
def test_fill_mask_refuses_in_one_line(run, gpt2, bert, folder, arguments, words):
    folder = {"bert": bert, "gpt2": gpt2}[folder][1]
    refused(run("masked-language-model", "fill", folder, *arguments), words)


def test_fill_mask_fills(run, bert):
    arguments = (bert[1], "the cat [MASK] on the mat.", "--count", "2")
    status, out, _ = run("masked-language-model", "fill", *arguments)
    assert status == 0 and out.count("%") == 2
