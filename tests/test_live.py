"""The page "Live": its Transformer in JavaScript against the one in Python."""

import base64
import copy
import gzip
import json
import math
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import torch
import yaml
from browser import BOOK, CHROMIUM, Browser
from test_missing import FREE, HERE, LANGUAGES, LOST, NUMBER
from tiny_run import opened
from torch import Tensor, nn

from annotated_transformer.data.batching import pad_rows
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.decoding.model_search import ModelSearch, teacher_forcing
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import greedy
from annotated_transformer.errors import UserError
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.layers import AddNorm
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.model_names import MODELS
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.translation.confidence import DOUBTFUL
from annotated_transformer.translation.missing import missing
from annotated_transformer.translation.translator import Translator
from tools import live
from tools.space import write_space

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "book" / "_static" / "live" / "transformer.js"
FOLDER = MODELS / "tatoeba-en-de"
SIZES = json.loads((FOLDER / "config.json").read_text())
NODE = shutil.which("node")
CPU = torch.device("cpu")
needs_node = pytest.mark.skipif(not NODE, reason="node is not installed")

# What a test asks of the script: to translate, to force a translation, to cut a text.
ANSWER = """
function answer(model, { text, ids, target, options, switches }) {
  const off = { ...switches, off: new Set((switches || {}).off) };
  const source = ids || model.tokenizer.encode(text);
  if (target) {
    const encoded = Transformer.encode(model, source, off);
    const found = Transformer.force(model, encoded, target, off);
    return { ids: source, steps: found.logProbability, weights:
      model.decoder.layers.map((_, layer) => found.looks[`cross.${layer}`].weights) };
  }
  if (!options) return { ids: source, text: model.tokenizer.decode(source),
    asTarget: model.tokenizer.encode(text ?? "", "target") };
  const found = Transformer.translate(model, source, options, off);
  const { tokens, score, finished } = found, written = model.tokenizer.decode(tokens);
  const whole = text && model.tokenizer.putBack(written, text);
  return { ids: source, tokens, text: written, whole, score, finished };
}
"""
IN_NODE = """
const fs = require("fs");
const Transformer = require(process.argv[1]);
const { jobs } = JSON.parse(fs.readFileSync(0));
const bytes = require("zlib").gunzipSync(fs.readFileSync(process.argv[2]));
const model = Transformer.read(new Uint8Array(bytes).buffer);
process.stdout.write(JSON.stringify(jobs.map((job) => answer(model, job))));
"""


