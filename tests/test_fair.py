"""The gate for comparisons: each unfairness planted and refused; today's verdicts."""

from dataclasses import replace

import pytest

from benchmarks import comparisons
from benchmarks.fair import BOUNDS, Comparison, Side, remarks, score, table, unfair
from benchmarks.record import RESULTS, ROOT, load, read_runs

NET = Side(
    name="the network",
    grid={"rate": (0.001, 0.003, 0.01), "dropout": (0.0, 0.1), "norm": ("pre", "post")},
    winners=({"rate": 0.003, "dropout": 0.0, "norm": "pre"},),
    trials=12,
    passes=3.0,
    seeds=(1, 2, 3),
    scores=(0.8, 0.81, 0.79),
    tuned_on="the task",
    tuning_seeds=(0,),
    trial=3.0,
    parameters=1_000,
    batch=64,
    seconds=90.0,
)
LINEAR = Side(
    name="the linear model",
    grid={"C": (1, 4, 16, 64)},
    winners=({"C": 4}, {"C": 16}, {"C": 4}),
    trials=12,
    passes=None,
    seeds=(),
    scores=(0.7,),
    tuned_on="the task",
)


def compare(*sides):
    return Comparison("a and b", "accuracy", sides)


def tried(side, **grid):
    return replace(side, grid={**side.grid, **grid})


def test_a_fair_comparison_passes():
    assert unfair(compare(NET, LINEAR)) == []


def winning(side, **settings):
    return replace(side, winners=({**side.winners[0], **settings},))


PLANTED = {
    "largest": (
        *(winning(NET, rate=0.01), LINEAR),
        "the network's rate 0.01 is the largest that was tried",
    ),
    "smallest": (
        *(winning(NET, rate=0.001), LINEAR),
        "the network's rate 0.001 is the smallest that was tried",
    ),
    "of one seed": (
        *(NET, replace(LINEAR, winners=({"C": 4}, {"C": 64}))),
        "the linear model's C 64 is the largest that was tried",
    ),
    "no bound": (
        *(winning(tried(NET, norm=(0, 1, 2)), norm=0), LINEAR),
        "the network's norm 0 is the smallest that was tried",
    ),
    "outside": (
        *(winning(NET, rate=0.5), LINEAR),
        "the network's rate 0.5 is not among those that were tried",
    ),
    "far neighbours": (
        *(tried(NET, rate=(1e-12, 0.003, 0.01)), LINEAR),
        "the network's rate 0.003 is alone: 1e-12 was tried next to it",
    ),
    "a rate of zero": (
        *(tried(NET, rate=(0, 0.003, 0.01)), LINEAR),
        "the network's rate 0.003 is alone: 0 was tried next to it",
    ),
    "a neighbour that is as good as equal": (
        *(tried(NET, rate=(0.00299, 0.003, 0.01)), LINEAR),
        "the network's rate 0.003 is alone: 0.00299 was tried next to it",
    ),
    "numbers as words": (
        *(winning(tried(NET, rate=("1e-12", "0.003")), rate="0.003"), LINEAR),
        "the network's rate has numbers as words: 1e-12, 0.003",
    ),
    "numbers among words": (
        *(winning(tried(NET, rate=(0.001, "high")), rate="high"), LINEAR),
        "the network's rate has numbers as words: 0.001, high",
    ),
    "words alone": (
        *(replace(NET, grid={"norm": ("pre", "post")}), LINEAR),
        "the network was tuned in words alone, in no number",
    ),
    "one value": (
        *(tried(NET, rate=(0.003,)), LINEAR),
        "the network's rate was not tuned: 0.003 alone was tried",
    ),
    "no grid": (
        *(NET, replace(LINEAR, grid={"C": (4,)}, winners=({"C": 4},))),
        "the linear model was not tuned",
    ),
    "budget": (
        *(NET, replace(LINEAR, trials=32)),
        "trials differ: the network 12, the linear model 32",
    ),
    "task": (
        *(NET, replace(LINEAR, tuned_on="another")),
        "tasks of tuning differ: the network the task, the linear model another",
    ),
    "the test": (
        *(replace(NET, tuned_on="the test"), replace(LINEAR, tuned_on=None)),
        "the network was tuned on the test by which it is scored",
    ),
    "a scored seed": (
        *(replace(NET, tuning_seeds=(0, 2)), LINEAR),
        "the network's seed 2 chose its settings and is scored",
    ),
    "batch": (
        *(NET, replace(NET, name="base", batch=128)),
        "batches differ: the network 64, base 128",
    ),
    "trial": (
        *(NET, replace(NET, name="base", trial=1.0)),
        "passes of a trial differ: the network 3, base 1",
    ),
    "passes": (
        *(NET, replace(NET, name="base", passes=4.0)),
        "passes differ: the network 3, base 4",
    ),
    "seeds": (
        *(replace(NET, seeds=(1, 2), scores=(0.8, 0.81)), LINEAR),
        "the network has 2 seeds, fewer than 3",
    ),
    "a seed twice": (
        *(replace(NET, seeds=(1, 2, 2), scores=(0.8, 0.81)), LINEAR),
        "the network has 2 seeds, fewer than 3",
    ),
    "scores": (
        *(replace(NET, scores=(0.8, 0.81)), LINEAR),
        "the network has 2 scores where 3 belong",
    ),
}


