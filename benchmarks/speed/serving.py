"""The shipped model in each format: bytes, BLEU, and sentences a second of one core.

    python -m benchmarks.speed.serving

Tatoeba's test split, English to German, by greedy search, which all four can make: the
loop around the ONNX graphs knows no other. BLEU of CTranslate2, in 32 bits and in 8, on
the whole split; of all formats, how many of the first 256 translations are PyTorch's.
Speed is of processor time with one thread, on the first 64 sentences, one at a time and
64 at a time: medians of rounds that the formats take in turn. How far a score moves is
the largest difference of a token's log-probability from PyTorch's, for the references
of the first 50 sentences and for their neighbours', wrong from the first token on.
Last, 256 requests come to the server of nbs/translation_server.py from one client, and
from 32. Needs the corpora; a minute or two of one core. Writes
speed/serving.json in results.
"""

import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import eq
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import ctranslate2
import torch
from onnxruntime import InferenceSession, SessionOptions

from annotated_transformer import load
from annotated_transformer.check.file import import_file
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import Hypothesis
from annotated_transformer.files import read_json
from annotated_transformer.interop.ctranslate2 import export_ctranslate2
from annotated_transformer.interop.onnx import GRAPHS, export_onnx
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import bleu, in_turn, medians, sides
from benchmarks.record import ROOT, command_line, save
from benchmarks.significance import compare

TIMED, ROUNDS, AT_ONCE, COMPARED, FORCED, REQUESTS = 64, 2, 64, 256, 50, 256
GREEDY = SearchOptions(beam_size=1)
NBS = ROOT / "nbs"


