"""Classifiers learn, are saved and opened, and the command says what is wrong."""

import pytest
import torch
from tiny_run import refused

from annotated_transformer.after.classifier import reliability
from annotated_transformer.after.classifier_parts import ClassifierConfig
from annotated_transformer.after.labelled_rows import pieces, shorten
from annotated_transformer.after.text_classification import new_classifier
from annotated_transformer.data.labelled_texts import (
    Examples,
    read_examples,
)
from annotated_transformer.data.text_tokenizer import encode_texts

WORDS = {"good": ["fine", "fun", "warm"], "bad": ["dull", "long", "cold"]}
SIZES = {"d_model": 16, "d_ff": 32, "h": 2, "vocab_size": 200, "max_length": 16}


def opinions(count, seed=0):
    """A film with three things, most of them of one kind, is good or bad."""
    draw = torch.Generator().manual_seed(seed)
    texts, labels = [], []
    for _ in range(count):
        label, *picks = torch.randint(0, 2, (4,), generator=draw).tolist()
        words = [list(WORDS.values())[label][p + (i == 2)] for i, p in enumerate(picks)]
        texts.append(f"a film that is {', '.join(words)}")
        labels.append(label)
    return Examples(texts, labels)


def made(attention="learned", **sizes):
    config = ClassifierConfig(
        classes=("good", "bad"), attention=attention, **SIZES | sizes
    )
    return new_classifier(opinions(200).texts, config)


@pytest.mark.parametrize("attention", ["learned", "plain", "none"])
def test_padding_changes_nothing(attention):
    classifier = made(attention)
    texts = ["fun", "a film that is long, dull and cold"]
    together = classifier.probabilities(texts)
    alone = torch.cat([classifier.probabilities([text]) for text in texts])
    assert torch.allclose(together, alone, atol=1e-6)
    assert together.sum(dim=1).allclose(torch.ones(2))


def test_a_long_text_keeps_its_beginning_and_more_of_its_end():
    ids = list(range(100))
    assert shorten(ids, 8) == [0, 1, 94, 95, 96, 97, 98, 99]
    assert shorten(ids, 1) == [99] and shorten(ids, 100) == ids
    long = " ".join(["a film"] * 500)
    assert made().probabilities([long, ""]).shape == (2, 2)  # an empty one, too


def test_a_text_is_read_whole_in_pieces():
    assert pieces(list(range(7)), 3) == [[0, 1], [2, 3], [4, 5, 6]]
    assert pieces([1, 2], 3) == [[1, 2]]
    classifier = made()
    text = "a film that is " + ", ".join(["fun", "warm", "dull", "cold"] * 5)
    row = encode_texts(classifier.tokenizer, [text])[0]
    assert len(row) > 2 * classifier.model.config.max_length
    tokens, added = classifier.contributions(text)
    whole = (added.sum(dim=0) + classifier.model.output.bias).softmax(dim=-1)
    assert len(tokens) == len(row)
    assert torch.allclose(whole, classifier.probabilities([text])[0], atol=1e-5)


def test_a_division_holds_a_share_out_and_keeps_equal_texts_together():
    texts = [f"text {i % 500}" for i in range(1000)]
    train, valid = Examples(texts, [0] * 1000).divide()
    assert not set(train.texts) & set(valid.texts)
    assert len(train) + len(valid) == 1000 and 50 < len(valid) < 170


# --- texts


def write(path, examples, names=("good", "bad")):
    pairs = zip(examples.labels, examples.texts, strict=True)
    path.write_text("".join(f"{names[i]}\t{text}\n" for i, text in pairs))
    return path


def test_own_examples_are_read_by_line_feeds_alone(tmp_path):
    path = tmp_path / "own.tsv"
    path.write_bytes("b\tone\x85two\na\tthree\tfour\n".encode())
    found, classes = read_examples(path)
    assert classes == ("a", "b") and found.labels == [1, 0]
    assert found.texts == ["one\x85two", "three\tfour"]


# --- the command


def test_what_a_user_can_mend_is_one_line(run, tmp_path):
    data = write(tmp_path / "own.tsv", opinions(200))
    made().save_pretrained(tmp_path / "model")
    few = write(tmp_path / "few.tsv", Examples(["fun", "cold"], [0, 1]))
    for arguments, words in [
        (("train", data, "-o", data), "can't be made"),
        (("train", few, "-o", tmp_path / "x"), "too few"),
        (("train", data, "-o", tmp_path / "x", "--set", "attention=lerned"), "learned"),
        (("train", "-o", tmp_path / "x", "--root", tmp_path / "none"), "no directory"),
        (("evaluate", tmp_path / "model"), "your own examples"),
        (("predict", tmp_path / "model", data), "--input"),
        (("predict", tmp_path / "model", "x", "-i", data), "not both"),
    ]:
        refused(run("classifier", *arguments), words)
    assert not (tmp_path / "x").exists()


def test_reliability_sets_confidence_beside_the_share_that_is_right():
    sure, unsure = [[0.95, 0.05]] * 4, [[0.35, 0.65]] * 2
    found = reliability(torch.tensor(sure + unsure), [0, 0, 0, 1, 1, 0])
    assert found == [
        (pytest.approx(0.65), 0.5, 2),
        (pytest.approx(0.95), 0.75, 4),
    ]
