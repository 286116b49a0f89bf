"""Read the comparisons that chapters draw conclusions from, and judge each.

    python -m benchmarks.comparisons [--admit]

Nothing is run again: what each side tried, its passes, seeds and scores come from the
records in results/, and from the code where a record leaves its grid out. Writes
results/fairness.json: each comparison with its table and with the reasons why it
isn't fair, none for a fair one. A reason that wasn't there before is an error, unless
--admit puts it on the list.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
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
Cost = Callable[[Record], Any]
VALIDATION = "the validation split"
# Values beyond which a setting can't go.
BOUNDS: dict[str, tuple[Value, ...]] = {"dropout": (0.0,), "n-grams": (1,)}
FEW_LABELS = {
    "linear": "the linear model",
    "nothing": "the model from nothing",
    "pretrained": "the pretrained model",
}
CUT = "after/counted-words.json"
CAPTIONS = "test_2016_flickr"
TRAINING_HOURS, CHANNELS = 8_640, 7  # of ETTh1
NORMS = LAYER_NORM, BATCH_NORM
PATCHES = {8: "overlapping", 16: "side by side"}  # by their stride
# The settings of a study, and the keys of a run that hold them.
Names = dict[str, str]
RATE, SERIES = {"rate": "rate"}, {"rate": "peak", "patches": "patches"}
NETWORK, LINEAR = {"rate": "peak", "dropout": "dropout"}, {"n-grams": "n", "C": "C"}


# -- a side ----------------------------------------------------------------------------


def exact(
    name: str,
    setting: str,
    tried: Sequence[Value],
    won: Value,
    score: float,
    task: str = VALIDATION,
) -> Side:
    """A side that is solved, not trained, at each value of its one setting."""
    values, winner = [{setting: value} for value in tried], {setting: won}
    return trained(name, values, [winner], [{"score": score}], "score", None, task)


def trained(
    name: str,
    tried: Sequence[Record],
    winners: Sequence[Record],
    runs: Sequence[Record],
    score: str,
    passes: float | None,
    task: str | None = VALIDATION,
) -> Side:
    """A side that tried some settings, and the runs with those that won."""
    settings = winners[0]
    grid = {each: tuple(sorted({run[each] for run in tried})) for each in settings}
    seeds = tuple(each["seed"] for each in runs if "seed" in each)
    scores = tuple(each[score] for each in runs)
    search = grid, tuple(winners), len(tried)
    return Side(name, *search, passes, seeds, scores, task, BOUNDS)


def renamed(runs: Sequence[Record], names: Names) -> list[Record]:
    """Some settings of each trial, under the names of this page."""
    return [{name: run[old] for name, old in names.items()} for run in runs]


def same(side: str, runs: Sequence[Record], key: str) -> Any:
    """What all runs of a side have in common. Raises: ValueError, if they don't."""
    values = list(dict.fromkeys(each.get(key) for each in runs))
    if len(values) != 1:
        raise ValueError(f"{side}: its runs differ in {key}: {values}")
    return values[0]


def study_side(
    name: str,
    runs: Sequence[Record],
    score: str,
    budget: str = "updates",
    cost: Cost = itemgetter("validation_loss"),
    names: Names = RATE,
    task: str = VALIDATION,
) -> Side:
    """One side of a study, which was tuned on seed 0 by the validation split.

    Raises: ValueError, if its runs don't have the settings of the best trial.
    """
    own = [each for each in runs if each["side"] == name]
    trials = [each for each in own if each["seed"] == TRIAL_SEED]
    last = sorted((r for r in own if r not in trials), key=itemgetter("seed"))
    best = min(trials, key=cost)
    for key in names.values():
        if (found := same(name, last, key)) != best[key]:
            raise ValueError(f"{name}: its runs have {key} {found}, {best[key]} won")
    tried, winner = renamed(trials, names), renamed([best], names)
    return trained(name, tried, winner, last, score, same(name, last, budget), task)


def recipe(
    name: str, runs: Sequence[Record], score: str, budget: str = "updates"
) -> Side:
    """A side whose record has no search of its rate."""
    rate, spent = [{"rate": same(name, runs, "rate")}], same(name, runs, budget)
    return trained(name, rate, rate, runs, score, spent, None)


# -- the records -----------------------------------------------------------------------


