"""GPT-2 and BERT in our parts: equal to `transformers` in every number, in and out, and
one clear error for each bad folder.
"""

import json
import os
import shutil
import time

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from annotated_transformer import load
from annotated_transformer.after.gpt2_bert import (
    Bert,
    BertConfig,
    GPT2Config,
    export_text_model,
    read_text_config,
    read_text_model,
    read_tokenizer,
)
from annotated_transformer.after.language_model import Writer, byte_pairs
from annotated_transformer.after.masked_language_model import Filler
from annotated_transformer.cli import main
from annotated_transformer.errors import UserError

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TEXT = "the cat sat on the mat, and the dog sat beside the cat. " * 3
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ","]
WORDS += "the cat sat on mat and dog beside ##s".split()


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """A random GPT-2 as `transformers` saves it: the model and its folder."""
    folder, text = tmp_path_factory.mktemp("gpt2"), byte_pairs(TEXT, 280)
    torch.manual_seed(0)
    sizes = dict(n_embd=32, n_layer=3, n_head=4, n_positions=40, vocab_size=text.size)
    config = transformers.GPT2Config(**sizes, initializer_range=0.3)
    model = transformers.GPT2LMHeadModel(config).eval()
    jitter(model)
    model.save_pretrained(folder)
    text.save(folder)
    return model, folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A random BERT as `transformers` saves it: the model and its folder."""
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4)
    more = dict(intermediate_size=48, vocab_size=len(WORDS), initializer_range=0.3)
    config = transformers.BertConfig(**sizes, **more, max_position_embeddings=40)
    model = transformers.BertForMaskedLM(config).eval()
    jitter(model)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return model, folder


def jitter(model):
    """Biases and norms off their zeros and ones, so that an exchange shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)


def copied(folder, tmp_path, change=None, **settings):
    """A copy of a folder with other settings, its tensors changed."""
    new = tmp_path / "copy"
    shutil.copytree(folder, new)
    path = new / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    if change:
        tensors = load_file(new / "model.safetensors")
        save_file(change(tensors), new / "model.safetensors")
    return new


def test_gpt2_has_equal_scores(gpt2):
    theirs, folder = gpt2
    model, _ = read_text_model(folder)
    ids = torch.randint(model.config.vocab_size, (3, 40))
    with torch.no_grad():
        torch.testing.assert_close(model(ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)


def test_a_cached_step_equals_the_whole(gpt2):
    model, _ = read_text_model(gpt2[1])
    ids, past = torch.randint(model.config.vocab_size, (2, 12)), model.start(2)
    with torch.no_grad():
        steps = [model.step(part, past) for part in ids.split([5, 1, 3, 1, 2], dim=1)]
        whole = model(ids)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-4, rtol=1e-4)


def test_gpt2_writes_what_theirs_writes(gpt2):
    from annotated_transformer.translation.search import SearchOptions

    theirs, folder = gpt2
    writer = load(folder, device="cpu")
    assert isinstance(writer, Writer)
    ids = torch.tensor([writer.tokenizer.encode("the cat")])
    wanted = theirs.generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=0)
    options = SearchOptions(temperature=1.0, top_k=1)
    found = writer.generate("the cat", 20, options)
    assert found == writer.tokenizer.decode(wanted[0, ids.size(1) :].tolist())


def test_bert_has_equal_scores_with_padding_and_segments(bert):
    theirs, folder = bert
    model, _ = read_text_model(folder)
    ids = torch.randint(5, len(WORDS), (3, 40))
    ids[1, 30:] = ids[2, 7:] = 0
    segments = (torch.arange(40) > 12).long().expand(3, -1)
    real = ids != 0
    with torch.no_grad():
        ours = model(ids, segments)[real]
        given = dict(attention_mask=real.long(), token_type_ids=segments)
        wanted = theirs(ids, **given).logits[real]
    torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=1e-4)


