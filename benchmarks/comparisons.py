"""Read the comparisons that chapters draw conclusions from, and judge each.

    python -m benchmarks.comparisons

Nothing is run again: what each side tried, its passes, seeds and scores come from the
records in results/, and from the code where a record leaves its grid or its batch out.
Writes results/fairness.json: each comparison with its table, the reasons why it isn't
fair, none for a fair one, and remarks. A test holds the list against the records.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log
from operator import itemgetter
from statistics import mean
from typing import Any

from annotated_transformer.after.image_classification import ImageTraining
from annotated_transformer.after.text_classification import ClassifierTraining
from annotated_transformer.after.text_generation import LanguageTraining
from annotated_transformer.training.recipes import recipe
from annotated_transformer.translation.table3 import scaled_down_recipe, variations
from annotated_transformer.translation.task import FINE_TUNING
from benchmarks.after import series as ett
from benchmarks.after.distillation import STUDY, student
from benchmarks.after.masked_language_model import BATCH, PROBE_STRENGTHS
from benchmarks.fair import HEADER, TEST, Comparison, Side, remarks, table, unfair
from benchmarks.paper import reversal as words
from benchmarks.paper.phrases import TASKS
from benchmarks.paper.table3 import LONG
from benchmarks.record import command_line, load, read_runs, save

PLACE = "fairness.json"
Record = dict[str, Any]
Runs = Sequence[Record]
LABELLED = "after/masked-language-model.json"
CAPTIONS = "test_2016_flickr"
TRAINING_HOURS, CHANNELS = 8_640, 7  # of ETTh1
PATCHES = {8: "overlapping", 16: "side by side"}  # by their stride
# The settings of a run, and what the table calls them.
NAMES = "rate patches dropout C penalty strength order inverse trigrams word phrase"
SETTINGS = {"peak": "rate", "n": "n-grams"} | {each: each for each in NAMES.split()}


# -- a side ----------------------------------------------------------------------------


def compared(
    name: str, told: str, runs: Runs, score: str, unit: str = "updates", **how: Any
) -> Comparison:
    """The sides of these runs by a score; `how` they chose is as for `side`."""
    names = dict.fromkeys(each["side"] for each in runs)
    sides = tuple(side(each, runs, score, unit, **how) for each in names)
    return Comparison(name, told, sides, unit)


def side(
    name: str,
    runs: Runs,
    score: str,
    unit: str,
    cost: Callable[[Record], Any] = itemgetter("validation_loss"),
    task: str = "the validation split",
) -> Side:
    """A side: its trials have no score, and its runs the settings of the best trial.

    One that is solved, not trained, has what it "tried" beside its score. Raises:
    ValueError, if runs don't have the best settings.
    """
    own = [each for each in runs if each["side"] == name]
    trials = [each for each in own if score not in each]
    last = sorted((r for r in own if score in r), key=lambda r: r.get("seed", 0))
    won = [min(trials, key=cost)] if trials else last[:1]
    if "tried" in last[0]:
        ((setting, _),) = settings(last[0]).items()
        trials, won = [{setting: float(v)} for v in last[0]["tried"]], last
    else:
        for key, value in settings(won[0]).items():
            if (found := same(name, [*map(settings, last)], key)) != value:
                raise ValueError(f"{name}: its runs have {key} {found}, {value} won")
    tried = [*map(settings, trials or won)]
    took = [each["seconds"] for each in last if "seconds" in each]
    return Side(
        name,
        {each: tuple(sorted({trial[each] for trial in tried})) for each in tried[0]},
        tuple(map(settings, won)),
        len(tried),
        same(name, last, unit),
        tuple(each["seed"] for each in last if "seed" in each),
        tuple(each[score] for each in last),
        last[0].get("task", task) if trials else None,
        tuple({each["seed"] for each in trials if "seed" in each}),
        same(name, trials or [{}], unit),
        same(name, last, "parameters"),
        same(name, last, "batch"),
        mean(took) if took else None,
    )


def settings(run: Record) -> Record:
    """What a run could have chosen."""
    return {name: run[key] for key, name in SETTINGS.items() if key in run}


def same(side: str, runs: Runs, key: str) -> Any:
    """What all runs of a side have in common. Raises: ValueError, if they don't."""
    values = list(dict.fromkeys(each.get(key) for each in runs))
    if len(values) != 1:
        raise ValueError(f"{side}: its runs differ in {key}: {values}")
    return values[0]


