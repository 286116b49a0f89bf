"""Language models: cached generation equals the plain one, text comes back without
loss, and the command line refuses what it should.
"""

import math
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from test_cli import refused

from annotated_transformer import load, verify
from annotated_transformer.after import language_model
from annotated_transformer.after.language_model import (
    LanguageModel,
    LanguageModelConfig,
    LanguageTraining,
    Writer,
    byte_pairs,
    characters,
    generate,
    learn,
    load_text,
    surprise,
)
from annotated_transformer.errors import UserError
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.translation.search import SearchOptions

VERSE = "one two three, four five six.\n"
SMALL = LanguageModelConfig(N=2, d_model=16, d_ff=32, h=2, vocab_size=20, max_length=8)
GREEDY = SearchOptions(temperature=1.0, top_k=1)


def new_model(config=SMALL, seed=0):
    torch.manual_seed(seed)
    return LanguageModel(config).eval()


@pytest.fixture(scope="module")
def writer():
    """A model that has learned one verse by heart."""
    tokenizer = characters(VERSE)
    config = replace(SMALL, vocab_size=tokenizer.size, max_length=32, d_model=32)
    model = new_model(config)
    ids = torch.tensor(tokenizer.encode(VERSE * 20))
    points = [*learn(model, ids, ids, LanguageTraining(150, 8, 5e-3, every=75))]
    assert points[-1]["valid"] < points[0]["valid"] < math.log(tokenizer.size)
    return Writer(model, tokenizer)


@pytest.fixture
def folder(writer, tmp_path):
    save_model(tmp_path / "verse", writer.model, writer.tokenizer)
    return tmp_path / "verse"


# --- the model


def test_a_position_never_sees_what_comes_after():
    model, ids = new_model(), torch.randint(20, (2, 8))
    other = ids.clone()
    other[:, 5:] = (other[:, 5:] + 1) % 20
    before, after = model(ids), model(other)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:], atol=1e-3)


@pytest.mark.parametrize("cuts", [[8], [1] * 8, [3, 1, 4], [7, 1]])
def test_steps_equal_the_whole_however_it_is_cut(cuts):
    model, ids = new_model(), torch.randint(20, (3, 8))
    past = model.start(rows=3)
    found = [model.step(part, past) for part in ids.split(cuts, dim=1)]
    assert torch.allclose(torch.cat(found, dim=1), model(ids), atol=1e-5)
    assert len(past[0]) == 8


def test_cached_generation_equals_the_plain_form():
    model, plain = new_model(), [3, 1]
    written = [*generate(model, plain, 6, GREEDY)]
    for _ in range(6):
        plain.append(int(model(torch.tensor([plain]))[0, -1].argmax()))
    assert written == plain[2:]


def test_generation_goes_on_past_the_context():
    model = new_model()
    written = [1, *generate(model, [1], 30, GREEDY)]
    assert len(written) == 31
    # The ninth token is drawn after the last four of the context, read from 0.
    again = model(torch.tensor([written[4:8]]))[0, -1].argmax()
    assert written[8] == again
    assert len([*generate(new_model(replace(SMALL, max_length=1)), [1, 2], 5)]) == 5


def test_a_seed_gives_the_same_text_and_another_one_another():
    model = new_model()
    first, same, other = (
        [*generate(model, [1], 20, SearchOptions(temperature=1.0, seed=seed))]
        for seed in (1, 1, 2)
    )
    assert first == same != other


def test_surprise_predicts_each_token_once():
    model, ids = new_model(), torch.randint(20, (30,))
    for overlap in (0, 4, 7):
        assert len(surprise(model, ids, overlap)) == 29
    logs = model(ids[None, :8])[0].log_softmax(-1)
    nats = -logs.gather(1, ids[1:9, None]).squeeze(1)
    assert torch.allclose(surprise(model, ids)[:8], nats, atol=1e-5)
    last = -model(ids[None, 21:29])[0, -1].log_softmax(-1)[ids[29]]
    assert torch.allclose(surprise(model, ids, overlap=7)[-1], last, atol=1e-5)
    with pytest.raises(UserError, match="overlap is 8"):
        surprise(model, ids, 8)


def test_it_learns_a_verse_by_heart(writer):
    assert writer.generate("one two", 60, GREEDY).startswith(" three, four five six.\n")
    score = writer.measure(VERSE * 3)
    assert score.bits_per_character < 0.5
    assert (score.characters, score.words) == (len(VERSE * 3) - 1, 3 * 7)


# --- text


@pytest.mark.parametrize(
    "text", ["hey you\n\n  tabs\tand  spaces ", "é€😀\r\n", "日本"]
)
def test_text_comes_back_without_loss(text):
    assert characters(text).decode(characters(text).encode(text)) == text
    pairs = byte_pairs("some other text, some more of it", 270)
    assert pairs.decode(pairs.encode(text)) == text


def test_unknown_characters_are_named():
    with pytest.raises(UserError, match="'€' is none of the 3 characters"):
        characters("abc").encode("ab€")


