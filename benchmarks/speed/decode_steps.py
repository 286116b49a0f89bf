"""Where the time of a decoding step goes, what each change of the fast decoder is
worth, and what did not pay.

    python -m benchmarks.speed.decode_steps

Base size (the part `small`: that of the Multi30k recipe), random weights, one thread,
processor seconds, variants in turn, medians; the part `threads` also with two, by the
clock. Takes some minutes and writes results/speed/decode-steps.json, which
nbs/translation/speed.ipynb shows.
"""

import argparse
import json
import platform
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from annotated_transformer.engine.decoding import (
    BFloat16Linear,
    DynamicInt8Linear,
    FastCache,
    FastTransformer,
    Float32Linear,
    Int8Linear,
    Padding,
)
from annotated_transformer.files import write_whole
from annotated_transformer.model.attention import split_heads
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.position import rows_of
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.recipes import recipe
from annotated_transformer.translation import search, speed
from annotated_transformer.translation.search import (
    beam,
    greedy,
    move_beams,
    start_beams,
)
from benchmarks.record import RESULTS

OUT = RESULTS / "speed" / "decode-steps.json"
VOCABULARY, SOURCE, FORCED, ROUNDS = 10_000, 14, 16, 3
CELLS = {
    "greedy, 1": (1, 1),
    "beam 4, 1": (4, 1),
    "greedy, 64": (1, 64),
    "beam 4, 64": (4, 64),
}


def seconds(function: Callable[[], object]) -> float:
    """Seconds of one call: those of the processor with one thread, those of the clock
    with more.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    function()
    return clock() - start


def per_call(function: Callable[[], object], budget: float = 0.1) -> float:
    """Median seconds of a call, from five runs of many."""
    function()
    many = max(1, int(budget / 5 / max(seconds(function), 1e-6)))
    return median(
        seconds(lambda: [function() for _ in range(many)]) / many for _ in range(5)
    )


# ---- kernels: one product, at a few numbers of rows ----


class Plain32:
    """`F.linear` on the weight as it is stored."""

    dtype = torch.float32

    def __init__(self, weight: Tensor, bias: Tensor | None = None):
        self.weight, self.bias = (
            weight.detach().to(self.dtype),
            None if bias is None else bias.detach().to(self.dtype),
        )

    def __call__(self, x: Tensor, relu: bool = False) -> Tensor:
        y = F.linear(x.to(self.dtype), self.weight, self.bias)
        return y.relu_() if relu else y


class Transposed32(Float32Linear):
    """The transpose for every number of rows."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None):
        super().__init__(weight, bias)
        self.packed = None


class Plain16(Plain32):
    """The same in bfloat16."""

    dtype = torch.bfloat16


class Packed32(BFloat16Linear):
    """oneDNN's packed float32."""

    dtype = torch.float32

    def __init__(self, weight: Tensor, bias: Tensor | None = None):
        self.weight, self.bias = (
            torch.ops.mkldnn._reorder_linear_weight(weight.detach()),
            bias,
        )

    def __call__(self, x: Tensor, relu: bool = False) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(
            x, self.weight, self.bias, "relu" if relu else "none", [], ""
        )


class RoundedInputs(DynamicInt8Linear):
    """Weights and inputs in int8 for every number of rows."""

    def __call__(self, x: Tensor, relu: bool = False) -> Tensor:
        return self.times_rows(x)


KERNELS = {
    "float32, as stored": Plain32,
    "float32, oneDNN's layout": Packed32,
    "float32, transposed": Transposed32,
    "bfloat16, as stored": Plain16,
    "bfloat16, oneDNN's layout": BFloat16Linear,
    "int8 weights": Int8Linear,
    "int8 weights and inputs": RoundedInputs,
}