def trained(runs: Iterable[Record], batch: int) -> list[Record]:
    """The runs, and the batch of those that were trained."""
    return [run | ({"batch": batch} if "seed" in run else {}) for run in runs]


# -- the records -----------------------------------------------------------------------


def series(runs: list[Record]) -> Iterator[Comparison]:
    """The linear model beside the Transformer, at each context and horizon."""
    sides, batch = ("linear", ett.LAYER_NORM, ett.BATCH_NORM), ett.TRAINING.batch
    for context, hours in dict.fromkeys((r["context"], r["horizon"]) for r in runs):
        windows = CHANNELS * (TRAINING_HOURS - context - hours + 1)
        here = [r for r in runs if (r["context"], r["horizon"]) == (context, hours)]
        here = trained((each for each in here if each["side"] in sides), batch)
        for run in [each for each in here if "stride" in each]:
            run["patches"] = PATCHES[run["stride"]]
            run["passes"] = run["updates"] * batch / windows
        how = {"cost": itemgetter("validation"), "task": f"{hours} from {context}"}
        name = f"ETTh1, {hours} hours from {context}"
        yield compared(name, "test MSE", here, "mse", "passes", **how)


def few_labels(record: Record, cut: Record | None = None) -> Iterator[Comparison]:
    """Linear, from nothing, and pretrained, at each number of labels, and a probe; or
    with a linear model that learns from the 128 tokens, as they do.
    """
    most, linear = record["pretraining"]["updates"], (cut or record)["points"]
    networks = [each for each in record["points"] if each["side"] != "linear"]
    points = [each for each in linear if each["side"] == "linear"]
    points += [each for each in networks if each.get("updates", most) == most]
    tuned = record["tuned"] | ({"linear": cut["tuned"]} if cut else {})
    trials = [r | {"side": each} for each in tuned for r in tuned[each]["tried"]]
    how = {"cost": lambda run: -run["valid"], "task": "1,000 labels"}
    draws = {"side": "the probe", "tried": PROBE_STRENGTHS, "task": "each draw"}
    probes = [r for r in record["probes"] if r["updates"] == most and not cut]
    for labels in sorted({each["labels"] for each in points}):
        name, told = f"IMDb, {labels:,} labels", "test accuracy"
        here = trials + [each for each in points if each["labels"] == labels]
        here = [r | ({"batch": BATCH} if "peak" in r else {}) for r in here]
        whole = f"{name}, cut" if cut else name
        yield compared(whole, told, here, "test", "passes", **how)
        if probes:
            drawn = [r["labels"][str(labels)] | {"seed": r["seed"]} for r in probes]
            here = [each for each in here if each["side"] != "nothing"]
            here += [draws | each for each in drawn]
            yield compared(f"{name}, a probe", told, here, "test", "passes", **how)


def classifier(runs: list[Record]) -> Iterator[Comparison]:
    """Learned attention beside the linear model, and beside other attention."""
    runs = trained(runs, ClassifierTraining().batch)
    how = {"cost": lambda run: (-run["valid_accuracy"], run["valid_loss"])}
    how |= {"task": "all labels"}
    for name, sides in {
        "IMDb, all labels": ("linear", "learned"),
        "IMDb, kinds of attention": ("none", "plain", "learned"),
    }.items():
        here = [each for each in runs if each["side"] in sides]
        yield compared(name, "test accuracy", here, "accuracy", "passes", **how)


def vision(runs: list[Record]) -> Iterator[Comparison]:
    """Each number of images that was scored: the Transformer, convolutions, and a
    linear model.
    """
    runs = trained(runs, ImageTraining().batch)
    scored = [each for each in runs if "rate" in each and "accuracy" in each]
    studies = {each["study"]: each["images"] for each in scored}
    for study, images in sorted(studies.items(), key=itemgetter(1)):
        here = [each for each in runs if each["study"] in (study, f"{study}, linear")]
        name = f"MNIST, {images:,} {study.partition(' ')[2]}"
        yield compared(name, "test accuracy", here, "accuracy")


