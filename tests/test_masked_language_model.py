"""Masked language models: what is hidden, what is learned from it, and what it is worth
for a classifier; the command line refuses what it should.
"""

import math
from dataclasses import replace

import pytest
import torch

from annotated_transformer import UserError, load
from annotated_transformer.after.classifier import (
    Classifier,
    ClassifierTraining,
    Examples,
    encode,
    fit_classifier,
)
from annotated_transformer.after.language_model import TextTokenizer
from annotated_transformer.after.masked_language_model import (
    MASK,
    Filler,
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    MaskedTraining,
    classifier_from,
    draw_examples,
    guesses,
    hide,
    mask_tokenizer,
    masked_batches,
    masked_loss,
    pretrain,
    text_rows,
    unlabelled,
)
from annotated_transformer.cli import run as run_command
from annotated_transformer.data.tokenizer import train_bpe
from annotated_transformer.files import verify
from annotated_transformer.model.config import EOS, PAD, UNK
from annotated_transformer.training.checkpoint import save_model

NAMES = {"red": ["wine", "rose", "brick"], "blue": ["sky", "sea", "ink"]}
TEXTS = [f"{colour} is the {thing}." for colour in NAMES for thing in NAMES[colour]]
SMALL = MaskedLanguageModelConfig(
    N=1, d_model=32, d_ff=64, h=2, vocab_size=60, max_length=16
)
QUICK = MaskedTraining(steps=300, batch=24, peak=5e-3, every=150)


def new_model(config=SMALL, seed=0):
    torch.manual_seed(seed)
    return MaskedLanguageModel(config).eval()


@pytest.fixture(scope="module")
def filler():
    """A model that has learned which thing has which colour."""
    tokenizer = mask_tokenizer(TEXTS * 5, 80)
    config = replace(SMALL, vocab_size=tokenizer.get_vocab_size())
    model, rows = new_model(config), text_rows(tokenizer, TEXTS * 4, 16)
    points = [*pretrain(model, rows, rows, QUICK)]
    assert points[-1]["valid"] < points[0]["valid"] < math.log(config.vocab_size)
    return Filler(model, tokenizer)


@pytest.fixture
def folder(filler, tmp_path):
    save_model(tmp_path / "colours", filler.model, TextTokenizer(filler.tokenizer))
    return tmp_path / "colours"


# --- what is hidden


def test_of_15_percent_80_are_masked_10_swapped_and_10_kept():
    ids = torch.randint(UNK + 1, 999, (400, 100))
    shown, chosen = hide(ids, 999, torch.Generator().manual_seed(0))
    assert torch.equal(shown[~chosen], ids[~chosen])
    masked = (shown == 999)[chosen].double().mean().item()
    kept = (shown == ids)[chosen].double().mean().item()
    assert abs(chosen.double().mean() - 0.15) < 0.01
    assert abs(masked - 0.8) < 0.02 and abs(kept - 0.1) < 0.02
    assert (shown > UNK).all() and (shown <= 999).all()


def test_special_tokens_are_never_hidden():
    ids = torch.tensor([[EOS, UNK, PAD]] * 50)
    shown, chosen = hide(ids, 59, torch.Generator(), share=0.99)
    assert torch.equal(shown, ids) and not chosen.any()
    assert masked_loss(new_model(), (shown, chosen, ids)).item() == 0.0


def test_a_share_of_one_masks_all_that_is_chosen():
    ids = torch.randint(UNK + 1, 50, (20, 20))
    shown, chosen = hide(ids, 59, torch.Generator(), masked=1.0)
    assert (shown[chosen] == 59).all()


def test_the_loss_is_that_of_the_chosen_places_alone():
    model, ids = new_model(), torch.randint(UNK + 1, 59, (4, 12))
    shown, chosen = hide(ids, 59, torch.Generator().manual_seed(3))
    logs = model(shown).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    loss = masked_loss(model, (shown, chosen, ids))
    assert torch.allclose(loss, -logs[chosen].mean(), atol=1e-5)


def test_rows_are_short_at_first_and_whole_later():
    settings = MaskedTraining(steps=8, batch=2, short=4, short_share=0.5)
    rows = [list(range(10, 26)) for _ in range(20)]
    batches = masked_batches(rows, 59, settings)
    shapes = [tuple(next(batches)[2].shape) for _ in range(8)]
    assert shapes == [(8, 4)] * 4 + [(2, 16)] * 4


# --- the model


def test_each_place_sees_both_sides():
    model, ids = new_model(), torch.randint(UNK + 1, 59, (1, 8))
    for moved in (0, 7):
        other = ids.clone()
        other[0, moved] = UNK + 1 if ids[0, moved] != UNK + 1 else UNK + 2
        change = (model(ids) - model(other)).abs().amax(-1)[0]
        assert (change > 1e-4).all()


def test_padding_changes_nothing():
    model, ids = new_model(), torch.randint(UNK + 1, 59, (1, 5))
    longer = torch.cat([ids, torch.full((1, 3), PAD)], dim=1)
    assert torch.allclose(model(longer)[:, :5], model(ids), atol=1e-5)


