"""Every number of the paper, and what this project has beside it.

    python -m benchmarks.paper.ledger

A row is *exact* where the same quantity is computed at the paper's own size, *scaled*
where the same experiment ran in a size that fits here, and *not attempted* otherwise.
What is computed comes from the package as it is; what ran comes from the records in
results/, each with its command, seed, machine, time and versions. Takes seconds. Writes
results/ledger.json, which nbs/ledger.ipynb shows.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import repeat
from math import log2
from statistics import mean
from typing import Any

import torch
from torch.nn import functional as F

from annotated_transformer.before.recurrent import longest_chain
from annotated_transformer.model.config import preset
from annotated_transformer.model.costs import (
    hardware_flops,
    layer_operations,
    layers_to_connect,
    parameter_count,
)
from annotated_transformer.model.position import sinusoids
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.schedule import adam
from annotated_transformer.translation.parsing import MORE_TOKENS, PARSING
from annotated_transformer.translation.search import SearchOptions, length_limits
from annotated_transformer.translation.variations import variations
from benchmarks.record import RESULTS, command_line, load, save

EXACT, SCALED, NOT = "exact", "scaled", "not attempted"
THIS = "python -m benchmarks.paper.ledger"


@dataclass(frozen=True)
class Row:
    """One number of the paper. `ours` and `evidence` are None if not attempted."""

    place: str
    what: str
    paper: str
    label: str = NOT
    ours: str | None = None
    evidence: dict[str, Any] | None = None
    why: str = ""


def exact(place: str, what: str, paper: object, ours: object, why: str = "") -> Row:
    """A number that the package computes."""
    return Row(place, what, str(paper), EXACT, str(ours), {"command": THIS}, why)


def scaled(
    place: str, what: str, paper: object, ours: object, record: str, why: str
) -> Row:
    """A number from a recorded run in small."""
    return Row(place, what, str(paper), SCALED, str(ours), evidence(record), why)


@cache
def evidence(record: str) -> dict[str, Any]:
    """Command, seed, machine, time and versions of a record, as far as it has them."""
    found = load(record)
    known = {key: found.get(key) for key in ("command", "seed", "machine", "versions")}
    known["seconds"] = found.get("seconds", found.get("processor_seconds"))
    named = {key: value for key, value in known.items() if value is not None}
    return {"record": f"results/{record}", **named}


# -- §3 and §5: settings ---------------------------------------------------------------


def settings() -> Iterator[Row]:
    """What the paper sets, and what our base, big and recipes have."""
    base, big = preset("base"), preset("big")
    for name, paper in {
        "N": 6,
        "d_model": 512,
        "d_ff": 2048,
        "h": 8,
        "d_k": 64,
    }.items():
        yield exact("§3", f"base: {name}", paper, getattr(base, name))
    yield exact("§3", "base: d_v", 64, base.d_v)
    for name, paper in {"d_model": 1024, "d_ff": 4096, "h": 16}.items():
        yield exact("Table 3", f"big: {name}", paper, getattr(big, name))
    codes = sinusoids(1000, 512)
    first = 2 * torch.pi / torch.asin(codes[1, 0]).item()
    yield exact("§3.5", "shortest wavelength, in 2π", 1, f"{first / 6.283185:.4g}")
    last = 1 / torch.asin(codes[1, 510].double()).item()
    yield exact(
        "§3.5", "longest wavelength, in 2π", "10000", f"{last:.1f}",
        "the paper's own formula stops short of its text at d_model 512",
    )  # fmt: skip
    for name, paper in {
        "wmt14-en-de-base": (37_000, 100_000, 5, 0.1),
        "wmt14-en-de-big": (37_000, 300_000, 20, 0.3),
        "wmt14-en-fr-big": (32_000, 300_000, 20, 0.1),
    }.items():
        plan = recipe(name)
        ours = (
            plan.vocab_size,
            plan.training.steps,
            plan.training.keep,
            plan.architecture.dropout,
        )
        names = (
            "tokens of the vocabulary",
            "updates",
            "checkpoints averaged",
            "P_drop",
        )
        for what, printed, found in zip(names, paper, ours, strict=True):
            yield exact("§5, §6.1", f"{name}: {what}", f"{printed:,}", f"{found:,}")
    training = recipe("wmt14-en-de-base").training
    yield exact(
        "§5.1", "tokens of each side in a batch", "25,000", f"{training.batch_tokens:,}"
    )
    optimizer = adam(torch.nn.Linear(1, 1)).param_groups[0]
    yield exact("§5.3", "Adam: β₁", 0.9, optimizer["betas"][0])
    yield exact("§5.3", "Adam: β₂", 0.98, optimizer["betas"][1])
    yield exact("§5.3", "Adam: ε", "1e-09", optimizer["eps"])
    yield exact("§5.3", "warm-up steps", "4,000", f"{training.warmup:,}")
    yield exact("§5.4", "ε_ls", 0.1, training.label_smoothing)
    options = SearchOptions()
    yield exact("§6.1", "beam", 4, options.beam_size)
    yield exact("§6.1", "length penalty α", 0.6, options.alpha)
    limit = length_limits(torch.ones(1, 10, dtype=torch.long), base).item() - 10
    yield exact("§6.1", "output up to input +", 50, limit)
    yield exact("§6.3", "parsing: beam", 21, PARSING.beam_size)
    yield exact("§6.3", "parsing: length penalty α", 0.3, PARSING.alpha)
    yield exact("§6.3", "parsing: output up to input +", 300, MORE_TOKENS)
    for what, paper in {
        "layers": "4",
        "d_model": "1024",
        "sentences of the treebank": "40K",
        "tokens, treebank alone": "16K",
        "tokens, semi-supervised": "32K",
        "sentences, semi-supervised": "17M",
    }.items():
        why = "the free sample has a twelfth of the trees, for a smaller model"
        yield Row("§6.3", f"parsing: {what}", paper, why=why)
    yield Row("§5.1", "English-German sentence pairs", "4.5 million")
    yield Row("§5.1", "English-French sentence pairs", "36 million")
    for what, paper in {
        "seconds of a base update, 8 P100": "0.4",
        "seconds of a big update, 8 P100": "1.0",
        "hours of the base training": "12",
        "days of the big training": "3.5",
    }.items():
        yield Row("§5.2", what, paper, why="needs the paper's eight GPUs")
    sustained = {"K80": "2.8", "K40": "3.7", "M40": "6.0", "P100": "9.5"}
    for device, paper in sustained.items():
        why = "taken over for the arithmetic of the costs"
        yield Row("§5.2", f"TFLOPS that a {device} sustains", paper, why=why)


# -- Table 1 ---------------------------------------------------------------------------


def exponents(layer: str) -> str:
    """How the operations grow with n, d and, if at all, k and r: from doubling each."""
    sizes = {"n": 1 << 14, "d": 64, "k": 3, "r": 32}
    once = layer_operations(*sizes.values())[layer]
    grown = {}
    for name in sizes:
        twice = layer_operations(*(sizes | {name: 2 * sizes[name]}).values())[layer]
        grown[name] = round(log2(twice / once), 2)
    powers = [f"{name}^{power:g}" for name, power in grown.items() if power]
    return f"{' · '.join(powers)}, counted"


def chain(layer: str, n: int) -> int:
    """The longest chain of operations that wait for each other."""
    x, W = torch.randn(1, n, 8, requires_grad=True), torch.randn(8, 8)
    if layer == "recurrent":
        state = torch.zeros(1, 8)
        for step in x.unbind(1):
            state = step @ W + state @ W
        return longest_chain(state)
    if layer == "convolutional":
        return longest_chain(F.conv1d(x.mT, torch.randn(8, 8, 3)))
    return longest_chain((x @ x.mT).softmax(-1) @ x)


def ring(n: int, width: int, gap: int = 1) -> torch.Tensor:
    """Which positions of a ring a window around each reads."""
    offsets = gap * (torch.arange(width) - width // 2)
    reads = torch.zeros(n, n, dtype=torch.bool)
    return reads.scatter_(1, (torch.arange(n)[:, None] + offsets) % n, True)


def table_1() -> Iterator[Row]:
    """Operations, chains and paths, each counted on layers that run."""
    papers = {
        "self-attention": ("O(n²·d)", "O(1)", "O(1)"),
        "recurrent": ("O(n·d²)", "O(n)", "O(n)"),
        "convolutional": ("O(k·n·d²)", "O(1)", "O(log_k n)"),
        "restricted self-attention": ("O(r·n·d)", "O(1)", "O(n/r)"),
    }
    everything = torch.ones(81, 81, dtype=torch.bool)
    dilated = (ring(81, 3, 3**layer) for layer in range(81))
    paths = {
        "self-attention": layers_to_connect(repeat(everything)),
        "convolutional": layers_to_connect(dilated),
        "restricted self-attention": layers_to_connect(repeat(ring(81, 9))),
    }
    for layer, (complexity, sequential, path) in papers.items():
        yield exact("Table 1", f"{layer}: complexity", complexity, exponents(layer))
        waits = ", ".join(f"{chain(layer, n)} for n = {n}" for n in (16, 64))
        yield exact("Table 1", f"{layer}: sequential operations", sequential, waits)
        reached = paths.get(layer)
        ours = (
            f"{reached} layer{'s' * (reached > 1)} for n = 81"
            if reached
            else "80 steps for n = 81"
        )
        yield exact("Table 1", f"{layer}: maximum path length", path, ours)
    both = layer_operations(100, 64, 5, 1)["separable convolutional"]
    ours = (
        f"{both:,} for n 100, d 64, k 5"
        if both == 5 * 6400 + 100 * 64**2
        else "differs"
    )
    yield exact("§4", "separable convolution", "O(k·n·d + n·d²)", ours)


# -- Table 2 ---------------------------------------------------------------------------

RIVALS = {  # BLEU en-de, en-fr; FLOPs en-de, en-fr
    "ByteNet": ("23.75", None, None, None),
    "Deep-Att + PosUnk": (None, "39.2", None, "1.0e20"),
    "GNMT + RL": ("24.6", "39.92", "2.3e19", "1.4e20"),
    "ConvS2S": ("25.16", "40.46", "9.6e18", "1.5e20"),
    "MoE": ("26.03", "40.56", "2.0e19", "1.2e20"),
    "Deep-Att + PosUnk ensemble": (None, "40.4", None, "8.0e20"),
    "GNMT + RL ensemble": ("26.30", "41.16", "1.8e20", "1.1e21"),
    "ConvS2S ensemble": ("26.36", "41.29", "7.7e19", "1.2e21"),
}
COLUMNS = ("BLEU en-de", "BLEU en-fr", "FLOPs en-de", "FLOPs en-fr")


def table_2() -> Iterator[Row]:
    """Scores of others, ours not attempted, and the arithmetic of the costs."""
    for system, numbers in RIVALS.items():
        for column, number in zip(COLUMNS, numbers, strict=True):
            if number:
                yield Row("Table 2", f"{system}: {column}", number, why="others' work")
    scores = {
        "base": ("27.3", "38.1", "12 hours"),
        "big": ("28.4", "41.8", "3.5 days"),
    }
    for system, (*both, long) in scores.items():
        for column, number in zip(COLUMNS, both, strict=False):
            why = f"{long} on the paper's eight GPUs"
            yield Row("Table 2", f"Transformer {system}: {column}", number, why=why)
    times = {"base": ("3.3e18", 12 * 3600.0), "big": ("2.3e19", 3.5 * 86400)}
    for system, (printed, seconds) in times.items():
        ours = f"{hardware_flops(seconds, 8, 9.5e12):.2e}"
        yield exact("Table 2", f"Transformer {system}: FLOPs", printed, ours)


# -- Table 3 ---------------------------------------------------------------------------


def table_3() -> Iterator[Row]:
    """Twenty rows: parameters at the paper's size, the rest in small."""
    for name, row in variations().items():
        place = f"Table 3, {name}"
        if row.parameters:
            millions = parameter_count(row.architecture) / 1e6
            yield exact(
                place, "parameters, millions", row.parameters, f"{millions:.1f}",
                "for 37,000 shared tokens; no one size gives all that are printed",
            )  # fmt: skip
        runs = sorted((RESULTS / "paper" / "table3").glob(f"{name}-[0-9]*.json"))
        records = [f"paper/table3/{path.name}" for path in runs]
        measures = {"perplexity": f"{row.perplexity:.2f}", "bleu": f"{row.bleu:.1f}"}
        for measure, paper in measures.items():
            what = "BLEU" if measure == "bleu" else measure
            ours = f"{mean(load(each)[measure] for each in records):.2f}"
            why = f"540,000 parameters, Multi30k, mean of seeds 1 to {len(records)}"
            yield scaled(place, what, paper, ours, records[0], why)


