"""Translate with the same weights here, in Hugging Face and in CTranslate2.

    python -m benchmarks.speed.translation                    the paper's base size
    python -m benchmarks.speed.translation --model FOLDER     and a trained model
    python -m benchmarks.speed.translation --threads 1 2      on one thread and on two

The base size has random weights and a vocabulary of Multi30k, and each output is forced
to 24 tokens; a trained model translates Multi30k's test set from English to German.
Each engine has a process of its own, since threads of several in one process disturb
each other. They take turns, and medians of the rounds count. One thread is timed in
processor seconds, which other jobs change least; several by the clock, on an idle
machine. Every search has α = 0 and at most 100 tokens. Needs the extra `bench`, and
Multi30k, downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
Takes some minutes for each number of threads. Writes
results/speed/translation-speed.json.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import ctranslate2
import torch
from torch.multiprocessing import get_context
from transformers import MarianMTModel
from transformers.utils import logging

from annotated_transformer.after.pretrained import export_marian
from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.tokenizer import PairTokenizer, train_tokenizer
from annotated_transformer.engine.ctranslate2 import export_ctranslate2
from annotated_transformer.engine.decoding import fast
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import load_model
from annotated_transformer.training.recipes import recipe
from annotated_transformer.translation.search import (
    SearchOptions,
    StepModel,
    beam,
    greedy,
    pad_rows,
)
from benchmarks.record import command_line, folder, load, save

PLACE = "speed/translation-speed.json"
FORCED, LIMIT = 24, 100
CELLS = {  # size of the beam, sentences in a batch
    "greedy, 1": (1, 1),
    "greedy, 64": (1, 64),
    "beam 4, 1": (4, 1),
    "beam 4, 64": (4, 64),
}
CPU = torch.device("cpu")
Rows = list[list[int]]
Engine = Callable[[Rows, int], Rows]


@dataclass(frozen=True)
class Job:
    """A model, the sources that it translates, and whether it may end sentences."""

    model: Transformer
    tokenizer: PairTokenizer
    rows: Rows
    forced: bool

    @property
    def limit(self) -> int:
        """The most tokens of an output."""
        return FORCED if self.forced else LIMIT


# -- the engines -----------------------------------------------------------------------


class Endless:
    """A model that never ends a sentence, so all outputs are as long as allowed."""

    def __init__(self, model: StepModel):
        self.model, self.config, self.training = model, model.config, False

    def start(self, src: torch.Tensor, beam_size: int = 1) -> Any:
        return self.model.start(src, beam_size)

    def step(self, tokens: torch.Tensor, cache: Any) -> torch.Tensor:
        scores = self.model.step(tokens, cache)
        scores[:, self.config.eos_id] = -torch.inf
        return scores


def ours(job: Job, precision: str) -> Engine:
    """This package's searches over the fast form of the model."""
    model = fast(job.model, precision)
    model = Endless(model) if job.forced else model

    def run(rows: Rows, beam_size: int) -> Rows:
        src = pad_rows(rows, CPU)
        if beam_size == 1:
            return [found.tokens for found in greedy(model, src, job.limit)]
        options = SearchOptions(beam_size, alpha=0.0, max_length=job.limit)
        return [best.tokens for best, *_ in beam(model, src, options)]

    return run


def hugging_face(job: Job, place: Path) -> Engine:
    """`MarianMTModel.generate` in float32."""
    model = MarianMTModel.from_pretrained(place, dtype=torch.float32).eval()
    config = model.generation_config
    config.bad_words_ids = config.max_length = None
    least = {"min_new_tokens": FORCED} if job.forced else {}

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
                max_new_tokens=job.limit,
                **least,
            )
        ends = config.eos_token_id, config.pad_token_id
        return [until(row[1:], ends) for row in found.tolist()]

    return run


def until(row: list[int], ends: tuple[int, ...]) -> list[int]:
    """The tokens before the first of these."""
    return row[: next((i for i, token in enumerate(row) if token in ends), len(row))]


def ctranslate(job: Job, place: Path, kind: str, threads: int) -> Engine:
    """CTranslate2 in this type of numbers."""
    translator = ctranslate2.Translator(
        str(place),
        device="cpu",
        compute_type=kind,
        intra_threads=threads,
        inter_threads=1,
    )
    source, target = job.tokenizer.source, job.tokenizer.target
    least = {"min_decoding_length": FORCED} if job.forced else {}

    def run(rows: Rows, beam_size: int) -> Rows:
        words = [[source.id_to_token(token) for token in row] for row in rows]
        found = translator.translate_batch(
            words,
            beam_size=beam_size,
            length_penalty=0.0,
            max_batch_size=len(rows),
            max_decoding_length=job.limit,
            **least,
        )
        return [[target.token_to_id(word) for word in it.hypotheses[0]] for it in found]

    return run


# -- measuring -------------------------------------------------------------------------


