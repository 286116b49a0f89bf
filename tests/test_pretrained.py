"""Marian models imported: equal to `transformers` in every number, and one clear error
for each bad directory.
"""

import json
import os
import shutil
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from tiny_run import train_arguments
from torch.utils.flop_counter import FlopCounterMode

from annotated_transformer import load, verify
from annotated_transformer.after.pretrained import (
    MarianConfig,
    MarianTransformer,
    Pieces,
    check_vocabulary,
    convert_weights,
    export_marian,
    import_marian,
    is_marian,
    load_marian,
    marian_config,
    marian_flops,
    marian_parameters,
    marian_weights,
    read_marian_config,
    read_marian_tokenizer,
    read_published_tensors,
    sines_first,
)
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.engine.ctranslate2 import export_ctranslate2
from annotated_transformer.engine.runs import Start, going_on, prepare
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.costs import flops
from annotated_transformer.training.checkpoint import (
    average_checkpoints,
    load_model,
    save_model,
)
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.trainer import validation_loss
from annotated_transformer.translation.search import SearchOptions, beam, greedy

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")
sentencepiece = pytest.importorskip("sentencepiece")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*reached its limit"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:passed as unknown"),
]

SHIPPED = Path(str(files("annotated_transformer"))) / "pretrained" / "phrasebook-en-de"
PAIRS = phrasebook("en", "de", "train", 400)
GREEDY, TWO = SearchOptions(beam_size=1), SearchOptions(beam_size=2)
TEXTS = [
    "March 3",
    "the twenty-first of March",
    "five kilometers",
    "on Sunday, March 21, 2027 at noon",
]
VARIANTS = {
    "shared-swish": {},
    "separate-relu": {"separate": True, "activation_function": "relu"},
    "uneven-gelu": {
        "activation_function": "gelu",
        "encoder_layers": 3,
        "decoder_layers": 1,
    },
}


def learn_pieces(folder: Path) -> list[Path]:
    """A SentencePiece model for each language of the phrasebook."""
    paths = [folder / "source.spm", folder / "target.spm"]
    for side, path in enumerate(paths):
        with path.open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([pair[side] for pair in PAIRS]),
                model_writer=file,
                vocab_size=160,
                hard_vocab_limit=False,
                minloglevel=2,
            )
    return paths


def table_of_ids(paths: list[Path]) -> dict[str, int]:
    """OPUS-MT's order: end, unknown, codes of languages, pieces, padding last."""
    sides = [
        sentencepiece.SentencePieceProcessor(model_file=str(path)) for path in paths
    ]
    pieces = dict.fromkeys(
        side.id_to_piece(i) for side in sides for i in range(3, side.get_piece_size())
    )
    return {
        name: i
        for i, name in enumerate(
            ["</s>", "<unk>", ">>deu<<", ">>fra<<", *pieces, "<pad>"]
        )
    }


def randomise(model: torch.nn.Module) -> None:
    """Move every parameter, and the bias of the logits, from where it starts."""
    with torch.no_grad():
        for name, tensor in [
            *model.named_parameters(),
            ("final_logits_bias", model.final_logits_bias),
        ]:
            if "embed_positions" not in name:
                tensor.add_(0.2 * torch.randn_like(tensor))


def make(folder: Path, separate: bool = False, **settings):
    """A Marian directory as `transformers` writes it, of random weights; returns its
    model and its tokenizer.
    """
    folder.mkdir()
    paths = learn_pieces(folder)
    tables = (
        [table_of_ids([path]) for path in paths] if separate else [table_of_ids(paths)]
    )
    if separate:  # OPUS-MT's two tables are equally long
        short, long = sorted(tables, key=len)
        pad = short.pop("<pad>")
        short |= {f"filler{i}": pad + i for i in range(len(long) - 1 - pad)} | {
            "<pad>": len(long) - 1
        }
    files = [folder / "vocab.json", folder / "target_vocab.json"]
    for path, table in zip(files, tables, strict=False):
        path.write_text(json.dumps(table), encoding="utf-8")
    size = len(tables[0])
    tokenizer = transformers.MarianTokenizer(
        *map(str, paths),
        str(files[0]),
        str(files[1]) if separate else None,
        source_lang="en",
        target_lang="de",
        separate_vocabs=separate,
    )
    defaults = dict(
        vocab_size=size,
        decoder_vocab_size=size,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=size - 1,
        decoder_start_token_id=size - 1,
        max_position_embeddings=40,
        share_encoder_decoder_embeddings=not separate,
    )
    torch.manual_seed(3)
    config = transformers.MarianConfig(
        **defaults | settings, attn_implementation="eager"
    )
    model = transformers.MarianMTModel(config).eval()
    randomise(model)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


