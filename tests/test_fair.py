"""The gate for comparisons: each unfairness planted and refused; today's verdicts."""

from dataclasses import replace

import pytest

from benchmarks import comparisons, record
from benchmarks.fair import Comparison, Side, score, table, unfair
from benchmarks.record import RESULTS, load, read_runs

NET = Side(
    name="the network",
    grid={"rate": (0.001, 0.003, 0.01), "dropout": (0.0, 0.1), "norm": ("pre", "post")},
    winners=({"rate": 0.003, "dropout": 0.0, "norm": "pre"},),
    trials=12,
    passes=3.0,
    seeds=(1, 2, 3),
    scores=(0.8, 0.81, 0.79),
    tuned_on="the task",
    bounds={"dropout": (0.0,)},
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
        *(replace(NET, bounds={}), LINEAR),
        "the network's dropout 0 is the smallest that was tried",
    ),
    "outside": (
        *(winning(NET, rate=0.5), LINEAR),
        "the network's rate 0.5 is not among those that were tried",
    ),
    "far neighbours": (
        *(replace(NET, grid={**NET.grid, "rate": (1e-12, 0.003, 0.01)}), LINEAR),
        "the network's rate 0.003 is alone: 1e-12 was tried next to it",
    ),
    "one value": (
        *(replace(NET, grid={**NET.grid, "rate": (0.003,)}), LINEAR),
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


def test_the_table_has_grids_and_intervals():
    network, linear = table(compare(NET, LINEAR))
    assert network == [
        *("network", "rate 0.001, 0.003, 0.01; dropout 0, 0.1; norm pre, post"),
        *("rate 0.003; dropout 0; norm pre", "12", "3", "1, 2, 3", "0.8 ± 0.025"),
    ]
    assert linear[2:] == ["C 4, 16", "12", "exact", "none", "0.7"]
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
    paper = {f"paper/{name}" for name in contests.split()}
    assert there | paper == {*comparisons.READERS, *others}


def test_the_verdicts_are_those_on_the_list():
    listed, found = load(comparisons.PLACE)["comparisons"], comparisons.verdicts()
    words = {name: each["unfair"] for name, each in found.items()}
    assert words == {name: each["unfair"] for name, each in listed.items()}
    tables = {name: each["table"] for name, each in found.items()}
    assert tables == {name: each["table"] for name, each in listed.items()}


def test_a_new_reason_must_be_admitted(tmp_path, monkeypatch):
    unknown = [Comparison("new", "accuracy", (NET, replace(LINEAR, trials=32)))]
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr(comparisons, "load", lambda place: {})
    monkeypatch.setattr(comparisons, "READERS", {"new.json": lambda: unknown})
    with pytest.raises(SystemExit, match="new: trials differ"):
        comparisons.main([])
    assert not (tmp_path / comparisons.PLACE).exists()
    comparisons.main(["--admit"])
    assert (tmp_path / comparisons.PLACE).exists()
    unknown[:] = [Comparison("new", "accuracy", (NET, LINEAR))]
    comparisons.main([])  # mended: the list shrinks


# -- planted in a record ---------------------------------------------------------------

IMAGES = "MNIST, 1,000 images"


def planted(monkeypatch, change):
    """The reasons against a comparison of images whose record was changed."""
    runs = read_runs("after/vision.jsonl")
    chosen = "1000 images", "transformer"
    here = [r for r in runs if (r["study"], r["side"]) == chosen]
    others = [each for each in runs if each not in here]
    monkeypatch.setattr(comparisons, "read_runs", lambda _: others + change(here))
    (one,) = (each for each in comparisons.vision() if each.name == IMAGES)
    return unfair(one)


def trials(runs):
    return [each for each in runs if each["seed"] == 0]


def final(runs, **changed):
    return [each | changed for each in runs if each["seed"]]


def test_a_record_without_a_seed_is_refused(monkeypatch):
    reasons = planted(monkeypatch, lambda runs: trials(runs) + final(runs)[:-1])
    assert reasons == ["transformer has 2 seeds, fewer than 3"]


def test_a_record_without_a_trial_is_refused(monkeypatch):
    reasons = planted(monkeypatch, lambda runs: trials(runs)[:-1] + final(runs))
    assert len(reasons) == 1 and reasons[0].startswith("trials differ: ")


def test_a_record_that_won_on_an_edge_is_refused(monkeypatch):
    def change(runs):
        *others, last = sorted(trials(runs), key=lambda run: run["rate"])
        won = last | {"validation_loss": 0.0}
        return [*others, won, *final(runs, rate=won["rate"])]

    (reason,) = planted(monkeypatch, change)
    assert reason.startswith("transformer's rate ")
    assert reason.endswith(" is the largest that was tried")


def test_a_record_whose_runs_have_not_what_won_is_refused(monkeypatch):
    def change(runs):
        other = min(each["rate"] for each in runs)
        return trials(runs) + final(runs, rate=other)

    with pytest.raises(ValueError, match="transformer: its runs have rate .* won"):
        planted(monkeypatch, change)


def test_a_record_with_longer_runs_is_refused(monkeypatch):
    reasons = planted(
        monkeypatch, lambda runs: trials(runs) + final(runs, updates=9_000)
    )
    assert len(reasons) == 1 and reasons[0].startswith("updates differ: ")


def test_a_record_with_one_longer_run_is_refused(monkeypatch):
    def change(runs):
        *first, last = final(runs)
        return [*trials(runs), *first, last | {"updates": 9_000}]

    with pytest.raises(ValueError, match="transformer: its runs differ in updates"):
        planted(monkeypatch, change)
