"""Every number of the paper, and what this project has beside it.

    python -m benchmarks.paper.ledger

The numbers stand in printed.tsv, each with one of six labels. A *setting* is one that
our presets and recipes have too, *derived* a quantity that is computed here, at the
paper's own size or from other numbers that it prints, *rerun at size* what was measured
at that size too, *rerun small* an experiment in a size that fits here, *quoted*
somebody else's result or a plain fact, and *not attempted* what is the paper's own and
we have nothing beside. What is computed comes from the package as it is; what ran comes
from the records in results/, each with its command, seeds, machine, time and versions.
Takes seconds. Writes results/ledger.json, which nbs/ledger.ipynb shows.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from math import log2
from pathlib import Path
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

THIS = {"command": "python -m benchmarks.paper.ledger"}
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
    label: str
    ours: str | None = None
    evidence: dict[str, Any] | None = None
    why: str = ""


def printed() -> dict[tuple[str, str], Row]:
    """The rows of printed.tsv by place and what they are, in the paper's order."""
    path = Path(__file__).with_name("printed.tsv")
    lines = csv.DictReader(path.read_text("utf-8").splitlines(), delimiter="\t")
    return {(line["place"], line["what"]): Row(**line) for line in lines}


@dataclass(frozen=True)
class Ours:
    """What stands beside a number; nothing that is known of it says `evidence`, where
    the package computes it, and `why` where printed.tsv does.
    """

    place: str
    what: str
    ours: object
    evidence: dict[str, Any] | None = None
    why: str = ""


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


# -- §3 to §6: settings ----------------------------------------------------------------


def settings() -> Iterator[Ours]:
    """What our base, big, recipes and searches have."""
    base, big = preset("base"), preset("big")
    for name in ("N", "d_model", "d_ff", "h", "d_k", "d_v"):
        yield Ours("§3", f"base: {name}", getattr(base, name))
    for name in ("d_model", "d_ff", "h"):
        yield Ours("Table 3", f"big: {name}", getattr(big, name))
    codes = sinusoids(1000, 512)
    first = 2 * torch.pi / torch.asin(codes[1, 0]).item()
    yield Ours("§3.5", "shortest wavelength, in 2π", f"{first / 6.283185:.4g}")
    last = 1 / torch.asin(codes[1, 510].double()).item()
    yield Ours("§3.5", "longest wavelength, in 2π", f"{last:.1f}")
    yield from training()
    options, place = SearchOptions(), "§6.1"
    yield Ours(place, "beam", options.beam_size)
    yield Ours(place, "length penalty α", options.alpha)
    limit = length_limits(torch.ones(1, 10, dtype=torch.long), base).item() - 10
    yield Ours(place, "output up to input +", limit)
    yield Ours("§6.3", "parsing: beam", PARSING.beam_size)
    yield Ours("§6.3", "parsing: length penalty α", PARSING.alpha)
    yield Ours("§6.3", "parsing: output up to input +", MORE_TOKENS)


def training() -> Iterator[Ours]:
    """What the recipes say of the paper's trainings."""
    for name in ("wmt14-en-de-base", "wmt14-en-de-big", "wmt14-en-fr-big"):
        plan = recipe(name)
        for what, ours in {
            "tokens of the vocabulary": plan.vocab_size,
            "updates": plan.training.steps,
            "checkpoints averaged": plan.training.keep,
            "P_drop": plan.architecture.dropout,
        }.items():
            yield Ours("§5, §6.1", f"{name}: {what}", f"{ours:,}")
    base = recipe("wmt14-en-de-base").training
    yield Ours("§5.1", "tokens of each side in a batch", f"{base.batch_tokens:,}")
    optimizer = adam(torch.nn.Linear(1, 1)).param_groups[0]
    for name, value in zip("β₁ β₂".split(), optimizer["betas"], strict=True):
        yield Ours("§5.3", f"Adam: {name}", value)
    yield Ours("§5.3", "Adam: ε", optimizer["eps"])
    yield Ours("§5.3", "warm-up steps", f"{base.warmup:,}")
    yield Ours("§5.4", "ε_ls", base.label_smoothing)
    for name, seconds in {"wmt14-en-de-base": 0.4, "wmt14-en-de-big": 1.0}.items():
        minutes = f"{recipe(name).training.save_every * seconds / 60:g}"
        yield Ours("§6.1", f"{name}: minutes between checkpoints", minutes)