def test_the_output_layer_is_the_embedding():
    model, hidden = new_model(), torch.randn(3, 32)
    expected = hidden @ model.embedding.weight.T + model.bias
    assert torch.allclose(model.logits(hidden), expected, atol=1e-5)


def test_it_learns_what_belongs_together(filler):
    for colour, things in NAMES.items():
        for thing in things:
            (best,) = filler.fill(f"{MASK} is the {thing}.", 1)
            assert best[0][0] == f"▁{colour}"
    first, second = filler.fill(f"{MASK} is {MASK} sea.", 2)
    assert first[0][0] == "▁blue" and second[0][0] == "▁the"
    rows = text_rows(filler.tokenizer, TEXTS, 16)
    assert guesses(filler.model, rows) == guesses(filler.model, rows)


def test_a_gap_is_one_token_and_takes_the_space_before_it():
    tokenizer = mask_tokenizer(TEXTS, 60)
    gap = tokenizer.get_vocab_size() - 1
    whole = tokenizer.encode("red is the rose.").ids
    assert tokenizer.token_to_id(MASK) == gap
    for word, text in ((0, f"{MASK} is the rose."), (1, f"red {MASK} the rose.")):
        starts = [i for i, t in enumerate(tokenizer.encode(text).ids) if t == gap]
        assert len(starts) == 1, (word, text)
    end = tokenizer.encode("red is the.").ids[-2:]
    assert tokenizer.encode(f"red is {MASK}.").ids[-3:] == [gap, *end]
    assert gap not in whole


def test_a_text_without_a_gap_is_told(filler):
    with pytest.raises(UserError, match="no gap"):
        filler.fill("red is the rose.")
    with pytest.raises(UserError, match="count is 0"):
        filler.fill(MASK, 0)
    with pytest.raises(UserError, match="max_length"):
        filler.fill(" ".join([MASK] * 40))


# --- pretraining and fine-tuning


def test_a_classifier_begins_where_pretraining_ended(filler):
    classifier = classifier_from(filler.model, ("warm", "cold"), dropout=0.0).eval()
    ids = torch.tensor(encode(filler.tokenizer, TEXTS[:1]))
    assert torch.allclose(classifier.vectors(ids), filler.model.vectors(ids), atol=1e-6)
    with torch.no_grad():
        classifier.embedding.weight.zero_()
    assert filler.model.embedding.weight.abs().sum() > 0  # a copy, not the same


def test_a_pretrained_model_needs_one_label_of_a_kind(filler, tmp_path):
    """One labelled text of each colour, and the others follow."""
    examples = Examples([TEXTS[0], TEXTS[3]], [0, 1])
    rows = encode(filler.tokenizer, examples.texts), examples.labels
    torch.manual_seed(0)
    model = classifier_from(filler.model, ("red", "blue"), dropout=0.0)
    training = ClassifierTraining(epochs=30, peak=3e-3, word_dropout=0.0)
    assert len([*fit_classifier(model, rows, rows, training)]) == 30
    classifier = Classifier(model, filler.tokenizer)
    assert classifier.predict([TEXTS[1], TEXTS[4]]) == ["red", "blue"]
    classifier.save(tmp_path / "colours")
    again = load(tmp_path / "colours", device="cpu")
    assert again.predict(TEXTS) == classifier.predict(TEXTS)


def test_a_few_examples_are_among_the_many():
    examples = Examples([str(i) for i in range(50)], list(range(50)))
    few, many = (draw_examples(examples, n, 3) for n in (5, 20))
    assert many.texts[:5] == few.texts and len(set(many.texts)) == 20
    assert draw_examples(examples, 5, 4).texts != few.texts
    for count in (0, 51):
        with pytest.raises(UserError, match=f"{count} labelled texts"):
            draw_examples(examples, count, 1)


# --- saving and opening


def test_it_is_saved_and_opened_by_load(filler, folder):
    again = load(folder, device="cpu")
    text = f"{MASK} is the sea."
    assert isinstance(again, Filler) and again.fill(text) == filler.fill(text)
    ids = torch.randint(UNK + 1, 20, (2, 9))
    assert torch.equal(again.model(ids), filler.model(ids))


def test_a_tokenizer_of_another_model_is_told(filler, folder):
    path = folder / "tokenizer.json"
    path.write_text(mask_tokenizer(["other words"], 40).to_str())
    verify(folder, accept=True)
    with pytest.raises(UserError, match="don't belong together"):
        load(folder, device="cpu")
    size = filler.model.config.vocab_size
    words = [f"{text} {i}" for i, text in enumerate(TEXTS * 40)]
    plain = train_bpe(words, size, lowercase=True)
    assert plain.get_vocab_size() == size
    path.write_text(plain.to_str())
    verify(folder, accept=True)
    with pytest.raises(UserError, match="last token"):
        load(folder, device="cpu")


