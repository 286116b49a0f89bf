"""Read the comparisons that chapters draw conclusions from, and judge each.

    python -m benchmarks.comparisons [--admit]

Nothing is run again: what each side tried, its passes, seeds and scores come from the
records in results/, and from the code where a record leaves its grid out. Writes
results/fairness.json: each comparison with its table and with the reasons why it
isn't fair, none for a fair one. A reason that wasn't there before is an error, unless
--admit puts it on the list.
"""

import sys
from collections.abc import Callable, Sequence
from math import log
from operator import itemgetter
from typing import Any

from annotated_transformer.translation.table3 import scaled_down_recipe, variations
from benchmarks.after.distillation import STUDY
from benchmarks.after.masked_language_model import PROBE_STRENGTHS
from benchmarks.after.series import BATCH_NORM, LAYER_NORM, TRAINING, TRIAL_SEED
from benchmarks.fair import HEADER, Comparison, Side, Value, table, unfair
from benchmarks.paper.phrases import TASKS
from benchmarks.record import command_line, load, read_runs, save

PLACE = "fairness.json"
Record = dict[str, Any]
CAPTIONS = "test_2016_flickr"
TRAINING_HOURS, CHANNELS = 8_640, 7  # of ETTh1
PATCHES = {8: "overlapping", 16: "side by side"}  # by their stride
FEW_LABELS = {
    "linear": "the linear model",
    "nothing": "the model from nothing",
    "pretrained": "the pretrained model",
}


def renamed(tried: Sequence[Record], **names: str) -> list[Record]:
    """The settings of each trial, under the names of this page."""
    return [{name: each[old] for name, old in names.items()} for each in tried]


def grid_of(tried: Sequence[Record]) -> dict[str, Any]:
    """The values of each setting that occur among the trials."""
    return {name: tuple(sorted({each[name] for each in tried})) for name in tried[0]}


def same(side: str, runs: Sequence[Record], key: str) -> Any:
    """What all runs of a side have in common. Raises: ValueError, if they don't."""
    values = list(dict.fromkeys(each.get(key) for each in runs))
    if len(values) != 1:
        raise ValueError(f"{side}: its runs differ in {key}: {values}")
    return values[0]


def as_it_won(side: str, runs: Sequence[Record], best: Record, *keys: str) -> None:
    """Raises: ValueError, if the runs don't have the settings of the best trial."""
    for key in keys:
        if (found := same(side, runs, key)) != best[key]:
            raise ValueError(f"{side}: its runs have {key} {found}, {best[key]} won")


def searched(
    name: str,
    runs: Sequence[Record],
    settings: dict[str, str],
    task: str,
    bounds: dict[str, tuple[Value, ...]],
) -> Side:
    """A side that was judged by validation at each trial, and tested where it won.

    `settings` says by which name of this page a key of a run goes.
    """
    tried: dict[tuple[Value, ...], Record] = {}
    for each in runs:
        tried.setdefault(tuple(each[key] for key in settings), each)
    best = max(tried, key=lambda t: judged(tried[t]))
    winner = dict(zip(settings, best, strict=True)).items()
    last = [each for each in runs if "accuracy" in each and winner <= each.items()]
    passes = same(name, last, "passes")
    names = settings.values()
    return Side(
        *(name, grid_of([dict(zip(names, each, strict=True)) for each in tried])),
        *((dict(zip(names, best, strict=True)),), len(tried), passes),
        seeds=tuple(each["seed"] for each in last if "seed" in each),
        scores=tuple(each["accuracy"] for each in last),
        tuned_on=task,
        bounds=bounds,
    )


def judged(run: Record) -> tuple[float, float]:
    """By what a trial is chosen: the accuracy on validation, then the loss."""
    return run["valid_accuracy"], -run["valid_loss"]


# -- the records -----------------------------------------------------------------------


def series() -> list[Comparison]:
    """The linear model beside the Transformer, at each context and horizon."""
    runs = read_runs("after/series.jsonl")
    groups = dict.fromkeys((run["context"], run["horizon"]) for run in runs)
    found = []
    for context, hours in groups:
        here = [r for r in runs if (r["context"], r["horizon"]) == (context, hours)]
        task = f"{hours} from {context}"
        (one,) = (run for run in here if run["side"] == "linear")
        tried, winner = tuple(one["tried"]), ({"penalty": one["penalty"]},)
        solved = len(tried), None, (), (one["mse"],), task
        linear = Side("the linear model", {"penalty": tried}, winner, *solved)
        norms = [
            series_transformer(name, here, context, hours, task)
            for name in (LAYER_NORM, BATCH_NORM)
        ]
        name = f"ETTh1, {hours} hours from {context}"
        found.append(Comparison(name, "test MSE", (linear, *norms)))
    return found


