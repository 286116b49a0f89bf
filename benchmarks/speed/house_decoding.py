"""One decoding step: the fast form, an earlier checkout's, and Hugging Face's generate.

    python -m benchmarks.speed.house_decoding --before ../checkout [--rounds 3]

The paper's base size with random weights and 10,000 tokens; every output is forced to
24 tokens, sources have 7 to 28, α = 0. Each contender has a process of its own with one
thread, and they take turns; medians of processor time. Writes
results/speed/house-decoding.json, which nbs/engine/decoding.ipynb shows.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

CELLS = {
    "greedy, 1": (1, 1),
    "beam 4, 1": (1, 4),
    "greedy, 64": (64, 1),
    "beam 4, 64": (64, 4),
}
PRECISIONS = ("float32", "bfloat16")
TOKENS, VOCABULARY = 24, 10_000
Search = Callable[[Tensor, int], Any]


def sources(count: int) -> Tensor:
    """Random sources of different lengths, each with its end token, padded."""
    generator = torch.Generator().manual_seed(count)
    src = torch.zeros(count, 28, dtype=torch.long)
    for row in src:
        length = int(torch.randint(6, 28, (), generator=generator)) if count > 1 else 17
        row[:length] = torch.randint(4, VOCABULARY, (length,), generator=generator)
        row[length] = 2
    return src[:, : int((src != 0).sum(1).max())]


def endless(fast: Any) -> Any:
    """A prepared model that never ends a sentence."""
    step = fast.step

    def without_end(tokens: Tensor, cache: Any) -> Tensor:
        scores = step(tokens, cache)
        scores[:, 2] = -torch.inf
        return scores

    fast.step = without_end
    return fast


def base_model() -> Any:
    """The paper's base size, untrained."""
    from annotated_transformer.model.config import TransformerConfig
    from annotated_transformer.model.transformer import Transformer

    torch.manual_seed(0)
    sizes = dict(src_vocab_size=VOCABULARY, tgt_vocab_size=VOCABULARY, max_length=256)
    return Transformer(TransformerConfig(**sizes)).eval()


def ours(precision: str) -> Search:
    """The search over the fast form of this checkout."""
    from annotated_transformer.engine.decoding import fast
    from annotated_transformer.translation.search import SearchOptions, beam, greedy

    model = endless(fast(base_model(), precision))

    def run(src: Tensor, beam_size: int) -> Any:
        if beam_size == 1:
            return greedy(model, src, TOKENS)
        return beam(model, src, SearchOptions(beam_size, 0.0, max_length=TOKENS))

    return run


def before(precision: str) -> Search:
    """The search over the fast form of the checkout before `fast` was written anew."""
    from annotated_transformer.translation.speed import FastTransformer

    from annotated_transformer.translation.search import beam, greedy

    model = endless(FastTransformer(base_model(), precision))

    def run(src: Tensor, beam_size: int) -> Any:
        if beam_size == 1:
            return greedy(model, src, TOKENS)
        return beam(model, src, beam_size, 0.0, TOKENS)

    return run


def hugging_face(precision: str) -> Search:
    """`generate` of a MarianMTModel of the same size."""
    from transformers import MarianConfig, MarianMTModel

    tokens = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
    config = MarianConfig(
        vocab_size=VOCABULARY, d_model=512, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
        decoder_ffn_dim=2048, activation_function="relu", scale_embedding=True,
        decoder_start_token_id=1, forced_eos_token_id=None,
        max_position_embeddings=256, **tokens,
    )  # fmt: skip
    model = MarianMTModel(config).eval().to(getattr(torch, precision))
    model.generation_config.bad_words_ids = None

    def run(src: Tensor, beam_size: int) -> Any:
        with torch.inference_mode():
            return model.generate(
                input_ids=src, attention_mask=(src != 0).long(), num_beams=beam_size,
                do_sample=False, length_penalty=0.0 if beam_size > 1 else 1.0,
                early_stopping=False, max_length=None,
                min_new_tokens=TOKENS, max_new_tokens=TOKENS,
            )  # fmt: skip

    return run


CONTENDERS = {"ours": ours, "before": before, "Hugging Face": hugging_face}


def serve(name: str) -> None:
    """A contender's process: a precision and a cell a line in, seconds out."""
    torch.set_num_threads(1)
    made: dict[str, Search] = {}
    for line in sys.stdin:
        precision, cell = line.strip().split(";")
        if precision not in made:
            made = {precision: CONTENDERS[name](precision)}
        count, beam_size = CELLS[cell]
        src, start = sources(count), time.process_time()
        made[precision](src, beam_size)
        print(time.process_time() - start, flush=True)


def start(name: str, checkout: Path) -> subprocess.Popen:
    """The process of a contender, with the package of a checkout."""
    code = f"import runpy; runpy.run_path({__file__!r})['serve']({name!r})"
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=checkout, env={"OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, bufsize=1,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Let the contenders take turns, and write the record."""
    from benchmarks.record import ROOT, command_line, folder, save

    parser = command_line(__doc__)
    parser.add_argument("--before", type=folder, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    places = {"ours": ROOT, "before": chosen.before, "Hugging Face": ROOT}
    processes = {name: start(name, place) for name, place in places.items()}
    found: dict[str, dict] = {}
    for precision in PRECISIONS:
        for cell in CELLS:
            times: dict[str, list[float]] = {name: [] for name in processes}
            for _ in range(chosen.rounds + 1):  # the first warms up
                for name, process in processes.items():
                    process.stdin.write(f"{precision};{cell}\n")
                    times[name].append(float(process.stdout.readline()))
            found[f"{precision}, {cell}"] = {
                name: round(1000 * median(each[1:]) / TOKENS, 1)
                for name, each in times.items()
            }
            print(f"{precision}, {cell}", found[f"{precision}, {cell}"], flush=True)
            record = {"rounds": chosen.rounds, "tokens": TOKENS}
            record |= {"milliseconds_a_step": found}
            save("speed/house-decoding.json", record, "transformers")
    for process in processes.values():
        process.stdin.close()


if __name__ == "__main__":
    main()