class Case:
    """One variant: the directory, their model and tokenizer, the imported folder, our
    translator.
    """

    def __init__(self, home: Path, **settings):
        self.folder, self.out = home / "marian", home / "ours"
        self.model, self.tokenizer = make(self.folder, **settings)
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
    """A padded batch of sources, its mask, and random targets that begin with the
    padding token.
    """
    batch = case.tokenizer(TEXTS, return_tensors="pt", padding=True)
    torch.manual_seed(1)
    tgt = torch.randint(3, case.model.config.decoder_vocab_size - 1, (len(TEXTS), 9))
    tgt[:, 0] = case.model.config.pad_token_id
    return batch.input_ids, batch.attention_mask, tgt


# ---- equal numbers ----


def test_encoder_and_logits_are_equal(case):
    src, mask, tgt = encoded(case)
    assert (mask == 0).any()
    ours = case.translator.model
    with torch.inference_mode():
        memory, _ = ours.encode(src)
        expected = case.model.model.encoder(src, attention_mask=mask).last_hidden_state
        logits = ours(src, tgt)
        their_logits = case.model(
            src, attention_mask=mask, decoder_input_ids=tgt
        ).logits
    assert torch.allclose(
        memory[mask == 1],
        expected[..., sines_first(32).argsort()][mask == 1],
        atol=1e-5,
    )
    assert torch.allclose(logits, their_logits, atol=1e-4) and their_logits.std() > 0.5
    assert (logits - their_logits).abs().max() < 2e-5  # what is left is rounding


def test_cached_steps_equal_the_whole_pass(case):
    src, _, tgt = encoded(case)
    model = case.translator.model
    with torch.inference_mode():
        whole, cache = model(src, tgt), model.start(src)
        steps = torch.stack(
            [model.step(tgt[:, i], cache) for i in range(tgt.size(1))], dim=1
        )
    assert torch.allclose(steps, whole, atol=1e-4)


def test_greedy_and_beam_find_the_same_tokens(case):
    src, mask, _ = encoded(case)
    config = case.model.config
    settings = dict(
        attention_mask=mask,
        max_new_tokens=12,
        do_sample=False,
        bad_words_ids=[[config.pad_token_id]],
        forced_eos_token_id=None,
    )
    theirs = case.model.generate(src, num_beams=1, **settings)[:, 1:].tolist()
    special = (config.pad_token_id, config.eos_token_id)
    theirs = [[i for i in row if i not in special] for row in theirs]
    found = greedy(case.translator.model, src, max_length=12)
    assert [hypothesis.tokens for hypothesis in found] == theirs
    theirs = case.model.generate(src, num_beams=4, length_penalty=0.0, **settings)[
        :, 1:
    ].tolist()
    options = SearchOptions(alpha=0.0, max_length=12)
    found = beam(case.translator.model, src, options)
    assert [rows[0].tokens for rows in found] == [
        [i for i in row if i not in special] for row in theirs
    ]


def test_scores_are_their_log_probabilities(case):
    targets = ["3. März", "der einundzwanzigste März", "fünf Kilometer", "am Sonntag"]
    for text, target, score in zip(
        TEXTS, targets, case.translator.score(TEXTS, targets), strict=True
    ):
        batch = case.tokenizer([text], text_target=[target], return_tensors="pt")
        with torch.inference_mode():
            expected = (
                case.model(**batch)
                .logits.log_softmax(-1)
                .gather(2, batch.labels[..., None])
                .flatten()
            )
        assert score.token_log_probabilities == pytest.approx(
            expected.tolist(), abs=1e-4
        )


