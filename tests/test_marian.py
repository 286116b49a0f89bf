"""Marian models opened and imported: equal to `transformers` in every number, and one
clear error for each bad directory.
"""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from published import (
    PAIRS,
    as_pickle,
    change,
    change_tensors,
    make_marian,
    remove,
    transformers,
    truncate,
    with_tensor,
    without_tensor,
    write,
)
from tiny_run import train_arguments

from annotated_transformer import load
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import beam, greedy
from annotated_transformer.errors import UserError
from annotated_transformer.interop.ctranslate2 import export_ctranslate2
from annotated_transformer.interop.marian import (
    MarianConfig,
    import_marian,
    read_marian_config,
    read_marian_weights,
)
from annotated_transformer.interop.marian_export import export_marian
from annotated_transformer.interop.marian_tokenizer import Pieces
from annotated_transformer.interop.marian_weights import sines_first, weights_of
from annotated_transformer.model_names import MODELS
from annotated_transformer.pretrained import find_model
from annotated_transformer.training.checkpoint import copy_weights
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.sentence_pairs import validation_loss
from annotated_transformer.translation.prepared_data import InitFrom
from annotated_transformer.translation.task import fine_tuning_recipe, prepare
from benchmarks.after import broken_imports

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*reached its limit"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:passed as unknown"),
]

SHIPPED = MODELS / "phrasebook-en-de"
GREEDY, TWO = SearchOptions(beam_size=1), SearchOptions(beam_size=2)
TEXTS = [
    "March 3",
    "the twenty-first of March",
    "five kilometers",
    "on Sunday, March 21, 2027 at noon",
]
ODD = ["March 3", " two  spaces ", "1,234.50 %", "ÉCLAIR ½ ﬁve", "snow ☃ 漢字"]
ODD += ["“quoted” – it’s …", ">>deu<< five kilometers", ">>deu<<five", "a >> b << c"]
ODD += ["x" * 70, "tab\tand\u00a0space", ""]
VARIANTS = {
    "shared-swish": {},
    "separate-gelu": dict(
        separate=True, activation_function="gelu", encoder_layers=3, decoder_layers=1
    ),
}


class Case:
    """One variant: its directory, their model and tokenizer, and ours, imported."""

    def __init__(self, home: Path, **settings):
        self.folder, self.out = home / "marian", home / "ours"
        self.model, self.tokenizer = make_marian(self.folder, **settings)
        import_marian(self.folder, self.out)
        self.translator = load(self.out, device="cpu", engine="plain")


