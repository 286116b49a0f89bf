"""Translate with the same weights here, in Hugging Face and in CTranslate2, and record
speed and agreement.

    python -m benchmarks.speed.translation --threads 1 2                                  #
    base size alone

    annotated-transformer train multi30k-en-de-tiny --out runs/multi30k-en-de-tiny  #
    takes hours python -m benchmarks.speed.translation --model runs/multi30k-en-de-tiny/model
    --threads 1 2

Needs ANNOTATED_TRANSFORMER_DATA and the extra `bench`; takes some minutes for each
number of threads. Two models: the trained one on sentences of Multi30k's test set, and
one of the paper's base size with the same vocabulary, random weights and outputs forced
to 24 tokens. Each engine has a process of its own, since threads of several in one
process disturb each other. They take turns, and medians of the rounds count. One thread
is timed in processor seconds, which other jobs on the machine change least; several
threads by the clock, on an idle machine. Every search has α = 0 and at most 100 tokens.
What is not measured now stays in the record, and processors without units for bfloat16
products (AMX) have parts of their own. Writes results/speed/translation-speed.json;
nbs/translation/speed.ipynb shows it.
"""

import argparse
import json
import math
import platform
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from unittest.mock import patch

import ctranslate2
import torch
from torch.multiprocessing import get_context
from transformers import MarianMTModel
from transformers.utils import logging

from annotated_transformer.after.pretrained import export_marian
from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.tokenizer import PairTokenizer, train_tokenizer
from annotated_transformer.engine import decoding as speed
from annotated_transformer.engine.ctranslate2 import export_ctranslate2
from annotated_transformer.engine.decoding import (
    DynamicInt8Linear,
    FastTransformer,
    Float32Linear,
)
from annotated_transformer.files import write_whole
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import load_model
from annotated_transformer.training.recipes import recipe
from annotated_transformer.translation import search
from annotated_transformer.translation.bleu import scores
from annotated_transformer.translation.search import beam, greedy
from annotated_transformer.translation.translator import Translator, pad_rows
from benchmarks.record import RESULTS

OUT = RESULTS / "speed" / "translation-speed.json"
FORCED = 24
CELLS = {
    "greedy, 1": (1, 1),
    "greedy, 64": (1, 64),
    "beam 4, 1": (4, 1),
    "beam 4, 64": (4, 64),
}
PARTS = ["trained", "base", "calls", "leaving", "blocks", "bleu"]
CPU = torch.device("cpu")
LACKING = "" if torch.cpu._is_amx_tile_supported() else ", without AMX"
Rows = list[list[int]]
Engine = Callable[[Rows, int], Rows]


class Endless(FastTransformer):
    """A model that never ends a sentence, so that every output has as many tokens as
    the limit allows.
    """

    def step(self, tokens, cache):
        scores = super().step(tokens, cache)
        scores[:, self.config.eos_id] = -torch.inf
        return scores


class Counted(FastTransformer):
    """A model that counts its steps."""

    steps = 0

    def step(self, tokens, cache):
        self.steps += 1
        return super().step(tokens, cache)


class Staying(FastTransformer):
    """A model that repeats the end token where it has come: without it a search in
    which no row leaves finds no end.
    """

    def start(self, src, beam_size=1):
        self.ended = torch.zeros(len(src) * beam_size, dtype=torch.bool)
        return super().start(src, beam_size)

    def step(self, tokens, cache):
        scores = super().step(tokens, cache)
        self.ended |= tokens == self.config.eos_id
        scores[self.ended, self.config.eos_id] = 1e9
        return scores


def ours(model: Transformer, precision: str, forced: bool) -> Engine:
    """This package's searches over the prepared model."""
    return searches(
        (Endless if forced else FastTransformer)(model, precision),
        FORCED if forced else 100,
    )