def in_batches(
    engine: Engine, rows: Rows, batch: int, beam_size: int
) -> tuple[Rows, float, float]:
    """The outputs, the seconds by the clock, and the processor seconds."""
    found, wall, processor = [], time.perf_counter(), time.process_time()
    for start in range(0, len(rows), batch):
        found += engine(rows[start : start + batch], beam_size)
    return found, time.perf_counter() - wall, time.process_time() - processor


def serve(requests: Connection, build: Callable[[], Engine], threads: int) -> None:
    """The life of an engine's process: it answers requests until there is none."""
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
        there.close()  # so that the death of the process ends the wait here

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


def engines(job: Job, scratch: Path, threads: int) -> dict[str, Remote]:
    """Every engine over the same weights, by name."""
    export_marian(job.model, job.tokenizer, scratch / "marian")
    export_ctranslate2(job.model, job.tokenizer, scratch / "ct2")
    builders: dict[str, Callable[[], Engine]] = {
        "Hugging Face": partial(hugging_face, job, scratch / "marian")
    }
    for kind in ("float32", "int8"):
        place = scratch / "ct2"
        builders[f"CTranslate2 {kind}"] = partial(ctranslate, job, place, kind, threads)
    for precision in ("float32", "bfloat16"):
        builders[f"ours {precision}"] = partial(ours, job, precision)
    return {name: Remote(build, threads) for name, build in builders.items()}


def cell(runners: dict[str, Remote], rows: Rows, name: str, threads: int) -> dict:
    """Each engine's median speed, and how many outputs equal ours in float32."""
    beam_size, batch = CELLS[name]
    outputs, times = {}, {name: [] for name in runners}
    for runner in runners.values():  # a warm-up
        runner.in_batches(rows[: min(batch, 4)], batch, beam_size)
    for _ in range(5 if batch == 1 else 3):
        for engine, runner in runners.items():
            outputs[engine], *seconds = runner.in_batches(rows, batch, beam_size)
            times[engine].append(seconds)
    found = {}
    for engine, each in outputs.items():
        wall, processor = (median(kind) for kind in zip(*times[engine], strict=True))
        seconds, tokens = processor if threads == 1 else wall, sum(map(len, each))
        same = sum(map(list.__eq__, each, outputs["ours float32"])) / len(rows)
        found[engine] = {
            "tokens_per_second": round(tokens / seconds, 1),
            "seconds": round(seconds, 4),
            "same": round(same, 4),
        }
        print(
            f"{name:12} {engine:20} {tokens / seconds:9,.0f} tokens/s, same {same:.1%}"
        )
    return {"sentences": len(rows), "engines": found}


def measure(job: Job, threads: int, cells: list[str]) -> Iterator[tuple[str, dict]]:
    """The named cells; for batches of one fewer sentences, of all lengths."""
    few = job.rows[:: len(job.rows) // (4 if job.forced else 16)]
    with tempfile.TemporaryDirectory() as scratch:
        runners = engines(job, Path(scratch), threads)
        for name in cells:
            rows = few if CELLS[name][1] == 1 else job.rows
            yield name, cell(runners, rows, name, threads)
        for runner in runners.values():
            runner.close()


def vocabulary() -> PairTokenizer:
    """The vocabulary of the recipe for Multi30k."""
    plan = recipe("multi30k-en-de-tiny")
    return train_tokenizer(
        load_corpus("multi30k", "train", plan.src, plan.tgt),
        plan.src,
        plan.tgt,
        plan.vocab_size,
        moses=plan.moses,
        lowercase=plan.lowercase,
    )


def jobs(trained: Path | None) -> dict[str, Job]:
    """The base size, and the trained model if there is one."""
    model, tokenizer = load_model(trained) if trained else (None, vocabulary())
    pairs = load_corpus("multi30k", "test_2016_flickr", "en", "de")
    sources = [source for source, _ in pairs][:192]
    rows = sorted(tokenizer.encode_source(sources), key=len)
    sizes = tokenizer.src_vocab_size, tokenizer.tgt_vocab_size
    config = TransformerConfig(*sizes, shared_vocab=tokenizer.joint)
    base = Transformer(replace(config, dropout=0.0)).eval()
    found = {"base": Job(base, tokenizer, rows[::3], forced=True)}
    return found | ({"trained": Job(model, tokenizer, rows, False)} if model else {})


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every cell, each into the record as soon as it is there."""
    parser = command_line(__doc__)
    parser.add_argument("--model", type=folder, help="a trained model's folder")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    given = parser.parse_args(argv)
    logging.set_verbosity_error()
    torch.manual_seed(0)
    found = load(PLACE).get("threads", {})
    for name, job in jobs(given.model).items():
        for threads in given.threads:
            part = found.setdefault(str(threads), {}).setdefault(name, {})
            for each, result in measure(job, threads, given.cells):
                part[each] = result
                about = {"clock": "processor seconds with one thread, else wall"}
                about |= {"forced_tokens": FORCED, "threads": found}
                save(PLACE, about, "transformers", "ctranslate2")


if __name__ == "__main__":
    main()