def language_model(runs: list[Record]) -> Iterator[Comparison]:
    """N-grams beside the model, on tiny Shakespeare."""
    laptop = next(each for each in runs if each["side"] == "laptop")
    for run in runs:
        if run["side"] == "nanoGPT":  # whose own program has the same rate and batch
            run |= {key: laptop[key] for key in ("rate", "training")}
        run |= {"batch": run["training"]["batch"]} if "training" in run else {}
    for name, sides in {
        "tiny-shakespeare": ("n-grams", "ours"),
        "tiny-shakespeare, a laptop's settings": ("n-grams", "laptop", "nanoGPT"),
    }.items():
        here = [each for each in runs if each["side"] in sides]
        yield compared(name, "nats per character", here, "nats", "passes")


def since_2017(runs: list[Record]) -> Iterator[Comparison]:
    """Each study: the sides' losses on the test split, and BLEU of 2017 and today."""
    tokens = scaled_down_recipe(variations()["base"]).training.batch_tokens
    for study in dict.fromkeys(each["study"] for each in runs):
        batch = LanguageTraining().batch if study == "decoder-only" else tokens
        here = trained((each for each in runs if each["study"] == study), batch)
        for score in ("test_loss", "bleu"):
            if any(score in each for each in here):
                name = f"since 2017, {study}, {score.replace('_', ' ')}"
                yield compared(name, score, here, score)


def distillation(runs: list[Record]) -> Iterator[Comparison]:
    """A student of people's translations beside one of a teacher's."""
    here = trained(runs, student(0.0, 1).training.batch_tokens)
    yield compared("Tatoeba, distillation", "bleu", here, "bleu", cost=STUDY.cost)


def parsing(runs: list[Record]) -> Iterator[Comparison]:
    """A grammar, and parsers that learned from trees as they are, or exchanged too."""
    name, score = "Penn Treebank's sample", "f1, constrained, beam"
    grammar = [r | {score: r["test"]["f1"]} for r in runs if r["study"] == "grammar"]
    runs = [r | {"batch": r["training"]["batch_tokens"]} for r in runs if "rate" in r]
    tuned = [each for each in runs if each["study"] == "parsing"]
    longer = [each for each in runs if each["study"] == "longer"]
    longer += [r for r in tuned if (r["seed"], r["side"]) == (0, "exchanged")]
    for told, here in {name: tuned, f"{name}, longer": longer}.items():
        yield compared(told, "F1", grammar + here, score)


def counted_phrases(record: Record) -> Iterator[Comparison]:
    """Counted phrases beside the Transformers of captions and of everyday sentences."""

    def own(run: Record, rate: str, updates: int, bleu: float) -> Record:
        training = run["run"]["training"]
        about = {"side": "the model", "rate": training[rate], "seed": training["seed"]}
        batch = training["batch_tokens"]
        return about | {"batch": batch, "updates": updates, "test": bleu}

    captions = []
    for name in "ends", "seed2", "seed3":
        run = load(f"runs/multi30k-en-de-tiny-{name}/record.json")
        found = run["as_published"]
        bleu = found["tests"][CAPTIONS]["scores"][TASKS["multi30k"].convention]["value"]
        captions.append(own(run, "lr_factor", found["end"], bleu))
    run = load("runs/tatoeba-en-de/record.json")
    updates = run["earlier_updates"] + run["updates"]
    everyday = [own(run, "peak", updates, run["as_shipped"]["bleu"])]
    about, how = {"side": "phrase counting"}, {"cost": lambda run: -run["bleu"]}
    named = {"Multi30k": (captions, CAPTIONS), "Tatoeba": (everyday, "test")}
    for corpus, (runs, test) in named.items():
        counted = record[corpus.lower()]
        last = about | counted["weights"] | {"test": counted["tests"][test]}
        here = [*(each | about for each in counted["tried"]), last, *runs]
        yield compared(f"{corpus}, counted phrases", "BLEU", here, "test", **how)


def race(record: Record) -> Iterator[Comparison]:
    """The recurrent translator beside the Transformer, at equal time."""
    runs = [row | {"bleu": row["equal_time"]["bleu"]} for row in record["runs"]]
    about = {"batch": record["batch_tokens"], "seconds": record["budget"]}
    runs = [each | about for each in record["tried"] + runs]
    yield compared("Multi30k, the race", "BLEU", runs, "bleu", "seconds")


