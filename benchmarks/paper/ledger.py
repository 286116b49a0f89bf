"""Every number of the paper, and what this project has beside it.

    python -m benchmarks.paper.ledger

A row is a *setting* that our presets and recipes have too, *derived* where the quantity
is computed here, at the paper's own size or from other numbers that it prints, *rerun
at size* where what was measured had that size too, *rerun small* where the experiment
ran in a size that fits here, *quoted* where it is somebody else's result or a plain
fact, and *not attempted* where it is the paper's own and we have nothing beside it.
What is computed comes from the package as it is; what ran comes from the records in
results/, each with its command, seeds, machine, time and versions. Takes seconds.
Writes results/ledger.json, which nbs/ledger.ipynb shows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from math import log2
from statistics import geometric_mean, mean
from typing import Any

import torch
from torch.nn import functional as F

from annotated_transformer.before.graph import longest_chain
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import length_limits
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
from annotated_transformer.translation.table3 import scaled_down_recipe, variations
from benchmarks.record import command_line, load, read_runs, save

SETTING, DERIVED = "setting", "derived"
AT_SIZE, SMALL = "rerun at size", "rerun small"
QUOTED, NOT = "quoted", "not attempted"
THIS = "python -m benchmarks.paper.ledger"
TABLE_3, TABLE_4 = "paper/table3.jsonl", "paper/parsing.jsonl"
TIMED = "scale/gpu.json"


@dataclass(frozen=True)
class Row:
    """One number of the paper; `ours` and `evidence` are None for what is quoted or not
    attempted.
    """

    place: str
    what: str
    paper: str
    label: str = NOT
    ours: str | None = None
    evidence: dict[str, Any] | None = None
    why: str = ""


def setting(place: str, what: str, paper: object, ours: object, why: str = "") -> Row:
    """A setting of the paper's, and what the package's presets and recipes have."""
    return Row(place, what, str(paper), SETTING, str(ours), {"command": THIS}, why)


def derived(place: str, what: str, paper: object, ours: object, why: str = "") -> Row:
    """A number that the package computes."""
    return Row(place, what, str(paper), DERIVED, str(ours), {"command": THIS}, why)


def quoted(place: str, what: str, paper: str, why: str) -> Row:
    """A number that we only pass on."""
    return Row(place, what, paper, QUOTED, why=why)


def evidence(record: str, found: dict[str, Any]) -> dict[str, Any]:
    """Command, commit, seed, machine, time and versions of a record, if it has them."""
    keys = ("command", "commit", "seed", "machine", "versions")
    known = {key: found.get(key) for key in keys}
    known["seconds"] = found.get("seconds", found.get("processor_seconds"))
    named = {key: value for key, value in known.items() if value is not None}
    return {"record": f"results/{record}", **named}


def evidence_of_runs(record: str, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The same of several runs: all commands and seeds, and their time together.

    Commit, machine and versions are the first run's.
    """
    each = [evidence(record, run) for run in runs]
    seconds = sum(one["seconds"] for one in each)
    known = {key: value for key, value in each[0].items() if key != "seed"}
    command = "; ".join(dict.fromkeys(one["command"] for one in each))
    seeds = sorted(one["seed"] for one in each)
    return known | {"command": command, "seeds": seeds, "seconds": seconds}


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
        yield setting("§3", f"base: {name}", paper, getattr(base, name))
    yield setting("§3", "base: d_v", 64, base.d_v)
    for name, paper in {"d_model": 1024, "d_ff": 4096, "h": 16}.items():
        yield setting("Table 3", f"big: {name}", paper, getattr(big, name))
    codes = sinusoids(1000, 512)
    first = 2 * torch.pi / torch.asin(codes[1, 0]).item()
    yield derived("§3.5", "shortest wavelength, in 2π", 1, f"{first / 6.283185:.4g}")
    last = 1 / torch.asin(codes[1, 510].double()).item()
    yield derived(
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
            yield setting("§5, §6.1", f"{name}: {what}", f"{printed:,}", f"{found:,}")
    training = recipe("wmt14-en-de-base").training
    yield setting(
        "§5.1",
        "tokens of each side in a batch", "25,000", f"{training.batch_tokens:,}",
        "ours with padding: rows × the longest; the paper doesn't say, the authors' "
        "code had 8 × 4,096",
    )  # fmt: skip
    optimizer = adam(torch.nn.Linear(1, 1)).param_groups[0]
    yield setting("§5.3", "Adam: β₁", 0.9, optimizer["betas"][0])
    yield setting("§5.3", "Adam: β₂", 0.98, optimizer["betas"][1])
    yield setting("§5.3", "Adam: ε", "1e-09", optimizer["eps"])
    yield setting("§5.3", "warm-up steps", "4,000", f"{training.warmup:,}")
    yield setting("§5.4", "ε_ls", 0.1, training.label_smoothing)
    options = SearchOptions()
    for name, seconds in {"wmt14-en-de-base": 0.4, "wmt14-en-de-big": 1.0}.items():
        minutes = f"{recipe(name).training.save_every * seconds / 60:g}"
        yield setting(
            "§6.1", f"{name}: minutes between checkpoints", 10, minutes,
            "ours counts updates; at the paper's seconds for each",
        )  # fmt: skip
    yield setting("§6.1", "beam", 4, options.beam_size)
    yield setting("§6.1", "length penalty α", 0.6, options.alpha)
    limit = length_limits(torch.ones(1, 10, dtype=torch.long), base).item() - 10
    yield setting("§6.1", "output up to input +", 50, limit)
    yield setting("§6.3", "parsing: beam", 21, PARSING.beam_size)
    yield setting("§6.3", "parsing: length penalty α", 0.3, PARSING.alpha)
    yield setting(
        "§6.3", "parsing: output up to input +", 300, MORE_TOKENS,
        "ours beyond the longest sentence that is parsed in the same batch",
    )  # fmt: skip
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
    for pair, count in {"German": "4.5 million", "French": "36 million"}.items():
        why = "the recipes stream them; nobody has yet"
        yield quoted("§5.1", f"English-{pair} sentence pairs", count, why)
    yield from speed()
    sustained = {"K80": "2.8", "K40": "3.7", "M40": "6.0", "P100": "9.5"}
    for device, paper in sustained.items():
        why = "taken over for the arithmetic of the costs"
        yield quoted("§5.2", f"TFLOPS that a {device} sustains", paper, why)


def speed() -> Iterator[Row]:
    """Updates timed on one GPU, and trainings that they would make."""
    timed = load(TIMED)
    proof = evidence(TIMED, timed)
    for size, (update, training, updates) in {
        "base": ("0.4", "12 hours", 100_000),
        "big": ("1.0", "3.5 days", 300_000),
    }.items():
        ran = timed[size]
        eager, compiled = (
            ran["contenders"][f"ours, {way}"]["seconds"]
            for way in ("eager", "compiled")
        )
        one = f"one H200, {ran['rows']} pairs of {ran['length']} tokens, bfloat16"
        yield Row(
            "§5.2", f"seconds of a {size} update, 8 P100", update, AT_SIZE,
            f"{eager:.3f}", proof, f"{one}; {compiled:.3f} compiled",
        )  # fmt: skip
        hours = compiled * updates / 3600
        why = f"not trained; its updates would take {hours:.1f} hours of one H200"
        yield Row("§5.2", f"time of the {size} training", training, why=why)


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
        yield derived("Table 1", f"{layer}: complexity", complexity, exponents(layer))
        waits = ", ".join(f"{chain(layer, n)} for n = {n}" for n in (16, 64))
        yield derived("Table 1", f"{layer}: sequential operations", sequential, waits)
        reached = paths.get(layer)
        ours = (
            f"{reached} layer{'s' * (reached > 1)} for n = 81"
            if reached
            else "80 steps for n = 81"
        )
        yield derived("Table 1", f"{layer}: maximum path length", path, ours)
    both = layer_operations(100, 64, 5, 1)["separable convolutional"]
    ours = (
        f"{both:,} for n 100, d 64, k 5"
        if both == 5 * 6400 + 100 * 64**2
        else "differs"
    )
    yield derived("§4", "separable convolution", "O(k·n·d + n·d²)", ours)


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
                yield quoted("Table 2", f"{system}: {column}", number, "others' work")
    for system, both in {"base": ("27.3", "38.1"), "big": ("28.4", "41.8")}.items():
        for column, number in zip(COLUMNS, both, strict=False):
            why = "needs WMT 2014, and hours of a GPU"
            yield Row("Table 2", f"Transformer {system}: {column}", number, why=why)
    why = "the text; Table 2 and the abstract say 41.8"
    yield Row("§6.1", "Transformer big: BLEU en-fr", "41.0", why=why)
    best = max(float(numbers[0]) for numbers in RIVALS.values() if numbers[0])
    yield derived(
        "Abstract", "BLEU en-de above all before it", "over 2", f"{28.4 - best:.2f}"
    )
    times = {"base": ("3.3e18", 12 * 3600.0), "big": ("2.3e19", 3.5 * 86400)}
    for system, (printed, seconds) in times.items():
        ours = f"{hardware_flops(seconds, 8, 9.5e12):.2e}"
        yield derived("Table 2", f"Transformer {system}: FLOPs", printed, ours)
    share = float(times["big"][0]) / float(RIVALS["MoE"][3] or "nan")
    yield derived(
        "§6.1", "cost of big beside the best single model before, en-fr",
        "less than 1/4", f"{share:.2f}", "MoE, as printed in Table 2",
    )  # fmt: skip


# -- Table 3 ---------------------------------------------------------------------------

FIELDS = {"dropout": "P_drop", "positions": "positions"}


def varied(name: str) -> Iterator[Row]:
    """What a row of Table 3 changes: as printed, and in our architecture."""
    row, base = variations()[name], preset("base")
    found = {
        FIELDS.get(field, field): getattr(row.architecture, field)
        for field in ("N", "d_model", "d_ff", "h", "d_k", "d_v", *FIELDS)
        if getattr(row.architecture, field) != getattr(base, field)
    }
    found |= {"ε_ls": row.smoothing} if row.smoothing != 0.1 else {}
    found |= {"updates": f"{row.steps:,}"} if row.steps != 100_000 else {}
    for what, ours in found.items():
        yield setting(f"Table 3, {name}", what, PRINTED[name][what], ours)


PRINTED: dict[str, dict[str, object]] = {
    "base": {},
    "A-1-head": {"h": 1, "d_k": 512, "d_v": 512},
    "A-4-heads": {"h": 4, "d_k": 128, "d_v": 128},
    "A-16-heads": {"h": 16, "d_k": 32, "d_v": 32},
    "A-32-heads": {"h": 32, "d_k": 16, "d_v": 16},
    "B-16-keys": {"d_k": 16},
    "B-32-keys": {"d_k": 32},
    "C-2-layers": {"N": 2},
    "C-4-layers": {"N": 4},
    "C-8-layers": {"N": 8},
    "C-256-model": {"d_model": 256, "d_k": 32, "d_v": 32},
    "C-1024-model": {"d_model": 1024, "d_k": 128, "d_v": 128},
    "C-1024-ff": {"d_ff": 1024},
    "C-4096-ff": {"d_ff": 4096},
    "D-no-dropout": {"P_drop": 0.0},
    "D-dropout-0.2": {"P_drop": 0.2},
    "D-no-smoothing": {"ε_ls": 0.0},
    "D-smoothing-0.2": {"ε_ls": 0.2},
    "E-learned-positions": {"positions": "learned"},
    "big": {
        "d_model": 1024,
        "d_ff": 4096,
        "h": 16,
        "P_drop": 0.3,
        "updates": "300,000",
    },
}


def parameters(name: str) -> Row:
    """The printed millions, ours, and the count as the authors' first code has it."""
    row = variations()[name]
    config = row.architecture
    count = parameter_count(config)
    biases = 3 * config.N * (config.h * (2 * config.d_k + config.d_v) + config.d_model)
    more_rows = (40_960 - config.src_vocab_size) * config.d_model
    fitting = (count + biases + more_rows) / 1e6
    return derived(
        f"Table 3, {name}",
        "parameters, millions", row.parameters, f"{count / 1e6:.1f}",
        f"for 37,000 shared tokens; {fitting:.1f} with the 40,960 rows and the biases "
        "of the authors' first code, which gives all eleven printed counts but big's",
    )  # fmt: skip


def table_3() -> Iterator[Row]:
    """Twenty rows: settings and parameters at the paper's size, the rest in small.

    Of the runs in small, those that all rows have: the short ones.
    """
    for name, row in variations().items():
        place = f"Table 3, {name}"
        yield from varied(name)
        if row.parameters:
            yield parameters(name)
        updates = scaled_down_recipe(row).training.steps
        here = [run for run in read_runs(TABLE_3) if run["row"] == name]
        runs = [run for run in here if run["updates"] == updates]
        proof = evidence_of_runs(TABLE_3, runs)
        size = runs[0]["parameters"]
        why = f"Multi30k, {size:,} parameters, {updates:,} updates, mean of {len(runs)}"
        for what, paper in {
            "perplexity": f"{row.perplexity:.2f}",
            "BLEU": f"{row.bleu:.1f}",
        }.items():
            middle = geometric_mean if what == "perplexity" else mean  # of the losses
            ours = f"{middle(run[what.lower()] for run in runs):.2f}"
            yield Row(place, what, paper, SMALL, ours, proof, why)
    found = variations()
    heads = max(
        row.bleu for name, row in found.items() if name.startswith(("A-", "base"))
    )
    less = heads - found["A-1-head"].bleu
    yield derived("§6.2", "BLEU that one head is below the best", 0.9, f"{less:.1f}")


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
    runs = read_runs(TABLE_4)
    (counted,) = (run for run in runs if run["study"] == "grammar")
    measured = "f1, constrained, beam"
    own = [run for run in runs if run["study"] == "longer"]
    ours = f"{mean(run[measured] for run in own):.1f}"
    grammar = f"{counted['test']['f1']:.1f}"
    for system, score in PARSERS.items():
        what = f"{system}: F1"
        if system == "Transformer (4 layers), WSJ only":
            why = "3,314 trees, 2 + 2 layers, tags as input, constrained to trees, "
            why += f"mean of {len(own)}; a PCFG: {grammar}"
            proof = evidence_of_runs(TABLE_4, own)
            yield Row("Table 4", what, score, SMALL, ours, proof, why)
        elif "Transformer" in system:
            yield Row("Table 4", what, score, why="needs 17M sentences")
        else:
            yield quoted("Table 4", what, score, "others' work")


def figures() -> Iterator[Row]:
    """Figures 3 to 5: pictures of heads, of a model that nobody has published."""
    for number, shows in {
        "3": "a long-distance dependency, layer 5",
        "4": "two heads that resolve a pronoun, layer 5",
        "5": "two heads that follow the structure",
    }.items():
        why = "the chapter on heads draws and measures those of our own model"
        yield Row(f"Figure {number}", "what heads do", shows, why=why)


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
