"""One decoding step: the fast form beside Hugging Face's generate.

    python -m benchmarks.speed.decoding [--rounds 5]

The paper's base size with random weights and 10,000 tokens; every output is forced to
24 tokens, sources have 7 to 28, α = 0. Each contender has a process of its own with one
thread, and they take turns; medians of processor time. Writes
results/speed/decoding.json, which nbs/performance/how_fast.ipynb shows.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from statistics import median
from typing import Any

import torch
from torch import Tensor

from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import beam, greedy
from annotated_transformer.interop.marian_export import marian_config
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import fast
from benchmarks.record import command_line, save

CELLS = {  # sentences, size of the beam
    "greedy, 1": (1, 1),
    "beam 4, 1": (1, 4),
    "greedy, 64": (64, 1),
    "beam 4, 64": (64, 4),
}
PRECISIONS, TOKENS = ("float32", "bfloat16"), 24
BASE = TransformerConfig(10_000, 10_000, max_length=256)
Search = Callable[[Tensor, int], Any]


def sources(count: int) -> Tensor:
    """Random sources of different lengths, each with its end token, padded."""
    generator = torch.Generator().manual_seed(count)
    src = torch.zeros(count, 28, dtype=torch.long)
    for row in src:
        length = int(torch.randint(6, 28, (), generator=generator)) if count > 1 else 17
        row[:length] = torch.randint(4, 10_000, (length,), generator=generator)
        row[length] = BASE.eos_id
    return src[:, : int((src != 0).sum(1).max())]


def ours(precision: str) -> Search:
    """The search over the fast form, which never ends a sentence."""
    model = fast(Transformer(BASE).eval(), precision)
    step = model.step

    def without_end(tokens: Tensor, cache: Any) -> Tensor:
        scores = step(tokens, cache)
        scores[:, BASE.eos_id] = -torch.inf
        return scores

    model.step = without_end

    def run(src: Tensor, beam_size: int) -> Any:
        if beam_size == 1:
            return greedy(model, src, TOKENS)
        return beam(model, src, SearchOptions(beam_size, 0.0, max_length=TOKENS))

    return run


def hugging_face(precision: str) -> Search:
    """`generate` of a MarianMTModel of the same size."""
    from transformers import MarianConfig, MarianMTModel

    model = MarianMTModel(MarianConfig(**marian_config(BASE))).eval()
    model.to(getattr(torch, precision)).generation_config.bad_words_ids = None

    def run(src: Tensor, beam_size: int) -> Any:
        with torch.inference_mode():
            return model.generate(
                input_ids=src, attention_mask=(src != 0).long(), num_beams=beam_size,
                do_sample=False, length_penalty=0.0 if beam_size > 1 else 1.0,
                early_stopping=False, max_length=None,
                min_new_tokens=TOKENS, max_new_tokens=TOKENS,
            )  # fmt: skip

    return run


CONTENDERS = {"ours": ours, "Hugging Face": hugging_face}


@lru_cache(maxsize=1)
def prepared(name: str, precision: str) -> Search:
    """A contender in the process that measures it."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return CONTENDERS[name](precision)


def seconds(name: str, precision: str, cell: str) -> float:
    """Processor seconds of one search."""
    (count, beam_size), search = CELLS[cell], prepared(name, precision)
    src, start = sources(count), time.process_time()
    search(src, beam_size)
    return time.process_time() - start


def main(argv: Sequence[str] | None = None) -> None:
    """Let the contenders take turns, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds, spawn = parser.parse_args(argv).rounds, get_context("spawn")
    pools = {name: ProcessPoolExecutor(1, mp_context=spawn) for name in CONTENDERS}
    found: dict[str, dict[str, float]] = {}
    for precision, cell in product(PRECISIONS, CELLS):
        turns = [
            {
                n: p.submit(seconds, n, precision, cell).result()
                for n, p in pools.items()
            }
            for _ in range(rounds + 1)  # the first warms up
        ][1:]
        case = f"{precision}, {cell}"
        found[case] = {
            name: round(1000 * median(turn[name] for turn in turns) / TOKENS, 1)
            for name in pools
        }
        print(case, found[case], flush=True)
    about = {"rounds": rounds, "tokens": TOKENS, "milliseconds_a_step": found}
    save("speed/decoding.json", about, "transformers")


if __name__ == "__main__":
    main()
