"""How the everyday model is measured and shipped, in small."""

import json
import re
from random import Random

import pytest
import torch
from tiny_run import fit, start

from annotated_transformer import load
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.files import read_card, read_json
from annotated_transformer.model_names import find_folder
from annotated_transformer.translation.prepared_data import InitFrom
from benchmarks import record
from benchmarks.paper import (
    everyday,
    mean_of_pieces,
    rare_pieces,
    reverse_direction,
)
from benchmarks.paper.augmentation import read_table
from benchmarks.paper.robustness import (
    CARRIERS,
    NOISE,
    copied,
    in_rows,
    numbers,
    sixty,
    unseen_names,
)
from benchmarks.record import RESULTS, ROOT

GERMAN = reverse_direction.CARRIERS


@pytest.mark.parametrize(
    ("value", "output", "whole"),
    [
        ("Ingrid", "Ingrids Auto ist alt.", True),
        ("Kloves", "Ich kenne Kloves' Auto.", True),
        ("Ingrid", "Ich kenne Ingrida.", False),
        ("Ingrid", "Ich kenne Klein-Ingrid.", False),
        ("15", "Das kostet 15 $.", True),
        ("15", "Das kostet 15,15 $.", False),
        ("15", "Das kostet 215 $.", False),
        ("4311", "Es waren 4.311 Vögel.", True),
        ("7:45", "Er beginnt um 7.45 Uhr.", True),
        ("7:45", "Er beginnt um 17:45 Uhr.", False),
        ("a.b@c.de", "Schreib an a.b@c.de.", True),
        ("a.b@c.de", "Schreib an xa.b@c.de.", False),
        ("a.b@c.de", "Schreib an a.b@c.de.com.", False),
    ],
)
def test_what_counts_as_copied(value, output, whole):
    assert copied(value, output) is whole


def test_what_is_copied_is_new_to_the_model():
    known = "Thomas and Andrea live in New York. Mexico is not a City."
    asked = unseen_names(Random(0), known, 100)
    assert len(asked) == 100 and {kind for kind, *_ in asked} == {
        *("first name", "surname", "city", "invented")
    }
    assert not re.search("Thomas|Andrea |New York|Mexico", str(asked))
    assert all(name in source for _, source, name in asked)
    asked = numbers(Random(0), 50)
    assert all(value in source for _, source, value in asked)
    frames = {re.sub(r"{\w+}", "{}", row["en"]) for row in read_table("frames.tsv")}
    assert not frames & {text for texts in CARRIERS.values() for text in texts}


@pytest.mark.parametrize(
    ("kind", "noisy"),
    [
        ("lower case", 'she said, "don\'t."'),
        ("capitals", 'SHE SAID, "DON\'T."'),
        ("title case", 'She Said, "don\'t."'),
        ("curly quotes", "She said, “don’t.”"),
        ("doubled spaces", 'She  said,  "don\'t."'),
    ],
)
def test_noise(kind, noisy):
    assert NOISE[kind]('She said, "don\'t."', Random(0)) == noisy


def test_sentences_in_a_row():
    assert in_rows(["a", "b", "c", "d", "e"], 2) == ["a b", "c d"]


def test_sixty_sentences_are_judged():
    class Parrot:
        def translate(self, texts):
            return ["Sie spricht drei Sprachen." if "speaks" in t else t for t in texts]

    found = sixty(Parrot())
    assert found["sentences"] == 60 and found["right"] == 1
    assert found["kinds"]["plain"] == "1 of 8" and found["kinds"]["case"] == "0 of 8"


@pytest.mark.filterwarnings("ignore:passed as unknown")
def test_a_trial_measures_a_run_and_ships_nothing(tmp_path, data_root, monkeypatch):
    """All goes to the trial's folder: the model, its card and both records."""
    monkeypatch.setattr(everyday, "TRIAL", 6)
    monkeypatch.setattr(everyday, "SHIPPED", tmp_path / "nowhere")
    monkeypatch.setattr(record, "RESULTS", tmp_path / "nowhere")
    fit(start(tmp_path / "run"))
    out = tmp_path / "trial"
    everyday.main([str(tmp_path / "run"), "--trial", str(out)])
    assert not (tmp_path / "nowhere").exists()
    found, typed = (
        json.loads((out / f"{name}.json").read_text("utf-8"))
        for name in ("record", "robustness")
    )
    assert found["chosen"]["alpha"] in (0.2, 0.6, 1.0) and found["updates"] == 12
    assert len(found["tried_on_val"]) == 3
    assert typed["sixty"]["sentences"] == 6 and "three in a row" in typed["noise"]
    text = (out / "model" / "card.md").read_text("utf-8")
    assert "of 6 sentences" in text and "{" not in text
    assert load(out / "model", device="cpu").tokenizer.tgt_lang == "de"