def kernels() -> dict:
    """Microseconds of one product 512 → 2048 for each kernel and number of rows, over
    weights that no cache holds.
    """
    copies = [torch.randn(2048, 512) / 512**0.5 for _ in range(16)]
    found: dict = {}
    for name, kind in KERNELS.items():
        layers = [kind(weight) for weight in copies]
        found[name] = {}
        for rows in (1, 4, 64, 256):
            x = torch.randn(rows, 512)
            found[name][str(rows)] = round(
                1e6 * per_call(lambda x=x, ls=layers: [layer(x) for layer in ls]) / 16,
                1,
            )
        print(name, found[name], flush=True)
    return found


def packing() -> dict:
    """Microseconds of one product 512 → 2048 in float32: with the transpose, and packed
    by MKL for so many rows.
    """
    weights = [torch.randn(2048, 512) / 512**0.5 for _ in range(16)]
    transposed = [weight.t().contiguous() for weight in weights]
    ways: dict[str, list[Callable]] = {
        "transposed": [lambda x, w=w: torch.mm(x, w) for w in transposed]
    }
    for rows in (1, 4, 32):
        packed = [(speed.mkl_packed(weight, rows), weight) for weight in weights]
        ways[str(rows)] = [
            lambda x, p=p, w=w: torch.ops.mkl._mkl_linear(x, p, w, None, len(x))
            for p, w in packed
        ]
    found: dict = {name: {} for name in ways}
    for rows in (1, 2, 4, 16, 32, 64):
        x, times = torch.randn(rows, 512), {name: [] for name in ways}
        for _ in range(9):
            for name, products in ways.items():
                times[name].append(
                    seconds(
                        lambda x=x, products=products: [
                            product(x) for product in products
                        ]
                    )
                )
        for name, measured in times.items():
            found[name][str(rows)] = round(1e6 * median(measured) / len(weights), 1)
    return found


def rounding() -> dict:
    """Microseconds of products of three sizes, in float32 and with inputs rounded to
    int8, by number of rows.
    """
    found: dict = {}
    for inputs, outputs in ((512, 2048), (512, 512), (128, 384)):
        layers = {
            name: [kind(torch.randn(outputs, inputs)) for _ in range(16)]
            for name, kind in (
                ("float32", Float32Linear),
                ("rounded inputs", RoundedInputs),
            )
        }
        size = found[f"{inputs} × {outputs}"] = {name: {} for name in layers}
        for rows in (1, 4, 64, 256):
            x, times = torch.randn(rows, inputs), {name: [] for name in layers}
            for _ in range(9):
                for name, each in layers.items():
                    times[name].append(
                        seconds(lambda x=x, each=each: [layer(x) for layer in each])
                    )
            for name, measured in times.items():
                size[name][str(rows)] = round(1e6 * median(measured) / 16, 1)
    return found


def choice() -> dict:
    """Microseconds of ways to look for the largest of 10,000 scores, by number of rows."""
    ways = {
        "amax, the value alone": lambda x: x.amax(1),
        "max": lambda x: x.max(1),
        "topk(1)": lambda x: x.topk(1),
        "best(1)": lambda x: search.best(x, 1),
    }
    found: dict = {name: {} for name in ways}
    for rows in (1, 4, 8, 16):
        table = torch.randn(rows, VOCABULARY)
        for name, way in ways.items():
            found[name][str(rows)] = round(
                1e6 * per_call(lambda way=way, table=table: way(table)), 1
            )
    return found


def floors() -> dict:
    """Bytes read and operations done each second, from the largest matrix: the output
    layer.
    """
    weight, one, many = (
        torch.randn(VOCABULARY, 512),
        torch.randn(1, 512),
        torch.randn(256, 512),
    )
    read, done = {}, {}
    for name, size in (("float32", 4), ("bfloat16", 2), ("int8", 1)):
        layer = speed.linear_kind(name, weight.device)(weight)
        read[name] = weight.numel() * size / per_call(lambda layer=layer: layer(one))
        done[name] = (
            2 * weight.numel() * 256 / per_call(lambda layer=layer: layer(many), 0.5)
        )
    return {"bandwidth": read, "operations": done}


# ---- where a step spends its time ----

