"""How sure a translator is: the probability of each word, and what is marked."""

import math
from dataclasses import replace

import pytest
from exporting import PAIRS, PHRASES, random_model, shipped, two_vocabularies
from tiny_run import refused

from annotated_transformer.cli.translate import GUESS
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.errors import UserError
from annotated_transformer.pretrained import load
from annotated_transformer.translation import confidence
from annotated_transformer.translation.confidence import (
    DOUBTFUL,
    Confidence,
    in_brackets,
    word_probabilities,
)
from annotated_transformer.translation.translator import Translator
from benchmarks.paper.confidence import agreement, told_apart
from benchmarks.record import load as load_record

PHRASE = "the twenty-first of March"
pytestmark = pytest.mark.filterwarnings("ignore:.*reached its limit")


def close(found: list[Confidence], wanted: list[Confidence]) -> bool:
    """The same texts and, but for the rounding of other batches, probabilities."""
    numbers = [[p for each in side for _, p in each.words] for side in (found, wanted)]
    same = [each.text for each in found] == [each.text for each in wanted]
    return same and numbers[0] == pytest.approx(numbers[1], abs=1e-4)


def test_each_translation_has_the_probability_of_its_words():
    found = shipped().confidence(PHRASES)
    assert [each.text for each in found] == shipped().translate(PHRASES)
    for each in found:
        assert " ".join(word for word, _ in each.words) == each.text
        assert all(0 < probability <= 1 for _, probability in each.words)
    assert shipped().confidence(PHRASE) == shipped().confidence([PHRASE])[0]
    stream = shipped().confidence_stream(PHRASES, lines_at_once=3)
    assert close(list(stream), found)


def test_the_probabilities_are_those_of_score():
    found = shipped().confidence(PHRASES)
    scores = shipped().score(PHRASES, [each.text for each in found])
    for each, score in zip(found, scores, strict=True):
        assert each.log_probability == pytest.approx(score.total, abs=1e-4)
        mean_of_tokens = score.total / len(score.token_log_probabilities)
        assert math.log(each.probability) == pytest.approx(mean_of_tokens, abs=1e-4)
        words: list[float] = []
        for token, log_prob in zip(
            score.tokens[:-1], score.token_log_probabilities, strict=False
        ):
            if token.startswith("▁"):
                words.append(1.0)
            words[-1] = min(words[-1], math.exp(log_prob))
        assert [p for _, p in each.words] == pytest.approx(words, abs=1e-4)


def test_blank_and_split_lines_stay_whole():
    long = "July 1909. " * 100
    blank, cut = shipped().confidence(["", long], split=True)
    assert blank == Confidence("", [], 0.0)
    assert blank.marked == "" and blank.probability == 1.0
    assert cut.text == shipped().translate(long, split=True)
    assert [word for word, _ in cut.words] == cut.text.split(" ")
    assert shipped().confidence([]) == [] and shipped().confidence("  ") == blank


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_every_engine_has_the_same(engine):
    if engine == "ctranslate2":
        pytest.importorskip("ctranslate2")
    other = load("phrasebook-en-de", device="cpu", engine=engine)
    assert close(other.confidence(PHRASES[:5]), shipped().confidence(PHRASES[:5]))


def test_samples_and_cut_translations_have_words_too():
    drawn = shipped().confidence(PHRASE, temperature=3.0, seed=1)
    assert drawn.text == shipped().translate(PHRASE, temperature=3.0, seed=1)
    for length in (1, 2):
        cut = shipped().confidence([PHRASE], max_length=length)[0]
        assert " ".join(word for word, _ in cut.words) == cut.text


