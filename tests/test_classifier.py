"""Classifiers learn, are saved and opened, and the command says what is wrong."""

import gzip
import io
import tarfile

import pytest
import torch

from annotated_transformer import UserError, load, verify
from annotated_transformer.after.classifier import (
    _REVIEWS,
    Classifier,
    ClassifierConfig,
    ClassifierTraining,
    Examples,
    TextClassifier,
    encode,
    fit_classifier,
    imdb,
    mean_over_words,
    new_classifier,
    pack_reviews,
    padded,
    pieces,
    read_examples,
    reliability,
    shorten,
)
from annotated_transformer.cli import run as run_command

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


def trained(attention="learned"):
    classifier, sides = made(attention), (opinions(200), opinions(60, seed=1))
    rows = [(encode(classifier.tokenizer, each.texts), each.labels) for each in sides]
    training = ClassifierTraining(epochs=4, batch=16, peak=5e-3, word_dropout=0.1)
    return classifier, list(fit_classifier(classifier.model, *rows, training))


@pytest.mark.parametrize("attention", ["learned", "plain", "none"])
def test_it_learns_with_each_kind_of_attention(attention):
    classifier, epochs = trained(attention)
    assert epochs[-1].loss < epochs[0].loss and not classifier.model.training
    assert classifier.predict(["a film that is fun, warm"]) == ["good"]
    assert classifier.predict(["a film that is dull, cold"]) == ["bad"]


def test_the_best_pass_is_kept():
    classifier, epochs = trained()
    valid = opinions(60, seed=1)
    answers = classifier.probabilities(valid.texts).argmax(-1)
    right = (answers == torch.tensor(valid.labels)).double().mean().item()
    assert right == max(epoch.valid_accuracy for epoch in epochs)


@pytest.mark.parametrize("attention", ["learned", "plain", "none"])
def test_padding_changes_nothing(attention):
    classifier = made(attention)
    texts = ["fun", "a film that is long, dull and cold"]
    together, alone = (
        classifier.probabilities(texts),
        torch.cat([classifier.probabilities([text]) for text in texts]),
    )
    assert torch.allclose(together, alone, atol=1e-6)
    assert together.sum(dim=1).allclose(torch.ones(2))


def test_the_mean_is_over_real_words():
    x = torch.tensor([[[1.0], [3.0], [99.0]]])
    assert mean_over_words(x, torch.tensor([[True, True, False]])).item() == 2.0
    assert padded([[5, 6, 7], [8]]).tolist() == [[5, 6, 7], [8, 0, 0]]


def test_a_score_is_the_sum_of_its_words():
    classifier = made()
    text = "a film that is fun"
    tokens, added = classifier.parts(text)
    ids = torch.tensor(encode(classifier.tokenizer, [text]))
    whole = classifier.model(ids)[0] - classifier.model.output.bias
    assert len(tokens) == len(added) == ids.size(1)
    assert torch.allclose(added.sum(dim=0), whole, atol=1e-5)


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
    row = encode(classifier.tokenizer, [text])[0]
    assert len(row) > 2 * classifier.model.config.max_length
    tokens, added = classifier.parts(text)
    whole = (added.sum(dim=0) + classifier.model.output.bias).softmax(dim=-1)
    assert len(tokens) == len(row)
    assert torch.allclose(whole, classifier.probabilities([text])[0], atol=1e-5)


def test_a_division_holds_a_share_out_and_keeps_equal_texts_together():
    texts = [f"text {i % 500}" for i in range(1000)]
    train, valid = Examples(texts, [0] * 1000).divide()
    assert not set(train.texts) & set(valid.texts)
    assert len(train) + len(valid) == 1000 and 50 < len(valid) < 170


def test_confidence_is_set_beside_the_share_right():
    found = torch.tensor([[0.55, 0.45], [0.99, 0.01], [0.02, 0.98], [0.03, 0.97]])
    rows = reliability(found, [1, 0, 1, 0])
    assert [(share, count) for _, share, count in rows] == [(0.0, 1), (2 / 3, 3)]


# --- folders


def test_it_is_saved_and_opened_by_load(tmp_path):
    classifier = made(dropout=0.2)
    classifier.save(tmp_path / "model")
    opened = load(tmp_path / "model", device="cpu")
    assert isinstance(opened, Classifier) and not opened.model.training
    assert opened.model.config == classifier.model.config
    texts = ["a film that is fun", "cold"]
    assert torch.equal(opened.probabilities(texts), classifier.probabilities(texts))


def test_a_tokenizer_of_another_model_is_told(tmp_path):
    for name, sizes in (("one", {}), ("two", {"vocab_size": 40})):
        made(**sizes).save(tmp_path / name)
    other = (tmp_path / "two" / "tokenizer.json").read_bytes()
    (tmp_path / "one" / "tokenizer.json").write_bytes(other)
    verify(tmp_path / "one", accept=True)
    with pytest.raises(UserError, match="don't belong together"):
        load(tmp_path / "one", device="cpu")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"attention": "learnt"}, "learned"),
        ({"classes": ("one",)}, "at least two"),
        ({"classes": ("one", "one")}, "each once"),
        ({"max_length": 0}, "max_length is 0"),
        ({"vocab_size": 3}, "vocab_size is 3"),
        ({"d_model": 15}, "d_model"),
    ],
)
def test_a_wrong_architecture_is_told(change, words):
    with pytest.raises(UserError, match=words):
        ClassifierConfig(**change)


