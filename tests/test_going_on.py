"""A run that goes on from a trained model: what it takes over, how it resumes, and one
clear error for each start that doesn't fit.
"""

import json

import pytest
import torch
from tiny_run import losses, train_arguments

from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.engine.runs import Start, fit, going_on, prepare
from annotated_transformer.loading import load, open_model
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import load_model, save_model
from annotated_transformer.training.recipes import recipe

pytestmark = pytest.mark.filterwarnings("ignore:.*reached its limit")
FEW = "batch_tokens=256 log_every=1 save_every=2 keep=1"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model folder with random weights, of an architecture that no recipe has."""
    torch.manual_seed(0)
    tokenizer = train_tokenizer(
        phrasebook("en", "de", "train", 300), "en", "de", 300, lowercase=True
    )
    size = tokenizer.src_vocab_size
    config = TransformerConfig(
        size, size, N=1, d_model=16, d_ff=24, h=2, d_k=8, d_v=4, max_length=64
    )
    folder = tmp_path_factory.mktemp("models") / "random"
    save_model(folder, Transformer(config), tokenizer)
    return folder


@pytest.fixture
def own(tmp_path):
    """Files train and valid with other phrases."""
    for split, count in {"train": 60, "valid": 10}.items():
        pairs = phrasebook("en", "de", "test" if split == "train" else "val", count)
        for side, language in enumerate(["en", "de"]):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (tmp_path / f"{split}.{language}").write_text(text, encoding="utf-8")
    return tmp_path


def refused(result, *words):
    status, _, err = result
    assert status == 2 and err.startswith("error: ") and err.count("\n") == 1, result
    assert all(str(word) in err for word in words), err


def test_a_run_takes_over_weights_tokenizer_and_architecture(run, model, own):
    common = train_arguments(own, own / "run", f"{FEW} steps=2")
    assert run(*common, "--from", model)[0] == 0
    before, tokenizer = load_model(model)
    after, found = load_model(own / "run" / "model")
    assert after.config == before.config and found.lowercase
    assert found.source.get_vocab() == tokenizer.source.get_vocab()
    moved = [
        (a - b).abs().max().item()
        for a, b in zip(after.parameters(), before.parameters(), strict=True)
    ]
    assert 0 < max(moved) < 1e-3  # two updates at a rate below 3e-5
    about = json.loads((own / "run" / "run.json").read_text())
    assert about["start"]["model"] == str(model)
    assert len(about["start"]["weights_sha256"]) == 64
    assert run("translate", "-m", own / "run", "March 3")[0] == 0


def test_it_resumes_like_any_run(run, model, own):
    def train(folder, steps, *more):
        arguments = train_arguments(own, own / folder, f"{FEW} steps={steps}")
        return run(*arguments, *more)

    begin = ["--from", model]
    assert train("whole", 6, *begin)[0] == 0
    assert train("parts", 3, *begin)[0] == 0 and train("parts", 6, *begin)[0] == 0
    steady = [row for row in losses(own / "whole") if row[0] == "update"]
    assert steady == [row for row in losses(own / "parts") if row[0] == "update"]
    refused(train("parts", 6), own / "parts", "another recipe")
    refused(train("parts", 6, "--from", "phrasebook-en-de"), "another recipe")


def test_a_shipped_model_starts_far_below_a_new_one(tmp_path):
    pairs = phrasebook("en", "de", "train", 200)
    seen = []
    for name in ("phrasebook-en-de", None):
        start = Start(name, *open_model(name, torch.device("cpu"))) if name else None
        plan = recipe("phrasebook")
        plan = going_on(plan, start) if start else plan
        small = {"steps": 1, "save_every": 1, "batch_tokens": 256}
        training = type(plan.training)(**plan.training.to_dict() | small)
        plan = type(plan)(**{**vars(plan), "training": training})
        folder = tmp_path / str(name)
        fit(prepare(plan, folder, pairs, pairs[:20], seen.append, "cpu", start))
    first, second = (row["loss"] for row in seen if row["event"] == "validation")
    assert first < 1 < 4 < second


def test_a_recipe_in_small_goes_on_too(run, model, own):
    small = train_arguments(own, own / "run", FEW)
    status, out, _ = run(*small, "--from", model, "--dry-run")
    assert status == 0 and "perplexity" in out and not (own / "run").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--set", "d_model=32"], ["d_model", "--from"]),
        (["--set", "dropout=0.3"], ["dropout", "leave out"]),
        (["--set", "vocab_size=99"], ["vocab_size", "leave out"]),
        (["--set", "lowercase=false"], ["lowercase"]),
        (["--set", "stpes=3"], ["stpes", "steps"]),
        (["--set", "max_tokens=100"], ["max_tokens", "64"]),
        (["--recipe", "phrasebook"], ["--recipe", "--from"]),
    ],
)
def test_settings_that_the_model_decides_are_refused(run, model, own, more, words):
    arguments = train_arguments(own, own / "run")
    refused(run(*arguments, "--from", model, *more), *words)
    assert not (own / "run").exists()


def test_a_model_that_does_not_fit_is_refused(run, model, own):
    arguments = train_arguments(own, own / "run")
    refused(run(*arguments, "--from", own), own, "holds no model")
    refused(run(*arguments, "--from", "tatoeba-en-ed"), "no such model")
    turned = [{"en": "de", "de": "en"}.get(each, each) for each in arguments]
    refused(run(*turned, "--from", model), "en to de", "de to en")
    for split in ("train", "valid"):
        (own / f"{split}.en").write_text("καλημέρα κόσμε\n" * 10, encoding="utf-8")
        (own / f"{split}.de").write_text("März\n" * 10, encoding="utf-8")
    refused(run(*arguments, "--from", model), "en tokens are unknown", model)
    assert not (own / "run").exists()


def test_a_run_that_went_on_can_be_gone_on_from(run, model, own):
    first = train_arguments(own, own / "first", f"{FEW} steps=2")
    assert run(*first, "--from", model)[0] == 0
    second = train_arguments(own, own / "second", f"{FEW} steps=2")
    assert run(*second, "--from", own / "first")[0] == 0
    assert load(own / "second").tokenizer.lowercase