@pytest.mark.parametrize("sort", PLANTED)
def test_an_unfair_comparison_is_refused(sort):
    *sides, reason = PLANTED[sort]
    assert unfair(compare(*sides)) == [reason]


def test_one_side_is_no_comparison():
    assert unfair(compare(NET)) == ["there is one side alone"]


def test_a_bound_holds_for_its_setting_whoever_compares():
    assert {"dropout": 0, "penalty": 0}.items() <= BOUNDS.items()
    for setting, bound in BOUNDS.items():
        values = (bound, bound + 0.5, bound + 1)
        side = replace(LINEAR, grid={setting: values}, winners=({setting: bound},))
        assert unfair(compare(NET, side)) == []
        side = replace(side, winners=({setting: bound + 1},))
        (reason,) = unfair(compare(NET, side))
        assert reason.endswith("the largest that was tried")


def test_what_differs_is_told_and_is_no_reason():
    net = tried(NET, rate=(0.001, 0.003, 0.01, 0.03))
    larger, nearly = (replace(net, name=f"{n}", parameters=n) for n in (1_060, 1_040))
    assert remarks(compare(net, nearly, LINEAR)) == []
    both = compare(net, larger)
    told = "parameters: from 1,000 (the network) to 1,060 (1060)"
    assert remarks(both) == [told] and not unfair(both)
    short = compare(replace(net, trial=1.0), LINEAR)
    told = "the network's trials were shorter than its runs: 1 of 3 passes"
    assert remarks(short) == [told] and not unfair(short)


def test_threes_that_their_middle_always_wins_are_told():
    one, two = (replace(NET, name=n, grid={"rate": (1, 2, 3)}) for n in "ab")
    one, two = (replace(each, winners=({"rate": 2},)) for each in (one, two))
    told = "each grid of three values was won by its middle"
    assert remarks(compare(one, two, LINEAR)) == [told]
    assert remarks(compare(one, replace(two, winners=({"rate": 3},)))) == []


def test_the_table_has_grids_and_intervals():
    network, linear = table(compare(NET, LINEAR))
    assert network == [
        *("network", "rate 0.001, 0.003, 0.01; dropout 0, 0.1; norm pre, post"),
        *("rate 0.003; dropout 0; norm pre", "12", "3", "1, 2, 3", "0.8 ± 0.025"),
        *("3", "1,000", "64", "90"),
    ]
    assert linear[2:] == ["C 4, 16", "12", "exact", "none", "0.7", *[""] * 4]
    # Student's t for two degrees of freedom is 4.30; 4.30 · 0.01 / √3 = 0.0248.
    assert score((0.8, 0.81, 0.79)) == "0.8 ± 0.025"


