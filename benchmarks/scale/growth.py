"""Time and memory as the work grows: length, vocabulary, depth, decoding, corpus.

    python -m benchmarks.scale.growth                      every section
    python -m benchmarks.scale.growth length decoding      these; the others stay

Writes results/scale/growth.json, which nbs/performance/how_fast.ipynb plots; each
section says where and when it was measured.
One thread, ten minutes to half an hour, at most about 7 GB. Times are processor
seconds, those of the workers seconds by the clock. Memory is what PyTorch's allocator
hands out: the highest sum of live bytes during one call, above what lived before it. It
is a count, not a measurement, and comes out the same each time.
"""

import copy
import json
import math
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from annotated_transformer.cache import Cache
from annotated_transformer.data.batch import Batch
from annotated_transformer.data.batching import collate, token_batches
from annotated_transformer.data.stream import batches
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.model.attention import (
    MultiHeadAttention,
    attention,
    causal_mask,
)
from annotated_transformer.model.config import TransformerConfig, preset
from annotated_transformer.model.layers import EncoderLayer
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance import update
from annotated_transformer.performance.update import FastObjective
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.schedule import adam
from benchmarks.record import command_line, load, provenance, save

PLACE = "scale/growth.json"
PROVENANCE = ("command", "commit", "clean", "date", "machine", "versions")
SMALL = TransformerConfig(
    1_000, 1_000, N=1, d_model=128, d_ff=512, h=2, d_k=64, d_v=64, max_length=8_192
)
LENGTHS = [2**k for k in range(6, 14)]
VOCABULARIES = [2**k for k in range(10, 17)]
DEPTHS = [1, 2, 4, 8, 16]
PREFIXES = [2**k for k in range(4, 11)]
CORPORA = [1_000, 10_000, 100_000, 1_000_000, 5_000_000]
WORKERS = [0, 1, 2, 4]
BATCH_TOKENS = 4_096
Action = Callable[[], object]


def peak_bytes(action: Action) -> int:
    """The most bytes that PyTorch's CPU allocator has handed out during a call and not
    got back.

    What lived before doesn't count, nor that it is freed; the steps measured here free
    nothing of it.
    """
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profiler:
        action()
    with tempfile.TemporaryDirectory() as folder:
        profiler.export_chrome_trace(f"{folder}/trace.json")
        trace = json.loads(Path(folder, "trace.json").read_text(encoding="utf-8"))
    changes = sorted(
        (each for each in trace["traceEvents"] if each["name"] == "[memory]"),
        key=lambda each: each["ts"],
    )
    return int(np.cumsum([0, *(each["args"]["Bytes"] for each in changes)]).max())


def seconds(action: Action, calls: int = 1) -> float:
    """Processor seconds of one call, as the mean of some."""
    start = time.process_time()
    for _ in range(calls):
        action()
    return (time.process_time() - start) / calls


def timed(actions: dict[str, Action]) -> dict[str, float]:
    """Median seconds of each, in turn, after a first call: of seven; of three where a
    call takes 1 s, of two at 4 s.
    """
    first = {name: seconds(action) for name, action in actions.items()}
    repeats = 7 if max(first.values()) < 1 else 3 if max(first.values()) < 4 else 2
    calls = {
        name: max(1, math.ceil(0.02 / max(once, 1e-6))) for name, once in first.items()
    }
    rounds = [
        {name: seconds(action, calls[name]) for name, action in actions.items()}
        for _ in range(repeats)
    ]
    return {
        name: float(f"{median(each[name] for each in rounds):.4g}") for name in actions
    }


