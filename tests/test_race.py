"""The recurrent translator goes through the package's trainer, folders and search."""

import json

import pytest
import torch
from tiny_run import save_checkpoint

from annotated_transformer import UserError, load
from annotated_transformer.average import average_checkpoints
from annotated_transformer.before.recurrent_model import RecurrentModel
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.decoding.model_search import teacher_forcing
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.training.checkpoint import load_checkpoint, save_model
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.schedule import adam
from annotated_transformer.translation.recurrent_translator import RecurrentConfig
from benchmarks.train import train_translation

TEXTS = phrasebook("en", "de", "train", 300)
SETTINGS = TrainingConfig(steps=8, batch_tokens=256, warmup=4)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, "en", "de", vocab_size=300)


def new_model(tokenizer) -> RecurrentModel:
    torch.manual_seed(0)
    size = tokenizer.src_vocab_size
    return RecurrentModel(RecurrentConfig(size, size, d_model=16, dropout=0.2))


@pytest.fixture
def folder(tokenizer, tmp_path):
    save_model(tmp_path / "model", new_model(tokenizer), tokenizer)
    return tmp_path / "model"


def test_a_beam_finds_what_a_pass_over_the_whole_scores(tokenizer, folder):
    translator = load(folder, device="cpu")
    src = torch.tensor(tokenizer.encode_source(["two hours ago"]))
    (found, *_), *_ = translator.engine.search(
        src.tolist(), SearchOptions(beam_size=3, max_length=6)
    )
    tokens = found.tokens + [translator.model.config.eos_id] * found.finished
    scores = teacher_forcing(translator.model, src, torch.tensor([tokens]))
    assert scores.sum().item() == pytest.approx(found.log_probability, abs=1e-4)
    scored = translator.score("two hours ago", "vor zwei Stunden")
    assert scored.total < 0


def test_a_run_goes_on_from_its_checkpoint_to_the_same_losses(tokenizer, tmp_path):
    pairs = TokenizedPairs.build(TEXTS, tokenizer)

    def losses(model, optimizer, start):
        updates = train_translation(
            Objective(model, 0.1), optimizer, pairs, SETTINGS, start
        )
        for update in updates:
            yield update, update.loss.item()

    model = new_model(tokenizer)
    optimizer, found = adam(model), []
    for update, loss in losses(model, optimizer, (0, (0, 0))):
        found.append(loss)
        if update.step == 4:
            progress = {"step": 4, "place": list(update.position)}
            save_checkpoint(tmp_path / "four", model, tokenizer, optimizer, progress)
    other = new_model(tokenizer)
    optimizer = adam(other)
    load_checkpoint(tmp_path / "four", other, optimizer, 4)
    progress = json.loads((tmp_path / "four" / "progress.json").read_text())
    start = progress["step"], tuple(progress["place"])
    assert [loss for _, loss in losses(other, optimizer, start)] == found[4:]
    assert load(tmp_path / "four", device="cpu").model.config == model.config


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("d_model", -2, "d_model is -2"),
        ("d_model", 2**18, "has shape|has no"),
        ("dropout", 1.0, "dropout is 1.0"),
        ("src_vocab_size", 301, "a shared vocabulary needs"),
        ("pad_id", 10_000, "pad_id is 10000"),
    ],
)
def test_a_damaged_configuration_is_named(folder, name, value, message):
    about = json.loads((folder / "config.json").read_text())
    about[name] = value
    (folder / "config.json").write_text(json.dumps(about))
    with pytest.raises(UserError, match=message):
        load(folder, device="cpu")


def test_what_only_a_transformer_has_is_refused(folder, tmp_path):
    translator = load(folder, device="cpu")
    with pytest.raises(UserError, match="no heads"):
        translator.attention("two hours ago", "vor zwei Stunden")
    with pytest.raises(UserError, match="Transformer alone"):
        load(folder, device="cpu", engine="ctranslate2")
    with pytest.raises(UserError, match="float32 only"):
        load(folder, device="cpu", dtype="bfloat16")
    average_checkpoints([folder, folder], tmp_path / "average")
    assert load(tmp_path / "average").config == translator.config