@pytest.fixture(scope="module", params=list(VARIANTS))
def case(request, tmp_path_factory) -> Case:
    return Case(tmp_path_factory.mktemp(request.param), **VARIANTS[request.param])


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Case:
    return Case(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def copy(plain, tmp_path) -> Path:
    """A directory to damage."""
    return Path(shutil.copytree(plain.folder, tmp_path / "copy"))


def encoded(case: Case):
    """Padded sources, their mask, and random targets that begin with padding."""
    batch = case.tokenizer(TEXTS, return_tensors="pt", padding=True)
    torch.manual_seed(1)
    tgt = torch.randint(3, case.model.config.decoder_vocab_size - 1, (len(TEXTS), 9))
    tgt[:, 0] = case.model.config.pad_token_id
    return batch.input_ids, batch.attention_mask, tgt


# ---- equal numbers ----


@torch.inference_mode()
def test_encoder_logits_and_cached_steps_are_equal(case):
    (src, mask, tgt), ours = encoded(case), case.translator.model
    assert (mask == 0).any()
    theirs = case.model.model.encoder(src, attention_mask=mask).last_hidden_state
    theirs = theirs[..., sines_first(32).argsort()]
    memory, _ = ours.encode(src)
    torch.testing.assert_close(memory[mask == 1], theirs[mask == 1], atol=1e-5, rtol=0)
    theirs = case.model(src, attention_mask=mask, decoder_input_ids=tgt).logits
    logits, cache = ours(src, tgt), ours.start(src)
    assert theirs.std() > 0.5 and (logits - theirs).abs().max() < 2e-5
    steps = [ours.step(tgt[:, i], cache) for i in range(tgt.size(1))]
    torch.testing.assert_close(torch.stack(steps, 1), logits, atol=1e-4, rtol=0)


def test_greedy_and_beam_find_the_same_tokens(case):
    src, mask, _ = encoded(case)
    config, ours = case.model.config, case.translator.model
    special = (config.pad_token_id, config.eos_token_id)

    def theirs(**settings):
        rows = case.model.generate(
            src,
            attention_mask=mask,
            max_new_tokens=12,
            do_sample=False,
            bad_words_ids=[[config.pad_token_id]],
            forced_eos_token_id=None,
            **settings,
        )
        return [[i for i in row if i not in special] for row in rows[:, 1:].tolist()]

    found = [each.tokens for each in greedy(ours, src, max_length=12)]
    assert found == theirs(num_beams=1)
    found = beam(ours, src, SearchOptions(alpha=0.0, max_length=12))
    assert [rows[0].tokens for rows in found] == theirs(num_beams=4, length_penalty=0.0)


@torch.inference_mode()
def test_scores_and_attention_are_theirs(case):
    targets = ["3. März", "der einundzwanzigste März", "fünf Kilometer", "am Sonntag"]
    scores = case.translator.score(TEXTS, targets)
    for text, target, score in zip(TEXTS, targets, scores, strict=True):
        batch = case.tokenizer([text], text_target=[target], return_tensors="pt")
        theirs = case.model(**batch, output_attentions=True)
        chances = theirs.logits.log_softmax(-1).gather(2, batch.labels[..., None])
        found = score.token_log_probabilities
        assert found == pytest.approx(chances.flatten().tolist(), abs=1e-4)
        inside = case.translator.attention(text, target)
        for name, other in (("cross", "cross"), ("encoder",) * 2, ("decoder",) * 2):
            wanted = torch.cat(getattr(theirs, f"{other}_attentions"))
            torch.testing.assert_close(getattr(inside, name), wanted, atol=1e-5, rtol=0)
        assert inside.inputs[0] == "<pad>"
        assert inside.target[-1] == inside.source[-1] == "</s>"


def test_what_the_export_takes_away_the_import_brings_back(tmp_path):
    """A model of ours, with its own byte pairs."""
    before = load(SHIPPED, device="cpu")
    model, tokenizer = before.model, before.tokenizer
    export_marian(model, tokenizer, tmp_path / "out")
    config = find_model(tmp_path / "out").config()
    assert (config.activation, config.pad_id, config.bos_id) == ("relu", 0, 1)
    weights = read_marian_weights(tmp_path / "out", config)
    for name, tensor in model.named_parameters():
        assert torch.equal(weights[name], tensor), name
    import_marian(tmp_path / "out", tmp_path / "back")
    texts = ["the twenty-first of March", "March 3"]
    back = load(tmp_path / "back", device="cpu")
    assert back.translate(texts) == before.translate(texts)


def test_an_imported_model_goes_back_and_out(case, tmp_path):
    """To Marian with every tensor as it was, to CTranslate2 with the same tokens."""
    model, tokenizer = case.translator.model, case.translator.tokenizer
    export_marian(model, tokenizer, tmp_path / "marian")
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "marian").eval()
    for name, tensor in case.model.state_dict().items():
        assert torch.equal(theirs.state_dict()[name], tensor), name
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "marian")
    assert again(ODD).input_ids == case.tokenizer(ODD).input_ids
    import_marian(tmp_path / "marian", tmp_path / "back")
    export_ctranslate2(model, tokenizer, tmp_path / "ct2")
    engine = pytest.importorskip("ctranslate2").Translator(str(tmp_path / "ct2"))
    rows = [tokenizer.source_tokens(text) for text in TEXTS]
    name = tokenizer.target.id_to_token
    settings = dict(beam_size=1, suppress_sequences=[[name(model.config.pad_id)]])
    found = engine.translate_batch(rows, **settings, max_decoding_length=12)
    ours = greedy(model, encoded(case)[0], max_length=12)
    for mine, other in zip(ours, found, strict=True):
        assert other.hypotheses[0] == [name(i) for i in mine.tokens]


def test_an_imported_model_says_how_sure_it_is(case):
    for each in case.translator.confidence(TEXTS, max_length=12):
        assert " ".join(word for word, _ in each.words) == each.text
        assert all(0 < probability < 1 for _, probability in each.words)


# ---- words ----


def test_ids_and_texts_are_those_of_their_tokenizer(case):
    ours, theirs = case.translator.tokenizer, case.tokenizer
    assert ours.encode_source(ODD) == theirs(ODD).input_ids
    assert ours.encode_target(ODD) == theirs(text_target=ODD).input_ids
    assert ours(ODD) == dict(theirs(ODD))
    batch = theirs(ODD, padding=True, return_tensors="pt")
    for name, tensor in ours(ODD, return_tensors="pt").items():
        assert torch.equal(tensor, batch[name])
    texts = [pair[1] for pair in PAIRS[:50]]
    rows = ours.encode_target(texts)
    torch.manual_seed(0)
    rows += torch.randint(0, ours.tgt_vocab_size, (20, 12)).tolist()
    wanted = [theirs.decode(row, skip_special_tokens=True) for row in rows]
    assert ours.decode(rows) == wanted
    same = sum(a == b for a, b in zip(wanted, texts, strict=False))
    assert same > 40  # the others have letters without a piece