def searches(fast: FastTransformer, limit: int) -> Engine:
    """Greedy search and beam search over a prepared model, to at most so many tokens."""

    def run(rows: Rows, beam_size: int) -> Rows:
        src = pad_rows(rows, CPU)
        if beam_size == 1:
            return [found.tokens for found in greedy(fast, src, limit)]
        return [
            found.tokens
            for (found,) in beam(fast, src, beam_size, alpha=0.0, max_length=limit)
        ]

    return run


def hugging_face(folder: Path, forced: bool) -> Engine:
    """`MarianMTModel.generate` in float32."""
    model = MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()
    config = model.generation_config
    config.bad_words_ids = None
    limits = (
        {"min_new_tokens": FORCED, "max_new_tokens": FORCED}
        if forced
        else {"max_new_tokens": 100}
    )

    def run(rows: Rows, beam_size: int) -> Rows:
        src = pad_rows(rows, CPU)
        with torch.inference_mode():
            found = model.generate(
                input_ids=src,
                attention_mask=(src != config.pad_token_id).long(),
                num_beams=beam_size,
                do_sample=False,
                length_penalty=0.0 if beam_size > 1 else 1.0,
                early_stopping=False,
                max_length=None,
                **limits,
            )
        return [
            until_end(row[1:], config.eos_token_id, config.pad_token_id)
            for row in found.tolist()
        ]

    return run


def until_end(row: list[int], *ends: int) -> list[int]:
    """The tokens before the first of these."""
    return row[: next((i for i, token in enumerate(row) if token in ends), len(row))]


def ctranslate(
    folder: Path, tokenizer: PairTokenizer, compute: str, threads: int, forced: bool
) -> Engine:
    """CTranslate2 in this compute type."""
    translator = ctranslate2.Translator(
        str(folder),
        device="cpu",
        compute_type=compute,
        intra_threads=threads,
        inter_threads=1,
    )
    limits = (
        {"min_decoding_length": FORCED, "max_decoding_length": FORCED}
        if forced
        else {"max_decoding_length": 100}
    )

    def run(rows: Rows, beam_size: int) -> Rows:
        words = [[tokenizer.source.id_to_token(token) for token in row] for row in rows]
        found = translator.translate_batch(
            words,
            beam_size=beam_size,
            length_penalty=0.0,
            max_batch_size=len(rows),
            **limits,
        )
        return [
            [tokenizer.target.token_to_id(word) for word in each.hypotheses[0]]
            for each in found
        ]

    return run


def serve(requests: Connection, build: Callable[[], Engine], threads: int) -> None:
    """The life of an engine's process: it answers each request by what `in_batches`
    returns, until there is none.
    """
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(threads)
    engine = build()
    while request := requests.recv():
        requests.send(in_batches(engine, *request))


class Remote:
    """An engine in a process of its own."""

    def __init__(self, build: Callable[[], Engine], threads: int):
        context = get_context("spawn")
        self.requests, there = context.Pipe()
        self.process = context.Process(
            target=serve, args=(there, build, threads), daemon=True
        )
        self.process.start()
        # so that the death of the process is an end of the file here, and not a wait
        there.close()

    def in_batches(
        self, rows: Rows, batch: int, beam_size: int
    ) -> tuple[Rows, float, float]:
        """What `in_batches` returns there."""
        self.requests.send((rows, batch, beam_size))
        return self.requests.recv()

    def close(self) -> None:
        """End the process."""
        self.requests.send(None)
        self.process.join()


def engines(
    model: Transformer,
    tokenizer: PairTokenizer,
    folder: Path,
    threads: int,
    forced: bool,
) -> dict[str, Remote]:
    """Every engine over the same weights, by name."""
    if not (folder / "marian").exists():
        export_marian(model, tokenizer, folder / "marian")
        export_ctranslate2(model, tokenizer, folder / "ct2")
    builders: dict[str, Callable[[], Engine]] = {
        "Hugging Face": partial(hugging_face, folder / "marian", forced),
        "CTranslate2 float32": partial(
            ctranslate, folder / "ct2", tokenizer, "float32", threads, forced
        ),
        "CTranslate2 int8": partial(
            ctranslate, folder / "ct2", tokenizer, "int8", threads, forced
        ),
    }
    for precision in ("float32", "bfloat16", "int8"):
        builders[f"ours {precision}"] = partial(ours, model, precision, forced)
    return {name: Remote(build, threads) for name, build in builders.items()}