def causal_by_name(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The kernel, told in a word that the decoder's mask is a triangle."""
    triangle = mask is not None and mask.dim() == 2
    return F.scaled_dot_product_attention(
        query, key, value, None if triangle else mask, is_causal=triangle
    )


FORMS: dict[str, Callable[..., Tensor]] = {
    "explicit": lambda *given: attention(*given)[0],  # (1) with all its matrices
    "fused": F.scaled_dot_product_attention,
    "fused, causal by name": causal_by_name,
}


def with_attention(form: str, action: Action) -> Callable[[], None]:
    """The action with one form of attention in every head."""

    def attend(
        self: MultiHeadAttention,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        mask = causal_mask(query.size(2)) if is_causal else mask
        heads = FORMS[form](query, key, value, mask)
        return self.W_O(heads.transpose(1, 2).flatten(2))

    def run() -> None:
        # what FastObjective would call in the place of the kernel
        own = patch.object(update, "_attention", F.scaled_dot_product_attention)
        with patch.object(MultiHeadAttention, "attend", attend), own:
            action()

    return run


def random_batch(config: TransformerConfig, rows: int, length: int) -> Batch:
    """Source, decoder input and target of `rows` pairs without padding."""
    ids = torch.randint(4, config.tgt_vocab_size, (rows, 2 * length + 1))
    return Batch(ids[:, :length], ids[:, length:-1], ids[:, length + 1 :])


def training_step(
    config: TransformerConfig, rows: int, length: int, objective: type = FastObjective
) -> Callable[[], None]:
    """One update: forward, backward, Adam. Gradients are gone before and after."""
    loss = objective(Transformer(config), smoothing=0.1).train()
    optimizer, batch = adam(loss.model, fused=True), random_batch(config, rows, length)

    def step() -> None:
        loss(batch).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def layer_step(config: TransformerConfig, length: int) -> Callable[[], None]:
    """Forward and backward through one encoder layer on one sentence."""
    layer = EncoderLayer(config).train()
    x, mask = (
        torch.randn(1, length, config.d_model, requires_grad=True),
        torch.ones(1, 1, 1, length).bool(),
    )

    def step() -> None:
        layer(x, mask).sum().backward()
        layer.zero_grad(set_to_none=True)
        x.grad = None

    return step


def curve(
    axis: str, places: list[int], forms: Callable[[int], dict[str, Action]]
) -> list[dict]:
    """For each form its time and its memory at each place of the axis."""
    found = []
    for value in places:
        actions = forms(value)
        times = timed(actions)
        for form, action in actions.items():
            row = {axis: value, "form": form, "seconds": times[form]}
            found.append(row | {"bytes": peak_bytes(action)})
    return found


def over_layer() -> dict:
    """A layer of the base model on one sentence of growing length, forth and back."""

    def forms(n: int) -> dict[str, Action]:
        step = layer_step(preset("base"), n)
        return {form: with_attention(form, step) for form in ("explicit", "fused")}

    return {"batch": 1, "layer": curve("n", LENGTHS, forms)}


def over_length() -> dict:
    """An update of the small model on one pair of growing length."""

    def forms(n: int) -> dict[str, Action]:
        step = training_step(SMALL, 1, n)
        return {form: with_attention(form, step) for form in FORMS}

    return {"batch": 1, "update": curve("n", LENGTHS, forms)}


def over_vocabulary() -> dict:
    """An update of the small model with a growing vocabulary: all logits at once, as
    the readable objective has them, and a slice at a time.
    """
    rows, length = 128, 32

    def forms(vocab: int) -> dict[str, Action]:
        config = replace(SMALL, src_vocab_size=vocab, tgt_vocab_size=vocab)
        kinds = {"all logits": Objective, "sliced": FastObjective}
        return {
            form: training_step(config, rows, length, kind)
            for form, kind in kinds.items()
        }

    found = curve("vocabulary", VOCABULARIES, forms)
    return {"rows": rows, "length": length, "update": found}


def over_depth() -> dict:
    """An update of the small model with more and more layers."""

    def forms(N: int) -> dict[str, Action]:
        return {"fused": training_step(replace(SMALL, N=N), 32, 32)}

    return {"rows": 32, "length": 32, "update": curve("N", DEPTHS, forms)}


def filled(cache: Cache, length: int, config: TransformerConfig) -> Cache:
    """A decoding cache of `length` positions, with random keys and values."""
    for past, _ in cache.layers:
        past.update(*torch.randn(2, 1, config.h, length, config.d_k))
    cache.length = length
    return cache


@torch.inference_mode()
def over_prefix() -> dict:
    """The next token of the base model after a growing prefix, with a cache and
    without.
    """
    config = preset("base")
    model = Transformer(config).eval()
    batch = random_batch(config, 1, max(PREFIXES))
    src, prefix = batch.src, batch.tgt_in
    memory, src_mask = model.encode(src[:, :32])

    def forms(n: int) -> dict[str, Action]:
        cache = filled(model.start(src[:, :32]), n - 1, config)

        def cached() -> None:
            fresh = copy.copy(cache)
            fresh.layers = tuple((copy.copy(past), kept) for past, kept in cache.layers)
            model.step(prefix[:, n - 1], fresh)

        def uncached() -> None:
            model.logits(model.decode(prefix[:, :n], memory, src_mask)[:, -1])

        return {"whole prefix": uncached, "cached": cached}

    return {"batch": 1, "source": 32, "token": curve("prefix", PREFIXES, forms)}


def generated(count: int, folder: Path) -> TokenizedPairs:
    """Pairs of random ids, of 25 tokens a side in the mean, in memory-mapped files."""
    rng, sides = np.random.default_rng(0), []
    common = rng.lognormal(3.0, 0.6, count)
    for name in ("src", "tgt"):
        lengths = np.clip(common * rng.uniform(0.8, 1.25, count), 2, 250).astype(
            np.int64
        )
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        with (folder / name).open("wb") as file:
            for start in range(0, int(offsets[-1]), 2**24):
                file.write(
                    rng.integers(
                        4, 10_000, min(2**24, int(offsets[-1]) - start), np.uint16
                    ).tobytes()
                )
        sides += [np.memmap(folder / name, np.uint16, "r"), offsets]
    return TokenizedPairs(*sides)


def beginning(pairs: TokenizedPairs, count: int) -> TokenizedPairs:
    """The first pairs alone."""
    src_offsets, tgt_offsets = (
        pairs.src_offsets[: count + 1],
        pairs.tgt_offsets[: count + 1],
    )
    return TokenizedPairs(pairs.src_tokens, src_offsets, pairs.tgt_tokens, tgt_offsets)


def plan_bytes(pairs: TokenizedPairs) -> int:
    """Peak of what making the plan of an epoch allocates in NumPy and Python."""
    tracemalloc.start()
    token_batches(pairs.src_lengths, pairs.tgt_lengths, BATCH_TOKENS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def corpus_row(part: TokenizedPairs) -> dict:
    """What the plan of an epoch takes, and the batches of it."""
    lengths = part.src_lengths, part.tgt_lengths
    plan = token_batches(*lengths, BATCH_TOKENS)
    some = plan[:100]
    times = timed(
        {
            "plan": lambda: token_batches(*lengths, BATCH_TOKENS),
            "batches": lambda: [collate(part, rows) for rows in some],
        }
    )
    epoch = times["plan"] + times["batches"] * len(plan) / len(some)
    return {
        "pairs": len(part),
        "batches": len(plan),
        "plan_seconds": times["plan"],
        "plan_bytes": plan_bytes(part),
        "batch_seconds": times["batches"] / len(some),
        "tokens_per_second": round(int(part.tgt_offsets[-1]) / epoch),
    }


def over_corpus() -> dict:
    """The plan of an epoch, and one batch, from a growing corpus."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = generated(max(CORPORA), Path(folder))
        found = [corpus_row(beginning(pairs, count)) for count in CORPORA]
    return {"batch_tokens": BATCH_TOKENS, "epoch": found}


class Planned(Dataset):
    """Batches by number, as a DataLoader wants them."""

    def __init__(self, pairs: TokenizedPairs, plan: list[np.ndarray]):
        self.pairs, self.plan = pairs, plan

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, i: int) -> Batch:
        return collate(self.pairs, self.plan[i])


def throughput(source: Iterable[Batch]) -> tuple[float, float]:
    """Seconds by the clock to the first batch, and target tokens a second after it."""
    start = time.perf_counter()
    stream = iter(source)
    next(stream)
    first = time.perf_counter()
    tokens = sum(batch.tokens for batch in stream)
    return first - start, tokens / (time.perf_counter() - first)


def over_workers() -> dict:
    """Our loader beside PyTorch's with more and more worker processes, over the same
    batches.
    """
    with tempfile.TemporaryDirectory() as folder:
        pairs = generated(100_000, Path(folder))
        plan = token_batches(pairs.src_lengths, pairs.tgt_lengths, BATCH_TOKENS)[:400]

        sources: dict[str, Callable[[], Iterable[Batch]]] = {
            "batches": lambda: (
                batch for _, batch in islice(batches(pairs, BATCH_TOKENS), len(plan))
            )
        }
        for count in WORKERS:
            sources[f"DataLoader, {count}"] = partial(
                DataLoader, Planned(pairs, plan), batch_size=None, num_workers=count
            )
        rounds = [
            {name: throughput(source()) for name, source in sources.items()}
            for _ in range(5)
        ]
    rows = [
        {
            "loader": name,
            "first_batch_seconds": round(median(each[name][0] for each in rounds), 4),
            "tokens_per_second": round(median(each[name][1] for each in rounds)),
        }
        for name in sources
    ]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "batch_tokens": BATCH_TOKENS,
        "loaders": rows,
    }


SECTIONS = {
    "layer": over_layer,
    "length": over_length,
    "vocabulary": over_vocabulary,
    "depth": over_depth,
    "decoding": over_prefix,
    "corpus": over_corpus,
    "workers": over_workers,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the named sections, or all; each goes into the record at once."""
    parser = command_line(__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}"
    )
    names = parser.parse_args(argv).sections
    if unknown := sorted(set(names) - set(SECTIONS)):
        parser.error(f"no section {unknown[0]!r}: choose from {', '.join(SECTIONS)}")
    torch.set_num_threads(1)
    for name in names or SECTIONS:
        torch.manual_seed(0)
        before = load(PLACE)
        kept = {
            part: {"measured": {key: before.get(key) for key in PROVENANCE}} | rows
            for part, rows in before.items()
            if part in SECTIONS
        }
        found = {name: SECTIONS[name]() | {"measured": provenance("numpy")}}
        about = {"threads": 1, "dtype": "float32", "small": SMALL.to_dict()}
        save(PLACE, about | kept | found, "numpy")


if __name__ == "__main__":
    main()
