"""Masked language models: what is hidden, what is learned from it, and what it is worth
for a classifier; the command line refuses what it should.
"""

from dataclasses import replace

import pytest
import torch
from tiny_run import refused

from annotated_transformer import UserError, load
from annotated_transformer.after.mask_filling import MaskFiller
from annotated_transformer.after.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    classifier_from,
    hide,
    masked_loss,
)
from annotated_transformer.after.masked_texts import (
    MASK,
    mask_tokenizer,
    masked_batches,
)
from annotated_transformer.data.labelled_texts import Examples, draw_examples
from annotated_transformer.data.text_tokenizer import encode_texts
from annotated_transformer.data.texts import unlabelled
from annotated_transformer.data.tokenizer_training import train_bpe
from annotated_transformer.model.config import EOS, PAD, UNK
from annotated_transformer.training.task import TensorBatch

TEXTS = [f"red is the {thing}." for thing in ("wine", "rose", "brick")]
TEXTS += [f"blue is the {thing}." for thing in ("sky", "sea", "ink")]
SMALL = MaskedLanguageModelConfig(
    N=1, d_model=32, d_ff=64, h=2, vocab_size=60, max_length=16
)


def new_model(config=SMALL, seed=0):
    torch.manual_seed(seed)
    return MaskedLanguageModel(config).eval()


@pytest.fixture(scope="module")
def filler():
    """A model with random weights."""
    tokenizer = mask_tokenizer(TEXTS * 5, 80)
    model = new_model(replace(SMALL, vocab_size=tokenizer.get_vocab_size()))
    return MaskFiller(model, tokenizer)


@pytest.fixture
def folder(filler, tmp_path):
    filler.save_pretrained(tmp_path / "colours")
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
    shown, chosen = hide(ids, 59, torch.Generator(), share=0.99, masked=1.0)
    assert torch.equal(shown, ids) and not chosen.any()
    assert masked_loss(new_model(), TensorBatch((shown, chosen, ids), 1)).item() == 0.0


def test_the_loss_is_that_of_the_chosen_places_alone():
    model, ids = new_model(), torch.randint(UNK + 1, 59, (4, 12))
    shown, chosen = hide(ids, 59, torch.Generator().manual_seed(3))
    logs = model(shown).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    loss = masked_loss(model, TensorBatch((shown, chosen, ids), int(chosen.sum())))
    assert torch.allclose(loss, -logs[chosen].sum(), rtol=1e-5)


def test_rows_are_short_at_first_and_whole_later():
    rows = [list(range(10, 26)) for _ in range(20)]
    batches = masked_batches(rows, 59, 2, seed=1, short=4, short_updates=4)
    shapes = [tuple(next(batches).tensors[2].shape) for _ in range(8)]
    assert shapes == [(8, 4)] * 4 + [(2, 16)] * 4


# --- the model


def test_padding_changes_nothing():
    model, ids = new_model(), torch.randint(UNK + 1, 59, (1, 5))
    longer = torch.cat([ids, torch.full((1, 3), PAD)], dim=1)
    assert torch.allclose(model(longer)[:, :5], model(ids), atol=1e-5)


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
    ids = torch.tensor(encode_texts(filler.tokenizer, TEXTS[:1]))
    assert torch.allclose(classifier.vectors(ids), filler.model.vectors(ids), atol=1e-6)
    with torch.no_grad():
        classifier.embedding.weight.zero_()
    assert filler.model.embedding.weight.abs().sum() > 0  # a copy, not the same


def test_a_few_examples_are_among_the_many():
    examples = Examples([str(i) for i in range(50)], list(range(50)))
    few, many = (draw_examples(examples, n, 3) for n in (5, 20))
    assert many.texts[:5] == few.texts and len(set(many.texts)) == 20
    assert draw_examples(examples, 5, 4).texts != few.texts
    for count in (0, 51):
        with pytest.raises(UserError, match=f"{count} labelled texts"):
            draw_examples(examples, count, 1)


# --- saving and opening


def test_a_tokenizer_without_a_mask_is_told(filler, folder):
    size = filler.model.config.vocab_size
    words = [f"{text} {i}" for i, text in enumerate(TEXTS * 40)]
    plain = train_bpe(words, size, lowercase=True)
    assert plain.get_vocab_size() == size
    (folder / "tokenizer.json").write_text(plain.to_str())
    with pytest.raises(UserError, match="last token"):
        load(folder, device="cpu")


def test_own_texts_are_divided(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("".join(f"text {i}\n\n" for i in range(200)))
    known, held = unlabelled(path)
    assert len(known) + len(held) == 200 and 5 < len(held) < 40
    assert not set(known) & set(held)
    path.write_text("one\n")
    with pytest.raises(UserError, match="too few"):
        unlabelled(path)


# --- the command line


def test_what_a_user_can_mend_is_one_line(run, tmp_path, folder):
    own, x = tmp_path / "own.txt", tmp_path / "x"
    own.write_text("".join(f"{text} {i}\n" for i, text in enumerate(TEXTS * 9)))
    labelled = tmp_path / "labelled.tsv"
    labelled.write_text("".join(f"{'ab'[i % 2]}\ttext {i}\n" for i in range(50)))
    for arguments, words in [
        (("train", own, "-o", x, "--set", "vocab_size=9"), "vocab_size"),
        (("train", "-o", x, "--root", tmp_path / "none"), "no directory"),
        (("fine-tune", folder, labelled, "-o", x, "--labels", 51), "51 labelled"),
        (("fine-tune", folder, labelled, "-o", x, "--labels", 20), "too few"),
        (("fine-tune", folder, own, "-o", x), "a tab"),
        (("fill", folder, "no gap here"), "no gap"),
    ]:
        refused(run("masked-language-model", *arguments), words)
    assert not x.exists()
