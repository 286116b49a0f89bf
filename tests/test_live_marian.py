"""The page "Live" with a Marian model: its marian.js against `transformers` and against
the package.
"""

import shutil
from pathlib import Path

import pytest
import torch
from browser import Browser
from published import (
    PAIRS,
    as_pickle,
    change,
    change_tensors,
    make_marian,
    remove,
    truncate,
    write,
)
from test_live import (
    ANSWER,
    ANSWERED,
    BOX,
    ODD,
    SCRIPT,
    TOUCH,
    by_script,
    choose_files,
    click,
    in_node,
    in_python,
    needs_node,
    needs_page,
    odd_texts,
    saved_run,
    text_of,
    type_in,
)
from test_marian import FAULTS, TEXTS, VARIANTS, Case, old_settings
from tiny_run import opened

from annotated_transformer import load
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.interop.marian import read_marian_config
from annotated_transformer.interop.marian_export import export_marian
from annotated_transformer.model_names import MODELS
from tools import live

pytestmark = [
    needs_node,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*reached its limit"),
]
SHIPPED = MODELS / "tatoeba-en-de"

# What the page makes of a chosen folder, and what its model then answers.
IN_FOLDER = """
const [live, folder] = process.argv.slice(1), fs = require("fs");
const { liveMarian } = require(`${live}/marian.js`);
const Transformer = liveMarian(require(`${live}/transformer.js`));
global.savedRun = require(`${live}/saved-run.js`).savedRun;
const { modelFolder } = require(`${live}/folder.js`);
const files = fs.readdirSync(folder).map((name) =>
  new File([fs.readFileSync(`${folder}/${name}`)], name));
const jobs = JSON.parse(fs.readFileSync(0));
function forced(model, { ids, target }) {
  const { logProbs } = Transformer.force(model, Transformer.encode(model, ids), target);
  return logProbs.map((each) => Array.from(each));
}
(async () => {
  const found = await modelFolder.read(files, async () => Transformer);
  const model = Transformer.read(await found.weights.arrayBuffer(), found.folder);
  return jobs.map((job) => job.rows ? job.rows.map((row) => model.tokenizer.decode(row))
    : job.all ? forced(model, job) : answer(model, job));
})().catch((error) => error.message).then((told) =>
  process.stdout.write(JSON.stringify(told)));
"""


def in_folder(folder: Path, jobs: list[dict]) -> list:
    """What the page's model of a folder answers to each job, or why there is none."""
    return by_script(ANSWER + IN_FOLDER, jobs, SCRIPT.parent, folder)