def series_transformer(
    name: str, runs: Sequence[Record], context: int, hours: int, task: str
) -> Side:
    """A Transformer's trials at a context and horizon, and what won."""
    own = [
        each | {"patches": PATCHES[each["stride"]]}
        for each in runs
        if each["side"] == name
    ]
    trials = [each for each in own if each["seed"] == TRIAL_SEED]
    best = min(trials, key=lambda each: each["validation"])
    last = [each for each in own if each["seed"] != TRIAL_SEED]
    as_it_won(name, last, best, "peak", "stride")
    names = {"rate": "peak", "patches": "patches"}
    tried, winner = renamed(trials, **names), renamed([best], **names)
    windows = TRAINING_HOURS - context - hours + 1
    passes = same(name, last, "updates") * TRAINING.batch / (windows * CHANNELS)
    seeds, scores = (tuple(each[key] for each in last) for key in ("seed", "mse"))
    trained = len(trials), passes, seeds, scores, task
    return Side(f"the {name}", grid_of(tried), tuple(winner), *trained)


def few_labels() -> list[Comparison]:
    """Linear, from nothing and pretrained, at each number of labelled reviews."""
    record = load("after/masked-language-model.json")
    longest = None, record["pretraining"]["updates"]
    points = [p for p in record["points"] if p.get("updates") in longest]
    found = []
    for labels in sorted({each["labels"] for each in points}):
        here = [each for each in points if each["labels"] == labels]
        sides = [few_labels_side(side, here, record["tuned"]) for side in FEW_LABELS]
        name = f"IMDb, {labels:,} labels"
        found.append(Comparison(name, "test accuracy", tuple(sides)))
        probes = [p for p in record["probes"] if p["updates"] == longest[1]]
        beside = sides[0], sides[2], probe(probes, labels)
        found.append(Comparison(f"{name}, a probe", "test accuracy", beside))
    return found


def probe(probes: Sequence[Record], labels: int) -> Side:
    """A linear model on the frozen encoder, whose penalty each draw chose anew."""
    runs = [each["labels"][str(labels)] for each in probes]
    winners = tuple({"C": each["C"]} for each in runs)
    solved = len(PROBE_STRENGTHS), None, tuple(each["seed"] for each in probes)
    scores = tuple(each["test"] for each in runs)
    grid = {"C": PROBE_STRENGTHS}
    return Side("the probe", grid, winners, *solved, scores, "each draw of labels")


def few_labels_side(side: str, points: Sequence[Record], tuned: Record) -> Side:
    """A side at a number of labels, whose settings were chosen once, at 1,000."""
    names = {"n-grams": "n", "C": "C"}
    if side != "linear":
        names = {"rate": "peak", "dropout": "dropout"}
    winner, *tried = renamed([tuned[side], *tuned[side]["tried"]], **names)
    runs = [each for each in points if each["side"] == side]
    passes = same(side, runs, "passes")
    seeds, scores = (tuple(each[key] for each in runs) for key in ("seed", "test"))
    search = grid_of(tried), (winner,), len(tried)
    bounds: dict[str, tuple[Value, ...]] = {"dropout": (0.0,), "n-grams": (1,)}
    named = FEW_LABELS[side], *search, passes, seeds, scores
    return Side(*named, tuned_on="1,000 labels", bounds=bounds)


def classifier() -> list[Comparison]:
    """Learned attention beside the linear model, and beside other attention."""
    runs, task = read_runs("after/classifier.jsonl"), "all labels"
    network = {"rate": "rate", "dropout": "dropout"}

    def side(name: str, which: str, settings: dict[str, str]) -> Side:
        own = [each for each in runs if each["side"] == which]
        bounds: dict[str, tuple[Value, ...]] = {"dropout": (0.0,), "n-grams": (1,)}
        return searched(name, own, settings, task, bounds)

    linear = side("the linear model", "linear", {"n": "n-grams", "C": "C"})
    ours = {
        name: side(
            f"the classifier with {name.replace('none', 'no')} attention", name, network
        )
        for name in ("none", "plain", "learned")
    }
    score = "test accuracy"
    return [
        Comparison("IMDb, all labels", score, (linear, ours["learned"])),
        Comparison("IMDb, kinds of attention", score, tuple(ours.values())),
    ]


