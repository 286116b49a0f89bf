"""The page "Live": how soon it translates, how fast, and how like the package.

    python -m benchmarks.speed.live_page --npm FOLDER

Chromium opens the built book (make book) in a new profile each time, on a desk and on a
telephone's width with its processor slowed down four times, from a disk and from a
server, and asks for the first translation. Then it translates ten sentences by the
page's own script and by onnxruntime-web, whose graphs are exported for it in float32
and in whole numbers of one byte; FOLDER is where `npm install onnxruntime-web` ran. At
last 500 test sentences of Tatoeba are compared with the same weights in Python, and
with the package's. Rounds take turns and medians count. Processor seconds are those of
the page's main thread, which other jobs change least, and so is its longest task; the
model itself computes in a worker, which the slowing spares.
Needs Chromium and the extra `export`. Takes some minutes. Writes
results/speed/live-page.json.
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import onnx
import sacrebleu
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

from annotated_transformer import load
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.decoding.model_search import ModelSearch
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.files import read_json
from annotated_transformer.interop.onnx import GRAPHS, export_onnx
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.model_names import find_folder
from benchmarks.record import ROOT, command_line, folder, save
from tests.browser import Browser
from tools import live

PLACE = "speed/live-page.json"
FOLDER = find_folder("tatoeba-en-de")
BOOK = ROOT / "book" / "_build" / "html"
SCRIPTS = ROOT / "book" / "_static" / "live"
ROADS = Path(__file__).with_name("live_roads.js")
CPU = torch.device("cpu")
ROUNDS, COMPARED = 5, 500
SENTENCES = [
    "I don't know where she lives.",
    "My brother is older than me.",
    "How much does this shirt cost?",
    "Where is the station?",
    "We have been waiting for two hours.",
    "I don't know what he said.",
    "Can you help me with my homework?",
    "The weather was better yesterday.",
    "the twenty-first of March",
    "The train to Helsinki leaves at a quarter past ten on Friday.",
]
SITUATIONS = {  # width of the window, slowing
    "desk": (1280, 1),
    "telephone": (375, 4),
}
WAIT = "/ms for each/.test(document.getElementById('live-status').textContent)"
RUNTIME = (
    "ort.wasm.min.js",
    "ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm",
)


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(place: Path) -> Iterator[str]:
    """The address of a folder on a server of this machine."""
    handler = partial(Quiet, directory=str(place))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def busy(browser: Browser) -> float:
    """Processor seconds of the page's main thread so far."""
    found = browser.call("Performance.getMetrics")["metrics"]
    return next(each["value"] for each in found if each["name"] == "TaskDuration")


@contextmanager
def window(width: int = 1280) -> Iterator[Browser]:
    """A window of a new profile that counts its processor time."""
    with Browser(width, 800) as browser:
        browser.call("Performance.enable", timeDomain="threadTicks")
        yield browser


# -- the first translation -------------------------------------------------------------


def first_translation(base: str, width: int, slowing: int) -> dict[str, float]:
    """From the button to the translation: bytes, seconds, those of the main thread."""
    with window(width) as browser:
        browser.open(f"{base}live.html")
        browser.call("Emulation.setCPUThrottlingRate", rate=slowing)
        browser.run(
            "window.longest = 0; new PerformanceObserver((list) => {"
            " for (const { duration } of list.getEntries())"
            " window.longest = Math.max(window.longest, duration); })"
            ".observe({ type: 'longtask' })"
        )
        before, asked = busy(browser), len(browser.requests)
        browser.run("window.began = performance.now()")
        browser.run("document.querySelector('#live-form button').click()")
        browser.run(
            f"new Promise((done) => {{ setInterval(() => {{ if ({WAIT}) {{"
            " window.took = performance.now() - window.began; done(); } }, 20); })"
        )
        files = [url.removeprefix(base) for url in browser.requests[asked:]]
        files = [name for name in files if not name.startswith("blob:")]
        return {
            "bytes": sum((BOOK / name).stat().st_size for name in files),
            "seconds": browser.run("window.took") / 1000,
            "longest_task": browser.run("window.longest") / 1000,
            "processor_seconds": busy(browser) - before,
        }


