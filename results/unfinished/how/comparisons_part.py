def searched(
    name: str,
    runs: Sequence[Record],
    settings: dict[str, str],
    task: str,
    bounds: dict[str, tuple[Value, ...]] | None = None,
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
    (passes,) = {each.get("passes") for each in last}
    names = settings.values()
    return Side(
        *(name, grid_of([dict(zip(names, each, strict=True)) for each in tried])),
        *((dict(zip(names, best, strict=True)),), len(tried), passes),
        seeds=tuple(each["seed"] for each in last if "seed" in each),
        scores=tuple(each["accuracy"] for each in last),
        tuned_on=task,
        bounds=bounds or {},
    )


def judged(run: Record) -> tuple[float, float]:
    """By what a trial is chosen: the accuracy on validation, then the loss."""
    return run["valid_accuracy"], -run["valid_loss"]


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
    """Four models in the same loop, at each number of training images."""
    runs, found = read_runs("after/vision.jsonl"), []
    names = {
        "linear-moved": "the linear model on moved images",
        "linear": "the linear model",
        "transformer": "the vision Transformer",
        "convolution": "the convolutional network",
    }
    for images in sorted({each["images"] for each in runs}):
        task = f"{images:,} images"
        sides = []
        for part, name in names.items():
            own = [r for r in runs if (r["part"], r["images"]) == (part, images)]
            sides.append(searched(name, own, {"rate": "rate"}, task))
        found.append(Comparison(f"MNIST, {task}", "test accuracy", tuple(sides)))
    return found