def in_batches(
    engine: Engine, rows: Rows, batch: int, beam_size: int
) -> tuple[Rows, float, float]:
    """The outputs, the seconds by the clock, and the processor seconds."""
    found, wall, processor = [], time.perf_counter(), time.process_time()
    for start in range(0, len(rows), batch):
        found += engine(rows[start : start + batch], beam_size)
    return found, time.perf_counter() - wall, time.process_time() - processor


def cell(
    runners: dict[str, Remote],
    rows: Rows,
    batch: int,
    beam_size: int,
    rounds: int,
    threads: int,
) -> dict:
    """One cell of the table: each engine's median speed, and the share of outputs that
    equal ours in float32.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runners}
    outputs = {
        name: engine.in_batches(rows[: min(batch, 4)], batch, beam_size)[0]
        for name, engine in runners.items()
    }
    for _ in range(rounds):
        for name, engine in runners.items():
            outputs[name], *seconds = engine.in_batches(rows, batch, beam_size)
            times[name].append(tuple(seconds))
    found = {}
    for name, measured in times.items():
        wall, processor = (median(each) for each in zip(*measured, strict=True))
        seconds, tokens = (
            processor if threads == 1 else wall,
            sum(len(row) for row in outputs[name]),
        )
        same = sum(
            a == b for a, b in zip(outputs[name], outputs["ours float32"], strict=True)
        ) / len(rows)
        found[name] = {
            "sentences_per_second": round(len(rows) / seconds, 2),
            "tokens_per_second": round(tokens / seconds, 1),
            "wall_seconds": round(wall, 4),
            "processor_seconds": round(processor, 4),
            "same": round(same, 4),
        }
        print(
            f"  {name:20} {found[name]['tokens_per_second']:9,.0f} tokens/s, same "
            f"{same:.1%}",
            flush=True,
        )
    return {
        "beam_size": beam_size,
        "batch": batch,
        "sentences": len(rows),
        "rounds": rounds,
        "engines": found,
    }


def measure(
    model: Transformer,
    tokenizer: PairTokenizer,
    rows: Rows,
    threads: int,
    forced: bool,
    cells: list[str],
) -> Iterator[tuple[str, dict]]:
    """The named cells one after the other; for batches of 1 fewer sentences, of all
    lengths.
    """
    few = rows[:: len(rows) // (4 if forced else 16)]
    with tempfile.TemporaryDirectory() as folder:
        runners = engines(model, tokenizer, Path(folder), threads, forced)
        for name in cells:
            beam_size, batch = CELLS[name]
            sentences, rounds = (few, 5) if batch == 1 else (rows, 3)
            print(
                f"{'base size' if forced else 'trained'}, {threads} threads: {name}",
                flush=True,
            )
            yield name, cell(runners, sentences, batch, beam_size, rounds, threads)
        for engine in runners.values():
            engine.close()


def stay(going: torch.Tensor) -> torch.Tensor:
    """No row leaves before the last one has ended; stands in for `search.survivors`."""
    return torch.arange(len(going)) if going.any() else torch.arange(0)


def in_blocks(model: Transformer, rows: Rows, batch: int, rounds: int = 7) -> dict:
    """Processor seconds of a beam of four in bfloat16, its scores looked at by sixteen
    rows or all at once.
    """
    engine = ours(model, "bfloat16", forced=False)
    ways = {"sixteen rows": search.row_blocks, "all rows": lambda table: (table,)}
    in_batches(engine, rows, batch, 4)
    times: dict = {way: [] for way in ways}
    for _ in range(rounds):
        for way, function in ways.items():
            with patch.object(search, "row_blocks", function):
                times[way].append(in_batches(engine, rows, batch, 4)[2])
    return {way: round(median(each), 4) for way, each in times.items()}


def leaving(model: Transformer, rows: Rows, rounds: int = 5) -> dict:
    """Processor seconds of searches in batches of 64: rows sorted or as they come, the
    finished leaving or not.
    """
    engine = ours(model, "float32", forced=False)
    orders = {"sorted": rows, "as they come": random.Random(0).sample(rows, len(rows))}
    ways = {
        "leaving": (engine, search.survivors),
        "staying": (searches(Staying(model), 100), stay),
    }
    found: dict = {}
    for name, beam_size in (("greedy", 1), ("beam 4", 4)):
        times: dict = {f"{order}, {way}": [] for order in orders for way in ways}
        for _ in range(rounds):
            for order, each in orders.items():
                for way, (runner, function) in ways.items():
                    with patch.object(search, "survivors", function):
                        times[f"{order}, {way}"].append(
                            in_batches(runner, each, 64, beam_size)[2]
                        )
        found[name] = {case: round(median(each), 4) for case, each in times.items()}
        print(name, found[name], flush=True)
    lengths = [len(tokens) + 1 for tokens in in_batches(engine, rows, 64, 1)[0]]
    return {"seconds": found, "output_lengths": lengths}


def narrow(config: TransformerConfig) -> Transformer:
    """A random model with the layers and heads of another, but hardly any numbers: what
    is left of it are the calls.
    """
    small = replace(
        config,
        src_vocab_size=16,
        tgt_vocab_size=16,
        d_model=config.h,
        d_ff=1,
        d_k=1,
        d_v=1,
    )
    return Transformer(small).eval()


def calls(model: Transformer, rows: Rows, rounds: int = 5) -> dict:
    """For each cell our steps with the trained model, and the processor seconds of a
    step that is nothing but calls.
    """
    found = {}
    for name, (beam_size, batch) in CELLS.items():
        chosen = rows[:: len(rows) // 16] if batch == 1 else rows
        counted = Counted(model, "float32")
        in_batches(searches(counted, 100), chosen, batch, beam_size)
        engine = ours(narrow(model.config), "float32", forced=True)
        shrunk = [[token % 12 + 4 for token in row] for row in chosen]
        in_batches(engine, shrunk, batch, beam_size)
        seconds = median(
            in_batches(engine, shrunk, batch, beam_size)[2] for _ in range(rounds)
        )
        empty_steps = FORCED * math.ceil(len(chosen) / batch)
        found[name] = {
            "steps": counted.steps,
            "seconds_of_calls": seconds / empty_steps,
        }
        print(name, found[name], flush=True)
    return found


def all_but_square(
    weight: torch.Tensor, bias: torch.Tensor | None = None
) -> DynamicInt8Linear | Float32Linear:
    """Rounded, where the matrix has another number of inputs than of outputs."""
    return (Float32Linear if weight.size(0) == weight.size(1) else DynamicInt8Linear)(
        weight, bias
    )


def bleu(folder: Path, pairs: list[tuple[str, str]]) -> dict:
    """BLEU of each precision on the whole test set, beam 4 and α = 0.6, and the share
    of equal translations.

    Where int8 rounds inputs, small matrices stay in float32: all but one in the trained
    model, in one of base size the square ones. So it is scored once more with all but
    the square ones rounded, and with every one.
    """
    ways = {
        "float32": speed.dynamic_int8,
        "bfloat16": speed.dynamic_int8,
        "int8": speed.dynamic_int8,
        "int8, as at base size": all_but_square,
        "int8, every matrix": DynamicInt8Linear,
    }
    found, first = {}, None
    for precision, int8 in ways.items():
        with patch.object(speed, "dynamic_int8", int8):
            translator = Translator.from_pretrained(
                folder, precision=precision.split(",")[0]
            )
        outputs = translator.translate([source for source, _ in pairs], unknown="keep")
        references = [target for _, target in pairs]
        results = {
            score.name: score.value
            for score in scores(outputs, references, translator.tokenizer.tgt_lang)
        }
        first = first or outputs
        same = sum(a == b for a, b in zip(outputs, first, strict=True)) / len(pairs)
        found[precision] = {"same": same, "scores": results}
        print(
            precision,
            found[precision]["scores"]["BLEU 13a"],
            f"{same:.1%} the same",
            flush=True,
        )
    return found


def describe(config: TransformerConfig) -> dict:
    """The head of the record."""
    names = ("torch", "transformers", "ctranslate2")
    return {
        "command": "python -m benchmarks.speed.translation --model "
        "runs/multi30k-en-de-tiny/model --threads 1 2",
        "machine": f"CPU, {platform.machine()}, "
        f"{torch.backends.cpu.get_cpu_capability()}",
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in names},
        "vocabulary": config.tgt_vocab_size,
        "forced_tokens": FORCED,
        "clock": "processor seconds with one thread, wall seconds with more",
    }


def untrained() -> tuple[Transformer, PairTokenizer]:
    """The model and the vocabulary with which the recipe for Multi30k begins."""
    plan = recipe("multi30k-en-de-tiny")
    pairs = list(load_corpus("multi30k", "train", plan.src, plan.tgt))
    tokenizer = train_tokenizer(
        pairs,
        plan.src,
        plan.tgt,
        plan.vocab_size,
        moses=plan.moses,
        lowercase=plan.lowercase,
    )
    sizes = {
        "src_vocab_size": tokenizer.src_vocab_size,
        "tgt_vocab_size": tokenizer.tgt_vocab_size,
    }
    return Transformer(replace(plan.architecture, **sizes)), tokenizer


def main() -> None:
    """Measure what was asked for, and write the record after each part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", type=Path, help="a trained folder, for Multi30k English-German"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        help="measure only these; without a model only base",
    )
    parser.add_argument(
        "--cells",
        nargs="+",
        choices=CELLS,
        default=list(CELLS),
        help="measure only these",
    )
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    parts = options.parts or (PARTS if options.model else ["base"])
    if not options.model and parts != ["base"]:
        parser.error(
            "all parts but base need a trained model: train one as shown above, and "
            "name it by --model"
        )
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(0)
    model, tokenizer = load_model(options.model) if options.model else untrained()
    config = model.config
    pairs = list(
        load_corpus(
            "multi30k", "test_2016_flickr", tokenizer.src_lang, tokenizer.tgt_lang
        )
    )
    rows = sorted(
        tokenizer.encode_source([source for source, _ in pairs[:192]]), key=len
    )
    base = TransformerConfig(
        config.src_vocab_size, config.tgt_vocab_size, config.shared_vocab
    )
    record = (
        json.loads(options.out.read_text(encoding="utf-8"))
        if options.out.exists()
        else {}
    )
    record |= describe(config)

    def save() -> None:
        write_whole(options.out, (json.dumps(record, indent=1) + "\n").encode())

    for threads in options.threads:
        torch.set_num_threads(threads)
        found = record.setdefault("threads", {}).setdefault(str(threads), {})
        for part, each, sentences in (
            ("trained", model, rows),
            ("base", Transformer(base).eval(), rows[::3]),
        ):
            if part in parts:
                for name, result in measure(
                    each, tokenizer, sentences, threads, part == "base", options.cells
                ):
                    found.setdefault(part + LACKING, {})[name] = result
                    save()
    torch.set_num_threads(1)
    if "calls" in parts:
        record["calls" + LACKING] = calls(model, rows)
    if "leaving" in parts:
        record["leaving"] = leaving(model, rows)
    if "blocks" in parts:
        more = sorted(
            tokenizer.encode_source([source for source, _ in pairs[:384]]), key=len
        )
        record["blocks"] = {
            str(batch): in_blocks(model, more, batch) for batch in (64, 192)
        }
    if "bleu" in parts:
        record["bleu" + LACKING] = bleu(options.model, pairs)
    save()


if __name__ == "__main__":
    main()