@pytest.mark.parametrize("change", [{"vocab_size": 4}, {"max_length": 0}, {"h": 3}])
def test_a_wrong_architecture_is_told(change):
    with pytest.raises(UserError, match=next(iter(change))):
        replace(SMALL, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 0},
        {"share": 0.0},
        {"masked": 1.5},
        {"short": 0},
        {"short_share": -1.0},
    ],
)
def test_a_wrong_training_is_told(change):
    with pytest.raises(UserError, match=next(iter(change))):
        MaskedTraining(**change)


def test_own_texts_are_divided(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("".join(f"text {i}\n\n" for i in range(200)))
    known, held = unlabelled(path)
    assert len(known) + len(held) == 200 and 5 < len(held) < 40
    assert not set(known) & set(held)
    path.write_text("one\n")
    with pytest.raises(UserError, match="too few"):
        unlabelled(path)
    with pytest.raises(UserError, match="no text"):
        next(masked_batches([], 59, QUICK))


def test_the_reviews_come_without_labels(data_root):
    known, held = unlabelled()
    assert len(known) == 25_000 and len(held) >= 400
    assert len(set(held) - set(known)) > 390  # a few are in both parts


# --- the command line


@pytest.fixture
def run(monkeypatch, capsys):
    """The command line with these arguments: its status and what it printed."""

    def command(*arguments):
        monkeypatch.setattr("sys.argv", ["annotated-transformer", *map(str, arguments)])
        status = run_command()
        return status, *capsys.readouterr()

    return command


GROUP = "masked-language-model"


def test_the_command_pretrains_fills_measures_and_fine_tunes(run, tmp_path):
    own, cpu = tmp_path / "own.txt", ("--device", "cpu")
    own.write_text("".join(f"{text} It is {i}.\n" for i, text in enumerate(TEXTS * 30)))
    sizes = "N=1 d_model=16 d_ff=32 h=2 vocab_size=70 max_length=16 steps=20 every=10"
    settings = [word for pair in sizes.split() for word in ("--set", pair)]
    model, out = tmp_path / "model", tmp_path / "out"
    status, told, said = run(GROUP, "train", model, "--data", own, *settings, *cpu)
    assert status == 0 and told == f"{model}\n" and said.count("held out") == 2
    status, told, _ = run(GROUP, "evaluate", model, "--data", own, *cpu)
    assert status == 0 and "nats per hidden token" in told
    status, told, _ = run("fill-mask", model, f"{MASK} is the sea.", *cpu)
    assert status == 0 and "probability" in told
    labelled = tmp_path / "labelled.tsv"
    colours = [(text.split()[0], text) for text in TEXTS]
    lines = [f"{colour}\t{text} {i}" for i, (colour, text) in enumerate(colours * 20)]
    labelled.write_text("\n".join(lines) + "\n")
    few = ("--labels", 60, "--epochs", 2)
    status, told, said = run(
        GROUP, "fine-tune", model, out, "--data", labelled, *few, *cpu
    )
    assert status == 0 and told == f"{out}\n" and said.count("right on validation") == 2
    status, told, _ = run("classifier", "evaluate", out, "--data", labelled, *cpu)
    assert status == 0 and "of 120" in told


def test_what_a_user_can_mend_is_one_line(run, tmp_path, folder):
    own, x, full = tmp_path / "own.txt", tmp_path / "x", tmp_path / "full"
    own.write_text("".join(f"{text} {i}\n" for i, text in enumerate(TEXTS * 9)))
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    labelled = tmp_path / "labelled.tsv"
    labelled.write_text("".join(f"{'ab'[i % 2]}\ttext {i}\n" for i in range(50)))
    for arguments, words in [
        (("train", full, "--data", own), "holds other files"),
        (("train", x, "--data", tmp_path / "none.txt"), "no such file"),
        (("train", x, "--data", own, "--set", "d_modle=8"), "d_model"),
        (("train", x, "--data", own, "--set", "steps=0"), "steps"),
        (("train", x, "--data", own, "--set", "vocab_size=9"), "vocab_size"),
        (("train", x, "--root", tmp_path / "none"), "no directory"),
        (("evaluate", tmp_path / "none"), "no such model"),
        (("evaluate", "phrasebook-en-de"), "holds no masked language model"),
        (("evaluate", folder, "--data", labelled, "--device", "tpu"), "tpu"),
        (("fine-tune", folder, full, "--data", labelled), "holds other files"),
        (("fine-tune", folder, x, "--data", labelled, "--labels", 51), "51 labelled"),
        (("fine-tune", folder, x, "--data", labelled, "--labels", 20), "too few"),
        (("fine-tune", folder, x, "--data", own), "a tab"),
    ]:
        status, _, told = run(GROUP, *arguments)
        assert status == 2 and words in told and told.count("\n") == 1, arguments
    status, _, told = run("fill-mask", folder, "no gap here", "--device", "cpu")
    assert status == 2 and "no gap" in told
    assert not x.exists()
    assert [path.name for path in full.iterdir()] == ["notes.txt"]