def test_bert_fills_as_theirs(bert):
    theirs, folder = bert
    filler = load(folder, device="cpu")
    assert isinstance(filler, Filler)
    ids = filler.tokenizer.encode("The cat [MASK] on the [MASK].").ids
    assert [WORDS[i] for i in ids][:3] == ["[CLS]", "the", "cat"]
    with torch.no_grad():
        chances = theirs(torch.tensor([ids])).logits[0].softmax(dim=1)
    found = filler.fill("The cat [MASK] on the [MASK].", count=3)
    assert len(found) == 2
    for place, best in zip((3, 6), found, strict=True):
        wanted = chances[place].topk(3)
        assert [token for token, _ in best] == [WORDS[i] for i in wanted.indices]
        assert [p for _, p in best] == pytest.approx(wanted.values.tolist(), abs=1e-5)


def test_the_word_list_cuts_as_theirs(bert):
    folder, text = bert[1], "The CATS, the cat's mat."
    theirs = transformers.BertTokenizer(str(folder / "vocab.txt"))
    assert read_tokenizer(folder).encode(text).ids == theirs(text).input_ids


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_out_and_in_again(kind, tmp_path, request):
    theirs, folder = request.getfixturevalue(kind)
    model, tokenizer = read_text_model(folder)
    export_text_model(model, tokenizer, tmp_path / "out")
    auto = {
        "gpt2": transformers.GPT2LMHeadModel,
        "bert": transformers.BertForMaskedLM,
    }[kind].from_pretrained(tmp_path / "out")
    pairs = zip(auto.named_parameters(), theirs.named_parameters(), strict=True)
    for (name, ours), (other, wanted) in pairs:
        assert name == other and torch.equal(ours, wanted)
    again, _ = read_text_model(tmp_path / "out")
    assert again.config == model.config
    with pytest.raises(UserError, match="out"):
        export_text_model(model, tokenizer, tmp_path / "out")


SHAPES = {
    "gpt2": (12, 768, 12, 124_439_808),
    "gpt2-medium": (24, 1024, 16, 354_823_168),
    "gpt2-large": (36, 1280, 20, 774_030_080),
    "gpt2-xl": (48, 1600, 25, 1_557_611_200),
    "distilgpt2": (6, 768, 12, 81_912_576),
    "bert-base-uncased": (12, 768, 12, 109_514_298, 30522),
    "bert-base-cased": (12, 768, 12, 108_340_804, 28996),
    "bert-large-uncased": (24, 1024, 16, 335_174_458, 30522),
    "bert-base-multilingual-cased": (12, 768, 12, 177_974_523, 119547),
    "bert-base-chinese": (12, 768, 12, 102_290_312, 21128),
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
    config.save_pretrained(tmp_path)
    ours = read_text_config(tmp_path)
    assert (ours.N, ours.d_model, ours.h) == (N, d_model, h)
    from annotated_transformer.after.gpt2_bert import GPT2

    with torch.device("meta"):
        model = Bert(ours) if vocab else GPT2(ours)
        other = theirs(config)
    assert sum(each.numel() for each in model.parameters()) == count
    assert sum(each.numel() for each in other.parameters()) == count


def test_defaults_are_the_published_ones(tmp_path):
    transformers.GPT2Config().save_pretrained(tmp_path)
    assert read_text_config(tmp_path) == GPT2Config()
    transformers.BertConfig().save_pretrained(tmp_path)
    assert read_text_config(tmp_path) == BertConfig()


def test_old_files(gpt2, bert, tmp_path):
    """gamma and beta, no prefix, stored masks and a second copy, a pooler."""

    def old_gpt2(tensors):
        found = {name.removeprefix("transformer."): t for name, t in tensors.items()}
        found["h.0.attn.bias"] = torch.ones(1, 1, 4, 4)
        found["lm_head.weight"] = found["wte.weight"].clone()
        return found

    def old_bert(tensors):
        found = {}
        for name, tensor in tensors.items():
            for new, old in (("Norm.weight", "Norm.gamma"), ("Norm.bias", "Norm.beta")):
                name = name.replace(new, old)
            found[name] = tensor
        found["bert.pooler.dense.weight"] = torch.zeros(32, 32)
        found["bert.embeddings.position_ids"] = torch.arange(40)
        return found

    for (_, folder), change in ((gpt2, old_gpt2), (bert, old_bert)):
        place = tmp_path / change.__name__
        place.mkdir()
        old, _ = read_text_model(copied(folder, place, change))
        new, _ = read_text_model(folder)
        for ours, other in zip(old.parameters(), new.parameters(), strict=True):
            assert torch.equal(ours, other)


def without(name):
    return lambda tensors: {k: t for k, t in tensors.items() if not k.endswith(name)}


def with_tensor(name, tensor):
    return lambda tensors: tensors | {name: tensor}


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        (without("wpe.weight"), {}, "lacks the tensor 'wpe.weight'"),
        (
            with_tensor("strange", torch.ones(2)),
            {},
            "no place for the tensor 'strange'",
        ),
        (with_tensor("lm_head.weight", torch.ones(2)), {}, "only tied matrices"),
        (None, {"n_positions": 41}, "has shape"),
        (None, {"scale_attn_by_inverse_layer_idx": True}, "knows only False"),
        (None, {"activation_function": "gelo_new"}, "did you mean 'gelu_new'"),
        (None, {"n_head": 5}, "the heads must share it"),
        (None, {"n_layer": 0}, "whole number"),
        (None, {"vocab_size": 7}, "don't belong together"),
    ],
)
def test_bad_folders(gpt2, tmp_path, change, settings, words):
    folder = copied(gpt2[1], tmp_path, change, **settings)
    with pytest.raises(UserError, match=words):
        load(folder, device="cpu")


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        (None, {"type_vocab_size": True}, "segments is True"),
        (None, {"pad_token_id": 10**30}, "pad_id is 1000"),
        (None, {"max_position_embeddings": 2 * 10**7}, "max_length is 20000000"),
        (None, {"num_hidden_layers": 10**7}, "don't belong together"),
        (
            with_tensor(
                "cls.predictions.bias", torch.zeros(17).to(torch.float8_e4m3fn)
            ),
            {},
            "of type torch.float8_e4m3fn",
        ),
    ],
)
def test_odd_settings_and_types(bert, tmp_path, change, settings, words):
    folder = copied(bert[1], tmp_path, change, **settings)
    start = time.process_time()
    with pytest.raises(UserError, match=words):
        load(folder, device="cpu")
    assert time.process_time() - start < 1