PARTS = {
    "matrix products": ("mm", "addmm", "linear", "bmm"),
    "attention": ("scaled_dot", "flash"),
    "copies of the cache": ("cat", "index_select", "index"),
    "softmax and choice": ("softmax", "log_softmax", "topk", "argmax", "max", "amax"),
    "norms": ("layer_norm", "native_layer_norm"),
    "views and empty tables": (
        "as_strided",
        "detach",
        "empty",
        "expand",
        "flatten",
        "narrow",
        "reshape",
        "resolve",
        "select",
        "slice",
        "split",
        "squeeze",
        "transpose",
        "unflatten",
        "unsqueeze",
        "view",
    ),
}


def part_of(operation: str) -> str:
    """The kind of an operation of PyTorch."""
    name = operation.split("::")[-1].lstrip("_").removeprefix("mkl_")
    return next(
        (part for part, starts in PARTS.items() if name.startswith(starts)),
        "everything else",
    )


def profiled(model: Transformer | FastTransformer, cells: Iterable[str]) -> dict:
    """Milliseconds a step of whole searches by kind of operation."""
    found = {}
    for name in cells:
        search_once(model, *CELLS[name])
        with profile(activities=[ProfilerActivity.CPU]) as record:
            search_once(model, *CELLS[name])
        parts = dict.fromkeys([*PARTS, "everything else"], 0.0)
        for event in record.key_averages():
            parts[part_of(event.key)] += event.self_cpu_time_total / 1000 / FORCED
        found[name] = {part: round(time, 3) for part, time in parts.items()}
    return found


# ---- the changes, each taken back on its own ----


class Endless(FastTransformer):
    """A model that never ends a sentence."""

    def step(self, tokens, cache):
        scores = super().step(tokens, cache)
        scores[:, self.config.eos_id] = -torch.inf
        return scores


class EndlessReadable(Transformer):
    """The readable one."""

    def step(self, tokens, cache):
        scores = super().step(tokens, cache)
        scores[:, self.config.eos_id] = -torch.inf
        return scores


class GrowingMemory(speed.LayerMemory):
    """A cache that is copied whole to append a position."""

    def write(self, at, new):
        self.past = torch.cat([self.past, new], dim=2)
        return self.past.split_with_sizes(self.sizes, dim=3)


class CopiedCache(FastCache):
    """A cache in which each beam has its own copy of its past, and of its source."""

    def reorder(self, rows):
        for layer in self.layers:
            layer.source, layer.past = (
                [tensor[rows] for tensor in layer.source],
                layer.past[rows],
            )
        self.src_mask = self.src_mask[rows]


class CopyingBeams(Endless):
    """The fast model with such a cache: rows are beams."""

    def start(self, src, beam_size=1):
        cache = super().start(src)
        return CopiedCache(cache.layers, cache.src_mask, 1)


@start_beams.register(CopyingBeams)
def start_copied(model, src, beam_size):
    """As the readable cache starts."""
    cache = model.start(src)
    cache.reorder(torch.arange(len(src)).repeat_interleave(beam_size))
    return cache


@move_beams.register(CopiedCache)
def move_copied(cache, going, parents):
    """As the readable cache moves, within the reserved places."""
    origins = (going[:, None] * parents.size(1) + parents[going]).flatten()
    used = cache.length
    for layer in cache.layers:
        layer.past[:, :, :used] = layer.past[origins, :, :used]


class ThreeProducts:
    """Queries, keys and values by a product each."""

    def __init__(self, linear, h, *groups):
        self.h, self.groups = (
            h,
            [[linear(matrix.weight) for matrix in group] for group in groups],
        )

    def heads(self, x, sentences, each):
        return self(x, sentences, each)[0]

    def __call__(self, x, sentences, each):
        return self.padded(x, Padding(torch.ones(sentences, each, dtype=torch.bool)))

    def padded(self, x, padding):
        cut = [
            [
                split_heads(
                    padding.put_back(product(x)).unflatten(0, padding.shape), self.h
                )
                for product in group
            ]
            for group in self.groups
        ]
        return [
            torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0] for parts in cut
        ]