def test_each_record_is_judged():
    there = {f"after/{path.name}" for path in (RESULTS / "after").iterdir()}
    # What a teacher wrote, what single words add, what a mask, a shuffle or a broken
    # import changes, and what one model writes: none is a contest.
    about = (
        "distillation word-shares mask-twins hidden-words gaps byte-pairs next-token"
    )
    about += " shuffled broken-imports"
    others = {f"after/{name}.json" for name in about.split()}
    contests = "parsing.jsonl phrases.json race.json table3.jsonl"
    contests += " reversal.json fine-tuning.json"
    paper = {f"paper/{name}" for name in contests.split()}
    paper.add("speed/time-to-quality.json")
    assert there | paper == {*comparisons.READERS, *others}


def test_the_verdicts_are_those_on_the_list():
    listed, found = load(comparisons.PLACE)["comparisons"], comparisons.verdicts()
    for part in ("unfair", "remarks", "table"):
        parts = {name: each[part] for name, each in found.items()}
        assert parts == {name: each[part] for name, each in listed.items()}


SAID = {  # a page that quotes a comparison which isn't fair, and where it says so
    "IMDb, all labels": "after/classifier.ipynb: also chose the settings",
    "reversed words": "model/transformer.ipynb: chosen on the very words",
    "Multi30k, 300 pairs": "translation/own_text.ipynb: One seed each, nothing tuned",
    "Multi30k, time to quality": "results.md: One run each, neither tuned",
}


@pytest.mark.parametrize("name", SAID)
def test_a_page_says_that_its_comparison_is_unfair(name):
    page, words = SAID[name].split(": ")
    assert load(comparisons.PLACE)["comparisons"][name]["unfair"]
    assert words in (ROOT / "nbs" / page).read_text("utf-8")


# -- planted in a record ---------------------------------------------------------------

IMAGES = "MNIST, 1,000 images"


def planted(change):
    """The reasons against a comparison of images whose record was changed."""
    runs = read_runs("after/vision.jsonl")
    chosen = "1000 images", "transformer"
    here = [r for r in runs if (r["study"], r["side"]) == chosen]
    others = [each for each in runs if each not in here]
    found = comparisons.vision(others + change(here))
    (one,) = (each for each in found if each.name == IMAGES)
    return unfair(one)


def trials(runs):
    return [each for each in runs if each["seed"] == 0]


def final(runs, **changed):
    return [each | changed for each in runs if each["seed"]]


def test_a_record_without_a_seed_is_refused():
    reasons = planted(lambda runs: trials(runs) + final(runs)[:-1])
    assert reasons == ["transformer has 2 seeds, fewer than 3"]


def test_a_record_without_a_trial_is_refused():
    reasons = planted(lambda runs: trials(runs)[:-1] + final(runs))
    assert len(reasons) == 1 and reasons[0].startswith("trials differ: ")


def test_a_record_that_won_on_an_edge_is_refused():
    def change(runs):
        *others, last = sorted(trials(runs), key=lambda run: run["rate"])
        won = last | {"validation_loss": 0.0}
        return [*others, won, *final(runs, rate=won["rate"])]

    (reason,) = planted(change)
    assert reason.startswith("transformer's rate ")
    assert reason.endswith(" is the largest that was tried")


def test_a_record_whose_runs_have_not_what_won_is_refused():
    def change(runs):
        other = min(each["rate"] for each in runs)
        return trials(runs) + final(runs, rate=other)

    with pytest.raises(ValueError, match="transformer: its runs have rate .* won"):
        planted(change)


def test_a_record_with_longer_runs_is_refused():
    reasons = planted(lambda runs: trials(runs) + final(runs, updates=9_000))
    assert len(reasons) == 1 and reasons[0].startswith("updates differ: ")


def test_a_record_with_one_longer_run_is_refused():
    def change(runs):
        *first, last = final(runs)
        return [*trials(runs), *first, last | {"updates": 9_000}]

    with pytest.raises(ValueError, match="transformer: its runs differ in updates"):
        planted(change)


def test_a_record_whose_tuning_seed_is_scored_is_refused():
    def change(runs):
        first, *others = final(runs)
        return [*trials(runs), first | {"seed": 0}, *others]

    (reason,) = planted(change)
    assert reason == "transformer's seed 0 chose its settings and is scored"
