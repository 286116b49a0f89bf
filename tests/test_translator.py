"""The translator: order, batches, streaming, scores, attention, and one clear error for
each bad input.
"""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from html import unescape

import pytest
import torch

from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.errors import UserError
from annotated_transformer.files import verify
from annotated_transformer.model.attention import attention
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.translation.search import (
    Hypothesis,
    ModelSearch,
    SearchOptions,
    beam,
    force,
)
from annotated_transformer.translation.translator import (
    Translator,
    encode_lines,
    record_attention,
    split_sentences,
)

NUMBERS = "one two three four five six seven eight nine ten".split()
ZAHLEN = "eins zwei drei vier fünf sechs sieben acht neun zehn".split()
TEXTS = [
    "one two",
    "seven",
    "three three four five. Six",
    "nine ten one",
    "two",
    "eight nine ten six four",
]

pytestmark = [
    pytest.mark.filterwarnings("ignore:line .* was cut there"),
    pytest.mark.filterwarnings("ignore:passed as unknown"),
]


def build(joint: bool = True, max_length: int = 40, **options) -> Translator:
    """A translator that was never trained, with a tokeniser that was."""
    pairs = [
        (" ".join(a) + ". Six", " ".join(b))
        for a, b in zip(
            itertools.permutations(NUMBERS, 3),
            itertools.permutations(ZAHLEN, 3),
            strict=True,
        )
    ]
    tokenizer = train_tokenizer(pairs, "en", "de", 80, joint=joint, **options)
    torch.manual_seed(2)
    config = TransformerConfig(
        src_vocab_size=tokenizer.src_vocab_size,
        tgt_vocab_size=tokenizer.tgt_vocab_size,
        shared_vocab=joint,
        N=2,
        d_model=16,
        d_ff=32,
        h=4,
        d_k=4,
        d_v=4,
        max_length=max_length,
    )
    model = Transformer(config)
    with torch.no_grad():
        model.tgt_embedding.weight *= 1.5
    return Translator(model, tokenizer)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return build()


def message(call) -> str:
    with pytest.raises(ValueError) as error:
        call()
    return str(error.value)


# ---- translations ----


def test_translations_are_the_beam_searches_in_the_order_given(translator):
    outputs = translator.translate(TEXTS)
    rows = translator.tokenizer.encode_source(TEXTS)
    for output, row in zip(outputs, rows, strict=True):
        best = beam(translator.model, torch.tensor([row]))[0][0]
        assert output == translator.tokenizer.decode([best.tokens])[0]
    assert len(set(outputs)) > 3
    assert translator.translate(TEXTS[::-1]) == outputs[::-1]


@pytest.mark.parametrize("batch_tokens", [1, 12, 10000])
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
    assert [first, *stream] == translator.translate(TEXTS)
    assert list(
        translator.translate_stream(iter(TEXTS), lines_at_once=4)
    ) == translator.translate(TEXTS)


def test_n_best_starts_with_the_translation(translator):
    lists = translator.n_best(TEXTS, SearchOptions(n_best=3))
    for found, one in zip(lists, translator.translate(TEXTS), strict=True):
        assert len(found) == 3 and found[0].text == one
        finished = [t.score for t in found if t.finished]
        assert finished == sorted(finished, reverse=True)


def test_a_text_has_a_text_and_a_list_a_list(translator):
    one = translator.translate("one two")
    assert translator.translate(["one two"]) == [one]
    three = SearchOptions(n_best=3)
    assert translator.n_best(["one"], three) == [translator.n_best("one", three)]
    score = translator.score("one", "eins")
    assert translator.score(["one"], ["eins"]) == [score]


def test_blank_lines_stay_where_they_are(translator):
    outputs = translator.translate(["one", " \n", "two", ""])
    assert outputs[1] == outputs[3] == ""
    assert outputs[::2] == translator.translate(["one", "two"])
    assert translator.translate("") == ""
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


class Echo:
    """An engine that gives the source back."""

    def search(self, rows, options):
        return [[Hypothesis(row[:-1], 0.0, 0.0, True)] for row in rows]


