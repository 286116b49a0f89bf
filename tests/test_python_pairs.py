"""`prepare` takes pairs as they lie in Python: tables, data sets, functions."""

from dataclasses import replace

import pytest
from tiny_run import losses, sentences

from annotated_transformer import UserError, fit, prepare, recipe
from annotated_transformer.data.python_pairs import as_pairs

PAIRS = sentences()


def dataset(rows):
    return pytest.importorskip("datasets").Dataset.from_list(rows)


def flat(pairs):
    return dataset([{"id": i, "de": de, "en": en} for i, (en, de) in enumerate(pairs)])


def nested(pairs):
    return dataset([{"translation": {"de": de, "en": en}} for en, de in pairs])


def streamed(pairs):
    return nested(pairs).to_iterable_dataset()


def frame(pairs):
    table = pytest.importorskip("pandas").DataFrame(pairs, columns=["en", "de"])
    table.index += 7  # an index that doesn't begin at 0, as after a selection
    return table[["de", "en"]]


def function(pairs):
    return lambda: iter(pairs)


def generator(pairs):
    def make():
        yield from pairs

    return make


@pytest.fixture
def plan():
    plan = recipe("phrasebook")
    sizes = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "d_k": 8, "d_v": 8}
    few = {"steps": 2, "log_every": 1, "save_every": 1, "batch_tokens": 256}
    architecture = replace(plan.architecture, **sizes)
    training = replace(plan.training, precision="fp32", **few)
    return replace(plan, architecture=architecture, training=training, vocab_size=40)


@pytest.mark.parametrize("given", [flat, nested, streamed, frame, function, generator])
def test_a_run_is_that_of_the_list(plan, tmp_path, given):
    for folder, form in (("list", list), ("given", given)):
        sides = form(PAIRS), form(PAIRS[:10])
        fit(prepare(plan, tmp_path / folder, *sides, None, "cpu"))
    assert losses(tmp_path / "list") == losses(tmp_path / "given") != []


def the_same(iterator):
    return lambda: iterator


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: flat(PAIRS).remove_columns("de"), "no column 'de', and has id, en"),
        (lambda: frame(PAIRS).drop(columns="en"), "no column 'en', and has de"),
        (lambda: frame(PAIRS).rename(columns={"en": "EN"}), "recipe's languages, 'en'"),
        (lambda: dataset([{"translation": {"en": "a", "fr": "b"}}]), "has en, fr"),
        (
            lambda: dataset([{"translation": "a"}]),
            "no column 'en', and has translation",
        ),
        (lambda: flat(PAIRS).select([]), "train is empty"),
        (lambda: frame([]), "train is empty"),
        (lambda: frame([("a", "b"), (None, "c")]), r"train\[1\] is \(.*, 'c'\)"),
        (lambda: lambda path: iter(PAIRS), "can't be called.*without arguments"),
        (lambda: lambda: 3, r"train\(\) is 3: give a new iterator"),
        (lambda: the_same(iter(PAIRS)), "same iterator again"),
    ],
)
def test_what_can_be_no_pairs_is_named_before_a_folder_is_made(
    plan, tmp_path, wrong, message
):
    with pytest.raises(UserError, match=message):
        prepare(plan, tmp_path / "run", wrong(), PAIRS, None, "cpu")
    assert not (tmp_path / "run").exists()


def test_a_data_set_of_several_splits_asks_for_one(plan, tmp_path):
    splits = pytest.importorskip("datasets").DatasetDict(train=flat(PAIRS))
    with pytest.raises(UserError, match="the first row of train is 'train'"):
        prepare(plan, tmp_path / "run", splits, PAIRS, None, "cpu")


def test_a_row_without_a_text_is_named_as_it_comes():
    rows = flat([*PAIRS, ("a", None)])
    with pytest.raises(UserError, match=rf"train\[{len(PAIRS)}\] is \('a', None\)"):
        list(as_pairs("train", rows, "en", "de"))
    with pytest.raises(UserError, match=r"train\[0\] is 'ab'"):
        list(as_pairs("train", lambda: ["ab"], "en", "de"))