@pytest.mark.parametrize("kind", ["two vocabularies", "Moses"])
def test_other_tokenizers(kind):
    tokenizer = two_vocabularies()
    if kind == "Moses":
        pairs = [(f'"{en}", {en}.', f'"{de}", {de}.') for en, de in PAIRS]
        tokenizer = train_tokenizer(pairs, "en", "de", 200, moses=True, lowercase=True)
    translator = Translator(random_model(tokenizer), tokenizer)
    for each in translator.confidence(PHRASES[:4], max_length=12):
        assert " ".join(word for word, _ in each.words) == each.text
        assert all(0 < probability < 1 for _, probability in each.words)


def test_moses_words_have_the_tokens_that_the_rules_joined():
    pairs = [("Yes, we do.", "Ja, das tun wir.")] * 9
    tokenizer = train_tokenizer(pairs, "en", "de", 60, moses=True)
    (ids,) = tokenizer.encode_target(["Ja, das tun wir."])
    tokens = tokenizer.target_tokens("Ja, das tun wir.")
    log_probs = [-float(place) for place in range(len(ids))]
    found = word_probabilities(tokenizer, "Ja, das tun wir.", ids[:-1], log_probs)
    assert [word for word, _ in found] == ["Ja,", "das", "tun", "wir."]
    comma = tokens.index(",▁")
    assert found[0][1] == math.exp(-comma)


def test_doubtful_words_stand_in_brackets():
    words = [("Ich", 0.9), ("heiße", 0.8), ("Elke.", 0.01)]
    found = Confidence("Ich heiße Elke.", words, -5.0)
    assert found.marked == "Ich heiße [Elke?]."
    sure = replace(found, words=[(word, 0.9) for word, _ in words])
    assert sure.marked == sure.text
    assert in_brackets('"Tom,"') == '"[Tom?],"' and in_brackets("–") == "[–?]"
    assert in_brackets("39-jährige!") == "[39-jährige?]!"


def test_the_command_marks_what_was_guessed(run, monkeypatch, tmp_path):
    given = "translate", "--show-confidence", "-m", "phrasebook-en-de"
    status, out, _ = run(*given, f"{PHRASE}\n\n{PHRASE}")
    assert status == 0
    mean, text = out.splitlines()[0].split("\t")
    assert text == "der einundzwanzigste März" and 0.5 < float(mean) <= 1
    assert out.splitlines() == [f"{mean}\t{text}", "1.00\t", f"{mean}\t{text}"]
    monkeypatch.setattr(confidence, "DOUBTFUL", 1.1)
    (tmp_path / "lines").write_text(f"{PHRASE}\n")
    out = run(*given, "--input", tmp_path / "lines", "--split")[1]
    assert out.strip() == f"{mean}\t[der?] [einundzwanzigste?] [März?]"
    refused(run(*given, "March 3", "--n-best", 2), "--show-confidence", "--n-best")


def test_bad_input_is_one_error():
    with pytest.raises(UserError, match="put it in a list"):
        list(shipped().confidence_stream(PHRASE))
    with pytest.raises(UserError, match="beam_sice"):
        shipped().confidence(PHRASE, beam_sice=1)
    with pytest.raises(UserError, match="line 2 has characters"):
        shipped().confidence([PHRASE, "☃"], strict=True)


def test_the_thresholds_are_those_of_the_shipped_models_record():
    scores = load_record("paper/confidence.json")["scores"]
    thresholds = [scores[name]["threshold"] for name in list(scores)[:2]]
    assert thresholds == pytest.approx([DOUBTFUL, GUESS], abs=0.005)


def test_a_threshold_flags_one_right_translation_in_twenty():
    import numpy as np

    right, wrong = np.arange(100.0), np.array([-1.0, 4.5, 50.0, 200.0])
    found = told_apart(right, wrong)
    assert found["threshold"] == 5 and found["right flagged"] == 0.05
    assert found["wrong flagged"] == 0.5
    assert found["auc"] == round((1 + 0.95 + 0.495 + 0) / 4, 4)
    assert agreement(["a b", "a b", "a c", "a"]) == 0.5 and agreement(["", "a"]) == 1