def series() -> Iterator[Comparison]:
    """The linear model beside the Transformer, at each context and horizon."""
    runs = read_runs("after/series.jsonl")
    for context, hours in dict.fromkeys((r["context"], r["horizon"]) for r in runs):
        here = [r for r in runs if (r["context"], r["horizon"]) == (context, hours)]
        task = f"{hours} from {context}"
        (one,) = (each for each in here if each["side"] == "linear")
        found = one["tried"], one["penalty"], one["mse"], task
        linear = exact("the linear model", "penalty", *found)
        windows = CHANNELS * (TRAINING_HOURS - context - hours + 1)
        own = [
            each
            | {"side": f"the {each['side']}", "patches": PATCHES[each["stride"]]}
            | {"passes": each["updates"] * TRAINING.batch / windows}
            for each in here
            if each["side"] in NORMS
        ]
        how = "mse", "passes", itemgetter("validation"), SERIES, task
        networks = (study_side(f"the {norm}", own, *how) for norm in NORMS)
        name = f"ETTh1, {hours} hours from {context}"
        yield Comparison(name, "test MSE", (linear, *networks))


def few_labels() -> Iterator[Comparison]:
    """Linear, from nothing and pretrained, at each number of labelled reviews."""
    record, score = load("after/masked-language-model.json"), "test accuracy"
    most = record["pretraining"]["updates"]
    points = [each for each in record["points"] if each.get("updates") in (None, most)]
    probes = [each for each in record["probes"] if each["updates"] == most]
    for labels in sorted({each["labels"] for each in points}):
        here = [each for each in points if each["labels"] == labels]
        linear, nothing, pretrained = (
            few_labels_side(side, here, record["tuned"][side]) for side in FEW_LABELS
        )
        name = f"IMDb, {labels:,} labels"
        yield Comparison(name, score, (linear, nothing, pretrained))
        sides = linear, pretrained, probe(probes, str(labels))
        yield Comparison(f"{name}, a probe", score, sides)


def few_labels_cut() -> Iterator[Comparison]:
    """The same with a linear model that learns from the 128 tokens, as they do."""
    record, cut = load("after/masked-language-model.json"), load(CUT)
    most = record["pretraining"]["updates"]
    networks = [each for each in record["points"] if each.get("updates", most) == most]
    points = [each for each in networks if each["side"] != "linear"] + cut["points"]
    tuned = record["tuned"] | {"linear": cut["tuned"]}
    for labels in sorted({each["labels"] for each in points}):
        here = [each for each in points if each["labels"] == labels]
        sides = tuple(few_labels_side(side, here, tuned[side]) for side in FEW_LABELS)
        yield Comparison(f"IMDb, {labels:,} labels, cut", "test accuracy", sides)


def few_labels_side(side: str, points: Sequence[Record], tuned: Record) -> Side:
    """A side at a number of labels, whose settings were chosen once, at 1,000."""
    names = LINEAR if side == "linear" else NETWORK
    tried, winner = renamed(tuned["tried"], names), renamed([tuned], names)
    runs = [each for each in points if each["side"] == side]
    passes, task = same(side, runs, "passes"), "1,000 labels"
    return trained(FEW_LABELS[side], tried, winner, runs, "test", passes, task)


def probe(probes: Sequence[Record], labels: str) -> Side:
    """A linear model on the frozen encoder, whose penalty each draw chose anew."""
    runs = [each["labels"][labels] | {"seed": each["seed"]} for each in probes]
    tried, winners = [{"C": C} for C in PROBE_STRENGTHS], renamed(runs, {"C": "C"})
    task = "each draw of labels"
    return trained("the probe", tried, winners, runs, "test", None, task)


def classifier() -> Iterator[Comparison]:
    """Learned attention beside the linear model, and beside other attention."""
    runs, score = read_runs("after/classifier.jsonl"), "test accuracy"
    names = {"rate": "rate", "dropout": "dropout"}
    linear = searched("linear", "the linear model", runs, LINEAR)
    none, plain, learned = (
        searched(side, f"the classifier with {word} attention", runs, names)
        for side, word in {"none": "no", "plain": "plain", "learned": "learned"}.items()
    )
    yield Comparison("IMDb, all labels", score, (linear, learned))
    yield Comparison("IMDb, kinds of attention", score, (none, plain, learned))