def test_attention_is_theirs_in_every_head(case):
    text, target = TEXTS[1], "der einundzwanzigste März"
    found = case.translator.attention(text, target)
    batch = case.tokenizer([text], text_target=[target], return_tensors="pt")
    with torch.inference_mode():
        theirs = case.model(**batch, output_attentions=True)
    assert torch.allclose(
        found.encoder, torch.cat(theirs.encoder_attentions), atol=1e-5
    )
    assert torch.allclose(
        found.decoder, torch.cat(theirs.decoder_attentions), atol=1e-5
    )
    assert torch.allclose(found.cross, torch.cat(theirs.cross_attentions), atol=1e-5)
    assert found.inputs[0] == "<pad>" and found.target[-1] == found.source[-1] == "</s>"
    assert len(found.encoder) == case.model.config.encoder_layers
    assert len(found.cross) == case.model.config.decoder_layers


def test_batches_change_nothing_though_padding_is_the_last_token(case):
    one_by_one = [case.translator.translate(text, TWO) for text in TEXTS[:3]]
    assert case.translator.translate(TEXTS[:3], TWO) == one_by_one
    totals = [score.total for score in case.translator.score(TEXTS, TEXTS[::-1])]
    alone = [
        case.translator.score(a, b).total
        for a, b in zip(TEXTS, TEXTS[::-1], strict=True)
    ]
    assert totals == pytest.approx(alone, abs=1e-3)


def test_what_the_export_takes_away_the_import_brings_back(tmp_path):
    model, tokenizer = load_model(SHIPPED)
    (tmp_path / "config.json").write_text(json.dumps(marian_config(model.config)))
    config = read_marian_config(tmp_path)
    assert config.activation == "relu" and (
        config.pad_id,
        config.bos_id,
        config.eos_id,
    ) == (0, 1, 2)
    weights = convert_weights(marian_weights(model), config, tmp_path)
    returned = MarianTransformer(config).eval()
    returned.load_state_dict(weights, strict=False)
    assert all(
        torch.equal(weights[name], tensor) for name, tensor in model.named_parameters()
    )
    src = torch.tensor(tokenizer.encode_source(["March 3"]))
    assert torch.allclose(returned(src, src), model(src, src), atol=1e-4)


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
    barred = [[tokenizer.target.id_to_token(model.config.pad_id)]]
    found = engine.translate_batch(
        rows, beam_size=1, suppress_sequences=barred, max_decoding_length=12
    )
    src, _, _ = encoded(case)
    for ours, each in zip(greedy(model, src, max_length=12), found, strict=True):
        assert each.hypotheses[0] == [
            tokenizer.target.id_to_token(i) for i in ours.tokens
        ]


# ---- words ----

ODD = [
    "March 3",
    " two  spaces ",
    "1,234.50 %",
    "ÉCLAIR ½ ﬁve",
    "snow ☃ 漢字",
    "“quoted” – it’s …",
    ">>deu<< five kilometers",
    ">>deu<<five",
    "a >> b << c",
    "x" * 70,
    "tab\tand\u00a0space",
    "",
]


def test_ids_and_texts_are_those_of_their_tokenizer(case):
    ours = case.translator.tokenizer
    assert ours.encode_source(ODD) == case.tokenizer(ODD).input_ids
    assert ours.encode_target(ODD) == case.tokenizer(text_target=ODD).input_ids
    texts = [pair[1] for pair in PAIRS[:50]]
    rows = ours.encode_target(texts)
    torch.manual_seed(0)
    rows += torch.randint(0, ours.tgt_vocab_size, (20, 12)).tolist()
    theirs = [case.tokenizer.decode(row, skip_special_tokens=True) for row in rows]
    assert ours.decode(rows) == theirs
    assert (
        sum(a == b for a, b in zip(theirs, texts, strict=False)) > 40
    )  # the rest has letters without a piece