class CutOneByOne(ThreeProducts):
    """One product, but each projection cut into heads by itself, and keys and values
    not joined.
    """

    def __init__(self, linear, h, *groups):
        matrices = [matrix for group in groups for matrix in group]
        self.h, self.groups, self.sizes = (
            h,
            groups,
            [matrix.out_features for matrix in matrices],
        )
        self.product = linear(torch.cat([matrix.weight for matrix in matrices]))

    def padded(self, x, padding):
        parts = padding.put_back(self.product(x)).split_with_sizes(self.sizes, dim=-1)
        cut = iter(
            [
                part.view(*padding.shape, self.h, part.size(-1) // self.h).transpose(
                    1, 2
                )
                for part in parts
            ]
        )
        return [
            next(cut) if len(group) == 1 else tuple(next(cut) for _ in group)
            for group in self.groups
        ]


class TwoPasts(speed.LayerMemory):
    """A cache for keys and another for values."""

    def __init__(self, source_key, source_value):
        super().__init__(source_key, source_value)
        self.pasts = [tensor[:, :, :0] for tensor in self.source]

    def write(self, at, new):
        beam = new[0].size(2)
        if at + beam > self.pasts[0].size(2):
            room = [
                each.new_empty(*each.shape[:2], 32 * beam, each.size(3)) for each in new
            ]
            pasts = zip(self.pasts, room, strict=True)
            self.pasts = (
                [torch.cat([past, more], dim=2) for past, more in pasts] if at else room
            )
        for past, each in zip(self.pasts, new, strict=True):
            past.narrow(2, at, beam).copy_(each)
        return [past.narrow(2, 0, at + beam) for past in self.pasts]


def all_rows(table: Tensor) -> tuple[Tensor]:
    """The rows of a step, not cut into blocks."""
    return (table,)


def plain_best(values: Tensor, count: int, size: int = 100) -> tuple[Tensor, Tensor]:
    """The whole row sorted out at once."""
    return tuple(values.topk(min(count, values.size(-1))))


class MultipliedPadding(Padding):
    """Padding that takes part in every product."""

    def __init__(self, real):
        self.shape, self.places = real.shape, None