def reversed_words(record: Record) -> Iterator[Comparison]:
    """Two recurrent models beside the Transformer, which learn to reverse words."""
    runs, about = [], {"updates": words.STEPS, "batch": words.BATCH}
    for name, found in record["contenders"].items():
        about |= {"side": name, "parameters": found["parameters"]}
        runs += [about | each for each in found["tuning"]]
        for run in found["runs"]:
            runs.append(about | run | {"right": run["curve"][str(words.STEPS)]})
    how = {"cost": lambda run: -mean(run["curve"].values()), "task": TEST}
    yield compared("reversed words", "right words", runs, "right", **how)


def fine_tuning(record: Record) -> Iterator[Comparison]:
    """Going on from the everyday model beside starting from nothing."""
    about = {"seed": FINE_TUNING.seed, "batch": FINE_TUNING.batch_tokens}
    runs = [r | about | {"side": f"from {r['start']}"} for r in record["runs"]]
    for pairs in dict.fromkeys(each["pairs"] for each in runs):
        here = [each for each in runs if each["pairs"] == pairs]
        yield compared(f"Multi30k, {pairs:,} pairs", "BLEU", here, "bleu")


def time_to_quality(record: Record) -> Iterator[Comparison]:
    """Our training of the captions' recipe beside Hugging Face's, by the clock."""
    training, runs = recipe("multi30k-en-de-tiny").training, []
    about = {"seed": training.seed, "rate": training.lr_factor}
    for name, key in {"ours": "ours", "Hugging Face": "hugging_face"}.items():
        minutes = next(r["seconds"] / 60 for r in record[key] if r["bleu"] >= 30)
        run = {"side": name, "batch": training.batch_tokens, "minutes": minutes}
        runs.append(about | run | {"updates": record[key][-1]["step"]})
    yield compared("Multi30k, time to quality", "minutes to BLEU 30", runs, "minutes")


def table_3(runs: list[Record]) -> Iterator[Comparison]:
    """The rows of Table 3: base's settings with one change, big's with several."""
    training = scaled_down_recipe(variations()["base"]).training
    about = {"rate": training.lr_factor}
    for told, length, tokens in (
        ("10,000 updates", (10_000,), LONG["batch_tokens"]),
        ("2,000 updates, big 6,000", (2_000, 6_000), training.batch_tokens),
    ):
        here = trained((r | about for r in runs if r["updates"] in length), tokens)
        here = [r | {"side": r["row"], "loss": log(r["perplexity"])} for r in here]
        yield compared(f"Table 3, {told}", "loss", here, "loss")


READERS: dict[str, Callable[[Any], Iterable[Comparison]]] = {
    "after/series.jsonl": series,
    LABELLED: few_labels,
    "after/counted-words.json": lambda cut: few_labels(load(LABELLED), cut),
    "after/classifier.jsonl": classifier,
    "after/vision.jsonl": vision,
    "after/language-model.jsonl": language_model,
    "after/since_2017.jsonl": since_2017,
    "after/distillation.jsonl": distillation,
    "paper/parsing.jsonl": parsing,
    "paper/phrases.json": counted_phrases,
    "paper/race.json": race,
    words.RECORD: reversed_words,
    "paper/fine-tuning.json": fine_tuning,
    "speed/time-to-quality.json": time_to_quality,
    "paper/table3.jsonl": table_3,
}


def verdicts() -> Record:
    """Each comparison by its name: the table, the reasons against it, and remarks."""
    found: Record = {}
    for place, read in READERS.items():
        runs: Any = read_runs(place) if place.endswith("l") else load(place)
        for each in read(runs):
            about = {"record": f"results/{place}", "score": each.score}
            judged = {"unfair": unfair(each), "remarks": remarks(each)}
            found[each.name] = about | {"table": table(each)} | judged
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge, and write the list."""
    command_line(__doc__).parse_args(arguments)
    found = verdicts()
    for name, each in found.items():
        print(f"{name}: {'; '.join(each['unfair']) or 'fair'}")
    save(PLACE, {"header": HEADER, "comparisons": found})


if __name__ == "__main__":
    main()