def test_text_that_looks_like_a_special_token_is_text(plain):
    assert plain.translator.tokenizer.encode_source(["</s> <pad>"])[0].count(0) == 1


def test_a_code_is_one_token_and_an_unknown_one_is_refused(plain):
    tokenizer = plain.translator.tokenizer
    assert tokenizer.source_tokens(">>fra<< five")[0] == ">>fra<<"
    with pytest.raises(
        ValueError, match="unknown target language '>>fre<<': did you mean '>>fra<<'"
    ):
        plain.translator.translate([">>fre<< five"])
    for split in (False, True):
        with pytest.raises(ValueError, match="^line 2: unknown target language"):
            plain.translator.translate(["five", ">>fre<< five"], split=split)


def test_every_part_of_a_long_line_keeps_its_code(plain):
    long = " ".join(["The museum opens on October 27, 2058."] * 6)
    apart = [">>deu<< " + sentence + "." for sentence in long.rstrip(".").split(". ")]
    parts = plain.translator.translate(apart, GREEDY)
    assert plain.translator.tokenizer.prefix(">>deu<<five") == ">>deu<<"
    assert plain.translator.tokenizer.prefix("five >>") == ""
    assert plain.translator.translate(
        ">>deu<< " + long, GREEDY, split=True
    ) == " ".join(parts)


def test_unknown_characters_are_named(plain):
    assert plain.translator.tokenizer.unknown_characters("five ☃") == ["☃"]
    with pytest.raises(
        ValueError, match="line 1 has characters that this model never saw: ☃"
    ):
        plain.translator.translate("five ☃", strict=True)
    with pytest.warns(UserWarning, match="☃ \\(1\\)"):
        assert plain.translator.translate("five ☃")
    with pytest.raises(ValueError, match="at most 40"):
        plain.translator.translate(["five " * 80])


# ---- files ----


def test_an_imported_folder_holds_its_own_tokenizer_and_loads_the_same(case, tmp_path):
    moved = shutil.move(shutil.copytree(case.out, tmp_path / "a"), tmp_path / "b")
    model, tokenizer = load_marian(moved)
    assert tokenizer.encode_source(ODD) == case.translator.tokenizer.encode_source(ODD)
    assert (tokenizer.src_lang, tokenizer.tgt_lang) == ("en", "de")
    assert tokenizer.joint == (not (case.folder / "target_vocab.json").exists())
    src, _, tgt = encoded(case)
    assert (
        torch.equal(model(src, tgt), case.translator.model(src, tgt))
        and not model.training
    )