def speed() -> Iterator[Ours]:
    """Updates timed on one GPU, and trainings that they would make."""
    timed = load(TIMED)
    proof = evidence(TIMED, timed)
    for size, updates in {"base": 100_000, "big": 300_000}.items():
        ran = timed[size]
        eager, compiled = (
            ran["contenders"][f"ours, {way}"]["seconds"]
            for way in ("eager", "compiled")
        )
        why = f"one H200, {ran['rows']} pairs of {ran['length']} tokens, bfloat16"
        why, what = f"{why}; {compiled:.3f} compiled", f"seconds of a {size} update"
        yield Ours("§5.2", f"{what}, 8 P100", f"{eager:.3f}", proof, why)
        hours = compiled * updates / 3600
        why = f"not trained; its updates would take {hours:.1f} hours of one H200"
        yield Ours("§5.2", f"time of the {size} training", None, why=why)


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


def table_1() -> Iterator[Ours]:
    """Operations, chains and paths, each counted on layers that run."""
    everything = torch.ones(81, 81, dtype=torch.bool)
    dilated = (ring(81, 3, 3**layer) for layer in range(81))
    paths = {
        "self-attention": layers_to_connect(repeat(everything)),
        "recurrent": None,
        "convolutional": layers_to_connect(dilated),
        "restricted self-attention": layers_to_connect(repeat(ring(81, 9))),
    }
    for layer, reached in paths.items():
        yield Ours("Table 1", f"{layer}: complexity", exponents(layer))
        waits = ", ".join(f"{chain(layer, n)} for n = {n}" for n in (16, 64))
        yield Ours("Table 1", f"{layer}: sequential operations", waits)
        path = "80 steps"
        if reached:
            path = f"{reached} layer{'s' * (reached > 1)}"
        yield Ours("Table 1", f"{layer}: maximum path length", f"{path} for n = 81")
    both = layer_operations(100, 64, 5, 1)["separable convolutional"]
    same = both == 5 * 6400 + 100 * 64**2
    ours = f"{both:,} for n 100, d 64, k 5" if same else "differs"
    yield Ours("§4", "separable convolution", ours)


# -- Table 2 ---------------------------------------------------------------------------


def table_2() -> Iterator[Ours]:
    """The arithmetic of scores and costs."""
    paper = {
        row.what: row.paper for row in printed().values() if row.place == "Table 2"
    }
    scores = {what: float(paper[what]) for what in paper if "BLEU en-de" in what}
    best = max(scores[what] for what in scores if "Transformer" not in what)
    more = f"{scores['Transformer big: BLEU en-de'] - best:.2f}"
    yield Ours("Abstract", "BLEU en-de above all before it", more)
    for system, seconds in {"base": 12 * 3600.0, "big": 3.5 * 86400}.items():
        cost = f"{hardware_flops(seconds, 8, 9.5e12):.2e}"
        yield Ours("Table 2", f"Transformer {system}: FLOPs", cost)
    big, single = "Transformer big: FLOPs", "MoE: FLOPs en-fr"
    share = f"{float(paper[big]) / float(paper[single]):.2f}"
    what = "cost of big beside the best single model before, en-fr"
    yield Ours("§6.1", what, share)


# -- Table 3 ---------------------------------------------------------------------------

FIELDS = {"dropout": "P_drop", "positions": "positions"}


