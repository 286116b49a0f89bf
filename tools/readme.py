"""Fill the tables of README.md and of two pages from the records in results/.

    python tools/readme.py            write them, and book/map.svg
    python tools/readme.py --check    write nothing; exit status 1 if one is out of step

A table stands between two comments that name the function below that makes it. The map
is that of the book's cover.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from math import isfinite, log
from pathlib import Path
from runpy import run_path
from statistics import mean
from typing import Any

from annotated_transformer.translation.table3 import Spread

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "nbs/results.md", "nbs/promises.md")
# The map's own style, as book/_static/book.css has it on the cover.
STYLE = """
text { font-family: sans-serif; fill: #222 } .module { font-family: monospace }
.module { fill: #666 } .times { font-weight: 600 }
.flow, .skip { fill: none; stroke: #7F7F7F; stroke-width: 1.2 }
"""
PAPER = '<rect x="120" width="820" height="580" fill="#fff"/>'
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.S)
SEEDS = {
    seed: f"runs/multi30k-en-de-tiny-{tail}/record.json"
    for seed, tail in {1: "ends", 2: "seed2", 3: "seed3"}.items()
}
# Transformer-Tiny's published scores, lower-cased and Moses-tokenised (Wu et al. 2021).
PUBLISHED = {
    "test_2016_flickr": 41.02,
    "test_2017_flickr": 33.36,
    "test_2017_mscoco": 29.88,
}
ALL_UPDATES = "as the published script averages and searches"
PATIENCE = f"{ALL_UPDATES}, ended by its patience"
PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}


def record(place: str) -> dict[str, Any]:
    """What results/`place` holds."""
    return json.loads((ROOT / "results" / place).read_text(encoding="utf-8"))


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown; all columns but the first are set to the right."""
    head = list(head)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def three(values: Iterable[float]) -> str:
    """Scores of the three test sets of Multi30k."""
    return " / ".join(f"{value:.1f}" for value in values)


# -- all tasks -------------------------------------------------------------------------


# Published scores of tasks, each cited in the chapter that its row leads to.
BEST = {
    "reviews": (92.4, "a pretrained LSTM"),
    "digits": (99.77, "35 networks that vote"),
    "power": (0.370, "PatchTST"),
    "captions": (41.02, "the same model"),
    "plays": (1.47, "nanoGPT on a GPU"),
    "trees": (93.3, "a recurrent grammar, 40,000 trees"),
}
Rival = tuple[list[float], str]


def tested(study: str, score: str, /, **wanted: Any) -> list[dict[str, Any]]:
    """A study's recorded runs with these settings that have this score."""
    lines = (ROOT / "results" / f"{study}.jsonl").read_text("utf-8")
    runs = (json.loads(line) for line in lines.splitlines())
    return [run for run in runs if wanted.items() <= run.items() and score in run]


def scores(study: str, score: str, /, **wanted: Any) -> list[float]:
    """A score of each of these runs."""
    return [run[score] for run in tested(study, score, **wanted)]


def scoreboard() -> str:
    """Every task: the trivial answer, the strongest simple rival, our Transformer, how
    far it is ahead of the rival, and the best cited.
    """
    seeds = multi30k_runs().values()
    captions = [bleu_of(systems[ALL_UPDATES])[0] for systems in seeds]
    phrases = record("paper/phrases.json")
    photographs, everyday = (
        [phrases[corpus][way][split] for way in ("copied", "tests")]
        for corpus, split in (("multi30k", "test_2016_flickr"), ("tatoeba", "test"))
    )
    shipped = record("runs/tatoeba-en-de/record.json")["as_shipped"]["bleu"]
    (reviews,) = tested("after/classifier", "positive", side="data")
    half = reviews["positive"]["test"]
    (pixels,) = tested("after/vision", "confusion", side="linear", images=55_000)
    classes = [sum(row) for row in pixels["confusion"]]

    def right(study: str, side: str, **wanted: Any) -> list[float]:
        found = scores(f"after/{study}", "accuracy", side=side, **wanted)
        return [100 * each for each in found]

    def error(side: str) -> list[float]:
        return scores("after/series", "mse", side=side, context=512, horizon=96)

    plays, *_ = tested("after/language-model", "nats", side="ours")
    letters = plays["architecture"]["vocab_size"]
    (rules,) = tested("paper/parsing", "order")
    return table(
        ["task", "trivial", "simple rival", "ours", "ahead by", "best cited"],
        [
            row("reviews", "after/classifier", "% right", 100 * max(half, 1 - half),
                (right("classifier", "linear"), "word counts"),
                right("classifier", "learned")),
            row("digits", "after/patches", "% right", 100 * max(classes) / sum(classes),
                (right("vision", "convolution", images=55_000), "two convolutions"),
                right("vision", "transformer", images=55_000)),
            row("power", "after/patches", "MSE", mean(error("naive")),
                (error("linear"), "linear"), error("Transformer, batch norm")),
            row("captions", "translation/multi30k", "BLEU", photographs[0],
                ([photographs[1]], "counted phrases"), captions),
            row("everyday sentences", "training/recipes", "BLEU", everyday[0],
                ([everyday[1]], "counted phrases"), [shipped]),
            row("plays", "after/language_model", "nats", log(letters),
                (scores("after/language-model", "nats", side="n-grams"), "n-grams"),
                scores("after/language-model", "nats", side="ours")),
            row("trees", "translation/parsing", "F1", rules["trivial"],
                ([rules["test"]["f1"]], "a grammar"),
                scores("paper/parsing", "f1, constrained, beam", study="longer")),
        ],
    )  # fmt: skip


def row(
    task: str,
    page: str,
    measure: str,
    trivial: float,
    rival: Rival,
    ours: list[float],
) -> list[str]:
    """A task's row of the scoreboard. The 95 % interval is that of the seeds of both
    sides; a single run has none.
    """

    def shown(value: float) -> str:
        return f"{value:.1f}" if value > 10 else f"{value:.2f}"

    simple, name = rival
    ahead = mean(ours) - mean(simple)
    if measure in ("MSE", "nats"):  # less is better
        ahead = -ahead
    spread = Spread.of({"ours": ours, "rival": simple})
    half = spread.half_width(*(len(side) for side in (ours, simple) if len(side) > 1))
    digits = 1 if mean(ours) > 10 else 3
    interval = f" ± {half:.{digits}f}" if isfinite(half) else ""
    best = f"{shown(BEST[task][0])}, {BEST[task][1]}" if task in BEST else ""
    return [
        f"[{task}]({page}.ipynb), {measure}",
        shown(trivial),
        f"{shown(mean(simple))}, {name}",
        shown(mean(ours)),
        f"{ahead:+.{digits}f}{interval}".replace("-", "−"),
        best,
    ]


# -- the paper -------------------------------------------------------------------------


def multi30k_runs() -> dict[int, dict[str, dict]]:
    """The systems of each seed."""
    found = {}
    for seed, place in SEEDS.items():
        run = record(place)
        found[seed] = {
            ALL_UPDATES: run["as_published"],
            PATIENCE: run["as_published_with_patience"],
            "chosen on the validation split": run["chosen"],
            "where the recipe's patience ends it": run,
        }
    return found


def bleu_of(system: dict) -> list[float]:
    """Its BLEU on the three test sets, by the convention of the published scores."""
    scores = (system["tests"][split]["scores"] for split in PUBLISHED)
    return [score["BLEU Moses, lower-cased"]["value"] for score in scores]


def everyday() -> str:
    """The model for everyday sentences on its own test split and on others."""
    return shipped_model("tatoeba-en-de")


def reverse() -> str:
    """The model of the reverse direction on the same splits."""
    return shipped_model("tatoeba-de-en")


def shipped_model(run: str) -> str:
    """The scores of a model as it is stored."""
    found = record(f"runs/{run}/record.json")
    short = found["tests"]["newstest2014"]["brevity_penalty"]
    titles = {"newstest2014": f"newstest2014 (brevity penalty {short:.2f})"}
    sets = {
        f"{titles.get(name, name)}, α = {found['chosen']['alpha']}": each
        for name, each in found["tests"].items()
    }
    sets["Tatoeba, as the command translates"] = found["as_shipped"]
    sets["the same, before the weights were rounded"] = found["float32"]
    rows = [
        [name, f"{each['sentences']:,}", f"{each['bleu']:.2f}", f"{each['exact']:.1%}"]
        for name, each in sets.items()
    ]
    return table(["test set", "sentences", "BLEU (13a)", "exactly right"], rows)


def bands() -> str:
    """The everyday model by how near a test sentence comes to the training text."""
    found = record("runs/tatoeba-en-de/bands.json")
    rows = [
        [
            f"{band['from']:.2f} to {min(1, band['below']):.2f}",
            band["sentences"],
            f"{band['as shipped']:.1f}",
            f"{band['chosen']:.1f}",
        ]
        for band in found["bands"]
    ]
    whole = (found["whole"][name] for name in ("as shipped", "chosen"))
    scores = [f"{each['bleu']:.2f} ± {each['interval']:.1f}" for each in whole]
    every = found["all references"]
    once = f"{every['sentences']:,}, each once, with all its translations"
    sentences = f"{sum(band['sentences'] for band in found['bands']):,}"
    head = ["words shared with the nearest training sentence", "sentences"]
    chosen = record("runs/tatoeba-en-de/record.json")["chosen"]["alpha"]
    head += ["α = 0.6, the package's", f"α = {chosen}, chosen"]
    last = ["all", sentences, *scores], ["all", once, f"{every['bleu']:.2f}", ""]
    return table(head, [*rows, *last])


def typed() -> str:
    """The everyday model on what people type, before its pairs were varied and now."""
    place = "runs/tatoeba-en-de/robustness"
    both = record(f"{place}-before.json"), record(f"{place}.json")
    right = (one["sixty"]["right"] for one in both)
    rows: list[list[object]] = [["of sixty sentences, right", *right]]
    for kind in both[1]["noise"]:
        losses = (f"{one['noise'][kind]['difference']:+.1f}" for one in both)
        rows.append([f"{kind}, BLEU against none", *losses])
    for what in ("names", "numbers"):
        for kind in both[1]["copying"][what]:
            shares = (one["copying"][what][kind]["copied"] for one in both)
            rows.append([f"{kind}, copied", *(f"{share:.0%}" for share in shares)])
    return table(["", "before", "now"], rows)


def ordinary() -> str:
    """What arrives of two hundred ordinary sentences' numbers and addresses."""
    found = record("runs/tatoeba-en-de/two_hundred.json")
    both = found["best_hypothesis"], found["chosen"]
    rows: list[list[object]] = [
        [kind, *(each["kinds"][kind] for each in both)] for kind in both[0]["kinds"]
    ]
    rows.append(["all", *(f"{each['arrive']:.1%}" for each in both)])
    rows.append(["sentences that lose one", *(e["sentences_that_lose"] for e in both)])
    rows.append(["of them warned of", *(each["of_them_warned"] for each in both)])
    rows.append(["false warnings", *(each["false_warnings"] for each in both)])
    return table(["", "best of the beam", "the one that has most"], rows)


# -- speed -----------------------------------------------------------------------------


def training() -> str:
    """Target tokens a second of one update, ours and the fastest peer's, by size."""
    found = record("speed/training-step.json")
    rows = []
    for sizes, units in (("sizes", "with AMX"), ("float32", "without AMX")):
        for size, row in found[sizes].items():
            for precision, speeds in row["tokens_per_second"].items():
                peers = sorted(speeds.keys() - {"ours"})
                name = max(peers, key=lambda each: speeds[each])
                ratio = row["against_best_peer"][precision]
                what = f"{size}, {PRECISIONS[precision]}, {units}"
                ours, best = f"{speeds['ours']:,}", f"{speeds[name]:,} ({name})"
                rows.append([what, ours, best, f"{ratio:.2f} ×"])
    return table(["size, precision, processor", "here", "fastest peer", "ratio"], rows)


def translating() -> str:
    """Milliseconds of a step of the search, here and in Hugging Face's generate."""
    rows = []
    for what, row in record("speed/decoding.json")["milliseconds_a_step"].items():
        ours, theirs = row["ours"], row["Hugging Face"]
        rows.append([what, f"{ours:.1f}", f"{theirs:.1f}", f"{theirs / ours:.2f} ×"])
    head = "precision, search, sentences|here|Hugging Face|ratio"
    return table(head.split("|"), rows)


def race() -> str:
    """BLEU of Multi30k's test_2016_flickr over the minutes of training."""
    found = record("speed/time-to-quality.json")
    rows = []
    for name, side in (("here", "ours"), ("Hugging Face's Trainer", "hugging_face")):
        points = found[side]
        for goal in (20, 30, 35):
            at = next((point for point in points if point["bleu"] >= goal), None)
            last = f"not after {points[-1]['seconds'] / 60:.1f}"
            rows.append([name, goal, f"{at['seconds'] / 60:.1f}" if at else last])
    return table(["trained by", "BLEU", "minutes"], rows)


# -- scale -----------------------------------------------------------------------------


def memory() -> str:
    """What preparing five million pairs takes, stage by stage."""
    found = record("scale/memory-5m-pairs.json")
    rows = [
        [name, f"{found[stage]['cpu_seconds']:,.0f}", f"{found[stage]['peak_gib']:.2f}"]
        for stage, name in (
            ("vocabulary", "learn a vocabulary"),
            ("tokens", "write all pairs as tokens"),
            ("epoch", "read an epoch in batches"),
        )
    ]
    return table(["stage", "processor seconds", "peak memory, GiB"], rows)


def recipes() -> str:
    """What the dry run of each recipe says of its model."""
    rows = [
        [
            name,
            f"{run['parameters'] / 1e6:.1f}",
            f"{run['peak memory, bytes'] / 2**30:.1f}",
            f"{run['a checkpoint, bytes'] / 2**20:,.0f}",
        ]
        for name, run in record("scale/recipe-dry-runs.json")["runs"].items()
    ]
    head = "recipe|million parameters|peak memory, GiB|checkpoint, MiB"
    return table(head.split("|"), rows)


# -- the page of promises --------------------------------------------------------------


def attacks() -> str:
    """How attacks on folders, files and runs ended, by family."""
    rows = []
    for family, kinds in record("promises/attacks.json")["counts"].items():
        found = sum(map(Counter, kinds.values()), Counter())
        broken = found.pop("failed", 0)
        ends = ", ".join(f"{name} {count:,}" for name, count in sorted(found.items()))
        rows.append([family, f"{found.total() + broken:,}", ends, broken])
    return table(["family", "attacks", "how they ended", "broken promises"], rows)


# -- the README's six rows -------------------------------------------------------------


def link(text: str, place: str, *records: str) -> str:
    """A result that links to its record, or to the folder of several.

    With the commit, where today's program no longer takes a record's command.
    """
    past = [commit for each in records or [place] if (commit := past_commit(each))]
    shown = f", at {', '.join(f'`{commit}`' for commit in past)}" if past else ""
    return f"[{text}](results/{place}){shown}"


def past_commit(place: str) -> str:
    """The commit that a record's command ends in, if it runs only there."""
    return record(place)["command"].partition(", at commit ")[2]


def step_ratios() -> dict[str, list[float]]:
    """How many times as fast a training step is as the fastest peer's, by where."""
    sizes = record("speed/training-step.json")["sizes"].values()
    found = {
        f"{name}, one core": [row["against_best_peer"][short] for row in sizes]
        for short, name in (("bf16", "bfloat16"), ("fp32", "float32"))
    }
    on_gpu = []
    for size in ("base", "big"):
        sides = record("scale/gpu.json")[size]["contenders"].items()
        eager = {name: row["seconds"] for name, row in sides if "eager" in name}
        ours = eager.pop("ours, eager")
        on_gpu.append(min(eager.values()) / ours)
    return found | {"bfloat16, one H200, none compiled": on_gpu}


def at_once(ratios: list[float]) -> str:
    """The least and the greatest."""
    digits = 1 if min(ratios) > 1.05 else 2
    return f"{min(ratios):.{digits}f} to {max(ratios):.{digits}f} ×"


def highlights() -> str:
    """The results that a reader takes in at a glance."""
    shipped = record("runs/tatoeba-en-de/record.json")
    own = shipped["tests"]["Tatoeba"]
    as_shipped = record("runs/tatoeba-en-de/bands.json")["whole"]["as shipped"]
    seeds = multi30k_runs().values()
    means = {}
    for end in (ALL_UPDATES, PATIENCE):
        runs = map(bleu_of, (systems[end] for systems in seeds))
        means[end] = three(mean(values) for values in zip(*runs, strict=True))
    systems = record("paper/newstest2017-systems.json")["systems"].values()
    same = sum(
        round(row["scores"]["BLEU 13a"]["value"], 2) == row["published"]
        for row in systems
    )
    wheel = ROOT / "annotated_transformer" / "models" / "tatoeba-en-de"
    size = sum(file.stat().st_size for file in wheel.iterdir())
    steps = record("speed/decoding.json")["milliseconds_a_step"].items()
    faster = [
        row["Hugging Face"] / row["ours"] for what, row in steps if "float32" in what
    ]
    corpus = record("scale/memory-5m-pairs.json")
    rows = [
        [
            f"BLEU of the model in the wheel ({size / 1e6:.1f} MB)",
            link(
                f"{as_shipped['bleu']:.1f} ± {as_shipped['interval']:.1f}",
                "runs/tatoeba-en-de/bands.json",
            ),
            f"{own['sentences']:,} everyday sentences, as the command translates",
        ],
        [
            "BLEU on Multi30k's three test sets, mean of three seeds, 8,000 updates",
            link(means[ALL_UPDATES], "runs", *SEEDS.values()),
            f"{three(PUBLISHED.values())} published",
        ],
        [
            "The same, each seed ended by the published patience",
            link(means[PATIENCE], "runs", *SEEDS.values()),
            f"{three(PUBLISHED.values())} published",
        ],
        [
            "WMT 2017 systems whose published BLEU our scorer gives again",
            link(f"{same} of {len(systems)}", "paper/newstest2017-systems.json"),
            "to the last digit",
        ],
        *(
            [
                f"Speed of a training step, {where}",
                link(
                    at_once(ratios),
                    "scale/gpu.json" if "H200" in where else "speed/training-step.json",
                ),
                "the fastest of three libraries",
            ]
            for where, ratios in step_ratios().items()
        ),
        [
            "Speed of a search at base size, float32, one core",
            link(at_once(faster), "speed/decoding.json"),
            "Hugging Face's generate",
        ],
        [
            "Memory to prepare five million sentence pairs",
            link(f"{corpus['peak_gib']:.1f} GiB", "scale/memory-5m-pairs.json"),
            "vocabulary, tokens, batches",
        ],
    ]
    return table(["what", "here", "beside it"], rows)


# -- the pages -------------------------------------------------------------------------

TABLES: dict[str, Callable[[], str]] = {
    each.__name__: each
    for each in (
        highlights, scoreboard, everyday, reverse, bands, typed, ordinary, training,
        translating, race, memory, recipes, attacks,
    )
}  # fmt: skip


def filled(text: str) -> str:
    """A page with every table written anew."""
    return BLOCK.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], text)


def picture() -> str:
    """The map of the cover as a picture of its own: on white, and without links."""
    svg = run_path(str(ROOT / "book" / "_ext" / "cover_map.py"))["cover_map"]()
    svg = re.sub(r"<a [^>]*>", "<g>", svg).replace("</a>", "</g>")
    svg = svg.replace('role="group"', 'role="img"')
    return svg.replace("<defs>", f"<style>{STYLE}</style>\n{PAPER}\n<defs>", 1) + "\n"


def main(arguments: list[str]) -> int:
    """Write the pages and the map, or check them."""
    new = {name: filled((ROOT / name).read_text(encoding="utf-8")) for name in PAGES}
    new["book/map.svg"] = picture()
    for name, text in new.items():
        path = ROOT / name
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{name} is not in step: run make readme", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
