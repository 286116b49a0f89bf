"""The translator: order, batches, streaming, scores, attention, and one clear error for
each bad input.
"""

import copy
import itertools
import json
import pickle
from dataclasses import replace
from html import unescape

import pytest
import torch

from annotated_transformer import load
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.decoding.engines import ENGINES
from annotated_transformer.decoding.model_search import ModelSearch, teacher_forcing
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import beam
from annotated_transformer.errors import UserError
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.translation.attention_weights import recording_copy
from annotated_transformer.translation.lines import restore_unknown, split_sentences
from annotated_transformer.translation.translator import Translator

NUMBERS = "one two three four five six seven eight nine ten".split()
ZAHLEN = "eins zwei drei vier fünf sechs sieben acht neun zehn".split()
TEXTS = ["one two", "seven", "three three four five. Six", "nine ten one", "two"]
TEXTS += ["eight nine ten six four"]

pytestmark = [
    pytest.mark.filterwarnings("ignore:line .* was cut there"),
    pytest.mark.filterwarnings("ignore:passed as unknown"),
    pytest.mark.filterwarnings("ignore:line .*unk. stands"),
]


def build(max_length: int = 16) -> Translator:
    """A translator that was never trained, with a tokeniser that was."""
    sides = (itertools.permutations(words, 3) for words in (NUMBERS, ZAHLEN))
    pairs = [(f"{' '.join(a)}. Six", " ".join(b)) for a, b in zip(*sides, strict=True)]
    tokenizer = train_tokenizer(pairs, "en", "de", 80)
    torch.manual_seed(2)
    size, sizes = tokenizer.src_vocab_size, dict(N=2, d_model=16, d_ff=32, h=4)
    config = TransformerConfig(size, size, **sizes, max_length=max_length)
    model = Transformer(config)
    with torch.no_grad():
        model.tgt_embedding.weight *= 1.5
    return Translator(model, tokenizer)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return build()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["phrasebook-en-de", "tatoeba-en-de"])
def test_a_copy_translates_the_same(name, engine):
    if engine == "ctranslate2":
        pytest.importorskip("ctranslate2")
    texts = ["the twenty-first of March", "I wrote to tom@example.org."]
    made = load(name, device="cpu", engine=engine)
    wanted, weight = made.translate(texts), "tgt_embedding.weight"
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert repr(again) == repr(made) and again.translate(texts) == wanted
        assert again.model.get_parameter(weight) is not made.model.get_parameter(weight)


def test_a_copy_keeps_an_engine_of_your_own():
    made = build()
    own = Translator(made.model, made.tokenizer, ModelSearch(made.model))
    again = copy.deepcopy(own)
    assert again.engine.model is again.model is not made.model
    assert again.translate(TEXTS) == made.translate(TEXTS)


def message(call) -> str:
    with pytest.raises(ValueError) as error:
        call()
    return str(error.value)


# ---- translations ----


def test_a_normalizing_translator_reads_capitals_and_curly_quotes_as_any_others(
    translator,
):
    tokenizer = replace(translator.tokenizer, normalize=True)
    normalizing = Translator(translator.model, tokenizer)
    shouted, said = ["ONE TWO “SIX”", "I’LL TWO"], ['One two "six"', "I'll two"]
    assert normalizing.translate(shouted) == normalizing.translate(said)
    rows = normalizing.tokenizer.encode_source(shouted)
    assert rows == normalizing.tokenizer.encode_source(said)
    assert rows != translator.tokenizer.encode_source(shouted)


def test_translations_are_the_beam_searches_in_the_order_given(translator):
    outputs = translator.translate(TEXTS)
    rows = translator.tokenizer.encode_source(TEXTS)
    for output, row in zip(outputs, rows, strict=True):
        best = beam(translator.model, torch.tensor([row]))[0][0]
        assert output == translator.tokenizer.decode([best.tokens])[0]
    assert len(set(outputs)) > 2
    assert translator.translate(TEXTS[::-1]) == outputs[::-1]