@pytest.mark.filterwarnings("ignore:passed as unknown")
def test_a_trial_of_the_reverse_direction(tmp_path, data_root, monkeypatch):
    monkeypatch.setattr(reverse_direction, "TRIAL", 6)
    monkeypatch.setattr(reverse_direction, "ROOT", tmp_path / "nowhere")
    monkeypatch.setattr(record, "RESULTS", tmp_path / "nowhere")
    fit(start(tmp_path / "run"))
    out = tmp_path / "trial"
    reverse_direction.main([str(tmp_path / "run"), "--trial", str(out)])
    assert not (tmp_path / "nowhere").exists()
    typed = json.loads((out / "robustness.json").read_text("utf-8"))
    assert typed["copying"].keys() == {"names", "numbers"}
    text = (out / "model" / "card.md").read_text("utf-8")
    assert "from German to English" in text and "{" not in text


def test_german_sentences_for_names_are_new_to_the_model():
    frames = {re.sub(r"{\w+}", "{}", row["de"]) for row in read_table("frames.tsv")}
    assert not frames & {text for each in GERMAN.values() for text in each}
    assert GERMAN.keys() == CARRIERS.keys()


def test_the_reverse_model_translates_and_its_card_is_its_record():
    folder = ROOT / "models" / "tatoeba-de-en"
    translator = load(folder, device="cpu")
    assert translator.translate("Wo ist der Bahnhof?") == "Where is the station?"
    found = read_json(RESULTS / "runs" / "tatoeba-de-en" / "record.json")
    scores = found["as_shipped"]["bleu"], found["tests"]["newstest2014"]["bleu"]
    assert all(str(score) in read_card(folder) for score in scores)


def test_rare_pieces_leave_the_vocabulary_and_the_rest_goes_on(tmp_path, monkeypatch):
    before = load("phrasebook-en-de", device="cpu", engine="plain")
    frequent, rare = "the first of March", "the thirty-first of December"
    pairs = [(frequent, before.translate(frequent))] * 6 + [(rare, "")]
    TokenizedPairs.build(pairs, before.tokenizer, tmp_path / "text")
    monkeypatch.setattr(rare_pieces, "LEAST", 5)
    monkeypatch.setattr(rare_pieces, "EXAMPLE", "▁March")
    monkeypatch.setattr(rare_pieces, "names_copied", lambda *given: 0.5)
    monkeypatch.setattr(rare_pieces, "sides", lambda *given: ([], []))
    saved = {}
    monkeypatch.setattr(
        rare_pieces, "save", lambda place, found, *_: saved.update(found)
    )
    phrases = find_folder("phrasebook-en-de")
    folders = phrases, tmp_path / "text", tmp_path / "fewer"
    rare_pieces.main(list(map(str, folders)))
    after = load(tmp_path / "fewer", device="cpu", engine="plain")
    same, shorter = (
        [each.tokenizer.source_tokens(text) for each in (before, after)]
        for text in (frequent, rare)
    )
    assert same[0] == same[1] and len(shorter[0]) < len(shorter[1])
    assert saved["pieces"] == {"before": 1_000, "after": after.tokenizer.src_vocab_size}
    assert saved["an example"] == {"▁March": 6} and saved["pieces"]["after"] < 200
    assert after.translate(frequent) == before.translate(frequent)
    assert after.tokenizer.decode(after.tokenizer.encode_target([rare])) == [rare]
    mean_of_pieces.main([*map(str, (phrases, tmp_path / "fewer", tmp_path / "whole"))])
    whole = load(tmp_path / "whole", device="cpu", engine="plain")
    assert whole.tokenizer.source.get_vocab() == before.tokenizer.source.get_vocab()
    assert whole.tokenizer.source_tokens(rare) == shorter[1]
    assert whole.tokenizer.target_tokens(rare) == shorter[0]
    turned = (
        InitFrom("", whole.model, whole.tokenizer).in_direction("de", "en").tokenizer
    )
    assert (turned.source, turned.target) == (
        whole.tokenizer.target,
        whole.tokenizer.source,
    )
    for name, weight in before.model.state_dict().items():
        assert torch.equal(whole.model.state_dict()[name], weight)