def test_a_copy_translates_the_same(plain):
    for engine in ("plain", "auto"):
        made = load(plain.out, device="cpu", engine=engine)
        again = pickle.loads(pickle.dumps(made))
        assert again.translate(TEXTS) == made.translate(TEXTS)


def test_codes_of_languages(plain):
    translator, tokenizer = plain.translator, plain.translator.tokenizer
    assert tokenizer.encode_source(["</s> <pad>"])[0].count(0) == 1
    assert tokenizer.source_tokens(">>fra<< five")[0] == ">>fra<<"
    assert tokenizer.prefix(">>deu<<five") == ">>deu<<"
    assert tokenizer.prefix("five >>") == ""
    hint = "unknown target language '>>fre<<': did you mean '>>fra<<'"
    for split in (False, True):
        with pytest.raises(ValueError, match=f"^line 2: {hint}"):
            translator.translate(["five", ">>fre<< five"], split=split)
    long = " ".join(["The museum opens on October 27, 2058."] * 6)
    apart = [f">>deu<< {sentence}." for sentence in long.rstrip(".").split(". ")]
    whole = translator.translate(f">>deu<< {long}", GREEDY, split=True)
    assert whole == " ".join(translator.translate(apart, GREEDY))


def test_unknown_characters_and_pieces_are_named(plain):
    translator, tokenizer = plain.translator, plain.translator.tokenizer
    assert tokenizer.unknown_characters("five ☃") == ["☃"]
    assert tokenizer.unknown_characters(f">>zzz<< {TEXTS[0]}") == [">>zzz<<"]
    with pytest.raises(ValueError, match="line 1 has characters .* never saw: ☃"):
        translator.translate("five ☃", strict=True)
    with pytest.warns(UserWarning, match="☃ \\(1\\)"):
        assert translator.translate("five ☃")
    with pytest.raises(ValueError, match="at most 40"):
        translator.translate(["five " * 80])
    piece = next(each for each in tokenizer.source.cut(TEXTS[0]) if len(each) > 2)
    vocab = {name: i for name, i in tokenizer.source.vocab.items() if name != piece}
    lacking = replace(tokenizer, source=Pieces(tokenizer.source.model, vocab))
    assert lacking.unknown_characters(TEXTS[0]) == [piece]


def test_one_line_in_is_one_line_out(plain):
    """A vocabulary may hold line breaks and escapes; the output never does."""
    pieces = plain.translator.tokenizer.target
    vocab = dict(pieces.vocab)
    vocab["two\nlines\x1b[2J\u2028"] = vocab.pop("▁März")
    text = Pieces(pieces.model, vocab).decode([vocab["two\nlines\x1b[2J\u2028"]])
    assert text == "two lines [2J"


# ---- files ----


def test_older_repositories_are_read_too(plain, copy, tmp_path):
    """Every tied matrix under each of its names, half precision, other settings."""

    def old(_):
        kept = plain.model.state_dict().items()
        # Theirs would load rounded codes of positions, which ours never are.
        return {k: v.half() for k, v in kept if "positions" not in k}

    change_tensors(old)(copy)
    change(bos_token_id=0, num_beams=6, static_position_embeddings=True)(copy)
    remove("tokenizer_config.json")(copy)
    import_marian(copy, tmp_path / "out", "en", "fi")
    translator = load(tmp_path / "out")
    assert translator.tokenizer.tgt_lang == "fi"
    assert load(copy, device="cpu").tokenizer.tgt_lang == "und"
    src, mask, tgt = encoded(plain)
    theirs = transformers.MarianMTModel.from_pretrained(copy, dtype=torch.float32)
    with torch.inference_mode():
        wanted = theirs.eval()(src, attention_mask=mask, decoder_input_ids=tgt).logits
        assert torch.allclose(translator.model(src, tgt), wanted, atol=1e-4)
    size = (tmp_path / "out" / "model.safetensors").stat().st_size
    whole = (plain.out / "model.safetensors").stat().st_size
    assert size < 0.6 * whole