def test_ids_are_searched_without_a_text(translator):
    rows = translator.tokenizer(TEXTS)["input_ids"]
    found = translator.engine.search(rows, SearchOptions())
    ids = [best.tokens for best, *_ in found]
    assert translator.tokenizer.decode(ids) == translator.translate(TEXTS)


@pytest.mark.parametrize("batch_tokens", [1, 12])
def test_the_size_of_batches_changes_nothing(translator, batch_tokens):
    options = SearchOptions(batch_tokens=batch_tokens)
    assert translator.translate(TEXTS, options) == translator.translate(TEXTS)


def test_a_stream_answers_before_it_reads_on(translator):
    read = []

    def lines():
        for text in TEXTS:
            read.append(text)
            yield text

    stream = translator.translate_stream(lines())
    assert read == []
    first = next(stream)
    assert read == TEXTS[:1]
    expected = translator.translate(TEXTS)
    assert [first, *stream] == expected
    by_four = translator.translate_stream(iter(TEXTS), lines_at_once=4)
    assert list(by_four) == expected


def test_n_best_starts_with_the_translation(translator):
    lists = translator.n_best(TEXTS, SearchOptions(n_best=3))
    for found, one in zip(lists, translator.translate(TEXTS), strict=True):
        assert len(found) == 3 and found[0].text == one
        finished = [t.score for t in found if t.finished]
        assert finished == sorted(finished, reverse=True)


def test_blank_lines_stay_where_they_are(translator):
    outputs = translator.translate(["one", " \n", "two", ""])
    assert outputs[1] == outputs[3] == ""
    assert outputs[::2] == translator.translate(["one", "two"])
    assert translator.translate("") == "" and translator.translate([]) == []
    assert translator.translate(["  one \t two\n"]) == translator.translate(["one two"])
    assert translator.n_best(["", "one"], SearchOptions(n_best=2))[0][0].text == ""
    lines = iter(["one", "", "two"])
    assert list(translator.translate_stream(lines)) == outputs[:3]


def test_samples_repeat_with_their_seed(translator):
    options = SearchOptions(temperature=1.0, n_best=5, seed=1)
    found = translator.n_best(TEXTS, options)
    assert found == translator.n_best(TEXTS, options)
    assert found != translator.n_best(TEXTS, replace(options, seed=2))
    assert all(len(each) == 5 for each in found)


def test_an_output_is_no_longer_than_it_may(translator):
    options = SearchOptions(max_length=3)
    with pytest.warns(UserWarning, match="line 1: the translation reached its limit"):
        (found,) = translator.n_best("nine ten one", options)
    assert not found.finished and len(found.text.split()) <= 3


# ---- cut output ----


# ---- scores ----


def test_scores_are_forced_and_sum(translator):
    targets = ["eins zwei", "sieben", "drei drei", "neun", "zwei zwei zwei", "acht"]
    scores = translator.score(TEXTS, targets)
    sources = translator.tokenizer.encode_source(TEXTS)
    rows = translator.tokenizer.encode_target(targets)
    for score, source, target in zip(scores, sources, rows, strict=True):
        pair = torch.tensor([source]), torch.tensor([target])
        expected = teacher_forcing(translator.model, *pair)[0].tolist()
        assert score.token_log_probabilities == pytest.approx(expected, abs=1e-5)
        assert score.total == pytest.approx(sum(expected), abs=1e-4)
        assert len(score.tokens) == len(target) and score.tokens[-1] == "</s>"
    again = translator.score(TEXTS, targets, batch_tokens=1)
    totals = [each.total for each in scores]
    assert [each.total for each in again] == pytest.approx(totals, abs=1e-4)


# ---- attention ----


def test_attention_has_every_weight_of_every_head(translator):
    found = translator.attention("three four", "drei vier")
    src, tgt = len(found.source), len(found.target)
    assert found.encoder.shape == (2, 4, src, src)
    assert found.decoder.shape == (2, 4, tgt, tgt)
    assert found.cross.shape == (2, 4, tgt, src)
    for weights in (found.encoder, found.decoder, found.cross):
        assert torch.allclose(
            weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-5
        )
    assert bool((found.decoder.triu(1) == 0).all())  # nothing looks ahead
    assert found.source[-1] == found.target[-1] == "</s>" and found.inputs == [
        "<s>",
        *found.target[:-1],
    ]