@pytest.mark.parametrize("change", [{"epochs": 0}, {"word_dropout": 1.0}])
def test_a_wrong_training_is_told(change):
    with pytest.raises(UserError, match=next(iter(change))):
        ClassifierTraining(**change)


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


@pytest.mark.parametrize(
    "text, words",
    [
        ("good\n", "line 1"),
        ("good\tx\nbad\t \n", "line 2"),
        ("good\tx\n", "one class"),
        ("", "empty"),
    ],
)
def test_wrong_examples_are_told(tmp_path, text, words):
    path = tmp_path / "own.tsv"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        read_examples(path)
    path.write_text("godo\tx\nbad\ty\n")
    with pytest.raises(UserError, match="good"):
        read_examples(path, ("bad", "good"))


def archive(files):
    """A gzipped archive with these texts by name."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        for name, text in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(text.encode())
            tar.addfile(about, io.BytesIO(text.encode()))
    return whole.getvalue()


def test_the_published_archive_becomes_four_tables(tmp_path):
    files = {
        "aclImdb/train/pos/10_9.txt": "warm\tand\nfun",
        "aclImdb/train/pos/2_7.txt": "fine<br />",
        "aclImdb/train/unsup/1_0.txt": "unknown",
        "aclImdb/README": "about",
    }
    pack_reviews(archive(files), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}.tsv.gz" for name in _REVIEWS
    }
    packed = gzip.decompress((tmp_path / "train.pos.tsv.gz").read_bytes()).decode()
    assert packed == "2\t7\tfine<br />\n10\t9\twarm and fun\n"


def test_the_reviews_are_the_published_ones(data_root):
    found, stars = imdb("test", data_root)
    assert len(found) == 25_000 and sum(found.labels) == 12_500
    assert all(
        (star >= 7) == bool(i) for star, i in zip(stars, found.labels, strict=True)
    )


def test_other_reviews_are_told(tmp_path):
    for name in _REVIEWS:
        path = tmp_path / "imdb" / f"{name}.tsv.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(b"1\t9\tfun\n"))
    with pytest.raises(UserError, match="not the published text"):
        imdb("train", tmp_path)
    with pytest.raises(UserError, match="no directory"):
        imdb("train", tmp_path / "nowhere")


# --- the command


@pytest.fixture
def run(monkeypatch, capsys):
    """The command line with these arguments: its status and what it printed."""

    def command(*arguments):
        words = ["annotated-transformer", "classifier", *map(str, arguments)]
        monkeypatch.setattr("sys.argv", words)
        status = run_command()
        return status, *capsys.readouterr()

    return command


def test_the_command_trains_measures_and_answers(run, tmp_path):
    data, out = write(tmp_path / "own.tsv", opinions(200)), tmp_path / "model"
    sizes = ["--vocab-size", 120, "--max-length", 12, "--device", "cpu"]
    status, _, progress = run("train", out, "--data", data, "--epochs", 3, *sizes)
    assert status == 0 and progress.count("right on validation") == 3
    status, told, _ = run("evaluate", out, "--data", data, "--device", "cpu")
    assert status == 0 and "of 200" in told and "good" in told
    status, told, _ = run("predict", out, "a film that is fun", "--device", "cpu")
    name, share = told.rstrip("\n").split("\t")
    assert status == 0 and name in ("good", "bad") and 0.5 <= float(share) <= 1
    lines = tmp_path / "in.txt"
    lines.write_text("fun\n\ncold\n")
    assert run("predict", out, "-i", lines)[1].count("\n") == 3


def test_what_a_user_can_mend_is_one_line(run, tmp_path):
    data = write(tmp_path / "own.tsv", opinions(200))
    made().save(tmp_path / "model")
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    for arguments, words in [
        (("train", full, "--data", data), "holds other files"),
        (("train", data, "--data", data), "is a file"),
        (("train", tmp_path / "x", "--data", tmp_path / "none.tsv"), "no such file"),
        (("train", tmp_path / "x", "--data", data, "--attention", "lerned"), "learned"),
        (("train", tmp_path / "x", "--data", data, "--epochs", 0), "epochs"),
        (("train", tmp_path / "x", "--data", data, "--device", "tpu"), "tpu"),
        (("train", tmp_path / "x", "--root", tmp_path / "none"), "no directory"),
        (("evaluate", tmp_path / "model"), "--data"),
        (("evaluate", tmp_path / "none", "--data", data), "no such model"),
        (("predict", tmp_path / "model", data), "--input"),
        (("predict", tmp_path / "model", "x", "-i", data), "not both"),
        (("predict", "phrasebook-en-de", "x"), "holds no classifier"),
    ]:
        status, _, told = run(*arguments)
        assert status == 2 and words in told and told.count("\n") == 1, arguments
    assert not (tmp_path / "x").exists()
    assert [path.name for path in full.iterdir()] == ["notes.txt"]


def test_too_few_texts_are_told(run, tmp_path):
    data = write(tmp_path / "own.tsv", Examples(["fun", "cold"], [0, 1]))
    status, _, told = run("train", tmp_path / "x", "--data", data)
    assert status == 2 and "too few" in told


def test_a_translator_s_commands_name_what_they_were_given(tmp_path):
    made().save(tmp_path / "model")
    from annotated_transformer.loading import architecture

    with pytest.raises(UserError, match="doesn't translate"):
        architecture(tmp_path / "model")


def test_a_model_is_deterministic():
    one, two = (TextClassifier(ClassifierConfig(**SIZES)).eval() for _ in range(2))
    two.load_state_dict(one.state_dict())
    ids = torch.tensor([[5, 6, 7]])
    assert torch.equal(one(ids), two(ids))