def varied(name: str) -> dict[str, object]:
    """What a row of Table 3 changes in our architecture."""
    row, base = variations()[name], preset("base")
    found = {
        FIELDS.get(field, field): getattr(row.architecture, field)
        for field in ("N", "d_model", "d_ff", "h", "d_k", "d_v", *FIELDS)
        if getattr(row.architecture, field) != getattr(base, field)
    }
    found |= {"ε_ls": row.smoothing} if row.smoothing != 0.1 else {}
    return found | ({"updates": f"{row.steps:,}"} if row.steps != 100_000 else {})


def parameters(name: str) -> Ours:
    """Ours in millions, and the count as the authors' first code has it."""
    config = variations()[name].architecture
    count = parameter_count(config)
    biases = 3 * config.N * (config.h * (2 * config.d_k + config.d_v) + config.d_model)
    more_rows = (40_960 - config.src_vocab_size) * config.d_model
    fitting = (count + biases + more_rows) / 1e6
    why = (
        f"for 37,000 shared tokens; {fitting:.1f} with the 40,960 rows and the biases "
    )
    why += "of the authors' first code, which gives all eleven printed counts but big's"
    ours = f"{count / 1e6:.1f}"
    return Ours(f"Table 3, {name}", "parameters, millions", ours, why=why)


def table_3() -> Iterator[Ours]:
    """Twenty rows: settings and parameters at the paper's size, the rest in small.

    Of the runs in small, those that all rows have: the short ones.
    """
    found = variations()
    for name, row in found.items():
        place = f"Table 3, {name}"
        for what, ours in varied(name).items():
            yield Ours(place, what, ours)
        if row.parameters:
            yield parameters(name)
        updates = scaled_down_recipe(row).training.steps
        here = [run for run in read_runs(TABLE_3) if run["row"] == name]
        runs = [run for run in here if run["updates"] == updates]
        proof = evidence_of_runs(TABLE_3, runs)
        size = runs[0]["parameters"]
        why = f"Multi30k, {size:,} parameters, {updates:,} updates, mean of {len(runs)}"
        middles = {
            "perplexity": geometric_mean,
            "BLEU": mean,
        }  # the first of the losses
        for what, middle in middles.items():
            value = f"{middle(run[what.lower()] for run in runs):.2f}"
            yield Ours(place, what, value, proof, why)
    heads = [row.bleu for name, row in found.items() if name.startswith(("A-", "base"))]
    less = f"{max(heads) - found['A-1-head'].bleu:.1f}"
    yield Ours("§6.2", "BLEU that one head is below the best", less)


def table_4() -> Iterator[Ours]:
    """Parsing."""
    runs = read_runs(TABLE_4)
    (counted,) = (run for run in runs if run["study"] == "grammar")
    own = [run for run in runs if run["study"] == "longer"]
    ours = f"{mean(run['f1, constrained, beam'] for run in own):.1f}"
    why = "3,314 trees, 2 + 2 layers, tags as input, constrained to trees, "
    why += f"mean of {len(own)}; a PCFG: {counted['test']['f1']:.1f}"
    what, proof = "Transformer (4 layers), WSJ only", evidence_of_runs(TABLE_4, own)
    yield Ours("Table 4", f"{what}: F1", ours, proof, why)


def rows() -> list[Row]:
    """The whole ledger, in the paper's order.

    Raises: KeyError where printed.tsv lacks a number, or has one that is left alone.
    """
    found = printed()
    for part in (settings, speed, table_1, table_2, table_3, table_4):
        for each in part():
            row = found[each.place, each.what]
            if each.ours is not None:
                proof = each.evidence or THIS
                row = replace(row, ours=str(each.ours), evidence=proof)
            found[each.place, each.what] = replace(row, why=each.why or row.why)
    alone = ("quoted", "not attempted")
    if left := [k for k, r in found.items() if (r.ours is None) != (r.label in alone)]:
        raise KeyError(f"printed.tsv has {left[0]}, which its label doesn't fit")
    return list(found.values())


def main(arguments: list[str] | None = None) -> None:
    """Write the ledger."""
    command_line(__doc__).parse_args(arguments)
    save("ledger.json", {"rows": [asdict(row) for row in rows()]})


if __name__ == "__main__":
    main()