def in_node(file: Path, jobs: list[dict]) -> list[dict]:
    """What the script answers to each job, with the model of a file."""
    assert NODE
    done = subprocess.run(
        [NODE, "-e", ANSWER + IN_NODE, str(SCRIPT), str(file)],
        input=json.dumps({"jobs": jobs}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def page_model() -> tuple[Transformer, PairTokenizer]:
    """The shipped model."""
    translator = opened(FOLDER)
    return translator.model, translator.tokenizer


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    """The shipped model's file for the page."""
    return live.write(FOLDER, tmp_path_factory.mktemp("live"))[0]


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    """Pairs that the model never saw."""
    return phrasebook("en", "de", "test", 500)


@pytest.fixture(scope="module")
def random_folder(tmp_path_factory, pairs) -> Path:
    """An untrained model of odd sizes, where no two numbers are the same."""
    tokenizer = train_tokenizer(pairs, "en", "de", 203, lowercase=True)
    vocabulary = {f"{it}_vocab_size": tokenizer.src_vocab_size for it in ("src", "tgt")}
    sizes = {"N": 3, "d_model": 22, "d_ff": 34, "h": 3, "d_k": 5, "d_v": 6}
    config = TransformerConfig(**vocabulary, **sizes, max_length=64)
    torch.manual_seed(0)
    model = Transformer(config)
    with torch.no_grad():
        model.tgt_embedding.weight *= 3
        for name, parameter in model.named_parameters():
            if "bias" in name or "norm" in name:
                parameter += 0.1 * torch.randn_like(parameter)
    folder = tmp_path_factory.mktemp("odd") / "model"
    save_model(folder, model.eval(), tokenizer, torch.int8)
    return folder


# -- the file --------------------------------------------------------------------------


def test_the_file_is_the_same_each_time_and_small(page_file):
    data = page_file.read_bytes()
    assert gzip.decompress(data) == live.page_file(FOLDER)
    assert len(data) <= 8_000_000
    parts = sorted(page_file.parent.glob("model-*.js"))
    texts = [part.read_text().split('"')[1] for part in parts]
    assert b"".join(map(base64.b64decode, texts)) == data
    assert live.write(FOLDER, page_file.parent)[0] == page_file


def test_a_model_of_another_kind_is_refused(tmp_path, random_folder):
    folder = tmp_path / "model"
    shutil.copytree(random_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    config["positions"] = "learned"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="sinusoidal"):
        live.page_file(folder)
    with pytest.raises(UserError, match="torch.int8"):
        live.page_file(MODELS / "phrasebook-en-de")


# -- text ------------------------------------------------------------------------------

ODD = [
    "",
    " ",
    "  two   spaces\tand a tab ",
    "no\u00a0break\u2003em\u3000wide",
    "e\u0301 composed, \u212b too",
    "日本語 and 🙂🙂 and 👩‍👩‍👧",
    "[eos] [pad] is text; <s> too",
    "▁ stands▁for a space ▁▁",
    "don't stop—now… “really”?!",
    "३४ ½ Ⅷ 12345",
    "ß ẞ İ ı ſt ŒUVRE",
    "a" * 60 + "z" * 7,
    "\x1c\x85\x00x\ufeff",
    "$1 $& $$ \\ ^ [a-z]",
    "“HE SAID”: ‘I’LL GO’, AND I",
    "STRAẞE İST GUT ΣΑΣ OK",
    "Where (Is) “İt” 1984 Now?",
    "ǅ Ab Cd Ef and Ab Cd Ef Gh",
    "ǅa Ab Cd Ef",
    "In 1998, 45 men: $1,250.50, 1234567, 06/15/2024, 555-1234, (0)30 12345-67 x",
]


def odd_texts(count: int) -> list[str]:
    """Texts that nobody writes, from letters, marks, digits, spaces and symbols."""
    rng, letters = Random(0), "aäeéntdühr ße12,.'-– \u0301\u0308▁日🙂\u00a0Ⅷ"
    return ["".join(rng.choices(letters, k=rng.randint(1, 30))) for _ in range(count)]


@needs_node
@pytest.mark.parametrize("which", ["shipped", "odd"])
def test_texts_are_cut_as_the_library_cuts_them(
    which, page_file, random_folder, pairs, tmp_path
):
    folder = FOLDER if which == "shipped" else random_folder
    file = page_file if which == "shipped" else live.write(folder, tmp_path)[0]
    tokenizer = PairTokenizer.load(folder)
    texts = [text for pair in pairs for text in pair] + ODD + odd_texts(300)
    found = in_node(file, [{"text": text} for text in texts])
    clean = [" ".join(text.split()) for text in texts]
    expected, as_target = tokenizer.encode_source(clean), tokenizer.encode_target(clean)
    assert [each["ids"] for each in found] == expected
    assert [each["asTarget"] for each in found] == as_target
    assert (which == "odd") == tokenizer.joint
    assert [each["text"] for each in found] == tokenizer.decode(expected)


@needs_node
@pytest.mark.filterwarnings("ignore:passed as unknown", "ignore:line .*unk. stands")
def test_unknown_characters_are_put_back_as_in_python(page_file):
    texts = ["Does Dr. Šmíd speak German?", "ȘMÍD AND ÇORLU SAID: ❤", "[unk] is a ☃."]
    texts += ["S\u030cmid likes 北 and 京.", "WRITE TO Ann.Lee@x-y.org OR www.a.de/b!"]
    texts += ["Müller@übung.de is her address, a@b isn't."]
    texts += ["Call (212) 555-0147 or 030 1234567.", "I bought it at a-b.example.com."]
    texts += ["Xavier met Max.", "Xenia knows Xavier and Xi.", "Xanthippe met Šmíd."]
    texts += ["I know X.", "Generation X"]
    options = {"size": 4, "alpha": 0.6}
    found = in_node(page_file, [{"text": each, "options": options} for each in texts])
    python = Translator.from_pretrained(FOLDER, engine="torch")
    assert [each["whole"] for each in found] == python.translate(texts)
    assert sum(each["whole"] != each["text"] for each in found) == 11


# -- what is lost ----------------------------------------------------------------------

# The page's worker, which answers here as it does there.
WORKER = """
const [folder, weights] = process.argv.slice(1), fs = require("fs");
const Transformer = require(`${folder}/transformer.js`);
const { liveMissing } = require(`${folder}/missing.js`);
const { liveWorker } = require(`${folder}/worker.js`);
const texts = JSON.parse(fs.readFileSync(0)), answers = [];
const self = { postMessage({ id, shown, found, error }) {
  if (error) throw new Error(error);
  if (shown !== undefined) return;
  if (id > 1) answers.push([found.output, found.missing,
    found.tree.filter(({ won }) => won).length === found.answer.length]);
  if (id > texts.length)
    process.stdout.write(JSON.stringify(answers), () => process.exit());
  else self.onmessage({ data: { id: id + 1, task: "translate",
    given: { text: texts[id - 1] } } });
} };
liveWorker(self, Transformer, liveMissing());
self.onmessage({ data: { id: 1, task: "load",
  given: { weights: new Blob([fs.readFileSync(weights)]), packed: true } } });
"""
MISSING = """
const [file] = process.argv.slice(1), missing = require(file).liveMissing();
const jobs = JSON.parse(require("fs").readFileSync(0));
process.stdout.write(JSON.stringify(jobs.map((job) => missing(...job))));
"""
SENTENCES = ROOT / "benchmarks" / "paper" / "two_hundred.tsv"


def by_script(code: str, given: object, *arguments: object) -> list:
    """What a script in Node answers to this."""
    assert NODE
    done = subprocess.run(
        [NODE, "-e", code, *map(str, arguments)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@needs_node
def test_the_page_misses_what_python_misses():
    jobs = [(*each[:2], *langs) for each in HERE + LOST for langs in LANGUAGES]
    jobs += [(b, a, other, one) for a, b, one, other in jobs]
    found = by_script(MISSING, jobs, SCRIPT.with_name("missing.js"))
    assert found == [missing(*job) for job in jobs]


@needs_node
@pytest.mark.filterwarnings("ignore:line|passed as unknown")
def test_the_page_takes_another_hypothesis_where_python_does(page_file):
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()[1::24]
    texts = [FREE, NUMBER, *(line.split("\t")[0] for line in lines)]
    found = by_script(WORKER, texts, SCRIPT.parent, page_file)
    expected = Translator.from_pretrained(FOLDER, engine="torch").confidence(texts)
    same = [
        (output, lost) == (each.text, each.missing)
        for (output, lost, _), each in zip(found, expected, strict=True)
    ]
    assert sum(same) >= 0.98 * len(texts) and any(lost for _, lost, _ in found)
    assert "14 €" in found[0][0] and not found[0][1]
    assert all(whole for *_, whole in found)  # the tree ends in the one that was taken


# -- translations ----------------------------------------------------------------------


def in_python(model: Transformer, rows: list[list[int]], **options) -> list:
    """The best hypothesis for each row of ids."""
    found = ModelSearch(model).search(rows, SearchOptions(**options))
    return [best for best, *_ in found]


@needs_node
@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_translations_are_those_of_the_same_weights_in_python(
    page_model, page_file, pairs, count
):
    """And a beam of one is greedy search."""
    model, tokenizer = page_model
    rows = tokenizer.encode_source([source for source, _ in pairs[:count]])
    for options, expected in [
        ({"size": 4, "alpha": 0.6}, in_python(model, rows)),
        ({"size": 1, "alpha": 0}, greedy(model, pad_rows(rows, CPU))),
    ]:
        jobs = [{"ids": row, "options": options} for row in rows]
        check_equal(in_node(page_file, jobs), expected)


@needs_node
@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_ordinary_sentences_are_translated_as_in_python(
    page_model, page_file, data_root, count
):
    pairs = list(islice(load_corpus("tatoeba", "test", "en", "de", data_root), count))
    options = {"size": 4, "alpha": 0.6}
    found = in_node(page_file, [{"text": s, "options": options} for s, _ in pairs])
    model, tokenizer = page_model
    rows = tokenizer.encode_source([source for source, _ in pairs])
    check_equal(found, in_python(model, rows))


def check_equal(found: list[dict], expected: list) -> None:
    """Of the translations 98 in 100 are the same, and so are their scores."""
    both = zip(found, expected, strict=True)
    same = [(f, e) for f, e in both if f["tokens"] == e.tokens]
    error = max(abs(f["score"] - e.score) for f, e in same)
    print(f"{len(same)} of {len(found)} the same; scores differ by {error:.1e} at most")
    assert len(same) >= 0.98 * len(found)
    assert error < 1e-4


@needs_node
@pytest.mark.parametrize("alpha", [0.0, 0.6, -1.0])
def test_searches_of_an_untrained_model_are_the_same(alpha, random_folder, tmp_path):
    model = opened(random_folder).model
    file = live.write(random_folder, tmp_path)[0]
    rows = PairTokenizer.load(random_folder).encode_source(odd_texts(20))
    rows = [row for row in rows if len(row) > 1]
    for size in (1, 3):
        options = {"size": size, "alpha": alpha, "maxLength": 9}
        found = in_node(file, [{"ids": row, "options": options} for row in rows])
        expected = in_python(model, rows, beam_size=size, alpha=alpha, max_length=9)
        assert [each["tokens"] for each in found] == [each.tokens for each in expected]
        assert [each["finished"] for each in found] == [e.finished for e in expected]
        scores = [each["score"] for each in found]
        assert scores == pytest.approx([e.score for e in expected], abs=1e-4)


# -- switches --------------------------------------------------------------------------


class _Norm(AddNorm):
    """LayerNorm(Sublayer(x)): no residual connection."""

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:
        return self.norm(sublayer_output)


class _NoPositions(nn.Module):
    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        return x


def without_positions(model: Transformer) -> None:
    """A bag of words."""
    model.positions = _NoPositions()


def without_scale(model: Transformer) -> None:
    """q · k, not divided: queries that are longer by √d_k give the same."""
    for name, module in model.named_modules():
        if name.endswith("W_Q"):
            module.weight.data *= math.sqrt(model.config.d_k)


def without_residual(model: Transformer) -> None:
    """Every sub-layer stands alone."""
    for module in model.modules():
        if isinstance(module, AddNorm):
            module.__class__ = _Norm


def without_one_norm(model: Transformer) -> None:
    """Cross-attention alone, in the decoder's second layer."""
    model.decoder.layers[1].after_source_attention.__class__ = _Norm


def without_one_network(model: Transformer) -> None:
    """Zeros from the feed-forward network of the encoder's last layer."""
    network = model.encoder.layers[2].feed_forward
    network.register_forward_hook(lambda *found: torch.zeros_like(found[-1]))


def without_heads(*names: str) -> Callable[[Transformer], None]:
    """Heads that bring nothing home: what W_O reads of them is zero."""

    def silence(start: int, width: int) -> Callable:
        def hook(_: nn.Module, arguments: tuple[Tensor]) -> Tensor:
            heads = arguments[0].clone()
            heads[..., start : start + width] = 0
            return heads

        return hook

    def change(model: Transformer) -> None:
        for name in names:
            kind, layer, head = name.split(".")
            stack = model.encoder if kind == "encoder" else model.decoder
            part = "source_attention" if kind == "cross" else "self_attention"
            width = model.config.d_v
            module = getattr(stack.layers[int(layer)], part).W_O
            module.register_forward_pre_hook(silence(int(head) * width, width))

    return change


def all_heads(kind: str, *layers: int) -> list[str]:
    """Every head of some layers of the shipped model."""
    return [f"{kind}.{layer}.{head}" for layer in layers for head in range(SIZES["h"])]


SILENT = {
    "one head": ["cross.1.2"],
    "encoder's first layer": all_heads("encoder", 0),
    "decoder's last layer": all_heads("decoder", SIZES["N"] - 1),
}
SWITCHES = {
    "positions": ({"positions": False}, without_positions),
    "scale": ({"scale": False}, without_scale),
    "residual": ({"residual": False}, without_residual),
    "source": (
        {"source": False},
        without_heads(*all_heads("cross", *range(SIZES["N"]))),
    ),
    "one residual": ({"off": ["decoder.1.after_source_attention"]}, without_one_norm),
    "one network": ({"off": ["encoder.2.feed_forward"]}, without_one_network),
    **{it: ({"off": heads}, without_heads(*heads)) for it, heads in SILENT.items()},
}


@needs_node
@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_is_the_same_ablation_in_python(name, page_model, page_file, pairs):
    switches, change = SWITCHES[name]
    model, tokenizer = copy.deepcopy(page_model[0]), page_model[1]
    sources, targets = zip(*pairs[:4], strict=True)
    rows = tokenizer.encode_source(list(sources))
    answers = tokenizer.encode_target(list(targets))
    as_trained = in_python(model, rows)
    change(model)
    jobs = [
        {"ids": row, "target": answer, "switches": switches}
        for row, answer in zip(rows, answers, strict=True)
    ]
    for found, row, answer in zip(in_node(page_file, jobs), rows, answers, strict=True):
        expected = teacher_forcing(model, pad_rows([row], CPU), pad_rows([answer], CPU))
        assert found["steps"] == pytest.approx(expected[0].tolist(), abs=1e-3)
    options = {"size": 4, "alpha": 0.6}
    jobs = [{"ids": row, "options": options, "switches": switches} for row in rows]
    found, expected = in_node(page_file, jobs), in_python(model, rows)
    same = [f["tokens"] == e.tokens for f, e in zip(found, expected, strict=True)]
    assert sum(same) >= 0.95 * len(same)
    changed = [e.score != t.score for e, t in zip(expected, as_trained, strict=True)]
    assert all(changed)


@needs_node
def test_attention_is_where_python_looks(page_model, page_file):
    from annotated_transformer.translation.attention_weights import inspect_attention

    model, tokenizer = page_model
    text, answer = "the twenty-first of March", "der einundzwanzigste März"
    (row,) = tokenizer.encode_source([text])
    (target,) = tokenizer.encode_target([answer])
    seen = inspect_attention(model, tokenizer, row, target)
    (found,) = in_node(page_file, [{"ids": row, "target": target}])
    cross = torch.tensor(found["weights"])  # (layer, head, tgt, src)
    assert torch.allclose(cross, seen.cross, atol=1e-5)


# -- the page --------------------------------------------------------------------------

needs_page = pytest.mark.skipif(
    not CHROMIUM or not (BOOK / "live.html").exists(),
    reason="no Chromium is installed, or the book is not built",
)
ANSWERED = "/ms for each/.test(document.getElementById('live-status').textContent)"
ASK = "document.querySelector('#live-form button').click()"


@pytest.fixture(scope="module")
def window(served) -> Iterator[Browser]:
    """The page with its model loaded."""
    with Browser() as browser:
        browser.open(f"{served}live.html")
        browser.run(ASK)
        browser.wait(ANSWERED)
        yield browser


def text_of(browser: Browser, name: str) -> str:
    """The text of one element of the page."""
    return browser.run(f"document.getElementById('live-{name}').textContent")


def click(browser: Browser, selector: str) -> None:
    """Click, and wait for the translations that follow."""
    browser.run("document.getElementById('live-status').textContent = ''")
    browser.run(f"document.querySelector({json.dumps(selector)}).click()")
    browser.wait(ANSWERED)


@needs_page
@pytest.mark.parametrize("page", ["live", "index"])
@pytest.mark.parametrize("place", ["file", "server"])
def test_the_model_is_loaded_when_it_is_asked_for_and_from_here(page, place, served):
    base = f"{BOOK.as_uri()}/" if place == "file" else served
    with Browser() as browser:
        browser.open(f"{base}references.html")
        others = set(browser.errors)  # the theme's own, where a page is a file
        assert not [url for url in browser.requests if "_static/live/" in url]
        browser.open(f"{base}{page}.html")
        at_once = [url for url in browser.requests if "_static/live/" in url]
        names = [url.rpartition("/")[2] for url in at_once]
        assert not [name for name in names if "transformer" in name or "model" in name]
        if page == "live":  # alive at once: its first sentence is recorded
            assert text_of(browser, "output") == RIGHT
            browser.wait("document.querySelectorAll('#live-tree rect').length > 0")
        browser.run(ASK)
        browser.wait(ANSWERED)
        assert text_of(browser, "output") == RIGHT
        loaded = [url for url in browser.requests if "/live/model" in url]
        wanted = "model.packed" if place == "server" else "model-00.js"
        assert loaded[0].endswith(wanted)
        assert all(url.startswith((base, "data:", "blob:")) for url in browser.requests)
        assert set(browser.errors) <= others


@needs_page
def test_the_page_is_a_static_space_of_the_hub_too(tmp_path):
    write_space(tmp_path / "space")
    head = (tmp_path / "space/README.md").read_text("utf-8").split("---\n")[1]
    assert yaml.safe_load(head)["sdk"] == "static"
    base = f"{(tmp_path / 'space').as_uri()}/"
    with Browser() as browser:
        browser.open(f"{base}index.html")
        browser.run(ASK)
        browser.wait(ANSWERED)
        assert text_of(browser, "output") == RIGHT
        assert all(url.startswith((base, "data:", "blob:")) for url in browser.requests)
        links = "[...document.links].map((each) => each.href)"
        ours = [url for url in browser.run(links) if url.startswith(base)]
        assert not [url for url in ours if not url.startswith(f"{base}index.html")]


@needs_page
def test_chromium_translates_as_node_and_python_do(window, page_model, pairs):
    model, tokenizer = page_model
    sources = [source for source, _ in pairs[:10]]
    rows = tokenizer.encode_source(sources)
    options = {"size": 4, "alpha": 0.6}
    jobs = [{"text": source, "options": options} for source in sources]
    window.run(
        ANSWER
        + """fetch("_static/live/model.packed")
        .then((packed) => packed.body.pipeThrough(new DecompressionStream("gzip")))
        .then((whole) => new Response(whole).arrayBuffer())
        .then((bytes) => { window.tested = Transformer.read(bytes); })"""
    )
    answers = f"{json.dumps(jobs)}.map((job) => answer(window.tested, job))"
    check_equal(window.run(answers), in_python(model, rows))


RIGHT = "Ich weiß nicht, wo sie wohnt."


def changed(browser: Browser, selector: str) -> str:
    """The changed model's translation after a click; the trained model's stays."""
    click(browser, selector)
    assert text_of(browser, "output") == RIGHT
    return text_of(browser, "changed-output")


@needs_page
def test_a_story_shows_what_its_three_lines_say(window):
    """With the sentence that the page begins with."""
    click(window, "#live-trained")
    story = [changed(window, "[data-story=order]") for _ in range(3)]
    assert text_of(window, "story").startswith("3 of 3.")
    assert len({RIGHT, *story}) == 3 and story[1] == story[2]  # without order
    lost = [changed(window, "[data-story=not]") for _ in range(3)]
    assert lost == [RIGHT, RIGHT.replace(" nicht", ""), RIGHT]
    *steps, blind = [changed(window, "[data-story=blind]") for _ in range(3)]
    assert len({RIGHT, *steps, blind}) == 4
    cut = [changed(window, "[data-story=size]") for _ in range(3)]
    assert len(set(cut[1].split()) & set(RIGHT.split())) <= 1  # it stammers
    before, now = re.findall(r"−\d+\.\d\d", text_of(window, "effect"))
    assert before != now  # larger scores, in the third
    [changed(window, "[data-story=blind]") for _ in range(3)]
    click(window, "[data-example]")
    assert text_of(window, "output") == "Mein Bruder ist älter als ich."
    assert text_of(window, "changed-output") == blind  # whatever you type
    click(window, "#live-layer-off")
    before, now = re.findall(r"−\d+\.\d\d", text_of(window, "effect"))
    assert before != now
    for wanted in ("eine Eintrittskarte", "ein Ticket"):  # a beam of one, and of eight
        click(window, "[data-story=search]")
        assert text_of(window, "changed-output") == f"Wo kann ich {wanted} kaufen?"
    click(window, "#live-trained")
    assert window.run("document.getElementById('live-changed').hidden")
    marks = "[...document.querySelectorAll('[data-story] small')]"
    assert window.run(f"{marks}.every((it) => it.textContent === '')")
    type_in(window, "source", "I don't know where she lives.")
    click(window, "#live-form button")


def type_in(browser: Browser, name: str, text: str) -> None:
    """Select what stands in a field of the page and type over it."""
    browser.run(f"document.getElementById('live-{name}').select()")
    browser.call("Input.insertText", text=text)


def slide(browser: Browser, value: int) -> None:
    """Move the slider that goes from box to box."""
    slider = "document.getElementById('live-way')"
    browser.run(f"{slider}.value = {value}")
    browser.run(f"{slider}.dispatchEvent(new Event('input'))")


BOX = "document.querySelector('[data-box={}]')"
TOUCH = ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"


@needs_page
def test_a_box_of_figure_1_opens_and_is_its_own_switch(window):
    click(window, "#live-trained")
    window.run(BOX.format("cross-attention") + TOUCH)
    assert text_of(window, "box-name") == "cross-attention, layer 1 of 3"
    window.run(BOX.format("cross-attention") + TOUCH)
    assert text_of(window, "box-name") == "cross-attention, layer 2 of 3"
    window.run("document.querySelectorAll('#live-target-tokens button')[2].focus()")
    assert text_of(window, "step-name") == "3 of 9"
    query = window.run("document.querySelector('#live-box caption').textContent")
    assert query == "The query is ▁weiß."
    shares = window.run(
        "[...document.querySelectorAll('#live-box td:nth-child(4)')]"
        ".map((each) => Number.parseFloat(each.textContent) || 0)"
    )
    assert len(shares) == 10 and sum(shares) == pytest.approx(100, abs=1)
    for box, layer, part in [
        ("cross-attention", 2, "cross.1.0,cross.1.1"),
        ("dec-feed-forward", 1, "decoder.0.feed_forward"),
        ("enc-norm-1", 1, "encoder.0.after_attention"),
        ("tgt-positions", 1, "decoder.positions"),
    ]:
        click(window, "#live-trained")
        slide(window, 0)
        for _ in range(layer):
            window.run(BOX.format(box) + TOUCH)
        click(window, "#live-box-off")
        assert window.run("decodeURIComponent(location.hash)").count(part) == 1
        assert len(set(re.findall(r"−\d+\.\d+", text_of(window, "effect")))) == 2
        assert window.run(f"{BOX.format(box)}.classList.contains('off')")
    click(window, "#live-trained")


def test_the_page_calls_doubtful_what_the_package_does():
    panels = (SCRIPT.parent / "panels.js").read_text()
    assert f"const DOUBTFUL = {DOUBTFUL};" in panels


@needs_page
def test_play_goes_up_the_figure_for_the_word_in_view(window):
    window.run("Live.point({step: 7})")
    last = int(window.run("document.getElementById('live-way').max"))
    slide(window, last - 2)
    window.run("document.getElementById('live-play').click()")
    assert text_of(window, "play") == "Stop"
    window.wait("document.getElementById('live-play').textContent === 'Play'")
    assert window.run("Number(document.getElementById('live-way').value)") == last
    assert text_of(window, "step-name") == "8 of 9"


@needs_page
def test_each_head_says_what_it_is_worth(window):
    """The last bar is full, and the head in view brings the most."""
    click(window, "#live-trained")
    bars = f"{INSIDE}.querySelectorAll('button i')"
    window.wait(f"{bars}.length === {3 * SIZES['N'] * SIZES['h']}")
    widths = window.run(f"[...{bars}].map((bar) => Number.parseFloat(bar.style.width))")
    assert max(widths) == 100 and min(widths) == 0
    label = window.run(f"{INSIDE}.querySelector('button').ariaLabel")
    assert re.search(r"without it the log-probability (falls|rises) by \d", label)


@needs_page
def test_a_reader_edits_the_transformer(window):
    click(window, "#live-trained")
    window.run("document.getElementById('live-edit').click()")
    window.wait("document.getElementById('live-code').value.includes('softmax')")
    code = window.run("document.getElementById('live-code').value")

    def run(text: str) -> None:
        type_in(window, "code", text)
        click(window, "#live-code-run")

    run(code.replace("Math.sqrt(query.length)", "1"))  # as the switch has it
    edited, effect = text_of(window, "changed-output"), text_of(window, "effect")
    assert text_of(window, "output") == RIGHT
    click(window, "#live-code-reset")
    assert window.run("document.getElementById('live-changed').hidden")
    click(window, "#live-no-scale")
    assert text_of(window, "changed-output") == edited
    assert text_of(window, "effect") == effect
    click(window, "#live-no-scale")
    told = "document.getElementById('live-code-status').textContent"
    for broken in (code + "}", code.replace("query.length", "q.length")):
        type_in(window, "code", broken)
        window.run("document.getElementById('live-code-run').click()")
        window.wait(f"{told}.startsWith('Your code')")
        assert text_of(window, "output") == RIGHT
        assert window.run("document.getElementById('live-changed').hidden")
    # The page waits for twenty seconds before it stops a loop; five are enough here.
    window.run(
        "const whole = setTimeout; setTimeout = (call, wait, ...more) =>"
        " whole(call, wait > 9999 ? wait / 4 : wait, ...more)"
    )
    type_in(window, "code", code.replace("const scores", "for (;;); const scores"))
    window.run("document.getElementById('live-code-run').click()")
    window.wait(f"{told}.includes('takes too long')")
    window.wait(ANSWERED)
    assert text_of(window, "output") == RIGHT
    click(window, "#live-code-reset")


TOLD = "document.getElementById('live-own-model').textContent"
INSIDE = "document.querySelector('attention-view').shadowRoot"
TARGET_WORDS = """[...document.querySelectorAll('#live-target-tokens span')]
  .map((each) => each.textContent)"""


def choose_files(browser: Browser, *paths: Path, field: str = "files") -> None:
    """Files from a disk, or a folder, and the page's answer to them."""
    browser.run("document.getElementById('live-own-model').textContent = ''")
    document = browser.call("DOM.getDocument")["root"]["nodeId"]
    about = {"nodeId": document, "selector": f"#live-{field}"}
    node = browser.call("DOM.querySelector", **about)["nodeId"]
    files = [str(path) for path in paths]
    browser.call("DOM.setFileInputFiles", files=files, nodeId=node)
    browser.wait(f"{TOLD} !== ''")


@needs_page
def test_a_model_of_the_readers_own_runs_in_the_page(served, tmp_path):
    """The phrasebook model, first with a file too few; its run is saved, and shown to a
    friend who has no such model.
    """
    folder, date = MODELS / "phrasebook-en-de", "der einundzwanzigste März"
    names = ["model.safetensors", "config.json", "text.json", "tokenizer.json"]
    files = [folder / name for name in names]
    with Browser() as browser:
        browser.open(f"{served}live.html")
        choose_files(browser, *files[:3])
        assert "choose tokenizer.json" in text_of(browser, "own-model")
        type_in(browser, "source", "the twenty-first of March")
        choose_files(browser, *files)
        browser.wait(ANSWERED)
        assert "en to de" in text_of(browser, "own-model")
        assert text_of(browser, "output") == date
        heads = f"[...{INSIDE}.querySelectorAll('button')].map((each) => each.title)"
        saved = saved_run(browser, tmp_path)
        browser.wait(f"{heads}.every((each) => each.includes('without it'))")
        worth = browser.run(heads)
    spoiled = tmp_path / "spoiled.json"
    spoiled.write_text(saved.read_text("utf-8").replace('"looks"', '"x"'), "utf-8")
    with Browser() as friend:
        friend.open(f"{served}live.html")
        friend.wait(f"document.getElementById('live-output').textContent === '{RIGHT}'")
        choose_files(friend, spoiled)
        assert text_of(friend, "own-model").startswith("That's no saved run")
        assert text_of(friend, "output") == RIGHT
        choose_files(friend, saved)
        assert "saved run is shown" in text_of(friend, "own-model")
        assert text_of(friend, "output") == date
        assert [each.split(":")[0] for each in friend.run(heads)] == [
            each.split(":")[0] for each in worth
        ]
        assert "März" in "".join(friend.run(TARGET_WORDS))
        assert not [each for each in friend.requests if "model.packed" in each]


def saved_run(browser: Browser, folder: Path) -> Path:
    """The file that the button writes."""
    browser.call(
        "Browser.setDownloadBehavior",
        behavior="allow",
        downloadPath=str(folder),
        **browser.context,
    )
    browser.run("document.getElementById('live-save-run').click()")
    saved = folder / "transformer-run.json"
    until = time.monotonic() + 60
    while not saved.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return saved


@needs_page
def test_a_changed_run_is_saved_and_sent_as_it_was(served, tmp_path):
    """A friend sees both translations, the switches and the code, which waits."""
    waits = "document.getElementById('live-code-status').textContent.includes('press')"
    with Browser() as browser:
        browser.open(f"{served}live.html")
        browser.run(ASK)
        browser.wait(ANSWERED)
        click(browser, "#live-no-positions")
        without = text_of(browser, "changed-output")
        browser.run("document.getElementById('live-edit').click()")
        browser.wait("document.getElementById('live-code').value.includes('softmax')")
        code = browser.run("document.getElementById('live-code').value")
        code = code.replace("Math.sqrt(query.length)", "0.2")
        type_in(browser, "code", code)
        click(browser, "#live-code-run")
        edited, effect = text_of(browser, "changed-output"), text_of(browser, "effect")
        assert len({RIGHT, without, edited}) == 3
        link, saved = browser.run("location.href"), saved_run(browser, tmp_path)
    with Browser() as friend:
        friend.open(f"{served}live.html")
        friend.wait(f"document.getElementById('live-output').textContent === '{RIGHT}'")
        choose_files(friend, saved)
        assert text_of(friend, "output") == RIGHT
        assert text_of(friend, "changed-output") == edited
        assert text_of(friend, "effect") == effect
        assert friend.run("document.getElementById('live-no-positions').checked")
        friend.wait(waits)
        assert not [each for each in friend.requests if "model.packed" in each]
        friend.open(link)
        friend.wait(ANSWERED)
        assert text_of(friend, "changed-output") == without
        friend.wait(waits)
        assert friend.run("document.getElementById('live-code').value") == code
        click(friend, "#live-code-run")
        assert text_of(friend, "changed-output") == edited


@needs_page
def test_a_text_is_never_cut_and_no_stale_answer_stays(window):
    type_in(window, "source", "word " * 500)
    window.run(ASK)
    assert "2500 characters" in text_of(window, "status")
    assert window.run("document.getElementById('live-answers').hidden")
    panels = "[...document.querySelectorAll('.live-panel')]"
    assert window.run(f"{panels}.every((panel) => panel.hidden)")
    type_in(window, "source", "word " * 399)
    window.run(ASK)
    status = "document.getElementById('live-status').textContent"
    window.wait(f"{status}.includes('at most')")
    assert window.run("document.getElementById('live-answers').hidden")
    type_in(window, "source", "I don't know where she lives.")
    click(window, "#live-form button")
    assert text_of(window, "output") == RIGHT
    assert window.run("document.getElementById('live-own').value") == RIGHT


# A run as it may be saved, and what a hostile one has in place of its parts.
SAVED = {
    "text": "hi",
    "worth": {"cross.0.0": 1},
    "tree": [{"step": 0}, {"step": 1, "parent": 0}],
    "config": {"N": 3, "h": 4, "d_model": 128, "d_ff": 512, "max_length": 256},
}
HOSTILE = [
    ({"config": SAVED["config"] | {"N": 10**9}}, "N is 1000000000"),
    ({"config": SAVED["config"] | {"h": "4"}}, "its h is 4"),
    ({"tree": [{"step": 0}, {"step": 10**9, "parent": 0}]}, "steps doesn't fit"),
    ({"tree": {"length": 10**9}}, "isn’t a file"),
    ({"looks": {"rows": 2**50, "columns": 1, "bytes": "AAAA"}}, "numbers don't fit"),
]


def refusal(module: str, code: str, given: object) -> str:
    """The message of the error that some code throws with a script of the page."""
    script = f"""
const found = require({json.dumps(str(SCRIPT.with_name(module)))});
const given = {json.dumps(given)};
try {{ {code}; }} catch (error) {{ console.log(error.message); }}"""
    command = [NODE, "-e", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@needs_node
@pytest.mark.parametrize(("change", "words"), HOSTILE)
def test_a_saved_run_that_would_freeze_the_page_is_refused(change, words):
    code = "found.savedRun.checkRun(found.savedRun.unpacked(given))"
    assert refusal("saved-run.js", code, SAVED) == ""
    assert words in refusal("saved-run.js", code, SAVED | change)


@needs_node
def test_a_tensor_that_its_file_does_not_hold_is_refused():
    about = {"x": {"dtype": "F32", "shape": [2**50], "data_offsets": [0, 2**50]}}
    header = json.dumps(about).encode()
    data = len(header).to_bytes(8, "little") + header + bytes(16)
    code = "found.read(Uint8Array.from(given).buffer, { config: {} })"
    assert "tensor x isn't of the shape" in refusal("transformer.js", code, [*data])


# What a reader makes of the page, and what a friend then sees.
STATE = """["source", "output", "changed-output", "changed-source", "beam-value"]
  .map((name) => document.getElementById(`live-${name}`))
  .map((each) => each.value ?? each.textContent)"""


@needs_page
def test_a_link_opens_the_same_state_elsewhere():
    """From the disk; from a server, see test_a_changed_run_is_saved_and_sent…."""
    with Browser() as browser:
        browser.open(f"{BOOK.as_uri()}/live.html")
        browser.run("document.getElementById('live-source').select()")
        browser.call("Input.insertText", text="My dog & I aren't #1, are we?")
        click(browser, "#live-form button")
        click(browser, "#live-shuffled")
        click(browser, "#live-again")
        click(browser, "#live-head-off")
        browser.run("document.getElementById('live-beam-size').value = 2")
        browser.run(
            "document.getElementById('live-beam-size').dispatchEvent("
            "new Event('change', {bubbles: true}))"
        )
        browser.wait(ANSWERED)
        browser.run(
            "navigator.clipboard.writeText = (text) => { window.copied = text; }"
        )
        browser.run("document.getElementById('live-copy').click()")
        browser.wait("document.getElementById('live-copied').textContent === 'Copied.'")
        link, made = browser.run("window.copied"), browser.run(STATE)
        assert link == browser.run("location.href") and made[2] != made[1]
    with Browser() as friend:
        friend.open(link)
        friend.wait(ANSWERED)
        assert friend.run(STATE) == made
        assert friend.run("document.getElementById('live-head-off').checked")


@needs_page
def test_the_page_on_the_not_opens_what_it_tells(served):
    with Browser() as browser:
        browser.open(f"{served}not.html")
        cells = "[...document.querySelectorAll('tbody tr td:last-child')].slice(-2)"
        told = browser.run(f"{cells}.map((each) => each.textContent.trim())")
        link = browser.run("document.querySelector('a.try').href")

        def shown(off: list[str]) -> list[str]:
            browser.open("about:blank")
            browser.open(f"{link.partition('&off=')[0]}&off={','.join(off)}")
            browser.wait(ANSWERED)
            return [text_of(browser, name) for name in ("output", "changed-output")]

        first, second = ([f"encoder.{n}.{k}" for k in range(4)] for n in (0, 1))
        assert link.endswith("%2C".join(first)) and shown(first) == told
        assert told == [RIGHT, RIGHT.replace(" nicht", "")]
        for off in (*([head] for head in first), second):  # the page says so
            assert shown(off) == [RIGHT, RIGHT]


@needs_page
def test_a_link_brings_nothing_but_text_and_numbers(served):
    spoiled = (
        "s=%3Cimg+src%3Dx+onerror%3Dwindow.hit%3D1%3E&off=cross.99.0,%3Cb%3E&beam=999"
    )
    with Browser() as browser:
        browser.open(f"{served}live.html#{spoiled}&alpha=x&seed=-")
        browser.wait(ANSWERED)
        assert browser.run("document.getElementById('live-beam-value').value") == "8"
        assert not browser.run(
            "window.hit || document.querySelectorAll('img[src=x]').length"
        )
        assert not [each for each in browser.errors if "theme mode" not in each]


def reach_words_by_keyboard(browser: Browser, before: str) -> None:
    """From a head to the next, and from the element before the words through them."""
    name = f"{INSIDE}.querySelector('strong').textContent"
    value = f"{INSIDE}.querySelector('[role=status]').textContent"
    browser.run(f"{INSIDE}.querySelector('[aria-pressed=true]').focus()")
    first = browser.run(name)
    browser.press("ArrowLeft")
    browser.press("ArrowRight")
    assert browser.run(name) == first
    browser.press("ArrowLeft")
    assert browser.run(name) != first
    browser.run(f"{before}.focus()")
    seen = []
    for _ in range(2):
        browser.press("Tab")
        seen.append(browser.run(value))
    assert " looks at " in seen[0] and " looks at " in seen[1] and seen[0] != seen[1]


@needs_page
def test_heads_and_words_are_within_reach_of_the_keyboard(window):
    reach_words_by_keyboard(window, "document.getElementById('live-layer-off')")
    window.run("document.querySelector('#live-source').focus()")
    window.run("document.getElementById('live-status').textContent = ''")
    window.press("Enter")
    window.wait(ANSWERED)


@pytest.fixture(scope="module")
def attend_page(tmp_path_factory) -> str:
    """The address of a page that the command `attend` wrote."""
    page = tmp_path_factory.mktemp("attend") / "attention.html"
    command = ["attend", "Where is the station?", "--out", str(page)]
    subprocess.run(
        [sys.executable, "-m", "annotated_transformer", *command], check=True
    )
    return page.as_uri()


needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")


@needs_chromium
def test_attend_shows_the_same_picture_in_a_file_of_its_own(attend_page):
    with Browser(375, 800) as browser:
        browser.open(attend_page)
        assert browser.run("document.documentElement.scrollWidth") <= 375
        heads = browser.run(f"{INSIDE}.querySelectorAll('button').length")
        assert heads == 3 * SIZES["N"] * SIZES["h"]
        reach_words_by_keyboard(
            browser, f"{INSIDE}.querySelector('[aria-pressed=true]')"
        )
        assert browser.requests == [attend_page] and not browser.errors


@needs_page
def test_a_reader_who_wants_no_motion_sees_the_translation_once(served):
    with Browser() as browser:
        wish = {"name": "prefers-reduced-motion", "value": "reduce"}
        browser.call("Emulation.setEmulatedMedia", features=[wish])
        browser.open(f"{served}index.html")
        browser.run(
            "window.changes = 0; new MutationObserver(() => { window.changes += 1; })"
            ".observe(document.getElementById('live-output'), { childList: true })"
        )
        browser.run(ASK)
        browser.wait(ANSWERED)
        assert browser.run("window.changes") == 1


# -- in the chapters -------------------------------------------------------------------


@needs_page
@pytest.mark.parametrize("place", ["file", "server"])
def test_a_part_is_left_out_where_it_is_explained(place, served):
    """The first sentence is recorded; another one loads the model."""
    base = f"{BOOK.as_uri()}/" if place == "file" else served
    told = "document.querySelector('part-switch .told').textContent"
    record = ROOT / "results" / "model" / "part-switch.json"
    answers = json.loads(record.read_text(encoding="utf-8"))["answers"]
    assert answers["positions"] != answers["trained"] == RIGHT
    with Browser() as browser:
        browser.open(f"{base}model/position.html")
        browser.run(
            "for (const each of document.querySelectorAll('.predict details'))"
            " each.open = true"
        )  # a question covers the rest of its section
        browser.run("document.querySelector('part-switch').scrollIntoView()")
        browser.wait("!!document.querySelector('part-switch .told')")
        assert browser.run(told) == f"As trained: {RIGHT}"
        browser.run("document.querySelector('part-switch [name=off]').click()")
        _, without = browser.run(told).split("\n")
        assert without == f"Without the position codes: {answers['positions']}"
        assert not [url for url in browser.requests if "_static/live/" in url]
        browser.run("document.querySelector('part-switch [name=source]').select()")
        browser.call("Input.insertText", text="He is my brother.")
        browser.press("Enter")
        browser.wait(f"{told}.includes('Er ist mein Bruder.')")
        assert [url for url in browser.requests if "_static/live/model" in url]


# -- access ----------------------------------------------------------------------------


def faults(browser: Browser, axe: str) -> list[str]:
    """What axe finds on a page: the rule, and where."""
    browser.run(f"{axe};0")
    browser.settle()
    found = browser.run("axe.run().then((found) => found.violations)")
    return [f"{fault['id']}: {fault['nodes'][0]['target']}" for fault in found]


@needs_page
@pytest.mark.parametrize("page", ["live", "index"])
def test_axe_finds_nothing_after_a_translation(page, served, axe):
    with Browser() as browser:
        browser.open(f"{served}{page}.html")
        browser.run(ASK)
        browser.wait(ANSWERED)
        for theme in ("light", "dark"):
            browser.run(f"document.documentElement.dataset.theme = '{theme}'")
            assert not faults(browser, axe)


@needs_chromium
def test_axe_finds_nothing_in_the_page_of_attend(attend_page, axe):
    with Browser() as browser:
        for theme in ("light", "dark"):
            wish = {"name": "prefers-color-scheme", "value": theme}
            browser.call("Emulation.setEmulatedMedia", features=[wish])
            browser.open(attend_page)
            assert not faults(browser, axe)


@needs_page
def test_every_control_has_a_name(window):
    found = window.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "checkbox", "slider", "textbox", "progressbar", "image"}
    nameless = [
        node
        for node in found
        if not node["ignored"]
        and node["role"]["value"] in roles
        and not node.get("name", {}).get("value", "").strip()
    ]
    names = {node["role"]["value"] for node in found if not node["ignored"]}
    assert {"button", "checkbox", "slider", "textbox"} <= names
    assert not nameless


@needs_page
def test_the_page_fits_a_telephone_in_both_themes(window):
    window.resize(375, 800)
    for theme in ("light", "dark"):
        window.run(f"document.documentElement.dataset.theme = '{theme}'")
        assert window.run("document.documentElement.scrollWidth") <= 375
    window.resize(1280, 900)
