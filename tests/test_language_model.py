"""Language models: cached generation equals the plain one, text comes back without
loss, and the command line refuses what it should.
"""

from dataclasses import replace

import pytest
import torch
from tiny_run import refused

from annotated_transformer.after.language_model import (
    LanguageModel,
    LanguageModelConfig,
    generate_tokens,
    token_losses,
)
from annotated_transformer.after.n_grams import KneserNey
from annotated_transformer.data.text_tokenizer import byte_pairs, characters
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.errors import UserError
from annotated_transformer.training.checkpoint import save_model

VERSE = "one two three, four five six.\n"
SMALL = LanguageModelConfig(N=2, d_model=16, d_ff=32, h=2, vocab_size=20, max_length=8)
GREEDY = SearchOptions(temperature=1.0, top_k=1)


def new_model(config=SMALL, seed=0):
    torch.manual_seed(seed)
    return LanguageModel(config).eval()


@pytest.fixture
def folder(tmp_path):
    tokenizer = characters(VERSE)
    model = new_model(replace(SMALL, vocab_size=tokenizer.size))
    save_model(tmp_path / "verse", model, tokenizer)
    return tmp_path / "verse"


# --- the model


def test_generation_goes_on_past_the_context():
    model = new_model()
    written = [1, *generate_tokens(model, [1], 30, GREEDY)]
    assert len(written) == 31
    # The ninth token is drawn after the last four of the context, read from 0.
    again = model(torch.tensor([written[4:8]]))[0, -1].argmax()
    assert written[8] == again
    short = new_model(replace(SMALL, max_length=1))
    assert len([*generate_tokens(short, [1, 2], 5)]) == 5


def test_a_seed_gives_the_same_text_and_another_one_another():
    model = new_model()
    first, same, other = (
        [*generate_tokens(model, [1], 20, SearchOptions(temperature=1.0, seed=seed))]
        for seed in (1, 1, 2)
    )
    assert first == same != other


def test_n_grams_give_each_context_one_in_all():
    text = "the cat sat on the mat, and the rat sat on the hat. " * 3
    counts = KneserNey(text, order=4)
    for before in ("", "t", "th", " th", "qqq"):
        chances = [counts.probability(before, letter) for letter in set(text)]
        assert sum(chances) == pytest.approx(1) and min(chances) > 0


def test_n_grams_count_as_by_hand():
    """Of "abab" the bigrams are ab twice and ba once: a discount of a third."""
    counts = KneserNey("abab", order=2)
    discount = 1 / (1 + 2)
    a = (
        1 - 1 + 1 * 2 / 2
    ) / 2  # each letter follows one kind: both are discounted by 1
    after_a = (0 + discount * 1 * a) / 2  # never seen after a
    assert counts.probability("a", "a") == pytest.approx(after_a)
    assert counts.probability("a", "b") == pytest.approx(1 - after_a)


def test_each_token_is_predicted_once():
    model, ids = new_model(), torch.randint(20, (30,))
    for overlap in (0, 4, 7):
        assert len(token_losses(model, ids, overlap)) == 29
    logs = model(ids[None, :8])[0].log_softmax(-1)
    nats = -logs.gather(1, ids[1:9, None]).squeeze(1)
    assert torch.allclose(token_losses(model, ids)[:8], nats, atol=1e-5)
    last = -model(ids[None, 21:29])[0, -1].log_softmax(-1)[ids[29]]
    assert torch.allclose(token_losses(model, ids, overlap=7)[-1], last, atol=1e-5)
    with pytest.raises(UserError, match="overlap is 8"):
        token_losses(model, ids, 8)


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


# --- settings, folders, commands


SETS = "steps=4 save_every=2 N=1 d_model=8 d_ff=8 h=1 max_length=8 batch=2".split()
TINY = [word for each in SETS for word in ("--set", each)]


def test_bad_input_ends_in_one_line(run, tmp_path, folder):
    text = tmp_path / "own.txt"
    text.write_text(VERSE, encoding="utf-8")
    train = ["language-model", "train", "--out", tmp_path / "new"]
    refused(run(*train, tmp_path / "none.txt"), "no such file", "tiny-shakespeare")
    refused(run(*train, text, *TINY, "--set", "max_length=64"), "tokens", "longer text")
    refused(run(*train, text, "--set", "vocab_size=9"), "vocab_size is 9")
    made = ["language-model", "generate", folder]
    refused(run(*made, "€"), "'€'")
    refused(run(*made, ""), "prompt is empty")
    refused(run(*made, "one", "--length", 0), "length is 0")
