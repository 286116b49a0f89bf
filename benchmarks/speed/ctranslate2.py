"""Translation handed to CTranslate2 by its engine, beside CTranslate2 called directly.

    python -m benchmarks.speed.ctranslate2

The shipped model in float32, phrases of the phrasebook's test split, one thread. Both
call the same translator object with the same rows, in turn, and each pair of calls
gives one ratio of processor seconds; a direct call gets and returns tokens, with their
scores. Writes results/speed/ctranslate2.json, which the chapter
nbs/interop/serve.ipynb shows.
"""

import gc
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from annotated_transformer import load
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.interop.ctranslate2 import CTranslate2Engine
from benchmarks import record

PHRASES, CALLS = 256, {1: 400, 64: 60, 256: 15}  # calls, by rows at once


def seconds(call: Callable[[], Any]) -> float:
    """Processor seconds of all threads, which other programs disturb little."""
    start = time.process_time()
    call()
    return time.process_time() - start


def compare(
    engine: CTranslate2Engine, rows: list[list[int]], beam_size: int, at_once: int
) -> dict[str, float]:
    """Medians over calls with `at_once` rows each: milliseconds, direct over engine."""
    options, times = SearchOptions(beam_size=beam_size), []
    for i in range(CALLS[at_once]):
        first = i * at_once % len(rows)
        some = rows[first : first + at_once]
        tokens = [[engine.source[i] for i in row] for row in some]

        def direct(tokens: list[list[str]] = tokens) -> list[list[str]]:
            results = engine.translator.translate_batch(
                tokens,
                beam_size=beam_size,
                length_penalty=0.6,
                suppress_sequences=[["[pad]"], ["[bos]"]],
                max_input_length=0,
                max_batch_size=options.batch_tokens,
                batch_type="tokens",
                return_scores=True,
            )
            return [result.hypotheses[0] for result in results]

        calls = [direct, lambda some=some: engine.search(some, options)]
        taken = {call: seconds(call) for call in (calls if i % 2 else calls[::-1])}
        times.append([taken[call] for call in calls])
    direct_ms, engine_ms = (1000 * median(side) for side in zip(*times, strict=True))
    ratio = median(mine / other for mine, other in times)
    return {
        "direct_ms": round(direct_ms, 2),
        "engine_ms": round(engine_ms, 2),
        "direct_over_engine": round(ratio, 3),
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure greedy search and a beam of four, one row, 64 rows and all at once."""
    record.command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    translator = load(device="cpu", engine="plain")
    engine = CTranslate2Engine(translator.model, translator.tokenizer)
    texts = [source for source, _ in phrasebook("en", "de", "test", PHRASES)]
    rows = translator.tokenizer.encode_source(texts)
    gc.disable()
    found = {
        f"{name}, {at_once}": compare(engine, rows, beam_size, at_once)
        for name, beam_size in (("greedy", 1), ("beam of four", 4))
        for at_once in CALLS
    }
    record.save("speed/ctranslate2.json", {"medians": found}, "ctranslate2")


if __name__ == "__main__":
    main()