def vision() -> list[Comparison]:
    """Each number of images: the Transformer, convolutions, and a linear model."""
    runs, found = read_runs("after/vision.jsonl"), []
    for images in sorted({each["images"] for each in runs}):
        here = [each for each in runs if each["images"] == images]
        (one,) = (each for each in here if each["side"] == "linear")
        strengths = tuple(map(float, one["tried"]))
        grid, winner = {"strength": strengths}, ({"strength": one["strength"]},)
        solved = len(strengths), None, (), (one["accuracy"],), "the validation split"
        linear = Side("the linear model", grid, winner, *solved)
        networks = [
            study_side(name, here, "accuracy")
            for name in ("transformer", "convolution")
        ]
        name = f"MNIST, {images:,} images"
        sides = linear, *networks
        found.append(Comparison(name, "test accuracy", sides, unit="updates"))
    return found


def language_model() -> list[Comparison]:
    """N-grams beside the model, on tiny Shakespeare."""
    runs = read_runs("after/language-model.jsonl")
    (grams,) = (each for each in runs if each["side"] == "n-grams")
    orders, winner = tuple(map(int, grams["tried"])), {"order": grams["order"]}
    solved = len(orders), None, (), (grams["nats"],), "the validation split"
    counts = Side("the n-grams", {"order": orders}, (winner,), *solved)
    ours = study_side("ours", runs, "nats", budget="passes")
    laptop = [each for each in runs if each["side"] == "laptop"]
    small = recipe("the laptop's settings", laptop, "nats", budget="passes")
    rate = {"rate": small.winners[0]["rate"]}  # which nanoGPT's own program has, too
    itself = [each | rate for each in runs if each["side"] == "nanoGPT"]
    theirs = recipe("nanoGPT", itself, "nats", budget="passes")
    name, score = "tiny-shakespeare", "nats per character"
    return [
        Comparison(name, score, (counts, ours)),
        Comparison(f"{name}, a laptop's settings", score, (counts, small, theirs)),
    ]


def since_2017() -> list[Comparison]:
    """Each study: the sides' losses on the test split, and BLEU of 2017 and today."""
    runs = read_runs("after/since_2017.jsonl")
    found = []
    for study in dict.fromkeys(each["study"] for each in runs):
        here = [each for each in runs if each["study"] == study]
        names = list(dict.fromkeys(each["side"] for each in here))
        for score in ("test_loss", "bleu"):
            if any(score in each for each in here):
                sides = tuple(study_side(name, here, score) for name in names)
                told = f"since 2017, {study}, {score.replace('_', ' ')}"
                found.append(Comparison(told, score, sides, unit="updates"))
    return found


def study_side(
    name: str,
    runs: Sequence[Record],
    score: str,
    budget: str = "updates",
    cost: Callable[[Record], float] = itemgetter("validation_loss"),
) -> Side:
    """One side of a study, whose rate was tuned on seed 0 by the validation split."""
    own = [each for each in runs if each["side"] == name]
    tuning = [each for each in own if each["seed"] == 0]
    final = sorted((r for r in own if r["seed"] != 0), key=lambda run: run["seed"])
    rate, spent = (same(name, final, key) for key in ("rate", budget))
    as_it_won(name, final, min(tuning, key=cost), "rate")
    seeds, scores = (tuple(each[key] for each in final) for key in ("seed", score))
    tuned = grid_of(renamed(tuning, rate="rate")), ({"rate": rate},), len(tuning)
    return Side(name, *tuned, spent, seeds, scores, "the validation split")


def recipe(
    name: str, runs: Sequence[Record], score: str, budget: str = "updates"
) -> Side:
    """A side whose record has no search of its rate."""
    seeds, scores = (tuple(each[key] for each in runs) for key in ("seed", score))
    rate = same(name, runs, "rate")
    untuned = {"rate": (rate,)}, ({"rate": rate},), 1
    return Side(name, *untuned, same(name, runs, budget), seeds, scores, None)


def distillation() -> list[Comparison]:
    """A student of people's translations beside one of a teacher's."""
    runs = read_runs("after/distillation.jsonl")
    names = list(dict.fromkeys(each["side"] for each in runs))
    sides = tuple(study_side(name, runs, "bleu", cost=STUDY.cost) for name in names)
    return [Comparison("Tatoeba, distillation", "bleu", sides, unit="updates")]


def parsing() -> list[Comparison]:
    """A grammar, and parsers that learned from trees as they are, or exchanged too."""
    runs = read_runs("paper/parsing.jsonl")
    (counted,) = (each for each in runs if each["study"] == "grammar")
    orders, winner = tuple(map(int, counted["tried"])), {"order": counted["order"]}
    solved = len(orders), None, (), (counted["test"]["f1"],), "the validation split"
    grammar = Side("the grammar", {"order": orders}, (winner,), *solved)
    tuned = [each for each in runs if each["study"] == "parsing"]
    longer = [each for each in runs if each["study"] == "longer"]
    longer += [each for each in tuned if each["seed"] == 0]
    score, names = "f1, constrained, beam", ("as they are", "exchanged")
    sides = [study_side(name, tuned, score) for name in names]
    last = study_side("exchanged", longer, score)
    compared = "Penn Treebank's sample"
    return [
        Comparison(compared, "F1", (grammar, *sides), unit="updates"),
        Comparison(f"{compared}, longer", "F1", (grammar, last), unit="updates"),
    ]