def test_what_is_handed_in_searches(translator):
    echo = Translator(translator.model, translator.tokenizer, Echo())
    assert echo.translate(["one two", "", "seven"]) == ["one two", "", "seven"]
    with pytest.raises(UserError, match="Echo stays on the device"):
        echo.to("cpu")


def test_a_translator_moves_to_a_device(translator):
    other = Translator(
        deepcopy(translator.model),
        translator.tokenizer,
        ModelSearch(deepcopy(translator.model)),
    )
    assert other.to("meta") is other
    assert other.model.tgt_embedding.weight.is_meta
    assert other.engine.model.tgt_embedding.weight.is_meta


def test_white_space_around_and_inside_is_no_matter(translator):
    assert translator.translate(["  one \t two\n"]) == translator.translate(["one two"])


def test_nothing_in_nothing_out(translator):
    assert (
        translator.translate([]) == []
        and translator.n_best([], SearchOptions()) == []
        and translator.score([], []) == []
    )


def test_separate_vocabularies_and_moses(tmp_path):
    translator = build(joint=False, moses=True, lowercase=True)
    save_model(tmp_path / "model", translator.model, translator.tokenizer)
    again = Translator.from_pretrained(tmp_path / "model")
    assert again.translate(TEXTS) == translator.translate(TEXTS)


def test_a_saved_model_translates_the_same(translator, tmp_path):
    translator.save_pretrained(tmp_path / "model")
    again = Translator.from_pretrained(str(tmp_path / "model"))
    assert (
        again.translate(TEXTS) == translator.translate(TEXTS)
        and not again.model.training
    )


# ---- cut output ----


def test_an_output_cut_at_its_limit_is_announced(translator):
    short = build(max_length=6)
    with torch.no_grad():
        short.model.tgt_embedding.weight[2] = 0.0
    with pytest.warns(UserWarning, match="line 2: the translation reached its limit"):
        short.translate(["two", "one"])
    assert not short.n_best("two", SearchOptions())[0].finished


# ---- scores ----


def test_scores_are_forced_and_sum(translator):
    targets = [
        "eins zwei",
        "sieben",
        "drei drei",
        "neun",
        "zwei zwei zwei zwei",
        "acht",
    ]
    scores = translator.score(TEXTS, targets)
    rows = zip(
        *(
            translator.tokenizer.encode_source(TEXTS),
            translator.tokenizer.encode_target(targets),
        ),
        strict=True,
    )
    for score, (source, target) in zip(scores, rows, strict=True):
        expected = force(
            translator.model, torch.tensor([source]), torch.tensor([target])
        )[0]
        assert score.token_log_probabilities == pytest.approx(
            expected.tolist(), abs=1e-5
        )
        assert score.total == pytest.approx(float(expected.sum()), abs=1e-4)
        assert len(score.tokens) == len(target) and score.tokens[-1] == "</s>"
    again = translator.score(TEXTS, targets, batch_tokens=1)
    assert [s.total for s in again] == pytest.approx(
        [s.total for s in scores], abs=1e-4
    )


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
    with torch.inference_mode(), record_attention(model) as weights:
        model(source, torch.tensor([[1, 5, 6]]))
        recorded = weights["decoder.layers.1.source_attention"]
        values = module.keys_values(seen["args"][1])[1]
        made = module.W_O((recorded @ values).transpose(1, 2).flatten(2))
        assert torch.allclose(made, seen["output"], atol=1e-5)
        _, by_hand = attention(
            module.queries(seen["args"][0]),
            *module.keys_values(seen["args"][1]),
            seen["args"][2],
        )
        assert torch.allclose(recorded, by_hand, atol=1e-6)
    handle.remove()
    assert len(weights) == 6


def test_recording_leaves_no_trace(translator):
    before = translator.translate(TEXTS[:2])
    translator.attention("one")
    assert all(not module._forward_pre_hooks for module in translator.model.modules())
    assert translator.translate(TEXTS[:2]) == before


def test_attention_without_a_target_is_of_the_models_own(translator):
    found = translator.attention("one two")
    best = beam(
        translator.model, torch.tensor(translator.tokenizer.encode_source(["one two"]))
    )[0][0]
    assert len(found.target) == len(best.tokens) + best.finished