def old_layout(folder: Path, model: torch.nn.Module, half: bool = False) -> None:
    """Weights as older repositories have them: a pickle, every tied matrix under each
    of its names, position codes.
    """
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if half:  # their code would load the codes rounded to 16 bits, which ours never are
        tensors = {
            name: tensor.half()
            for name, tensor in tensors.items()
            if "embed_positions" not in name
        }
    torch.save(tensors, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize("half", [False, True])
def test_older_repositories_are_read_too(plain, copy, tmp_path, half):
    old_layout(copy, plain.model, half)
    settings = json.loads((copy / "config.json").read_text())
    extra = {
        "static_position_embeddings": True,
        "normalize_before": False,
        "bos_token_id": 0,
        "num_beams": 6,
    }
    (copy / "config.json").write_text(json.dumps(settings | extra))
    (copy / "tokenizer_config.json").unlink()
    assert "lm_head.weight" in read_published_tensors(copy)
    import_marian(copy, tmp_path / "out", "en", "fi")
    translator = load(tmp_path / "out")
    assert (translator.tokenizer.src_lang, translator.tokenizer.tgt_lang) == (
        "en",
        "fi",
    )
    src, mask, tgt = encoded(plain)
    theirs = transformers.MarianMTModel.from_pretrained(
        copy, dtype=torch.float32
    ).eval()
    with torch.inference_mode():
        expected = theirs(src, attention_mask=mask, decoder_input_ids=tgt).logits
        assert torch.allclose(translator.model(src, tgt), expected, atol=1e-4)
    size = (tmp_path / "out" / "model.safetensors").stat().st_size
    assert size < (plain.out / "model.safetensors").stat().st_size * (
        0.6 if half else 1.1
    )


def test_languages_that_nobody_names_are_undetermined(copy):
    (copy / "tokenizer_config.json").unlink()
    assert read_marian_tokenizer(copy).tgt_lang == "und"


def test_the_settings_of_published_models_are_understood(tmp_path):
    """A config.json with all the fields that older releases of `transformers` wrote for
    OPUS-MT.
    """
    published = {
        "_num_labels": 3,
        "activation_dropout": 0.0,
        "activation_function": "swish",
        "add_bias_logits": False,
        "add_final_layer_norm": False,
        "architectures": ["MarianMTModel"],
        "attention_dropout": 0.0,
        "bad_words_ids": [[58100]],
        "bos_token_id": 0,
        "classif_dropout": 0.0,
        "d_model": 512,
        "decoder_attention_heads": 8,
        "decoder_ffn_dim": 2048,
        "decoder_layerdrop": 0.0,
        "decoder_layers": 6,
        "decoder_start_token_id": 58100,
        "dropout": 0.1,
        "encoder_attention_heads": 8,
        "encoder_ffn_dim": 2048,
        "encoder_layerdrop": 0.0,
        "encoder_layers": 6,
        "eos_token_id": 0,
        "extra_pos_embeddings": 58101,
        "init_std": 0.02,
        "is_encoder_decoder": True,
        "max_length": 512,
        "max_position_embeddings": 512,
        "model_type": "marian",
        "normalize_before": False,
        "normalize_embedding": False,
        "num_beams": 6,
        "num_hidden_layers": 6,
        "pad_token_id": 58100,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "vocab_size": 58101,
    }
    (tmp_path / "config.json").write_text(json.dumps(published))
    config = read_marian_config(tmp_path)
    assert (config.N, config.decoder_N, config.h, config.d_k, config.d_ff) == (
        6,
        6,
        8,
        64,
        2048,
    )
    assert (config.pad_id, config.bos_id, config.eos_id, config.max_length) == (
        58100,
        58100,
        0,
        512,
    )
    assert (
        config.shared_vocab
        and config.tgt_vocab_size == 58101
        and config.activation == "swish"
    )


def change(folder: Path, name: str = "config.json", **values) -> None:
    """Set fields of a JSON file; None takes one away."""
    found = json.loads((folder / name).read_text()) | values
    (folder / name).write_text(
        json.dumps({key: value for key, value in found.items() if value is not None})
    )


def change_tensors(folder: Path, **changes) -> None:
    """Replace, add or, with None, take away tensors; dots are written as double
    underscores.
    """
    from safetensors.torch import save_file

    tensors = read_published_tensors(folder) | {
        name.replace("__", "."): value for name, value in changes.items()
    }
    save_file(
        {name: tensor for name, tensor in tensors.items() if tensor is not None},
        folder / "model.safetensors",
    )


BIAS = "model__encoder__layers__0__fc1__bias"
FAULTS = {
    "no config": (lambda f: (f / "config.json").unlink(), "config.json is missing"),
    "broken config": (
        lambda f: (f / "config.json").write_text("{"),
        "config.json can't be read",
    ),
    "another kind": (
        lambda f: change(f, model_type="t5"),
        "type 't5': only 'marian' can be imported",
    ),
    "unscaled": (
        lambda f: change(f, scale_embedding=False),
        "scale_embedding is False",
    ),
    "untied": (
        lambda f: change(f, tie_word_embeddings=False),
        "tie_word_embeddings is False",
    ),
    "pre-norm": (
        lambda f: change(f, normalize_before=True),
        "normalize_before is True",
    ),
    "heads": (
        lambda f: change(f, decoder_attention_heads=8),
        "encoder_attention_heads and decoder_attention_heads",
    ),
    "activation": (
        lambda f: change(f, activation_function="swishy"),
        "did you mean 'swish'",
    ),
    "lacks d_model": (lambda f: change(f, d_model=None), "lacks the setting 'd_model'"),
    "starts at the end": (
        lambda f: change(f, decoder_start_token_id=0),
        "bos_id and eos_id are both 0",
    ),
    "no weights": (
        lambda f: (f / "model.safetensors").unlink(),
        "neither model.safetensors nor pytorch_model.bin",
    ),
    "truncated": (
        lambda f: (f / "model.safetensors").write_bytes(
            (f / "model.safetensors").read_bytes()[:-99]
        ),
        "is damaged",
    ),
    "missing tensor": (
        lambda f: change_tensors(f, **{BIAS: None}),
        "'model.encoder.layers.0.fc1.bias' is missing",
    ),
    "wrong shape": (
        lambda f: change_tensors(f, **{BIAS: torch.zeros(47)}),
        "has shape (47,)",
    ),
    "unknown tensor": (
        lambda f: change_tensors(f, model__norm=torch.zeros(3)),
        "no place for the tensor 'model.norm'",
    ),
    "own output matrix": (
        lambda f: change_tensors(f, lm_head__weight=torch.zeros(3, 3)),
        "lm_head.weight differs",
    ),
    "trained positions": (
        lambda f: change_tensors(
            f, model__encoder__embed_positions__weight=torch.zeros(40, 32)
        ),
        "no sinusoids",
    ),
    "more positions": (
        lambda f: change_tensors(
            f, model__encoder__embed_positions__weight=torch.zeros(41, 32)
        ),
        "no sinusoids",
    ),
    "no vocabulary": (lambda f: (f / "vocab.json").unlink(), "vocab.json is missing"),
    "no <unk>": (
        lambda f: change(f, "vocab.json", **{"<unk>": None}),
        "no table of ids",
    ),
    "one token less": (
        lambda f: change(f, "vocab.json", **{"▁March": None}),
        "don't belong together",
    ),
    "padding elsewhere": (
        lambda f: change(f, "vocab.json", **{"<pad>": 5}),
        "don't belong together",
    ),
    "no pieces": (lambda f: (f / "source.spm").unlink(), "source.spm is missing"),
    "empty pieces": (
        lambda f: (f / "source.spm").write_bytes(b""),
        "source.spm is damaged",
    ),
    "broken pieces": (
        lambda f: (f / "target.spm").write_bytes(b"nothing"),
        "target.spm is damaged",
    ),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_bad_directory_is_one_error_that_names_it(copy, tmp_path, fault):
    spoil, words = FAULTS[fault]
    spoil(copy)
    with pytest.raises(ValueError) as error:
        import_marian(copy, tmp_path / "out")
    assert words in str(error.value) and "\n" not in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy"]


def test_a_pickle_that_would_run_code_is_refused(copy, tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path / "sprung").touch, ()

    (copy / "model.safetensors").unlink()
    torch.save({"trap": Trap()}, copy / "pytorch_model.bin")
    with pytest.raises(
        ValueError, match="pytorch_model.bin is damaged or holds something else"
    ):
        import_marian(copy, tmp_path / "out")
    assert not (tmp_path / "sprung").exists()


def test_nobody_elses_model_is_overwritten(plain, copy, tmp_path):
    with pytest.raises(ValueError, match="holds other files"):
        import_marian(plain.folder, copy)
    assert (copy / "vocab.json").exists() and (copy / "tokenizer_config.json").exists()
    with pytest.raises(ValueError, match="a model folder of this package already"):
        import_marian(plain.out, tmp_path / "out")
    import_marian(plain.folder, tmp_path / "out")
    import_marian(plain.folder, tmp_path / "out")


def test_an_imported_folder_is_not_taken_for_one_of_the_papers(plain, tmp_path):
    for action in (
        lambda: load_model(plain.out),
        lambda: average_checkpoints([plain.out], tmp_path / "mean"),
    ):
        with pytest.raises(
            ValueError, match="holds a marian model: open it with .*load"
        ):
            action()
    assert not (tmp_path / "mean").exists()


def test_damage_after_the_import_is_noticed(plain, tmp_path):
    folder = Path(shutil.copytree(plain.out, tmp_path / "ours"))
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(ValueError, match="not the file that was written"):
        load(folder)
    (folder / "model.safetensors").write_bytes(weights)
    change(folder, "vocab.json", **{"▁March": None})
    with pytest.raises(ValueError, match="vocab.json is not the file that was written"):
        load(folder)
    verify(folder, accept=True)
    with pytest.raises(ValueError, match="don't belong together"):
        load(folder)


def test_a_missing_package_is_named_with_the_remedy(plain, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(
        ValueError, match=r"pip install 'annotated-transformer\[export\]'"
    ):
        load(plain.out)


@pytest.mark.parametrize(
    "setting, value", [("activation", "tanh"), ("decoder_N", 0), ("kind", "bert")]
)
def test_settings_out_of_range_are_named(setting, value):
    with pytest.raises(ValueError, match=setting):
        MarianConfig(9, 9, **{setting: value})


def test_vocabularies_of_unequal_unknown_tokens_are_refused(case):
    config, tokenizer = read_marian_config(case.folder), case.translator.tokenizer
    check_vocabulary(config, tokenizer, case.folder)
    vocab, other = (
        dict(tokenizer.target.vocab),
        next(name for name in tokenizer.target.vocab if name[0] == "▁"),
    )
    vocab["<unk>"], vocab[other] = vocab[other], vocab["<unk>"]
    mixed = replace(tokenizer, target=Pieces(tokenizer.target.model, vocab))
    with pytest.raises(ValueError, match="don't belong together"):
        check_vocabulary(config, mixed, case.folder)


def test_a_trained_model_is_not_replaced_and_an_imported_one_is(case, tmp_path):
    save_model(tmp_path / "trained", *load_model(SHIPPED))
    with pytest.raises(ValueError, match="holds a model that was not imported"):
        import_marian(case.folder, tmp_path / "trained")
    for _ in range(2):
        import_marian(case.folder, tmp_path / "imported")
    assert is_marian(tmp_path / "imported") and not is_marian(tmp_path / "trained")


def test_an_exported_folder_is_refused_by_name(case, tmp_path):
    export_marian(*load_model(SHIPPED), tmp_path / "ours")
    with pytest.raises(ValueError, match="no SentencePiece files"):
        import_marian(tmp_path / "ours", tmp_path / "back")


def test_a_piece_without_an_id_is_named(case):
    tokenizer = case.translator.tokenizer
    piece = next(
        piece
        for piece in tokenizer.source.processor.encode(TEXTS[0], out_type=str)
        if len(piece) > 2
    )
    vocab = {name: i for name, i in tokenizer.source.vocab.items() if name != piece}
    lacking = replace(tokenizer, source=Pieces(tokenizer.source.model, vocab))
    assert (
        lacking.unknown_characters(TEXTS[0]) == [piece]
        and tokenizer.unknown_characters(TEXTS[0]) == []
    )
    assert tokenizer.unknown_characters(f">>zzz<< {TEXTS[0]}") == [">>zzz<<"]


# ---- costs ----


def test_parameters_are_counted_and_flops_are_those_measured(case):
    config, model = case.translator.model.config, case.translator.model
    assert sum(marian_parameters(config).values()) == sum(
        p.numel() for p in model.parameters()
    )
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        MarianTransformer(config)(
            torch.ones(1, 7, dtype=torch.long), torch.ones(1, 5, dtype=torch.long)
        )
    assert marian_flops(config, 7, 5).forward == counter.get_total_flops()
    sizes = dict(N=2, d_model=16, d_ff=32, h=2, d_k=8, d_v=8)
    even = MarianConfig(20, 20, decoder_N=2, **sizes)
    assert marian_flops(even, 4, 6) == flops(TransformerConfig(20, 20, **sizes), 4, 6)


def test_a_fresh_model_starts_like_the_papers():
    torch.manual_seed(0)
    config = MarianConfig(
        20, 20, N=1, decoder_N=1, d_model=16, d_ff=32, h=2, d_k=8, d_v=8
    )
    model = MarianTransformer(config)
    layer = model.decoder.layers[0]
    assert (layer.self_attention.W_Q.bias == 0).all() and (model.logits_bias == 0).all()
    assert layer.self_attention.W_K.weight.abs().max() <= (0.5 * 6 / 32) ** 0.5


# ---- the command line ----


def test_the_command_has_help_with_an_example(run):
    status, printed, _ = run("import", "--help")
    assert status == 0 and "annotated-transformer import opus-mt-en-de" in printed


def test_the_command_line_takes_an_imported_model_everywhere(run, plain, tmp_path):
    out = tmp_path / "model"
    status, printed, _ = run("import", plain.folder, out)
    assert status == 0 and f"imported {plain.folder} into {out}" in printed.replace(
        "\n", ""
    )
    status, printed, _ = run("translate", "-m", out, TEXTS[0])
    assert status == 0 and printed == plain.translator.translate(TEXTS[0]) + "\n"
    status, printed, _ = run("info", out)
    assert (
        status == 0
        and f"{sum(p.numel() for p in plain.translator.model.parameters()):,}"
        in printed
    )
    assert "decoder_N" in printed
    status, _, _ = run(
        "attend", "-m", out, TEXTS[0], "3. März", "--out", tmp_path / "page.html"
    )
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert status == 0 and "<attention-view" in page and "März" in page
    status, printed, _ = run("score", "-m", out, TEXTS[0], "3. März")
    assert status == 0 and float(printed.split("\t")[0]) == pytest.approx(
        plain.translator.score(TEXTS[0], "3. März").total, abs=1e-3
    )
    for name, text in (("test.en", TEXTS[0]), ("test.de", "3. März")):
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    files = ["--source", tmp_path / "test.en", "--reference", tmp_path / "test.de"]
    status, printed, _ = run("evaluate", "-m", out, *files, "--beam-size", 1)
    assert status == 0 and "exactly right" in printed


def test_the_command_line_refuses_in_one_line(run, plain, copy, tmp_path):
    (copy / "vocab.json").unlink()
    status, _, err = run("import", copy, tmp_path / "out")
    assert (
        status == 2
        and err.startswith("error: ")
        and err.count("\n") == 1
        and "vocab.json is missing" in err
    )
    assert not (tmp_path / "out").exists()
    status, _, err = run("translate", "-m", copy, "one")
    assert status == 2 and err.count("\n") == 1 and "Traceback" not in err


def test_training_goes_on_from_an_imported_model(run, case, tmp_path):
    """The loss is theirs before the first update, and the result is an imported model
    again.
    """
    for split in ("train", "valid"):
        for side, language in enumerate(["en", "de"]):
            text = "".join(f"{pair[side]}\n" for pair in PAIRS[:20])
            (tmp_path / f"{split}.{language}").write_text(text, encoding="utf-8")
    start = Start("random", case.translator.model, case.translator.tokenizer)
    plan = going_on(recipe("phrasebook"), start)
    prepared = prepare(
        plan, tmp_path / "try", PAIRS[:20], PAIRS[:20], device="cpu", start=start
    )
    loss = validation_loss(prepared.objective, prepared.valid, plan.training)
    total = tokens = 0.0
    for source, target in PAIRS[:20]:
        batch = case.tokenizer([source], text_target=[target], return_tensors="pt")
        total += case.model(**batch).loss.item() * batch.labels.numel()
        tokens += batch.labels.numel()
    assert loss == pytest.approx(total / tokens, abs=1e-5)
    settings = "steps=2 batch_tokens=128 max_tokens=40 save_every=1 keep=2"
    arguments = train_arguments(tmp_path, tmp_path / "out", settings)
    assert run(*arguments, "--from", case.out)[0] == 0
    assert is_marian(tmp_path / "out" / "model")
    assert run("translate", "-m", tmp_path / "out", TEXTS[0])[0] == 0


def test_the_shipped_model_opens_as_before(run):
    named = run("translate", "-m", "phrasebook-en-de", "March 3")
    assert named == (0, "3. März\n", "")
    assert run("info", "base")[0] == run("info")[0] == 0