def searched(side: str, name: str, runs: Sequence[Record], names: Names) -> Side:
    """A side that was judged by validation at each trial, by the accuracy and then the
    loss, and tested where it won.
    """
    own = [each for each in runs if each["side"] == side]
    settings = renamed(own, names)
    trials = [each for i, each in enumerate(settings) if each not in settings[:i]]
    firsts = [own[settings.index(each)] for each in trials]
    best = max(firsts, key=lambda r: (r["valid_accuracy"], -r["valid_loss"]))
    winner = renamed([best], names)
    last = [r for r in own if "accuracy" in r and renamed([r], names) == winner]
    passes = same(name, last, "passes")
    return trained(name, trials, winner, last, "accuracy", passes, "all labels")


def vision() -> Iterator[Comparison]:
    """Each number of images: the Transformer, convolutions, and a linear model."""
    runs = read_runs("after/vision.jsonl")
    studies = {each["study"]: each["images"] for each in runs if "rate" in each}
    for study, images in sorted(studies.items(), key=itemgetter(1)):
        here = [each for each in runs if each["study"] == study]
        names = "transformer", "convolution"
        sides = [study_side(name, here, "accuracy") for name in names]
        for each in [r for r in runs if r["study"] == f"{study}, linear"]:
            found = [*map(float, each["tried"])], each["strength"], each["accuracy"]
            sides.insert(0, exact("the linear model", "strength", *found))
        told = f"MNIST, {images:,} {study.partition(' ')[2]}"
        yield Comparison(told, "test accuracy", tuple(sides), "updates")


def language_model() -> Iterator[Comparison]:
    """N-grams beside the model, on tiny Shakespeare."""
    runs, budget = read_runs("after/language-model.jsonl"), "passes"
    (grams,) = (each for each in runs if each["side"] == "n-grams")
    found = [*map(int, grams["tried"])], grams["order"], grams["nats"]
    counts = exact("the n-grams", "order", *found)
    ours = study_side("ours", runs, "nats", budget)
    laptop = [each for each in runs if each["side"] == "laptop"]
    rate = {"rate": laptop[0]["rate"]}  # which nanoGPT's own program has, too
    itself = [each | rate for each in runs if each["side"] == "nanoGPT"]
    small = recipe("the laptop's settings", laptop, "nats", budget)
    theirs = recipe("nanoGPT", itself, "nats", budget)
    name, score = "tiny-shakespeare", "nats per character"
    yield Comparison(name, score, (counts, ours))
    yield Comparison(f"{name}, a laptop's settings", score, (counts, small, theirs))


def since_2017() -> Iterator[Comparison]:
    """Each study: the sides' losses on the test split, and BLEU of 2017 and today."""
    runs = read_runs("after/since_2017.jsonl")
    for study in dict.fromkeys(each["study"] for each in runs):
        here = [each for each in runs if each["study"] == study]
        names = list(dict.fromkeys(each["side"] for each in here))
        for score in ("test_loss", "bleu"):
            if any(score in each for each in here):
                sides = tuple(study_side(name, here, score) for name in names)
                told = f"since 2017, {study}, {score.replace('_', ' ')}"
                yield Comparison(told, score, sides, "updates")


def distillation() -> Iterator[Comparison]:
    """A student of people's translations beside one of a teacher's."""
    runs = read_runs("after/distillation.jsonl")
    names = list(dict.fromkeys(each["side"] for each in runs))
    sides = tuple(study_side(name, runs, "bleu", cost=STUDY.cost) for name in names)
    yield Comparison("Tatoeba, distillation", "bleu", sides, "updates")


def parsing() -> Iterator[Comparison]:
    """A grammar, and parsers that learned from trees as they are, or exchanged too."""
    runs = read_runs("paper/parsing.jsonl")
    (counted,) = (each for each in runs if each["study"] == "grammar")
    found = [*map(int, counted["tried"])], counted["order"], counted["test"]["f1"]
    grammar = exact("the grammar", "order", *found)
    tuned = [each for each in runs if each["study"] == "parsing"]
    longer = [each for each in runs if each["study"] == "longer"]
    longer += [each for each in tuned if each["seed"] == 0]
    score, name = "f1, constrained, beam", "Penn Treebank's sample"
    sides = [study_side(side, tuned, score) for side in ("as they are", "exchanged")]
    yield Comparison(name, "F1", (grammar, *sides), "updates")
    last = study_side("exchanged", longer, score)
    yield Comparison(f"{name}, longer", "F1", (grammar, last), "updates")