def counted_phrases() -> list[Comparison]:
    """Counted phrases beside the Transformers of captions and of everyday sentences."""
    counted, captions = load("paper/phrases.json"), []
    for name in "ends", "seed2", "seed3":
        record = load(f"runs/multi30k-en-de-tiny-{name}/record.json")
        training, found = record["run"]["training"], record["as_published"]
        scores = found["tests"][CAPTIONS]["scores"][TASKS["multi30k"].convention]
        run = {"seed": training["seed"], "rate": training["lr_factor"]}
        captions.append(run | {"updates": found["end"], "bleu": scores["value"]})
    record = load("runs/tatoeba-en-de/record.json")
    training = record["run"]["training"]
    everyday = {"seed": training["seed"], "rate": training["peak"]}
    everyday["updates"] = record["earlier_updates"] + record["updates"]
    everyday["bleu"] = record["as_shipped"]["bleu"]
    return [
        Comparison(
            f"{name}, counted phrases",
            "BLEU",
            (phrases(counted[corpus], split), ours),
            unit="updates",
        )
        for name, corpus, split, ours in (
            ("Multi30k", "multi30k", CAPTIONS, recipe("the recipe", captions, "bleu")),
            ("Tatoeba", "tatoeba", "test", recipe("the model", [everyday], "bleu")),
        )
    ]


def phrases(counted: Record, split: str) -> Side:
    """The counting and its weights."""
    tried = [
        {k: v for k, v in each.items() if k != "bleu"} for each in counted["tried"]
    ]
    solved = len(tried), None, (), (counted["tests"][split],), "the validation split"
    return Side("phrase counting", grid_of(tried), (counted["weights"],), *solved)


def table_3() -> list[Comparison]:
    """The rows of Table 3, which all have base's settings but for their one change.

    Only big has several.
    """
    runs = read_runs("paper/table3.jsonl")
    factor = scaled_down_recipe(variations()["base"]).training.lr_factor
    runs = [r | {"rate": factor, "loss": log(r["perplexity"])} for r in runs]
    longest = max(each["updates"] for each in runs)
    lengths = {
        f"{longest:,} updates": [r for r in runs if r["updates"] == longest],
        "2,000 updates, big 6,000": [r for r in runs if r["updates"] != longest],
    }
    found = []
    for length, here in lengths.items():
        names = list(dict.fromkeys(each["row"] for each in here))
        sides = [
            recipe(name, [r for r in here if r["row"] == name], "loss")
            for name in names
        ]
        named = f"Table 3, {length}"
        found.append(Comparison(named, "loss", tuple(sides), unit="updates"))
    return found


READERS: dict[str, Callable[[], list[Comparison]]] = {
    "after/series.jsonl": series,
    "after/masked-language-model.json": few_labels,
    "after/classifier.jsonl": classifier,
    "after/vision.jsonl": vision,
    "after/language-model.jsonl": language_model,
    "after/since_2017.jsonl": since_2017,
    "after/distillation.jsonl": distillation,
    "paper/parsing.jsonl": parsing,
    "paper/phrases.json": counted_phrases,
    "paper/table3.jsonl": table_3,
}


# -- the verdicts ----------------------------------------------------------------------


def verdicts() -> Record:
    """Each comparison by its name: the table, and the reasons against it."""
    found: Record = {}
    for place, read in READERS.items():
        for each in read():
            about = {"record": f"results/{place}", "score": each.score}
            found[each.name] = about | {"table": table(each), "unfair": unfair(each)}
    return found


def new_reasons(found: Record, listed: Record) -> list[str]:
    """The reasons that the list doesn't have yet."""
    return [
        f"{name}: {reason}"
        for name, each in found.items()
        for reason in each["unfair"]
        if reason not in listed.get(name, {}).get("unfair", [])
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge, and write the list; new reasons only if they are admitted."""
    parser = command_line(__doc__)
    parser.add_argument("--admit", action="store_true", help="put new reasons on it")
    asked = parser.parse_args(arguments)
    found = verdicts()
    new = new_reasons(found, load(PLACE).get("comparisons", {}))
    if new and not asked.admit:
        sys.exit("\n".join(["new reasons (--admit puts them on the list):", *new]))
    for name, each in found.items():
        print(f"{name}: {'; '.join(each['unfair']) or 'fair'}")
    save(PLACE, {"header": HEADER, "comparisons": found})


if __name__ == "__main__":
    main()