# -- Table 4 and the figures -----------------------------------------------------------

PARSERS = {
    "Vinyals & Kaiser 2014, WSJ only": "88.3",
    "Petrov 2006, WSJ only": "90.4",
    "Zhu 2013, WSJ only": "90.4",
    "Dyer 2016, WSJ only": "91.7",
    "Transformer (4 layers), WSJ only": "91.3",
    "Zhu 2013, semi-supervised": "91.3",
    "Huang & Harper 2009, semi-supervised": "91.3",
    "McClosky 2006, semi-supervised": "92.1",
    "Vinyals & Kaiser 2014, semi-supervised": "92.1",
    "Transformer (4 layers), semi-supervised": "92.7",
    "Luong 2015, multi-task": "93.0",
    "Dyer 2016, generative": "93.3",
}


def table_4() -> Iterator[Row]:
    """Parsing."""
    runs = load("paper/parsing.json")["runs"]["3314"]
    ours = f"{runs['transformer']['beam']['f1']:.1f}"
    grammar = f"{runs['grammar']['test']['f1']:.1f}"
    for system, score in PARSERS.items():
        what = f"{system}: F1"
        if system == "Transformer (4 layers), WSJ only":
            why = f"3,314 trees, 2 + 2 layers, tags as input; a PCFG: {grammar}"
            yield scaled("Table 4", what, score, ours, "paper/parsing.json", why)
        else:
            why = "needs 17M sentences" if "Transformer" in system else "others' work"
            yield Row("Table 4", what, score, why=why)