def old_settings() -> dict:
    """What matters of the config.json that older releases wrote for OPUS-MT."""
    same = "d_model=512 max_length=512 max_position_embeddings=512 vocab_size=58101"
    published = {k: int(v) for k, v in (each.split("=") for each in same.split())}
    for side in ("encoder", "decoder"):
        published |= {f"{side}_layers": 6, f"{side}_attention_heads": 8}
        published |= {f"{side}_ffn_dim": 2048}
    published |= dict(activation_function="swish", dropout=0.1, model_type="marian")
    published |= dict(decoder_start_token_id=58100, pad_token_id=58100, eos_token_id=0)
    return published | dict(
        normalize_before=False, scale_embedding=True, bos_token_id=0
    )


def test_the_settings_of_published_models_are_understood(tmp_path):
    sizes = dict(N=6, decoder_N=6, h=8, d_k=64, d_v=64, d_ff=2048, max_length=512)
    ids = dict(pad_id=58100, bos_id=58100, eos_id=0)
    wanted = MarianConfig(58101, 58101, **sizes, **ids)
    assert read_marian_config(old_settings(), tmp_path) == wanted


BIAS = "model.encoder.layers.0.fc1.bias"
CODES = "model.encoder.embed_positions.weight"
FAULTS = {
    "no config": (remove("config.json"), "is no published Marian directory"),
    "another type": (change(model_type="t5"), "holds a model of type 't5'"),
    "unscaled": (change(scale_embedding=False), "scale_embedding is False"),
    "heads": (
        change(decoder_attention_heads=8),
        "encoder_attention_heads and decoder_attention_heads differ",
    ),
    "activation": (change(activation_function="swishy"), "did you mean 'swish'"),
    "lacks d_model": (change(d_model=None), "lacks the setting 'd_model'"),
    "starts at the end": (change(decoder_start_token_id=0), "bos_id and eos_id are"),
    "too deep": (change(encoder_layers=10**9), "asks for 1,000,000,002 layers"),
    "truncated": (truncate("model.safetensors"), "is damaged"),
    "missing tensor": (without_tensor(BIAS), f"lacks the tensor '{BIAS}'"),
    "wrong shape": (with_tensor(BIAS, torch.zeros(47)), "has shape (47,)"),
    "unknown tensor": (
        with_tensor("model.norm", torch.zeros(3)),
        "no place for the tensor 'model.norm'",
    ),
    "own output matrix": (
        with_tensor("lm_head.weight", torch.zeros(3, 3)),
        "lm_head.weight differs",
    ),
    "trained positions": (with_tensor(CODES, torch.zeros(40, 32)), "no sinusoids"),
    "not finite": (with_tensor(BIAS, torch.full((48,), torch.nan)), "no finite"),
    "no <unk>": (change("vocab.json", **{"<unk>": None}), "no table of ids"),
    "one token less": (
        change("vocab.json", **{"▁March": None}),
        "don't belong together",
    ),
    "no pieces": (remove("source.spm"), "source.spm is missing"),
    "broken pieces": (write("target.spm", b"nothing"), "target.spm is damaged"),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_bad_directory_is_one_error_that_names_it(copy, tmp_path, fault):
    spoil, words = FAULTS[fault]
    spoil(copy)
    with pytest.raises(ValueError) as error:
        import_marian(copy, tmp_path / "out")
    assert words in str(error.value) and "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_a_pickle_is_refused_with_the_line_that_converts_it(plain, copy):
    as_pickle(plain.model)(copy)
    with pytest.raises(ValueError, match="only safetensors are read here") as error:
        load(copy)
    command = str(error.value).partition("python -c ")[2].strip("'")
    exec(command.replace("'\"'\"'", "'"), {})
    opened = load(copy, device="cpu", engine="plain")
    assert opened.translate(TEXTS[0]) == plain.translator.translate(TEXTS[0])


def test_an_import_replaces_nothing(plain, copy):
    with pytest.raises(ValueError, match="exists already: choose another folder"):
        import_marian(plain.folder, copy)
    assert (copy / "vocab.json").exists() and (copy / "tokenizer_config.json").exists()


# ---- the command line ----


def test_what_is_no_marian_directory_is_refused_by_what_is(run, tmp_path):
    (package := tmp_path / "en_de.argosmodel").write_bytes(b"PK")
    for wrong in (package, tmp_path, tmp_path / "none"):
        status, _, err = run("import", wrong, "-o", tmp_path / "out")
        assert status == 2 and f"{wrong} is no published Marian directory" in err
        assert "name a downloaded OPUS-MT" in err and err.count("\n") == 1


def test_the_command_line_takes_an_imported_model(run, plain, tmp_path):
    out = tmp_path / "model"
    status, printed, _ = run("import", plain.folder, "-o", out)
    said = printed.replace("\n", "")
    assert status == 0 and f"imported {plain.folder} into {out}" in said
    status, printed, _ = run("translate", "-m", out, TEXTS[0])
    assert status == 0 and printed == plain.translator.translate(TEXTS[0]) + "\n"
    status, printed, _ = run("info", out)
    count = sum(p.numel() for p in plain.translator.model.parameters())
    assert status == 0 and f"{count:,}" in printed and "decoder_N" in printed
    status, printed, _ = run("score", "-m", out, TEXTS[0], "3. März")
    total = plain.translator.score(TEXTS[0], "3. März").total
    assert status == 0
    assert float(printed.split("\t")[0]) == pytest.approx(total, abs=1e-3)


def test_training_goes_on_from_an_imported_model(run, plain, tmp_path):
    """The loss is theirs before the first update, and the result is an imported model
    again.
    """
    for split in ("train", "valid"):
        for side, language in enumerate(["en", "de"]):
            text = "".join(f"{pair[side]}\n" for pair in PAIRS[:20])
            (tmp_path / f"{split}.{language}").write_text(text, encoding="utf-8")
    start = InitFrom("random", plain.translator.model, plain.translator.tokenizer)
    plan = fine_tuning_recipe(recipe("phrasebook"), start)
    pairs = PAIRS[:20]
    prepared = prepare(
        plan, tmp_path / "try", pairs, pairs, device="cpu", init_from=start
    )
    loss = validation_loss(prepared.task.objective, prepared.task.valid, plan.training)
    total = tokens = 0.0
    for source, target in PAIRS[:20]:
        batch = plain.tokenizer([source], text_target=[target], return_tensors="pt")
        total += plain.model(**batch).loss.item() * batch.labels.numel()
        tokens += batch.labels.numel()
    assert loss == pytest.approx(total / tokens, abs=1e-5)
    settings = "steps=2 batch_tokens=128 max_tokens=40 save_every=1 keep=2"
    arguments = train_arguments(tmp_path, tmp_path / "out", settings)
    assert run(*arguments, "--from", plain.out)[0] == 0
    assert find_model(tmp_path / "out" / "model").model_type == "marian"
    assert run("translate", "-m", tmp_path / "out", TEXTS[0])[0] == 0


def test_the_reverse_direction_needs_one_table_of_ids(case, tmp_path):
    start = InitFrom("random", case.translator.model, case.translator.tokenizer)
    plan = replace(recipe("phrasebook"), src="de", tgt="en")
    plan, pairs = fine_tuning_recipe(plan, start), [pair[::-1] for pair in PAIRS[:20]]
    again = {"device": "cpu", "init_from": start}
    if start.tokenizer.joint:
        text = prepare(plan, tmp_path / "run", pairs, pairs, **again).task.tokenizer
        assert (text.src_lang, text.tgt_lang) == ("de", "en")
        return
    with pytest.raises(UserError, match="translates en to de, and the text is de to"):
        prepare(plan, tmp_path / "run", pairs, pairs, **again)
    assert not (tmp_path / "run").exists()


def test_a_lead_is_over_the_best_of_the_other_tokens():
    scores = torch.tensor([[[3.0, 1.0, 0.5], [0.0, 1.0, 4.0]]])
    assert broken_imports.leads(scores, torch.tensor([[1, 2]])).tolist() == [-2, 3]


def test_recorded_imports_are_broken_by_their_scores_only(tmp_path):
    """An untrained stranger shows the same steps: all but the keys' bias matter."""
    torch.manual_seed(0)
    train, held_out = broken_imports.numbers()
    with patch.object(broken_imports, "UPDATES", 4):
        stranger = broken_imports.write_stranger(tmp_path, train[:300])
    right = load(tmp_path, device="cpu", engine="plain")
    src, tgt = broken_imports.rows(right.tokenizer, right.config, held_out[0])
    weights = weights_of(right.model)
    with torch.inference_mode():
        theirs = stranger(src, decoder_input_ids=tgt).logits
        assert torch.allclose(right.model(src, tgt), theirs, atol=1e-4)
        for step, changed in broken_imports.broken(weights).items():
            copy_weights(right.model, changed, tmp_path)
            far = (right.model(src, tgt) - theirs).abs().max().item()
            assert (far < 1e-4) == (step in ("keys", "activation")), step