def test_a_notebook_shows_every_head(translator):
    found = translator.attention("one two", "eins zwei")
    data = found._repr_html_().split("panels='")[1].split("'>")[0]
    encoder, decoder, cross = json.loads(unescape(data))
    assert decoder["keys"][0] == "<s>" and decoder["queries"][-1] == "</s>"
    assert encoder["queries"] == encoder["keys"] == cross["keys"] == found.source
    assert torch.tensor(cross["weights"]).allclose(found.cross, atol=0.00051)


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
    assert "2 sources and 1 targets" in message(
        lambda: translator.score(["one", "two"], ["eins"])
    )


def test_a_fault_in_a_stream_loses_nothing_before_it(translator):
    stream = translator.translate_stream(["one", "two", "one " * 80])
    assert [next(stream), next(stream)] == translator.translate(["one", "two"])
    assert "line 3" in message(lambda: next(stream))


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


def test_attention_in_several_threads(translator):
    lines = ["March 3", "five kilometers", "Sunday, March 21, 2027"]
    expected = {line: translator.attention(line, "3. März") for line in lines}
    with ThreadPoolExecutor(3) as pool:
        found = list(
            pool.map(
                lambda line: (line, translator.attention(line, "3. März")),
                lines * 8,
            )
        )
    for line, seen in found:
        assert torch.equal(seen.encoder, expected[line].encoder)
        assert torch.equal(seen.cross, expected[line].cross)


def test_attention_of_a_model_in_training_is_refused(translator):
    translator.model.train()
    try:
        with pytest.raises(ValueError, match="training mode"):
            translator.attention("March 3", "3. März")
    finally:
        translator.model.eval()


def test_a_tokenizer_that_refuses_a_line_has_it_named():
    def encode(lines):
        if "two" in lines:
            raise UserError("not this one")
        return [[5] for _ in lines]

    with pytest.raises(ValueError, match="line 8: not this one"):
        encode_lines(encode, ["one", "", "two"], ["line 6", "line 7", "line 8"])


def test_a_line_as_long_as_the_model_allows_is_translated():
    translator = build(max_length=40)
    text = "one"
    while len(translator.tokenizer.encode_source([text])[0]) < 40:
        text += " one"
    assert len(translator.tokenizer.encode_source([text])[0]) == 40
    assert isinstance(translator.translate([text])[0], str)


@pytest.mark.parametrize(
    "text, parts",
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ("He said “No.” Then he left.", ["He said “No.”", "Then he left."]),
        ("It cost 3.50 today", ["It cost 3.50 today"]),
        ("Bread, milk etc. and so on.", ["Bread, milk etc. and so on."]),
        ("Why? Ümit. Über 3. 4 more", ["Why?", "Ümit.", "Über 3.", "4 more"]),
        ("no end", ["no end"]),
        ("It is 3 p.m.  now. End.", ["It is 3 p.m.  now.", "End."]),
    ],
)
def test_sentences_end_where_the_rule_says(text, parts):
    assert split_sentences(text) == parts


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


def test_unknown_characters_are_refused_if_asked(translator):
    for call in (translator.translate, translator.check):
        text = message(lambda call=call: call(["one", "two 漢 字"], strict=True))
        assert "line 2" in text and "漢" in text and "字" in text
    assert "target line 1" in message(
        lambda: translator.score("one", "漢", strict=True)
    )


def test_a_device_that_is_not_there_is_named(translator, tmp_path):
    folder = tmp_path / "model"
    translator.save_pretrained(folder)
    for name in ("cuda:99", "tpv"):
        assert f"device '{name}' is not there" in message(
            lambda name=name: Translator.from_pretrained(folder, device=name)
        )


def test_a_damaged_directory_is_an_error_not_a_translation(translator, tmp_path):
    save_model(tmp_path / "model", translator.model, translator.tokenizer)
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    said = message(lambda: Translator.from_pretrained(tmp_path / "model"))
    assert "model.safetensors is not the file that was written here" in said
    settings = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(
        json.dumps(settings | {"format": 999})
    )
    verify(tmp_path / "model", accept=True)
    assert "999" in message(lambda: Translator.from_pretrained(tmp_path / "model"))
    assert "no such model" in message(
        lambda: Translator.from_pretrained(tmp_path / "nowhere")
    )