def test_recorded_weights_are_those_that_made_the_output(translator):
    """Weighted by what was recorded, the values give what the module put out."""
    model, seen = translator.model, {}
    module = model.decoder.layers[1].source_attention
    handle = module.register_forward_hook(
        lambda module, args, output: seen.update(args=args, output=output)
    )
    source = torch.tensor(translator.tokenizer.encode_source(["one two three"]))
    copy, weights = recording_copy(model)
    with torch.inference_mode():
        copy(source, torch.tensor([[1, 5, 6]]))
        recorded = weights["decoder.layers.1.source_attention"]
        values = module.keys_values(seen["args"][1])[1]
        made = module.W_O((recorded @ values).transpose(1, 2).flatten(2))
        assert torch.allclose(made, seen["output"], atol=1e-5)
    handle.remove()
    assert len(weights) == 6
    assert all(not module._forward_pre_hooks for module in model.modules())
    pairs = zip(model.parameters(), copy.parameters(), strict=True)
    assert all(one is other for one, other in pairs)


def test_a_notebook_shows_every_head(translator):
    found = translator.attention("one two", "eins zwei")
    data = found._repr_html_().split("panels='")[1].split("'>")[0]
    encoder, decoder, cross = json.loads(unescape(data))
    assert decoder["keys"][0] == "<s>" and decoder["queries"][-1] == "</s>"
    assert encoder["queries"] == encoder["keys"] == cross["keys"] == found.source
    assert torch.tensor(cross["weights"]).allclose(found.cross, atol=0.00051)
    assert repr(found).count("\n") == 1 and "tensor" not in repr(found)


# ---- faults ----


def test_input_faults_name_the_line(translator):
    long = "one " * 80
    assert "line 2 has" in message(lambda: translator.translate(["one", long]))
    assert "line 2 has" in message(lambda: translator.check(["one", long]))
    stream = translator.translate_stream
    assert "line 3 has" in message(lambda: list(stream(["one", "", long])))
    chunks = stream(["one", "two", long], lines_at_once=2)
    assert "line 3 has" in message(lambda: list(chunks))
    assert "put it in a list" in message(lambda: next(stream("one")))
    assert "lines_at_once is 0" in message(lambda: next(stream([], lines_at_once=0)))
    assert "line 1 is not valid" in message(lambda: translator.translate("\udcff"))
    assert "target line 2 is blank" in message(
        lambda: translator.score(["one", "two"], ["eins", ""])
    )
    assert "source line 1 is blank" in message(lambda: translator.attention(" "))
    safe = stream(["one", "two", long])
    assert [next(safe), next(safe)] == translator.translate(["one", "two"])
    assert "2 sources and 1 targets" in message(
        lambda: translator.score(["one", "two"], ["eins"])
    )


def test_a_long_line_is_refused_with_its_length_or_split():
    short = build(max_length=12)
    long = "one two three four. Six six seven eight"
    count = len(short.tokenizer.encode_source([long])[0])
    assert count > 12
    text = message(lambda: short.translate(["one", long]))
    assert "line 2" in text and str(count) in text and "12" in text and "split" in text
    parts = short.translate(["one two three four.", "Six six seven eight"])
    assert short.translate(["one", long], split=True)[1] == " ".join(parts)
    endless = " ".join(NUMBERS * 3)
    assert "line 2" in message(lambda: short.translate([long, endless], split=True))


def test_attention_of_a_model_in_training_is_refused(translator):
    translator.model.train()
    try:
        with pytest.raises(ValueError, match="training mode"):
            translator.attention("March 3", "3. März")
    finally:
        translator.model.eval()