def first_translations() -> dict[str, dict[str, float]]:
    """Medians by place and situation."""
    with served(BOOK) as server:
        bases = {"server": server, "disk": f"{BOOK.as_uri()}/"}
        found: dict[str, list[dict[str, float]]] = {}
        for _ in range(ROUNDS):
            for place, base in bases.items():
                for name, (width, slowing) in SITUATIONS.items():
                    one = first_translation(base, width, slowing)
                    found.setdefault(f"{place}, {name}", []).append(one)
    return {name: medians(each) for name, each in found.items()}


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The median of each number, to three digits after the point."""
    return {key: round(median(one[key] for one in rounds), 3) for key in rounds[0]}


# -- the two roads ---------------------------------------------------------------------


def write_graphs(model: Transformer, tokenizer: PairTokenizer, place: Path) -> None:
    """The encoder's and the decoder step's graphs, in float32 and in one byte."""
    export_onnx(model, tokenizer, place / "onnx")
    for graph in GRAPHS:
        exported, name = place / "onnx" / graph, Path(graph).stem
        shutil.copy(exported, place / f"{name}.float32.onnx")
        untied, small = place / f"{name}.untied.onnx", place / f"{name}.int8.onnx"
        onnx.save(untie(onnx.load(exported)), untied)
        quantize_dynamic(untied, small, weight_type=QuantType.QInt8)


def untie(model: onnx.ModelProto) -> onnx.ModelProto:
    """A matrix of its own for the look-up: the quantiser turns round the one that the
    output layer shares with it, and the shapes that the exporter notes.
    """
    graph = model.graph
    del graph.value_info[:]
    (look_up,) = [
        node
        for node in graph.node
        if node.op_type == "Gather" and "embedding.weight" in node.input[0]
    ]
    (shared,) = [each for each in graph.initializer if each.name == look_up.input[0]]
    graph.initializer.add().CopyFrom(shared)
    graph.initializer[-1].name = look_up.input[0] = "look_up.weight"
    return model


def write_page(npm: Path, place: Path) -> None:
    """All that both roads need, and an empty page."""
    translator = load(FOLDER, device=CPU, engine="plain")
    write_graphs(translator.model, translator.tokenizer, place)
    live.write(FOLDER, place)
    dist = npm / "node_modules" / "onnxruntime-web" / "dist"
    for file in (SCRIPTS / "transformer.js", ROADS, *(dist / name for name in RUNTIME)):
        shutil.copy(file, place)
    names = ("ort.wasm.min.js", "transformer.js", ROADS.name)
    scripts = "".join(f'<script src="{name}"></script>' for name in names)
    (place / "index.html").write_text(f"<!doctype html><title>-</title>{scripts}")


def speeds(base: str) -> dict[str, Any]:
    """Milliseconds of processor time a token, and how many translations are ours."""
    rows = PairTokenizer.load(FOLDER).encode_source(SENTENCES)
    roads = {"plain": "plain", "float32": "runtime", "int8": "runtime"}
    times: dict[str, list[float]] = {}
    same = {}
    for _ in range(ROUNDS):
        for kind, road in roads.items():
            with window() as browser:
                browser.open(f"{base}index.html")
                browser.run(f"{road}.open('{kind}')")
                for name, size in (("greedy", 1), ("beam 4", 4)):
                    job = f"(ids) => {road}.translate(ids, {size})"
                    many = (
                        f"(async () => {{ const found = []; for (const ids of {rows})"
                        f" found.push(await ({job})(ids)); return found; }})()"
                    )
                    browser.run(many)  # once before the clock starts
                    before = busy(browser)
                    found = browser.run(many)
                    spent = 1000 * (busy(browser) - before)
                    steps = sum(each["steps"] for each in found)
                    times.setdefault(f"{kind}, {name}", []).append(spent / steps)
                    if size == 1:
                        same[kind] = [each["tokens"] for each in found]
    equal = {
        kind: sum(a == b for a, b in zip(same[kind], same["plain"], strict=True))
        for kind in ("float32", "int8")
    }
    return {
        "milliseconds_a_token": {k: round(median(v), 1) for k, v in times.items()},
        "translations_as_plain": equal,
    }


def weights_of_roads(place: Path) -> dict[str, dict[str, int]]:
    """Bytes to load, and lines of our own to carry."""
    text = (SCRIPTS / "transformer.js").read_text(encoding="utf-8")
    sections = text.split("  // -- ")
    kept = [s for s in sections if s.startswith(("Search", "Text"))]
    loop = ROADS.read_text(encoding="utf-8").split("// onnxruntime-web over")[1]
    ours = {"model.packed", "transformer.js"}
    found = {"plain": {"bytes": total(place, ours), "lines": text.count("\n")}}
    for kind in ("float32", "int8"):
        graphs = {f"{Path(name).stem}.{kind}.onnx" for name in GRAPHS}
        lines = loop.count("\n") + sum(section.count("\n") for section in kept)
        names = {*RUNTIME, *graphs, "onnx/tokenizer.json"}
        found[kind] = {"bytes": total(place, names), "lines": lines}
    return found


def total(place: Path, names: set[str]) -> int:
    """The size of some files together."""
    return sum((place / name).stat().st_size for name in names)


# -- equality with Python --------------------------------------------------------------


def equality(base: str) -> dict[str, Any]:
    """How many of the first test sentences of Tatoeba the page translates as Python."""
    pairs = list(islice(load_corpus("tatoeba", "test", "en", "de"), COMPARED))
    tokenizer = PairTokenizer.load(FOLDER)
    rows = tokenizer.encode_source([source for source, _ in pairs])
    with window() as browser:
        browser.open(f"{base}index.html")
        browser.run("plain.open()")
        found = [browser.run(f"plain.translate({row}, 4)")["tokens"] for row in rows]
    expected = translated(load(FOLDER, device=CPU, engine="plain").model, rows)
    references = [target for _, target in pairs]

    def bleu(tokens: list[list[int]]) -> float:
        texts = tokenizer.decode(tokens)
        return round(sacrebleu.corpus_bleu(texts, [references]).score, 2)

    return {
        "sentences": COMPARED,
        "same_translation": count_same(found, expected),
        "bleu": bleu(found),
        "package_bleu": bleu(expected),
    }


def translated(model: Transformer, rows: list[list[int]]) -> list[list[int]]:
    """The best translations by the readable search."""
    found = ModelSearch(model.eval()).search(rows, SearchOptions())
    return [best.tokens for best, *_ in found]


def count_same(found: list[list[int]], expected: list[list[int]]) -> int:
    """How many rows are equal."""
    return sum(a == b for a, b in zip(found, expected, strict=True))


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = command_line(__doc__)
    parser.add_argument("--npm", type=npm_folder, required=True, metavar="FOLDER")
    arguments = parser.parse_args(argv)
    package = read_json(arguments.npm / "node_modules/onnxruntime-web/package.json")
    with window() as browser:
        chromium = browser.call("Browser.getVersion")["product"]
    found = {
        "chromium": chromium,
        "onnxruntime_web": package["version"],
        "rounds": ROUNDS,
        "first_translation": first_translations(),
    }
    with tempfile.TemporaryDirectory() as scratch:
        write_page(arguments.npm, Path(scratch))
        with served(Path(scratch)) as base:
            found |= {
                "sentences": len(SENTENCES),
                "load": weights_of_roads(Path(scratch)),
                **speeds(base),
                "equality": equality(base),
            }
    save(PLACE, found, "onnxruntime", "sacrebleu")


def npm_folder(text: str) -> Path:
    """The type of an argument: a folder where npm has installed onnxruntime-web."""
    if not (folder(text) / "node_modules" / "onnxruntime-web").is_dir():
        raise argparse.ArgumentTypeError(
            f"{text} has no onnxruntime-web: run `npm install onnxruntime-web` there"
        )
    return Path(text)


if __name__ == "__main__":
    main()
