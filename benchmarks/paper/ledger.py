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
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

import torch

from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import length_limits
from annotated_transformer.model.config import preset
from annotated_transformer.model.costs import (
    hardware_flops,
    layer_operations,
    parameter_count,
)
from annotated_transformer.model.position import sinusoids
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.schedule import adam
from annotated_transformer.translation.parsing import MORE_TOKENS, PARSING
from annotated_transformer.translation.table3 import scaled_down_recipe, variations
from benchmarks.paper.table1 import counted
from benchmarks.record import command_line, load, read_runs, save

THIS = {"command": "python -m benchmarks.paper.ledger"}
TABLE_3, TABLE_4 = "paper/table3.jsonl", "paper/parsing.jsonl"
TIMED = "scale/gpu.json"
SIZES = ("N", "d_model", "d_ff", "h", "d_k", "d_v")


@dataclass(frozen=True)
class Row:
    """One number of the paper; `ours` and `evidence` are None for what is quoted or not
    attempted. A row of ours without `evidence` is computed by the package, and one
    without `why` has printed.tsv's.
    """

    place: str
    what: str
    ours: object = None
    evidence: dict[str, Any] | None = None
    why: str = ""
    paper: str = ""
    label: str = ""


def printed() -> dict[tuple[str, str], Row]:
    """The rows of printed.tsv by place and what they are, in the paper's order."""
    path = Path(__file__).with_name("printed.tsv")
    lines = csv.DictReader(path.read_text("utf-8").splitlines(), delimiter="\t")
    return {(line["place"], line["what"]): Row(**line) for line in lines}


def evidence(record: str, *runs: dict[str, Any]) -> dict[str, Any]:
    """Of a record, or its runs: all commands and seeds, and their time together, and
    the first one's commit, machine and versions; what it lacks is left out.
    """
    seconds = [run.get("seconds", run.get("processor_seconds", 0)) for run in runs]
    known = {
        "record": f"results/{record}",
        "command": "; ".join(dict.fromkeys(run["command"] for run in runs)),
        **{key: runs[0].get(key) for key in ("commit", "machine", "versions")},
        "seconds": sum(seconds),
        "seeds": sorted(run["seed"] for run in runs if "seed" in run),
    }
    return {key: value for key, value in known.items() if value}


def settings() -> Iterator[Row]:
    """What our base, big, recipes and searches have."""
    base, big = preset("base"), preset("big")
    for name in SIZES:
        yield Row("§3", f"base: {name}", getattr(base, name))
    for name in SIZES[1:4]:
        yield Row("Table 3", f"big: {name}", getattr(big, name))
    codes = sinusoids(1000, 512).double()
    for which, column in {"shortest": 0, "longest": 510}.items():
        wavelength = 1 / torch.asin(codes[1, column]).item()
        yield Row("§3.5", f"{which} wavelength, in 2π", f"{wavelength:.5g}")
    yield from training()
    limit = length_limits(torch.ones(1, 10, dtype=torch.long), base).item() - 10
    searches = ("§6.1", "", SearchOptions(), limit)
    searches = searches, ("§6.3", "parsing: ", PARSING, MORE_TOKENS)
    for place, name, options, more in searches:
        yield Row(place, f"{name}beam", options.beam_size)
        yield Row(place, f"{name}length penalty α", options.alpha)
        yield Row(place, f"{name}output up to input +", more)


def training() -> Iterator[Row]:
    """What the recipes say of the paper's trainings."""
    for name in ("wmt14-en-de-base", "wmt14-en-de-big", "wmt14-en-fr-big"):
        plan = recipe(name)
        for what, ours in {
            "tokens of the vocabulary": plan.vocab_size,
            "updates": plan.training.steps,
            "checkpoints averaged": plan.training.keep,
            "P_drop": plan.architecture.dropout,
        }.items():
            yield Row("§5, §6.1", f"{name}: {what}", f"{ours:,}")
    base = recipe("wmt14-en-de-base").training
    yield Row("§5.1", "tokens of each side in a batch", f"{base.batch_tokens:,}")
    optimizer = adam(torch.nn.Linear(1, 1)).param_groups[0]
    for name, value in zip("β₁ β₂".split(), optimizer["betas"], strict=True):
        yield Row("§5.3", f"Adam: {name}", value)
    yield Row("§5.3", "Adam: ε", optimizer["eps"])
    yield Row("§5.3", "warm-up steps", f"{base.warmup:,}")
    yield Row("§5.4", "ε_ls", base.label_smoothing)
    for name, seconds in {"wmt14-en-de-base": 0.4, "wmt14-en-de-big": 1.0}.items():
        minutes = f"{recipe(name).training.save_every * seconds / 60:g}"
        yield Row("§6.1", f"{name}: minutes between checkpoints", minutes)