@pytest.mark.parametrize(
    "text, parts",
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ("He said “No.” Then he left.", ["He said “No.”", "Then he left."]),
        ("Bread, milk etc. and so on.", ["Bread, milk etc. and so on."]),
        ("Why? Ümit. Über 3. 4 more", ["Why?", "Ümit.", "Über 3.", "4 more"]),
        ("no end", ["no end"]),
        ("It is 3 p.m.  now. End.", ["It is 3 p.m.  now.", "End."]),
    ],
)
def test_sentences_end_where_the_rule_says(text, parts):
    assert split_sentences(text) == parts


@pytest.mark.filterwarnings("ignore:passed as unknown")
@pytest.mark.parametrize(
    "text, kept",
    [
        ("Does Dr. Šmíd speak German?", "Šmíd"),
        ("DOES DR. ȘMÍD SPEAK GERMAN?", "șmíd"),
        ("S\u030cmid is here.", "Šmid"),
        ("I love you ❤.", "❤"),
        ("I know X.", "X"),
        ("Her address is Marta.Lind_@Posteo.example.", "Marta.Lind_@Posteo.example"),
        ("YOU CAN READ IT ON https://www.x.org/a?b=C.", "https://www.x.org/a?b=C "),
        ("Write to anna@web.de or to ben@gmx.de.", "anna@web.de"),
    ],
)
def test_what_a_model_can_t_read_is_put_back(text, kept):
    """Where the model copies it: in translations, n-best lists and confidence."""
    everyday = load("tatoeba-en-de", device="cpu", engine="torch")
    found = everyday.translate(text)
    assert kept in found and "[unk]" not in found
    assert everyday.n_best(text)[0].text == found
    sure = everyday.confidence(text)
    assert sure.text == found == " ".join(word for word, _ in sure.words)
    assert any("[unk]" in each for each in everyday.attention(text).target)


def test_what_stays_unknown_is_warned_of():
    everyday = load("tatoeba-en-de", device="cpu", engine="torch")
    with pytest.warns(UserWarning) as caught:
        outputs = everyday.translate(["I know X.", "", "Generation X", "x and X"])
    assert ["[unk]" in each for each in outputs] == [False, False, True, True]
    lost = "the translation lacks the character for which [unk] stands"
    told = f"line 3: {lost}; line 4: {lost}"
    assert [str(each.message) for each in caught] == [told]


def test_put_back_goes_in_order(translator):
    tokenizer = translator.tokenizer
    assert restore_unknown("a [unk] b [unk]", "☃ c 漢", tokenizer) == "a ☃ b 漢"
    assert restore_unknown("[unk] [unk]", "☃", tokenizer) == "☃ [unk]"
    assert restore_unknown("[unk]", "[unk] ☃", tokenizer) == "[unk]"


def test_addresses_are_no_unknown_characters(recwarn):
    """An address is put back, so it is neither warned of nor refused by strict."""
    everyday = load("tatoeba-en-de", device="cpu", engine="torch")
    assert "a@b.org" in everyday.translate("Write to a@b.org.", strict=True)
    assert everyday.score("Write to a@b.org.", "Schreib an a@b.org.").total > -10
    assert not recwarn
    with pytest.raises(UserError, match="never saw: ☃;"):
        everyday.translate("Write to a@b.org ☃.", strict=True)


def test_unknown_characters_pass_with_one_warning(translator):
    with pytest.warns(UserWarning) as caught:
        outputs = translator.translate(["one", "two 漢 字", "漢"])
    (unknown,) = [each for each in caught if "unknown" in str(each.message)]
    assert len(outputs) == 3
    assert "漢 (2), 字 (1); 3 in all" in str(unknown.message)
    with pytest.warns(UserWarning, match="ß|漢"):
        list(translator.translate_stream(iter(["one", "漢"])))
    with pytest.warns(UserWarning, match=r"漢 \(1\)"):
        translator.score("one", "漢")
    for call in (translator.translate, translator.check):
        with pytest.raises(ValueError, match="line 2.*漢.*字"):
            call(["one", "two 漢 字"], strict=True)
    with pytest.raises(ValueError, match="target line 1"):
        translator.score("one", "漢", strict=True)