class Graphs:
    """A search engine of the ONNX graphs, on one thread; greedy whatever is asked."""

    def __init__(self, folder: Path):
        options = SessionOptions()
        options.intra_op_num_threads = 1
        sessions = [InferenceSession(str(folder / name), options) for name in GRAPHS]
        self.graphs = *sessions, read_json(folder / "config.json")
        self.greedy = import_file(NBS / "onnx_greedy.py").greedy

    def search(
        self, rows: list[list[int]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """One hypothesis a row, without its score."""
        found = self.greedy(self.graphs, rows)
        return [[Hypothesis(ids, 0.0, 0.0, True)] for ids in found]


def translate(translator: Translator, texts: Sequence[str], at_once: int) -> list[str]:
    """Translations by greedy search, so many texts a call."""
    return [
        text
        for i in range(0, len(texts), at_once)
        for text in translator.translate(texts[i : i + at_once], GREEDY, split=True)
    ]


def contenders(plain: Translator, folder: Path) -> dict[str, tuple[Translator, int]]:
    """By format: a translator, and the bytes of the weights that it reads."""
    model, tokenizer, found = plain.model, plain.tokenizer, {}
    weights = sum(4 * weight.numel() for weight in model.parameters())
    found["PyTorch, float32"] = load(device="cpu", engine="torch"), weights
    for bits in ("float32", "int8"):
        export_ctranslate2(model, tokenizer, folder / bits, bits)
        engine = load(device="cpu", engine="ctranslate2", dtype=bits)
        size = (folder / bits / "model.bin").stat().st_size
        found[f"CTranslate2, {bits}"] = engine, size
    export_onnx(model, tokenizer, folder / "onnx")
    size = sum(path.stat().st_size for path in (folder / "onnx").glob("*.onnx*"))
    graphs = Translator(model, tokenizer, Graphs(folder / "onnx"))
    return found | {"ONNX, float32": (graphs, size)}


def qualities(
    translators: dict[str, Translator], sources: list[str], targets: list[str]
) -> dict[str, dict[str, Any]]:
    """How many translations are PyTorch's; BLEU of CTranslate2, with intervals."""
    found, some = {}, sources[:COMPARED]
    first = translate(translators["PyTorch, float32"], some, AT_ONCE)
    outputs = {}
    for name, translator in translators.items():
        whole = name.startswith("CTranslate2")
        outputs[name] = translate(translator, sources if whole else some, AT_ONCE)
        found[name] = {"as_first": sum(map(eq, outputs[name], first))}
        if whole:
            found[name] |= bleu(outputs[name], targets)
        print(name, found[name])
    pair = ("CTranslate2, float32", "CTranslate2, int8")
    apart = compare(*(outputs[name] for name in pair), targets, samples=100)
    found[pair[0]]["interval"] = round(apart.baseline_interval, 2)
    about = {"interval": round(apart.system_interval, 2), "p": round(apart.p_value, 2)}
    found[pair[1]] |= about
    return found


def speeds(
    translators: dict[str, Translator], texts: list[str]
) -> dict[str, dict[str, float]]:
    """Sentences a second of processor time, by format and size of a call."""
    found: dict[str, dict[str, float]] = {name: {} for name in translators}
    for at_once in (1, AT_ONCE):
        calls = {
            name: partial(translate, each, texts, at_once)
            for name, each in translators.items()
        }
        for name, taken in medians(in_turn(calls, ROUNDS)).items():
            found[name][f"{at_once}"] = round(len(texts) / taken, 1)
    return found


def moved(plain: Translator, folder: Path, pairs: list[list[str]]) -> float:
    """The largest change of a token's log-probability in CTranslate2's folder."""
    sources, targets = (side[:FORCED] for side in pairs)
    sources, targets = 2 * sources, targets + targets[1:] + targets[:1]
    scored = plain.score(sources, targets)
    ours = [p for each in scored for p in each.token_log_probabilities]
    engine = ctranslate2.Translator(str(folder), intra_threads=1)
    tokenizer = plain.tokenizer
    rows = [
        list(map(tokenizer.source.id_to_token, ids))
        for ids in tokenizer.encode_source(sources)
    ]
    asked = [
        list(map(tokenizer.target.id_to_token, ids[:-1]))
        for ids in tokenizer.encode_target(targets)
    ]
    found = [p for each in engine.score_batch(rows, asked) for p in each.log_probs]
    return max(abs(a - b) for a, b in zip(ours, found, strict=True))


def served(translator: Translator, texts: list[str], clients: int) -> dict[str, Any]:
    """How many searches answered the requests, and requests a second of one core."""
    searches = []

    class Counted:
        check = translator.check

        def translate(self, batch: list[str], **how: Any) -> list[str]:
            searches.append(len(batch))
            return translator.translate(batch, **how)

    server = import_file(NBS / "translation_server.py").make_server(Counted(), 0)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"

    def ask(text: str) -> None:
        urllib.request.urlopen(address, text.encode()).read()

    with ThreadPoolExecutor(clients) as pool:
        calls = {"all": lambda: list(pool.map(ask, texts))}
        (taken,) = in_turn(calls, 1, warm_up=0)["all"]
    server.shutdown()
    return {"searches": len(searches), "per_second": round(len(texts) / taken, 1)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the record."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    plain, pairs = load(device="cpu", engine="plain"), sides("tatoeba", "test")
    with TemporaryDirectory() as name:
        made = contenders(plain, Path(name))
        translators = {name: each for name, (each, _) in made.items()}
        far = {
            f"CTranslate2, {bits}": moved(plain, Path(name) / bits, pairs)
            for bits in ("float32", "int8")
        }
    good, fast = qualities(translators, *pairs), speeds(translators, pairs[0][:TIMED])
    formats = {
        name: {
            "bytes": size,
            "speed": fast[name],
            "quality": good[name],
            **({"moved": float(f"{far[name]:.2g}")} if name in far else {}),
        }
        for name, (_, size) in made.items()
    }
    eight, texts = translators["CTranslate2, int8"], pairs[0][:REQUESTS]
    server = {f"{clients}": served(eight, texts, clients) for clients in (1, 32)}
    found = {
        "sentences": len(pairs[0]),
        "compared": COMPARED,
        "timed": TIMED,
        "requests": REQUESTS,
    }
    found |= {"formats": formats, "server": server}
    save("speed/serving.json", found, "ctranslate2", "onnxruntime", "sacrebleu")


if __name__ == "__main__":
    main()