def counted_phrases() -> Iterator[Comparison]:
    """Counted phrases beside the Transformers of captions and of everyday sentences."""
    captions = []
    for name in "ends", "seed2", "seed3":
        record = load(f"runs/multi30k-en-de-tiny-{name}/record.json")
        training, found = record["run"]["training"], record["as_published"]
        scores = found["tests"][CAPTIONS]["scores"][TASKS["multi30k"].convention]
        run = {"seed": training["seed"], "rate": training["lr_factor"]}
        captions.append(run | {"updates": found["end"], "bleu": scores["value"]})
    sides = phrases("multi30k", CAPTIONS), recipe("the recipe", captions, "bleu")
    yield Comparison("Multi30k, counted phrases", "BLEU", sides, "updates")
    record = load("runs/tatoeba-en-de/record.json")
    training = record["run"]["training"]
    everyday = {"seed": training["seed"], "rate": training["peak"]}
    everyday["updates"] = record["earlier_updates"] + record["updates"]
    everyday["bleu"] = record["as_shipped"]["bleu"]
    sides = phrases("tatoeba", "test"), recipe("the model", [everyday], "bleu")
    yield Comparison("Tatoeba, counted phrases", "BLEU", sides, "updates")


def phrases(corpus: str, split: str) -> Side:
    """The counting and its weights."""
    counted = load("paper/phrases.json")[corpus]
    search = counted["tried"], [counted["weights"]]
    return trained("phrase counting", *search, [counted["tests"]], split, None)


def race() -> Iterator[Comparison]:
    """The recurrent translator beside the Transformer, at equal time."""
    record = load("paper/race.json")
    runs = [row | {"bleu": row["equal_time"]["bleu"]} for row in record["runs"]]
    sides = tuple(
        study_side(name, record["tried"] + runs, "bleu", "budget")
        for name in ("recurrent", "Transformer")
    )
    yield Comparison("Multi30k, the race", "BLEU", sides, "seconds")


def table_3() -> Iterator[Comparison]:
    """The rows of Table 3: base's settings with one change, big's with several."""
    runs = read_runs("paper/table3.jsonl")
    factor = scaled_down_recipe(variations()["base"]).training.lr_factor
    runs = [r | {"rate": factor, "loss": log(r["perplexity"])} for r in runs]
    longest = max(each["updates"] for each in runs)
    for length, here in {
        f"{longest:,} updates": [r for r in runs if r["updates"] == longest],
        "2,000 updates, big 6,000": [r for r in runs if r["updates"] != longest],
    }.items():
        sides = tuple(
            recipe(name, [r for r in here if r["row"] == name], "loss")
            for name in dict.fromkeys(each["row"] for each in here)
        )
        yield Comparison(f"Table 3, {length}", "loss", sides, "updates")


READERS: dict[str, Callable[[], Iterable[Comparison]]] = {
    "after/series.jsonl": series,
    "after/masked-language-model.json": few_labels,
    CUT: few_labels_cut,
    "after/classifier.jsonl": classifier,
    "after/vision.jsonl": vision,
    "after/language-model.jsonl": language_model,
    "after/since_2017.jsonl": since_2017,
    "after/distillation.jsonl": distillation,
    "paper/parsing.jsonl": parsing,
    "paper/phrases.json": counted_phrases,
    "paper/race.json": race,
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge, and write the list; new reasons only if they are admitted."""
    parser = command_line(__doc__)
    parser.add_argument("--admit", action="store_true", help="put new reasons on it")
    asked = parser.parse_args(arguments)
    found, listed = verdicts(), load(PLACE).get("comparisons", {})
    new = [
        f"{name}: {reason}"
        for name, each in found.items()
        for reason in each["unfair"]
        if reason not in listed.get(name, {}).get("unfair", [])
    ]
    if new and not asked.admit:
        sys.exit("\n".join(["new reasons (--admit puts them on the list):", *new]))
    for name, each in found.items():
        print(f"{name}: {'; '.join(each['unfair']) or 'fair'}")
    save(PLACE, {"header": HEADER, "comparisons": found})


if __name__ == "__main__":
    main()