def written_out(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> Tensor:
    """Attention as equation (1) is written, each operation by itself."""
    scores = (query * key.size(3) ** -0.5) @ key.transpose(2, 3)
    heads = (scores if mask is None else scores.add_(mask)).softmax(dim=-1) @ value
    return heads.transpose(1, 2).reshape(query.size(0) * query.size(2), -1)


def mixed_lengths(sentences: int) -> Tensor:
    """Random sources of 6 to 28 tokens."""
    drawn = torch.Generator().manual_seed(0)
    lengths = torch.randint(6, 2 * SOURCE + 1, (sentences, 1), generator=drawn)
    src = torch.randint(3, VOCABULARY, (sentences, int(lengths.max())), generator=drawn)
    return src.masked_fill_(torch.arange(src.size(1)) >= lengths, 0)


def one_length(sentences: int) -> Tensor:
    """Random sources of 14 tokens."""
    return torch.randint(
        3, VOCABULARY, (sentences, SOURCE), generator=torch.Generator().manual_seed(0)
    )


def search_once(
    model: Transformer | FastTransformer,
    beam_size: int,
    sentences: int,
    sources: Callable[[int], Tensor] = one_length,
) -> object:
    """One search over as many random sources."""
    src = sources(sentences)
    if beam_size == 1:
        return greedy(model, src, FORCED)
    return beam(model, src, beam_size, 0.0, FORCED)


def variants(readable: Transformer) -> dict[str, tuple[object, list]]:
    """Each variant's model, and what is replaced while it runs."""
    plain = {"float32": Plain32, "bfloat16": Plain16}
    found: dict[str, tuple[object, list]] = {"readable": (readable, [])}
    for precision in ("float32", "bfloat16"):
        with patch.object(speed, "linear_kind", lambda name, device: plain[name]):
            unpacked = Endless(readable, precision)
        found |= {
            precision: (Endless(readable, precision), []),
            f"{precision}, weights as stored": (unpacked, []),
            f"{precision}, a copy of the past for each beam": (
                CopyingBeams(readable, precision),
                [],
            ),
        }
        found[f"{precision}, scores of all rows at once"] = (
            found[precision][0],
            [(search, "row_blocks", all_rows)],
        )
    fast = found["float32"][0]
    with patch.object(speed, "Projections", ThreeProducts):
        apart = Endless(readable, "float32")
    return found | {
        "float32, a product for each projection": (apart, []),
        "float32, a cache that is copied to grow": (
            fast,
            [(speed, "LayerMemory", GrowingMemory)],
        ),
        "float32, tokens chosen by topk": (fast, [(search, "best", plain_best)]),
        "int8": (Endless(readable, "int8"), []),
    }


def small_variants() -> dict[str, tuple[object, list]]:
    """The small model as it is, and with more calls."""
    model = small().eval()
    with patch.object(speed, "Projections", CutOneByOne):
        apart = Endless(model)
    return {
        "as it is": (Endless(model), []),
        "keys and values apart": (apart, [(speed, "LayerMemory", TwoPasts)]),
    }


class OpenStep(torch.nn.Module):
    """A step with everything that it reads and writes among its arguments, as a
    compiler wants it.
    """

    def __init__(self, fast: FastTransformer):
        super().__init__()
        self.fast = fast

    def forward(self, tokens, position, written, pasts, sources, past_mask, src_mask):
        x = torch.add(
            position,
            F.embedding(tokens, self.fast.tgt_embedding.weight),
            alpha=self.fast.scale,
        )
        for layer, past, source in zip(self.fast.decoder, pasts, sources, strict=True):
            kept = object.__new__(speed.LayerMemory)
            kept.past, kept.source, kept.sizes = (
                past,
                source,
                tuple(tensor.size(3) for tensor in source),
            )
            x = layer.step(x, kept, written.size(0), past_mask, src_mask)
        return self.fast.output(x)


class Compiled(Endless):
    """Steps compiled ahead of time: a program for each beam size, for one sentence and
    for many, all lengths open.
    """

    def __init__(self, model: Transformer, precision: str):
        with patch.object(
            speed, "mkl_packed", lambda weight: None
        ):  # the compiler can't take MKL's layout
            super().__init__(model, precision)
        self.programs: dict = {}
        self.waited = 0.0

    def step(self, tokens, cache):
        kind = cache.beam_size, len(cache.src_mask) > 1
        if (
            kind not in self.programs and cache.length < 5
        ):  # too short to be taken for any length
            return super().step(tokens, cache)
        position = rows_of(self.position_codes, cache.length, 1)
        at, past_mask = cache.length * cache.beam_size, cache.advance()
        for kept in cache.layers:
            kept.write(
                at,
                kept.past.new_empty(
                    *kept.past.shape[:2], cache.beam_size, kept.past.size(3)
                ),
            )
        inputs = (
            tokens.contiguous(),
            position,
            torch.empty(at),
            [kept.past for kept in cache.layers],
            [kept.source for kept in cache.layers],
            past_mask,
            cache.src_mask,
        )
        if kind not in self.programs:
            self.programs[kind] = self.compiled(inputs, many=kind[1])
        cache.length += 1
        scores = self.programs[kind](*inputs)
        scores[:, self.config.eos_id] = -torch.inf
        return scores

    def compiled(self, inputs: tuple, many: bool) -> Callable:
        """A program for such inputs, by AOTInductor."""
        start, length = time.perf_counter(), torch.export.Dim.AUTO
        rows = {0: length} if many else {}
        longer = rows | {2: length}
        mask = None if inputs[5] is None else rows | {3: length}
        sizes = (
            rows or None,
            None,
            {0: length},
            [longer] * len(inputs[3]),
            [(longer, longer)] * len(inputs[4]),
            mask,
            rows | {3: length},
        )
        exported = torch.export.export(
            OpenStep(self), inputs, dynamic_shapes=sizes, strict=False
        )
        with tempfile.TemporaryDirectory() as folder:
            package = torch._inductor.aoti_compile_and_package(
                exported, package_path=str(Path(folder) / "step.pt2")
            )
            program = torch._inductor.aoti_load_package(package)
        self.waited += time.perf_counter() - start
        return program


def compiled(model: Transformer, precision: str, rounds: int) -> dict:
    """Milliseconds a step of whole searches with and without the compiler, and its
    seconds for four programs.
    """
    program = Compiled(model, precision)
    src = mixed_lengths(1)
    assert [h.tokens for h in greedy(Endless(model, precision), src, FORCED)] == [
        h.tokens for h in greedy(program, src, FORCED)
    ]
    ways = {"as it is": (Endless(model, precision), []), "compiled": (program, [])}
    return ablations(ways, rounds, mixed_lengths) | {
        "compiler's seconds": round(program.waited)
    }


def mixed_variants(readable: Transformer) -> dict[str, tuple[object, list]]:
    """What matters when sentences differ in length, or are few: each taken back, or
    tried.
    """
    fast = Endless(readable)
    with patch.object(speed, "mkl_packed", lambda weight: None):
        one_layout = Endless(readable)
    return {
        "as it is": (fast, []),
        "the transpose alone": (one_layout, []),
        "padding multiplied": (fast, [(speed, "Padding", MultipliedPadding)]),
        "attention written out": (fast, [(speed, "attend", written_out)]),
    }


def ablations(
    made: dict[str, tuple[object, list]],
    rounds: int = ROUNDS,
    sources: Callable[[int], Tensor] = one_length,
) -> dict:
    """Milliseconds a step of whole searches, the reading of the source and the
    bookkeeping included.
    """
    found: dict = {name: {} for name in made}
    for cell, (beam_size, sentences) in CELLS.items():
        times: dict = {name: [] for name in made}
        for _ in range(rounds + 1):
            for name, (model, replaced) in made.items():
                with ExitStack() as stack:
                    for owner, attribute, other in replaced:
                        stack.enter_context(patch.object(owner, attribute, other))
                    times[name].append(
                        seconds(
                            lambda m=model, b=beam_size, s=sentences: search_once(
                                m, b, s, sources
                            )
                        )
                    )
        for name, measured in times.items():
            found[name][cell] = round(1000 * median(measured[1:]) / FORCED, 3)
            print(f"{cell}: {name} {found[name][cell]} ms", flush=True)
    return found


def by_rows(
    fast: FastTransformer, counts: tuple[int, ...] = (1, 4, 16, 32, 64, 128)
) -> dict:
    """Milliseconds of one greedy step at place 12, by number of sentences: what a
    shrinking batch costs.
    """
    found = {}
    for rows in counts:
        cache = fast.start(torch.randint(3, VOCABULARY, (rows, SOURCE)))
        tokens = torch.randint(3, VOCABULARY, (rows,))
        for _ in range(12):
            fast.step(tokens, cache)

        def step(cache=cache, tokens=tokens):
            cache.length = 12
            return fast.step(tokens, cache)

        found[str(rows)] = round(1000 * per_call(step, 0.3), 3)
    return found


def by_threads(readable: Transformer) -> dict:
    """The floors, and the time of a step of a few numbers of rows, with one thread and
    with two.
    """
    found: dict = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        steps = {
            name: by_rows(FastTransformer(readable, name), (1, 4, 64))
            for name in ("float32", "int8")
        }
        found[str(threads)] = floors() | {"by_rows": steps}
        print(threads, found[str(threads)], flush=True)
    torch.set_num_threads(1)
    return found


class Watched(Endless):
    """A model that adds up the seconds of its parts."""

    def start(self, src, beam_size=1):
        begin = time.process_time()
        cache = super().start(src, beam_size)
        self.seconds["the source"] += time.process_time() - begin
        return cache

    def step(self, tokens, cache):
        begin = time.process_time()
        scores = super().step(tokens, cache)
        self.seconds["steps"] += time.process_time() - begin
        return scores


def around_the_steps(readable: Transformer) -> dict:
    """Milliseconds a step of whole searches, sources of 6 to 28 tokens: the source, the
    steps, and all the rest.
    """
    found: dict = {}
    for precision in ("float32", "int8"):
        model, found[precision] = Watched(readable, precision), {}
        for name, (beam_size, sentences) in CELLS.items():
            runs = []
            for _ in range(10 if sentences == 1 else 4):
                model.seconds = {"the source": 0.0, "steps": 0.0}
                whole = seconds(
                    lambda model=model, b=beam_size, s=sentences: search_once(
                        model, b, s, mixed_lengths
                    )
                )
                runs.append(
                    model.seconds
                    | {"choice and bookkeeping": whole - sum(model.seconds.values())}
                )
            found[precision][name] = {
                part: round(1000 * median(run[part] for run in runs[1:]) / FORCED, 3)
                for part in runs[0]
            }
    return found


def small() -> Transformer:
    """A random model of the size that the recipe for Multi30k trains."""
    return Transformer(
        replace(
            recipe("multi30k-en-de-tiny").architecture,
            src_vocab_size=VOCABULARY,
            tgt_vocab_size=VOCABULARY,
        )
    )


def main() -> None:
    """Measure one part or all on one thread, and put it into the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [
        "floors",
        "threads",
        "profile",
        "around",
        "small",
        "choice",
        "packing",
        "mixed",
        "compiled",
        "changes",
    ]
    parser.add_argument(
        "--part", nargs="+", choices=every, default=every, help="measure only these"
    )
    parts = parser.parse_args().part
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    readable = EndlessReadable(TransformerConfig(VOCABULARY, VOCABULARY)).eval()
    record = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    record |= {
        "command": "python -m benchmarks.speed.decode_steps",
        "machine": f"CPU, {platform.machine()}, "
        f"{torch.backends.cpu.get_cpu_capability()}",
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "threads": 1,
        "clock": "processor seconds",
        "vocabulary": VOCABULARY,
        "source": SOURCE,
        "steps": FORCED,
    }
    amx = torch.cpu._is_amx_tile_supported()
    record.setdefault("amx", {}).update(dict.fromkeys(parts, amx))
    with torch.inference_mode():
        if "floors" in parts:
            record |= floors() | {"kernels": kernels()}
            record["by_rows"] = {
                name: by_rows(FastTransformer(readable, name))
                for name in ("float32", "bfloat16")
            }
        if "threads" in parts:
            record["by_threads"] = by_threads(readable)
        if "profile" in parts:
            record["profile"] = profiled(readable, ["greedy, 1", "beam 4, 64"])
        if "around" in parts:
            record["around"] = around_the_steps(readable)
        if "small" in parts:
            record["small"] = {
                "milliseconds": profiled(Endless(small().eval()), CELLS),
                "weights": speed.step_weights(small()),
                "changes": ablations(small_variants(), 25),
            }
        if "choice" in parts:
            record["choice"] = choice()
        if "packing" in parts:
            record |= {"packing": packing(), "rounding": rounding()}
        if "mixed" in parts:
            record["mixed"] = {
                name: ablations(mixed_variants(model), rounds, mixed_lengths)
                for name, model, rounds in (
                    ("base", readable, 7),
                    ("small", small().eval(), 25),
                )
            }
        if "compiled" in parts:
            record["compiled"] = {
                "small, float32": compiled(small().eval(), "float32", 25),
                "base, float32": compiled(readable, "float32", 7),
                "base, int8": compiled(readable, "int8", 7),
            }
        if "changes" in parts:
            record["milliseconds"] = ablations(variants(readable))
    write_whole(OUT, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