@pytest.mark.parametrize(
    "make",
    [lambda: characters(""), lambda: byte_pairs("", 300), lambda: byte_pairs("a", 9)],
)
def test_a_vocabulary_needs_text_and_room(make):
    with pytest.raises(UserError):
        make()


def test_named_texts_are_split_as_published(data_root):
    train, valid = load_text("tiny-shakespeare", data_root)
    assert (len(train), len(valid)) == (1_003_854, 111_540)
    _, test = load_text("wikitext-2", data_root)
    assert len(test.split()) + test.count("\n") == 245_569  # as its paper counts


# --- settings, folders, commands


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: replace(SMALL, vocab_size=0), "vocab_size is 0"),
        (lambda: replace(SMALL, h=3), "h is 3"),
        (lambda: LanguageTraining(steps=0), "steps is 0"),
        (lambda: LanguageTraining(peak=2.0), "peak is 2.0"),
        (lambda: [*generate(new_model(), [], 3)], "the prompt is empty"),
        (lambda: next(language_model.windows(torch.arange(4), 1, 4, 0)), "4 tokens"),
    ],
)
def test_what_is_out_of_range_is_named(make, words):
    with pytest.raises(UserError, match=words):
        make()


def test_the_opener_gives_the_same_writer_back(writer, folder):
    again = load(folder, device="cpu")
    assert isinstance(again, Writer) and again.model.config == writer.model.config
    for one, other in zip(
        writer.model.parameters(), again.model.parameters(), strict=True
    ):
        assert torch.equal(one, other)
    assert again.generate("one", 20, GREEDY) == writer.generate("one", 20, GREEDY)


def test_a_damaged_folder_is_refused(folder):
    (folder / "tokenizer.json").write_text("{}")
    verify(folder, accept=True)
    with pytest.raises(UserError, match="not a readable tokenizer"):
        load(folder)
    characters("ab").save(folder)
    verify(folder, accept=True)
    with pytest.raises(UserError, match="don't belong together"):
        load(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UserError, match="is missing"):
        load(folder)


SETS = "steps=4 every=2 N=1 d_model=8 d_ff=8 h=1 max_length=8 batch=2".split()
TINY = [word for each in SETS for word in ("--set", each)]


@pytest.mark.parametrize("tokens", ["characters", "byte-pairs"])
def test_train_evaluate_and_generate_by_command(run, tmp_path, tokens):
    text, out = tmp_path / "own.txt", tmp_path / "out"
    text.write_text(VERSE * 20, encoding="utf-8")
    options = ["--text", text, "--tokens", tokens, *TINY]
    options += ["--set", "vocab_size=260"] * (tokens == "byte-pairs")
    status, shown, told = run("language-model", "train", out, *options)
    assert status == 0 and "bits per character" in shown
    assert told.count("held out") == 2
    status, shown, _ = run("language-model", "evaluate", out, "--text", text)
    assert status == 0 and f"{len(VERSE * 20) - 1:,}" in shown
    arguments = ["one", "--length", 5, "--seed", 1]
    first, again = (run("language-model", "generate", out, *arguments) for _ in "12")
    assert first == again and first[0] == 0 and first[1].startswith("one")


def test_bad_input_ends_in_one_line(run, tmp_path, folder):
    text = tmp_path / "own.txt"
    text.write_text(VERSE, encoding="utf-8")
    train = ["language-model", "train", tmp_path / "new", "--text"]
    refused(run(*train, tmp_path / "none.txt"), "no such file", "tiny-shakespeare")
    refused(run(*train, text, *TINY, "--set", "max_length=64"), "tokens", "longer text")
    refused(run(*train, text, "--set", "stepps=3"), "did you mean 'steps'")
    refused(run(*train, text, "--tokens", "words"), "characters")
    refused(run(*train, text, "--set", "vocab_size=9"), "byte-pairs")
    refused(run("language-model", "train", tmp_path, "--text", text), "other files")
    assert not (tmp_path / "new").exists()
    made = ["language-model", "generate", folder]
    refused(run(*made, "€"), "'€'")
    refused(run(*made, ""), "prompt is empty")
    refused(run(*made, "one", "--temperature", 0), "temperature is 0")
    refused(run(*made, "one", "--length", 0), "--length is 0")
    refused(run("language-model", "generate", tmp_path, "one"), "holds no model")
    refused(run("language-model", "evaluate", "phrasebook-en-de"), "no language model")
    refused(run("translate", "one", "--model", folder), "doesn't translate")


def test_an_interrupted_training_leaves_nothing(tmp_path):
    text = tmp_path / "own.txt"
    text.write_text(VERSE * 20, encoding="utf-8")
    words = ["language-model", "train", "out", "--text", "own.txt", *TINY]
    words = [sys.executable, "-m", "annotated_transformer", *words]
    words += ["--set", "steps=1000000"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        assert b"held out" in process.stderr.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["own.txt"]