def figures() -> Iterator[Row]:
    """Figures 3 to 5, asked of our own model."""
    found = load("paper/heads.json")
    look, rates = found["look"]["encoder"], found["alignment"]["rates"]
    far, spread = (sorted(sum(look[name], [])) for name in ("distance", "entropy"))
    sure = min(rates.values())
    for number, shows, ours in (
        (
            "3",
            "a long-distance dependency, layer 5",
            f"12 heads look {far[0]:.1f} to {far[-1]:.1f} tokens far on average",
        ),
        (
            "4",
            "two heads that resolve a pronoun, layer 5",
            f"12 heads of {spread[0]:.1f} to {spread[-1]:.1f} bits of entropy",
        ),
        (
            "5",
            "two heads that follow the structure",
            f"one of 12 heads across aligns words with an error of {sure:.2f}",
        ),
    ):
        why = "another measure, of a model with three layers"
        yield scaled(
            f"Figure {number}", "what heads do", shows, ours, "paper/heads.json", why
        )


def rows() -> list[Row]:
    """The whole ledger, in the paper's order."""
    parts = (settings, table_1, table_2, table_3, table_4, figures)
    return [row for part in parts for row in part()]


def main(arguments: list[str] | None = None) -> None:
    """Write the ledger."""
    command_line(__doc__).parse_args(arguments)
    save("ledger.json", {"rows": [asdict(row) for row in rows()]})


if __name__ == "__main__":
    main()
