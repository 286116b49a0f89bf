"""The recurrent translator goes through the package's trainer, folders and search."""

import json

import pytest
import torch

from annotated_transformer import UserError, load, loading, verify
from annotated_transformer.before.recurrent import RecurrentConfig, RecurrentModel
from annotated_transformer.data.batching import TokenizedPairs
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.training.checkpoint import (
    average_checkpoints,
    load_checkpoint,
    save_checkpoint,
    save_model,
)
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.trainer import TrainingConfig, train
from annotated_transformer.translation.search import SearchOptions, force
from annotated_transformer.translation.translator import Translator

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


def test_it_is_saved_and_opened_by_load(tokenizer, folder):
    kept, options = new_model(tokenizer), SearchOptions(max_length=9)
    ours = Translator(kept, tokenizer).n_best(["the twenty-first of March"], options)
    for engine in ("torch", "plain"):
        opened = load(folder, device="cpu", engine=engine)
        assert isinstance(opened.model, RecurrentModel) and not opened.model.training
        assert opened.n_best(["the twenty-first of March"], options) == ours
    assert loading.architecture(folder) == kept.config


def test_a_beam_finds_what_a_pass_over_the_whole_scores(tokenizer, folder):
    translator = load(folder, device="cpu")
    src = torch.tensor(tokenizer.encode_source(["two hours ago"]))
    (found, *_), *_ = translator.engine.search(
        src.tolist(), SearchOptions(beam_size=3, max_length=6)
    )
    tokens = found.tokens + [translator.model.config.eos_id] * found.finished
    scores = force(translator.model, src, torch.tensor([tokens]))
    assert scores.sum().item() == pytest.approx(found.log_probability, abs=1e-4)
    scored = translator.score("two hours ago", "vor zwei Stunden")
    assert scored.total < 0


def test_a_run_goes_on_from_its_checkpoint_to_the_same_losses(tokenizer, tmp_path):
    pairs = TokenizedPairs.build(TEXTS, tokenizer)

    def losses(model, optimizer, start):
        updates = train(Objective(model, 0.1), optimizer, pairs, SETTINGS, start)
        for update in updates:
            yield update, update.loss.item()

    model = new_model(tokenizer)
    optimizer, found = adam(model), []
    for update, loss in losses(model, optimizer, (0, (0, 0))):
        found.append(loss)
        if update.step == 4:
            progress = {"step": 4, "place": list(update.place)}
            save_checkpoint(tmp_path / "four", model, tokenizer, optimizer, progress)
    other = new_model(tokenizer)
    optimizer = adam(other)
    progress = load_checkpoint(tmp_path / "four", other, optimizer)
    start = progress["step"], tuple(progress["place"])
    assert [loss for _, loss in losses(other, optimizer, start)] == found[4:]
    assert load(tmp_path / "four", device="cpu").model.config == model.config


def test_training_teaches_it_something(tokenizer):
    pairs = TokenizedPairs.build(TEXTS, tokenizer)
    objective = Objective(new_model(tokenizer), 0.0)
    settings = TrainingConfig(steps=40, batch_tokens=512, warmup=20)
    found = [
        update.loss.item() / update.tokens
        for update in train(objective, adam(objective.model), pairs, settings)
    ]
    assert found[-1] < 0.9 * found[0]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("d_model", 18, "has shape"),
        ("d_model", -2, "d_model is -2"),
        ("d_model", 2**18, "don't belong together"),
        ("dropout", 1.0, "dropout is 1.0"),
        ("dropout", "much", "dropout"),
        ("src_vocab_size", 301, "one size"),
        ("width", 3, "width"),
        ("pad_id", 10_000, "pad_id is 10000"),
    ],
)
def test_a_damaged_configuration_is_named(folder, name, value, message):
    about = json.loads((folder / "config.json").read_text())
    about["architecture"][name] = value
    (folder / "config.json").write_text(json.dumps(about))
    verify(folder, accept=True)
    with pytest.raises(UserError, match=message):
        load(folder, device="cpu")


def test_what_only_a_transformer_has_is_refused(folder, tmp_path):
    translator = load(folder, device="cpu")
    with pytest.raises(UserError, match="no heads"):
        translator.attention("two hours ago", "vor zwei Stunden")
    with pytest.raises(UserError, match="Transformer alone"):
        load(folder, device="cpu", engine="ctranslate2")
    with pytest.raises(UserError, match="float32 only"):
        load(folder, device="cpu", precision="bfloat16")
    with pytest.raises(UserError, match="recurrent"):
        average_checkpoints([folder, folder], tmp_path / "average")
