"""A run that goes on from a trained model: what it takes over, how it resumes, and one
clear error for each start that doesn't fit.
"""

import json
from dataclasses import replace

import pytest
import torch
from tiny_run import (
    losses,
    opened,
    random_model,
    refused,
    train_arguments,
    write_pairs,
)

from annotated_transformer import load
from annotated_transformer.files import read_card
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.run import fit
from annotated_transformer.translation.prepared_data import InitFrom
from annotated_transformer.translation.task import fine_tuning_recipe, prepare

pytestmark = pytest.mark.filterwarnings("ignore:.*reached its limit")
FEW = "batch_tokens=256 log_every=1 save_every=2 keep=1"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model folder with random weights, of an architecture that no recipe has."""
    folder = tmp_path_factory.mktemp("models") / "random"
    return random_model(folder, lowercase=True, d_ff=24, d_k=8, d_v=4)


@pytest.fixture
def own(tmp_path):
    return write_pairs(tmp_path)


def test_a_run_takes_over_weights_tokenizer_and_architecture(run, model, own):
    common = train_arguments(own, own / "run", f"{FEW} steps=2")
    assert run(*common, "--from", model)[0] == 0
    before, after = opened(model), opened(own / "run")
    assert after.config == before.config and after.tokenizer.lowercase
    vocabularies = [each.tokenizer.source.get_vocab() for each in (before, after)]
    assert vocabularies[0] == vocabularies[1]
    moved = [
        (a - b).abs().max().item()
        for a, b in zip(
            after.model.parameters(), before.model.parameters(), strict=True
        )
    ]
    assert 0 < max(moved) < 1e-3  # two updates at a rate below 3e-5
    about = json.loads((own / "run" / "run.json").read_text())
    assert about["data"]["init_from"]["model"] == str(model)
    assert len(about["data"]["init_from"]["weights_sha256"]) == 64
    again = train_arguments(own, own / "again", f"{FEW} steps=2")
    assert run(*again, "--from", own / "run")[0] == 0
    assert load(own / "again").tokenizer.lowercase


def test_a_run_leaves_the_model_that_it_starts_from_as_it_is(tmp_path):
    start, pairs = load("phrasebook-en-de", device="cpu"), [("March 3", "3. März")] * 9
    before = {name: w.clone() for name, w in start.model.state_dict().items()}
    init = InitFrom("phrasebook-en-de", start.model, start.tokenizer)
    plan = fine_tuning_recipe(recipe("phrasebook"), init)
    plan = replace(plan, training=replace(plan.training, steps=1))
    fit(prepare(plan, tmp_path / "run", pairs, pairs, None, "cpu", init))
    for name, weights in start.model.state_dict().items():
        assert torch.equal(weights, before[name]), name


def test_a_run_that_goes_on_from_a_model_is_not_advised_to(run, model, own):
    common = train_arguments(own, own / "run", f"{FEW} steps=1")
    assert "--from" not in run(*common, "--from", model)[2]
    common = train_arguments(own, own / "alone", f"{FEW} steps=1")
    assert "go on from a trained model, --from" in run(*common)[2]


def test_a_new_run_of_own_files_says_its_sizes(run, own):
    asked = train_arguments(own, own / "run", f"{FEW} steps=1")
    assert "4 + 4 layers, d_model 128, " in run(*asked)[1]
    assert "layers" not in run(*asked)[1]


def test_the_reverse_direction_starts_from_the_same_weights(run, own):
    common = train_arguments(own, own / "run", "steps=1 batch_tokens=256")
    turned = [{"en": "de", "de": "en"}.get(each, each) for each in common]
    status, _, err = run(*turned, "--from", "phrasebook-en-de")
    assert status == 0 and err.count("near chance or worse") == 1
    assert "the other direction; loss as a share of ln V 1." in err
    made = load(own / "run")
    assert (made.tokenizer.src_lang, made.tokenizer.tgt_lang) == ("de", "en")
    assert made.translate("der erste Mai")


def test_it_resumes_like_any_run(run, model, own):
    def train(folder, steps, *more):
        arguments = train_arguments(own, own / folder, f"{FEW} steps={steps}")
        return run(*arguments, *more)

    begin = ["--from", model]
    assert train("whole", 6, *begin)[0] == 0
    assert train("parts", 3, *begin)[0] == 0 and train("parts", 6, *begin)[0] == 0
    steady = [row for row in losses(own / "whole") if row[0] == "update"]
    assert steady == [row for row in losses(own / "parts") if row[0] == "update"]
    starts = [row for row in losses(own / "parts") if row[:2] == ("validation", 0)]
    assert len(starts) == 1  # measured before the first update, and not on resuming
    refused(train("parts", 6), own / "parts", "init_from is in one of them alone")
    refused(train("parts", 6, "--from", "phrasebook-en-de"), "'phrasebook-en-de' here")


def test_a_shipped_model_starts_far_below_a_new_one(run, own):
    common = train_arguments(own, own / "run", "steps=1 batch_tokens=256")
    status, _, err = run(*common, "--from", "phrasebook-en-de")
    assert status == 0 and "chance" not in err
    rows = losses(own / "run")
    (at, before), (later, _) = [row[1:] for row in rows if row[0] == "validation"]
    assert (at, later) == (0, 1) and before < 1  # a new one begins above 5
    card = read_card(own / "run" / "model")
    assert card.startswith("Fine-tuned from phrasebook-en-de") and "Licence" in card


def test_a_dry_run_goes_on_too(run, model, own):
    small = train_arguments(own, own / "run", FEW)
    status, out, _ = run(*small, "--from", model, "--dry-run")
    assert status == 0 and "perplexity" in out and not (own / "run").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--set", "d_model=32"], ["d_model follows from", "leave it out"]),
        (["--set", "vocab_size=99"], ["vocab_size follows from"]),
        (["--set", "lowercase=false"], ["lowercase"]),
        (["--set", "normalize=true"], ["normalize"]),
        (["--set", "stpes=3"], ["stpes", "steps"]),
        (["--set", "max_tokens=100"], ["max_tokens", "64"]),
        (["--recipe", "phrasebook"], ["--recipe", "--from"]),
        (["--parts", "rotary"], ["--parts", "--from"]),
    ],
)
def test_settings_that_the_model_decides_are_refused(run, model, own, more, words):
    arguments = train_arguments(own, own / "run")
    refused(run(*arguments, "--from", model, *more), *words)
    assert not (own / "run").exists()


def test_a_model_that_does_not_fit_is_refused(run, model, own):
    arguments = train_arguments(own, own / "run")
    refused(run(*arguments, "--from", own), own, "no model")
    refused(run(*arguments, "--from", "tatoeba-en-ed"), "no such model")
    other = [{"de": "fr"}.get(each, each) for each in arguments]
    for split in ("train", "valid"):
        (own / f"{split}.fr").write_text("mars\n" * 10, encoding="utf-8")
        (own / f"{split}.en").write_text("March\n" * 10, encoding="utf-8")
    refused(run(*other, "--from", model), "en to de", "en to fr")
    for split in ("train", "valid"):
        (own / f"{split}.en").write_text("καλημέρα κόσμε\n" * 10, encoding="utf-8")
        (own / f"{split}.de").write_text("März\n" * 10, encoding="utf-8")
    refused(run(*arguments, "--from", model), "en tokens are unknown", model)
    assert not (own / "run").exists()