def speed() -> Iterator[Row]:
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
        yield Row("§5.2", f"{what}, 8 P100", f"{eager:.3f}", proof, why)
        hours = compiled * updates / 3600
        why = f"not trained; its updates would take {hours:.1f} hours of one H200"
        yield Row("§5.2", f"time of the {size} training", None, why=why)


def table_1() -> Iterator[Row]:
    """Operations, chains and paths, each counted on layers that run."""
    for what, ours in counted().items():
        yield Row("Table 1", what, ours)
    separable = layer_operations(100, 64, 5, 1)["separable convolutional"]
    assert separable == 5 * 100 * 64 + 100 * 64**2  # k · n · d + n · d²
    yield Row("§4", "separable convolution", f"{separable:,} for n 100, d 64, k 5")


def table_2() -> Iterator[Row]:
    """The arithmetic of scores and costs."""
    paper = {what: row.paper for (place, what), row in printed().items()}
    scores = {what: float(n) for what, n in paper.items() if ": BLEU en-de" in what}
    best = max(scores[what] for what in scores if "Transformer" not in what)
    more = f"{scores['Transformer big: BLEU en-de'] - best:.2f}"
    yield Row("Abstract", "BLEU en-de above all before it", more)
    for system, seconds in {"base": 12 * 3600.0, "big": 3.5 * 86400}.items():
        cost = f"{hardware_flops(seconds, 8, 9.5e12):.2e}"
        yield Row("Table 2", f"Transformer {system}: FLOPs", cost)
    big, single = "Transformer big: FLOPs", "MoE: FLOPs en-fr"
    what = "cost of big beside the best single model before, en-fr"
    yield Row("§6.1", what, f"{float(paper[big]) / float(paper[single]):.2f}")


def varied(name: str) -> dict[str, object]:
    """What a row of Table 3 changes in our architecture."""
    row, base = variations()[name], preset("base")
    found = {
        name.replace("dropout", "P_drop"): getattr(row.architecture, name)
        for name in (*SIZES, "dropout", "positions")
        if getattr(row.architecture, name) != getattr(base, name)
    }
    found |= {"ε_ls": row.smoothing} if row.smoothing != 0.1 else {}
    return found | ({"updates": f"{row.steps:,}"} if row.steps != 100_000 else {})


def parameters(name: str) -> Row:
    """Ours in millions, and the count as the authors' first code has it."""
    config = variations()[name].architecture
    count = parameter_count(config)
    biases = 3 * config.N * (config.h * (2 * config.d_k + config.d_v) + config.d_model)
    more_rows = (40_960 - config.src_vocab_size) * config.d_model
    fitting = (count + biases + more_rows) / 1e6
    why = f"for 37,000 shared tokens; {fitting:.1f} with the 40,960 rows and the "
    why += "biases of the authors' first code, which gives all eleven printed counts "
    why, place = f"{why}but big's", f"Table 3, {name}"
    return Row(place, "parameters, millions", f"{count / 1e6:.1f}", why=why)


def table_3() -> Iterator[Row]:
    """Twenty rows: settings and parameters at the paper's size, the rest in small.

    Of the runs in small, those that all rows have: the short ones.
    """
    found = variations()
    for name, row in found.items():
        place = f"Table 3, {name}"
        for what, ours in varied(name).items():
            yield Row(place, what, ours)
        if row.parameters:
            yield parameters(name)
        updates = scaled_down_recipe(row).training.steps
        here = [run for run in read_runs(TABLE_3) if run["row"] == name]
        runs = [run for run in here if run["updates"] == updates]
        proof = evidence(TABLE_3, *runs)
        size = runs[0]["parameters"]
        why = f"Multi30k, {size:,} parameters, {updates:,} updates, mean of {len(runs)}"
        # the mean of the losses, as a perplexity
        middles = {"perplexity": geometric_mean, "BLEU": mean}
        for what, middle in middles.items():
            value = f"{middle(run[what.lower()] for run in runs):.2f}"
            yield Row(place, what, value, proof, why)
    heads = [row.bleu for name, row in found.items() if name.startswith(("A-", "base"))]
    less = f"{max(heads) - found['A-1-head'].bleu:.1f}"
    yield Row("§6.2", "BLEU that one head is below the best", less)


def table_4() -> Iterator[Row]:
    """Parsing."""
    runs = read_runs(TABLE_4)
    (counted,) = (run for run in runs if run["study"] == "grammar")
    own = [run for run in runs if run["study"] == "longer"]
    ours = f"{mean(run['f1, constrained, beam'] for run in own):.1f}"
    why = "3,314 trees, 2 + 2 layers, tags as input, constrained to trees, "
    why += f"mean of {len(own)}; a PCFG: {counted['test']['f1']:.1f}"
    what, proof = "Transformer (4 layers), WSJ only", evidence(TABLE_4, *own)
    yield Row("Table 4", f"{what}: F1", ours, proof, why)


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