@pytest.fixture(scope="module", params=list(VARIANTS))
def case(request, tmp_path_factory) -> Case:
    return Case(tmp_path_factory.mktemp(request.param), **VARIANTS[request.param])


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Case:
    return Case(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """The page's own model as a Marian directory."""
    folder = tmp_path_factory.mktemp("exported") / "marian"
    shipped = opened(SHIPPED)
    export_marian(shipped.model, shipped.tokenizer, folder)
    return folder


# -- text ------------------------------------------------------------------------------

# Umlauts whole and in parts, ligatures, full width, lone marks, emoji, spaces.
AWKWARD = [*ODD, *TEXTS, *(text for pair in PAIRS[:100] for text in pair)]
AWKWARD += [
    "Größe",
    "u\u0308ber A\u030angström",
    "ﬁve oﬃces ﬆ",
    "ＦＵＬＬ　ｗｉｄｔｈ１２",
    "½ ㎏ ™",
]
AWKWARD += [
    "\u0301\u0308x",
    "👩‍👩‍👧 👍🏽 🇩🇪",
    "a\u00adb\u200bc\u200dd\ufeffe\x00f\x07g",
]
AWKWARD += [
    " \u00a0\u2009 lots   of\t\tblanks \u3000",
    "▁▁ ▁a▁",
    "ﷺ ﾊﾟ ㈱",
    "\u1100\u1161\u11a8",
]
AWKWARD += [
    ">>deu<< five",
    ">>fra<<five",
    ">>deu<<",
    "five >>deu<<",
    ">> five",
    "\n five\r\n",
]


@pytest.mark.parametrize(
    "pieces",
    [
        {},
        {"model_type": "bpe"},
        {"normalization_rule_name": "identity", "remove_extra_whitespaces": False},
        {"normalization_rule_name": "nfkc_cf", "add_dummy_prefix": False},
        {"user_defined_symbols": ["ei", "e", "\u00fcn", "2 ", "☃"], "vocab_size": 170},
        {"user_defined_symbols": ["ei", "the "], "model_type": "bpe"},
    ],
    ids=lambda pieces: " ".join(map(str, pieces.values())) or "nmt_nfkc",
)
def test_texts_are_cut_as_by_sentencepiece(pieces, tmp_path):
    """And every text comes back as it does in the package."""
    _, tokenizer = make_marian(tmp_path / "model", pieces=pieces)
    texts = AWKWARD + odd_texts(300)
    rows = [tokenizer(text).input_ids for text in texts]
    torch.manual_seed(0)
    noise = torch.randint(0, tokenizer.vocab_size, (20, 12)).tolist()
    jobs = [*({"text": text} for text in texts), {"rows": rows + noise}]
    *found, back = in_folder(tmp_path / "model", jobs)
    # An end that is written out is text here, and a token there.
    same = [n for n, text in enumerate(texts) if "</s>" not in text]
    assert [found[n]["ids"] for n in same] == [rows[n] for n in same]
    as_target = [tokenizer(text_target=text).input_ids for text in texts]
    assert [found[n]["asTarget"] for n in same] == [as_target[n] for n in same]
    ours = load(tmp_path / "model", device="cpu").tokenizer
    assert back == ours.decode(rows + noise)


def test_each_side_has_ids_of_its_own(case):
    texts = [text for text in AWKWARD if not text.startswith(">>fra")]
    found, tokenizer = (
        in_folder(case.folder, [{"text": t} for t in texts]),
        case.tokenizer,
    )
    assert [each["ids"] for each in found] == tokenizer(texts).input_ids
    as_target = tokenizer(text_target=texts).input_ids
    assert [each["asTarget"] for each in found] == as_target


def test_a_language_that_the_model_lacks_is_named(plain):
    told = in_folder(plain.folder, [{"text": ">>fre<< five"}])
    assert told == "This model knows no >>fre<<, but >>deu<<, >>fra<<."


PUBLISHED_CONFIG = """
const { liveMarian } = require(`${process.argv[1]}/marian.js`);
const file = JSON.parse(require("fs").readFileSync(0));
process.stdout.write(JSON.stringify(liveMarian({}).readConfig(file)));
"""


def test_settings_are_read_as_in_the_package(tmp_path):
    for published in (old_settings(), old_settings() | {"decoder_layers": 2}):
        found = by_script(PUBLISHED_CONFIG, published, SCRIPT.parent)
        wanted = read_marian_config(published, tmp_path).to_dict()
        assert wanted | found == wanted
        assert wanted.keys() - found.keys() == {"model_type", "positions", "dropout"}


# -- numbers ---------------------------------------------------------------------------


@torch.inference_mode()
def check_numbers(folder: Path, case: Case) -> None:
    """Every log-probability is that of `transformers`."""
    torch.manual_seed(1)
    size, pad = case.model.config.decoder_vocab_size, case.model.config.pad_token_id
    jobs, expected = [], []
    for text in TEXTS:
        ids = case.tokenizer(text, return_tensors="pt").input_ids
        tgt = torch.randint(2, size - 1, (1, 9))
        read = torch.cat([torch.full((1, 1), pad), tgt[:, :-1]], 1)
        scores = case.model(ids, decoder_input_ids=read).logits.log_softmax(-1)
        expected.append(scores[0])
        jobs.append({"all": True, "ids": ids[0].tolist(), "target": tgt[0].tolist()})
    for rows, wanted in zip(in_folder(folder, jobs), expected, strict=True):
        assert all(row[pad] is None for row in rows)  # −∞
        wanted[:, pad] = 0
        found = torch.tensor([[p or 0 for p in row] for row in rows])
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


def test_numbers_are_theirs(case):
    check_numbers(case.folder, case)
    check_numbers(case.out, case)  # as the package imports it


@pytest.mark.parametrize("activation", ["relu", "gelu_new", "silu"])
def test_other_activations_are_theirs(activation, tmp_path):
    made = Case(
        tmp_path, activation_function=activation, share_encoder_decoder_embeddings=True
    )
    check_numbers(made.folder, made)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_every_name_of_a_matrix_are_read(dtype, plain, tmp_path):
    """With the codes of positions, as older repositories have them."""
    folder = Path(shutil.copytree(plain.folder, tmp_path / "old"))
    kept = {k: v.to(dtype) for k, v in plain.model.state_dict().items()}
    assert any("positions" in name for name in kept) and "lm_head.weight" in kept
    change_tensors(lambda _: {k: v.clone() for k, v in kept.items()})(folder)
    rounded = Case.__new__(Case)
    rounded.tokenizer, rounded.model = plain.tokenizer, load(folder).model
    found = in_folder(folder, [{"text": t, "options": {"size": 1}} for t in TEXTS])
    wanted = in_python(rounded.model, [each["ids"] for each in found], beam_size=1)
    assert [each["tokens"] for each in found] == [each.tokens for each in wanted]
    scores = [each["score"] for each in found]
    assert scores == pytest.approx([each.score for each in wanted], abs=1e-4)


def test_translations_are_those_of_the_package(case):
    rows = case.tokenizer(TEXTS).input_ids
    for size, alpha in [(1, 0.0), (4, 0.6)]:
        options = {"size": size, "alpha": alpha, "maxLength": 12}
        found = in_folder(case.folder, [{"text": t, "options": options} for t in TEXTS])
        search = dict(beam_size=size, alpha=alpha, max_length=12)
        wanted = in_python(case.translator.model, rows, **search)
        assert [each["tokens"] for each in found] == [each.tokens for each in wanted]
        scores = [each["score"] for each in found]
        assert scores == pytest.approx([each.score for each in wanted], abs=1e-4)
        texts = case.translator.translate(TEXTS, **search)
        assert [each["text"] for each in found] == texts


def test_what_the_package_exports_translates_as_before(exported, tmp_path):
    """With the tokenizer that an export of ours keeps."""
    sources = [source for source, _ in phrasebook("en", "de", "test", 8)]
    jobs = [
        {"text": t, "options": {"size": 4}} for t in [*sources, "HE SAID: ‘I’LL GO’"]
    ]
    found = in_folder(exported, jobs)
    wanted = in_node(live.write(SHIPPED, tmp_path)[0], jobs)
    for name in ("ids", "tokens", "whole"):
        assert [each[name] for each in found] == [each[name] for each in wanted]
    scores = [each["score"] for each in found]
    assert scores == pytest.approx(
        [each["score"] for each in wanted], abs=0.01
    )  # of a byte


# -- what doesn't fit ------------------------------------------------------------------

BIAS = "model.encoder.layers.0.fc1.bias"
TOLD = {
    "no config": "choose config.json as well",
    "another type": "config.json: model_type is t5",
    "unscaled": "config.json: scale_embedding is false",
    "heads": "encoder_attention_heads and decoder_attention_heads differ",
    "activation": "config.json: activation_function is swishy",
    "lacks d_model": "config.json lacks the setting d_model",
    "starts at the end": "decoder_start_token_id and eos_token_id are the same",
    "too deep": "its N is 1000000000",
    "truncated": "isn't of the shape that its header says",
    "missing tensor": f"model.safetensors lacks the tensor {BIAS}",
    "wrong shape": f"{BIAS} is 47 × 1, and config.json asks for 48 × 1",
    "unknown tensor": "has a tensor model.norm, for which this page has no place",
    "own output matrix": "lm_head.weight differs from model.shared.weight",
    "trained positions": "embed_positions.weight holds no sinusoids",
    "not finite": f"{BIAS} holds numbers that are not finite",
    "no <unk>": "vocab.json has 243 tokens, and config.json asks for 244",
    "one token less": "vocab.json has 243 tokens, and config.json asks for 244",
    "no pieces": "choose source.spm as well",
    "broken pieces": "target.spm is damaged, or no SentencePiece model",
}
FAULTS = FAULTS | {
    "a pointer": (write("model.safetensors", b"version https://git-lfs"), ""),
    "no JSON": (truncate("vocab.json"), ""),
    "no ids": (change("vocab.json", **{"<unk>": None, "<unknown>": 1}), ""),
    "another end": (change("vocab.json", **{"</s>": 1, "<unk>": 0}), ""),
    "no text": (remove("vocab.json"), ""),
}
TOLD |= {
    "a pointer": "its weights are no safetensors file",
    "no JSON": "vocab.json is damaged",
    "no ids": "vocab.json lacks <unk>",
    "another end": "vocab.json has <unk> as token 0, and config.json </s>",
    "no text": "choose vocab.json as well",
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_bad_folder_is_one_sentence_that_names_it(fault, plain, tmp_path):
    folder = Path(shutil.copytree(plain.folder, tmp_path / "copy"))
    FAULTS[fault][0](folder)
    told = in_folder(folder, [])
    assert isinstance(told, str) and TOLD[fault] in told and "\n" not in told


def test_a_pickle_comes_with_the_line_that_converts_it(plain, tmp_path, monkeypatch):
    folder = Path(shutil.copytree(plain.folder, tmp_path / "copy"))
    as_pickle(plain.model)(folder)
    told = in_folder(folder, [])
    assert "pytorch_model.bin" in told
    monkeypatch.chdir(folder)
    exec(told.partition("python -c ")[2].strip("'"), {})
    assert isinstance(in_folder(folder, []), list)


def test_pieces_of_another_make_are_refused(tmp_path):
    for option in ("byte_fallback", "treat_whitespace_as_suffix"):
        make_marian(tmp_path / option, pieces={option: True, "vocab_size": 420})
        told = in_folder(tmp_path / option, [])
        assert told == f"source.spm has {option}, which this page lacks"
    make_marian(tmp_path / "words", pieces={"model_type": "word"})
    assert "source.spm has model_type 3" in in_folder(tmp_path / "words", [])


# -- the page --------------------------------------------------------------------------


def choose_folder(browser: Browser, folder: Path) -> None:
    """A folder from a disk, and the page's answer to it."""
    choose_files(browser, folder, field="folder")


def drop_folder(browser: Browser, folder: Path) -> None:
    """The same by dragging it onto the page."""
    browser.run("document.getElementById('live-own-model').textContent = ''")
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        browser.call("Input.dispatchDragEvent", type=kind, x=300, y=300, data=data)
    browser.wait("document.getElementById('live-own-model').textContent !== ''")


HEADS = """[...document.querySelector('attention-view').shadowRoot
  .querySelectorAll('button')].map((each) => each.value)"""


@needs_page
def test_a_readers_marian_model_runs_in_the_page(served, exported, tmp_path):
    """A folder is chosen, and another dropped, with three layers and one; a bad one
    leaves the page as it is.
    """
    made = Case(tmp_path, **VARIANTS["separate-gelu"])
    (made.folder / "checkpoint").mkdir()  # whose config.json is none of the model's
    write("checkpoint/config.json", b"{}")(made.folder)
    bad = Path(shutil.copytree(made.folder, tmp_path / "bad"))
    change(normalize_before=True)(bad)
    text, date = "the twenty-first of March", "der einundzwanzigste März"
    with Browser() as browser:
        browser.open(f"{served}live.html")
        assert not [url for url in browser.requests if "marian.js" in url]
        type_in(browser, "source", text)
        choose_folder(browser, exported)
        browser.wait(ANSWERED)
        assert "en to de, 3 layers" in text_of(browser, "own-model")
        assert text_of(browser, "output") == date
        click(browser, "#live-head-off")
        off = browser.run("document.querySelector('attention-view').chosen")
        assert f"off={off}" in browser.run("location.hash")
        before, now = (
            number for number in text_of(browser, "effect").split() if "−" in number
        )
        assert before != now
        click(browser, "#live-trained")
        browser.run("document.getElementById('live-edit').click()")
        code = "document.getElementById('live-code').value"
        browser.wait(f"{code}.includes('softmax')")
        browser.run(f"{code} = {code}.replace('Math.sqrt(query.length)', '1')")
        click(browser, "#live-code-run")  # a worker of its own
        edited = text_of(browser, "changed-output")
        click(browser, "#live-code-reset")
        click(browser, "#live-no-scale")
        assert text_of(browser, "changed-output") == edited
        click(browser, "#live-trained")
        choose_folder(browser, bad)
        assert "normalize_before is true" in text_of(browser, "own-model")
        click(browser, "#live-form button")
        assert text_of(browser, "output") == date
        drop_folder(browser, made.folder)
        browser.wait(ANSWERED)
        assert "3 and 1 layers" in text_of(browser, "own-model")
        assert text_of(browser, "output") == made.translator.translate(text)
        layers = {"encoder": 3, "decoder": 1, "cross": 1}
        heads = [
            f"{n}.{i}.{h}"
            for n, k in layers.items()
            for i in range(k)
            for h in range(4)
        ]
        assert browser.run(HEADS) == heads
        marks = HEADS.replace("each.value", "each.title")
        browser.wait(f"{marks}.every((each) => each.includes('without it'))")
        steps = browser.run("Number(document.getElementById('live-way').max)")
        assert steps + 1 == 4 + 3 * 4 + 1 * 6 + 2  # boxes of Figure 1
        browser.run(BOX.format("cross-attention") + TOUCH)
        assert text_of(browser, "box-name") == "cross-attention, layer 1 of 1"
        click(browser, "#live-no-source")
        browser.run("document.getElementById('live-save').click()")  # of all heads
        choose_files(browser, saved_run(browser, tmp_path))
        assert "saved run is shown" in text_of(browser, "own-model")
        assert not [each for each in browser.errors if "theme mode" not in each]