def test_missing_and_damaged_files(gpt2, tmp_path):
    folder = copied(gpt2[1], tmp_path)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match="not a readable tokenizer"):
        load(folder, device="cpu")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UserError, match="has no tokenizer"):
        load(folder, device="cpu")
    shutil.copy(gpt2[1] / "tokenizer.json", folder)
    (folder / "model.safetensors").write_bytes(b"1234")
    with pytest.raises(UserError, match="damaged"):
        load(folder, device="cpu")


def test_the_original_word_lists_of_gpt2(gpt2, tmp_path):
    """vocab.json and merges.txt cut as tokenizer.json does."""
    whole = Tokenizer.from_file(str(gpt2[1] / "tokenizer.json"))
    model = json.loads(whole.to_str())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    merges = [" ".join(pair) for pair in model["merges"]]
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n")
    assert read_tokenizer(tmp_path).encode(TEXT).ids == whole.encode(TEXT).ids


def command(*arguments, capsys, monkeypatch):
    """Status and output of the command line."""
    monkeypatch.setattr("sys.argv", ["annotated-transformer", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0, capsys.readouterr()


def test_fill_mask_as_a_command(bert, gpt2, capsys, monkeypatch):
    def run(*arguments):
        return command("fill-mask", *arguments, capsys=capsys, monkeypatch=monkeypatch)

    status, said = run(bert[1], "the cat [MASK] on the mat.", "--count", "2")
    assert status == 0 and said.out.count("%") == 2
    for arguments, words in (
        ((bert[1], "no gap"), "no gap: write"),
        ((bert[1], "[MASK]", "--count", "0"), "count is 0"),
        ((bert[1], "[MASK] " * 60), "at most 40"),
        ((gpt2[1], "[MASK]"), "holds no masked language model"),
        (("phrasebook-en-de", "[MASK]"), "holds no masked language model"),
    ):
        status, said = run(*arguments)
        assert status == 2 and words in said.err and said.err.count("\n") == 1
