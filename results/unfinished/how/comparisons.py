"""Put the new readers of series and few labels into benchmarks/comparisons.py."""
import re

p = "benchmarks/comparisons.py"
s = open(p).read()


def cut(begin, end, new):
    global s
    a, b = s.index(begin), s.index(end)
    s = s[:a] + new + s[b:]


cut("def series() -> list[Comparison]:", "def classifier() -> list[Comparison]:", '''def series() -> list[Comparison]:
    """The linear model beside the Transformer, at each context and horizon."""
    return [
        Comparison(f"ETTh1, {hours} hours from {context}", "test MSE", sides)
        for context, horizons in load("after/series.json")["contexts"].items()
        for hours, parts in horizons.items()
        for sides in [series_sides(int(context), int(hours), parts)]
    ]


def series_sides(context: int, hours: int, parts: Record) -> tuple[Side, ...]:
    """Both sides, each tuned for this context and horizon."""
    one, runs, task = parts["linear"], parts["Transformer"], f"{hours} from {context}"
    grid: dict[str, Any] = {"penalty": PENALTIES}
    winner = {"penalty": one["penalty"]}
    solved = len(PENALTIES), None, (), (one["mse"],), task
    linear = Side("the linear model", grid, (winner,), *solved)
    tries = [
        {"rate": each["peak"], "patches": PATCHES[each["stride"]]}
        for each in parts["tries"]
    ]
    windows = TRAINING_HOURS - context - hours + 1
    passes = TRAINING.steps * TRAINING.batch / (windows * CHANNELS)
    seeds, scores = (tuple(each[key] for each in runs) for key in ("seed", "mse"))
    trained = len(tries), passes, seeds, scores, task
    return linear, Side("the Transformer", grid_of(tries), (tries[0],), *trained)


def few_labels() -> list[Comparison]:
    """Pretrained, from nothing and linear, at each number of labelled reviews."""
    record = load("after/masked-language-model.json")
    points = [
        each
        for each in record["points"]
        if each.get("updates") in (None, record["pretraining"]["updates"])
    ]
    return [
        Comparison(
            f"IMDb, {labels:,} labels",
            "test accuracy",
            tuple(
                few_labels_side(side, labels, points, record["tuned"][side])
                for side in FEW_LABELS
            ),
        )
        for labels in sorted({each["labels"] for each in points})
    ]


def few_labels_side(
    side: str, labels: int, points: Sequence[Record], tuned: Record
) -> Side:
    """A side at a number of labels; its settings were chosen once, at 1,000."""
    names = {"n-grams": "n", "C": "C"}
    if side != "linear":
        names = {"rate": "peak", "dropout": "dropout"}
    winner, *tried = renamed([tuned, *tuned["tried"]], **names)
    runs = [p for p in points if (p["side"], p["labels"]) == (side, labels)]
    (passes,) = {each.get("passes") for each in runs}
    seeds, scores = (tuple(each[key] for each in runs) for key in ("seed", "test"))
    search = grid_of(tried), (winner,), len(tried)
    bounds: dict[str, tuple[Value, ...]] = {"dropout": (0.0,), "n-grams": (1,)}
    named = FEW_LABELS[side], *search, passes, seeds, scores
    return Side(*named, tuned_on="1,000 labels", bounds=bounds)


''')
s = re.sub(r'# Of the logistic regression; its record.*?\}\n(?=REGRESSION_BOUNDS)', "", s, flags=re.S)
s = s.replace("LINEAR_CONTEXTS = (168, 336, 504, 720)\n", '''PATCHES = {8: "overlapping", 16: "side by side"}  # by their stride
FEW_LABELS = {
    "linear": "the linear model",
    "nothing": "the model from nothing",
    "pretrained": "the pretrained model",
}
''')
s = s.replace("from annotated_transformer.after.config import ClassifierTraining, SeriesTraining\n", "from annotated_transformer.after.config import ClassifierTraining\n")
s = s.replace("from benchmarks.fair import HEADER", "from benchmarks.after.series import TRAINING\nfrom benchmarks.fair import HEADER")
open(p, "w").write(s)
