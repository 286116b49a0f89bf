"""The forecaster: windows, parts, references, files, folders, and its commands."""

import gzip
import json
import math
from dataclasses import replace

import pytest
import torch

from annotated_transformer import UserError, load, verify
from annotated_transformer.after.series import (
    ETT,
    Ridge,
    Scale,
    Series,
    SeriesConfig,
    SeriesForecaster,
    SeriesTransformer,
    errors,
    forecaster,
    parts,
    read_series,
    repeat_last,
    repeat_period,
    train_series,
    tuned_ridge,
    windows,
)
from annotated_transformer.training.checkpoint import save_model

SMALL = SeriesConfig(
    N=1, d_model=16, d_ff=32, h=2, dropout=0.0, context=24, patch=6, horizon=6
)


def sines(rows: int = 400) -> Series:
    """Two waves of twelve steps, of different size, with a trend."""
    time = torch.arange(rows)
    wave = torch.sin(2 * math.pi * time / 12)
    values = torch.stack([wave + time / 200, 50 + 5 * wave.roll(3)], dim=1)
    return Series(("load", "heat"), tuple(map(str, range(rows))), values)


def write(path, series: Series) -> None:
    rows = zip(series.dates, series.values.tolist(), strict=True)
    lines = [",".join([date, *map(str, row)]) for date, row in rows]
    path.write_text("\n".join([",".join(["date", *series.names]), *lines]) + "\n")


def test_windows_hold_every_stretch():
    values = torch.arange(20.0).view(10, 2)
    found = windows(values, 4, 2)
    assert found.shape == (5, 2, 6)
    assert found[1, 0].tolist() == values[1:7, 0].tolist()


def test_errors_by_hand():
    values = torch.tensor([[0.0], [1.0], [3.0], [3.0]])
    squared, absolute = errors(repeat_last(2), values, 1, 2)
    # 0 against 1 and 3, then 1 against 3 and 3
    assert squared == (1 + 9 + 4 + 4) / 4 and absolute == (1 + 3 + 2 + 2) / 4
    past = torch.arange(6.0)[None]
    assert repeat_period(5, 3)(past).tolist() == [[3, 4, 5, 3, 4]]


def test_parts_know_nothing_of_the_future():
    series = sines(100)
    train, valid, test, mean, spread = parts(series, 10, 5)
    assert (len(train), len(valid), len(test)) == (60, 30, 30)
    assert torch.allclose(train.mean(0), torch.zeros(2), atol=1e-5)
    assert torch.allclose(train.std(0, correction=0), torch.ones(2), atol=1e-4)
    assert torch.equal(valid[:10], train[-10:])
    later = replace(series, values=series.values.clone())
    later.values[60:] += 99
    assert torch.equal(parts(later, 10, 5)[0], train)
    with pytest.raises(UserError, match="too few"):
        parts(series, 10, 21)


def test_the_usual_split_of_ett():
    dates = tuple(f"2016-07-01 {hour:02}:00:00" for hour in range(2))
    series = Series(ETT, dates, torch.rand(17420, 7))
    train, valid, test, *_ = parts(series, 336, 96)
    assert [len(train), len(valid) - 336, len(test) - 336] == [8640, 2880, 2880]
    assert len(windows(test, 336, 96)) == 2880 - 96 + 1


def test_the_linear_model_equals_least_squares():
    values = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    rows = windows(values, 8, 3).flatten(0, 1).double()
    relative = rows - rows[:, 7:8]
    root = math.sqrt(0.5 * len(rows))
    past = torch.cat([relative[:, :8], root * torch.eye(8)])
    future = torch.cat([relative[:, 8:], torch.zeros(8, 3)])
    weights = torch.linalg.lstsq(past, future).solution
    found = Ridge(values, 8, 3).forecaster(0.5, 3)(rows[:, :8].float())
    wanted = relative[:, :8] @ weights + rows[:, 7:8]
    assert torch.allclose(found.double(), wanted, atol=1e-4)


def test_sines_are_forecast_by_both():
    series = sines()
    train, valid, test, *_ = parts(series, 24, 6)
    linear, context, _ = tuned_ridge(series, 6, [12, 24])
    assert errors(linear, parts(series, context, 6)[2], context, 6)[0] < 1e-3
    torch.manual_seed(1)
    model = SeriesTransformer(SMALL)
    *_, last = train_series(model, train, valid, steps=150, every=50)
    assert last["step"] == 150
    assert errors(forecaster(model), test, 24, 6)[0] < 0.05


def test_a_series_may_stand_still():
    series = replace(sines(), values=torch.ones(400, 2))
    train, valid, test, *_ = parts(series, 24, 6)
    model = SeriesTransformer(SMALL)
    list(train_series(model, train, valid, steps=2, every=1))
    assert all(map(math.isfinite, errors(forecaster(model), test, 24, 6)))


def test_it_is_saved_and_opened_by_load(tmp_path):
    torch.manual_seed(0)
    model, series = SeriesTransformer(SMALL), sines()
    scale = Scale(series.names, (1.0, 50.0), (2.0, 5.0))
    save_model(tmp_path / "model", model, scale)
    opened = load(tmp_path / "model", device="cpu")
    assert isinstance(opened, SeriesForecaster) and opened.scale == scale
    kept = SeriesForecaster(model, scale).forecast(series)
    assert torch.equal(opened.forecast(series), kept) and kept.shape == (6, 2)
    with pytest.raises(UserError, match="20 rows"):
        opened.forecast(replace(series, values=series.values[:20]))
    with pytest.raises(UserError, match="columns are a, b"):
        opened.forecast(replace(series, names=("a", "b")))
    (tmp_path / "model" / "scale.json").write_text("{}")
    verify(tmp_path / "model", accept=True)
    with pytest.raises(UserError, match="scale.json is damaged"):
        load(tmp_path / "model")
    huge = {"names": ["a", "b"], "mean": [10**400, 1], "spread": [1, 1]}
    (tmp_path / "model" / "scale.json").write_text(json.dumps(huge))
    verify(tmp_path / "model", accept=True)
    with pytest.raises(UserError, match="scale.json is damaged"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    "change",
    [{"context": 25}, {"horizon": 0}, {"patch": 0}, {"context": 1, "patch": 1}],
)
def test_sizes_out_of_range_are_refused(change):
    with pytest.raises(UserError):
        SeriesConfig(**change)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "empty"),
        ("date\n1\n2\n", "line 1"),
        ("date,a,a\n1,2,3\n2,3,4\n", "line 1"),
        ("date,a\n1,2\n2,3,4\n", "line 3 has 3 columns"),
        ("date,a\n1,2\n2,dear\n", "line 3: dear is no number"),
        ("date,a\n1,2\n2,\n", "line 3: an empty cell"),
        ("date,a\n1,nan\n2,3\n", "line 2: nan is no number"),
        ("date,a\n1,2\n", "no two lines"),
    ],
)
def test_files_that_are_no_series(text, words, tmp_path):
    (tmp_path / "file.csv").write_text(text)
    with pytest.raises(UserError, match=words):
        read_series(tmp_path / "file.csv")


def test_steps_in_a_day():
    def day(first, second):
        return Series(("a",), (first, second), torch.zeros(2, 1)).day

    assert day("2016-07-01 00:00:00", "2016-07-01 00:15:00") == 96
    assert day("2016-07-01", "2016-07-02") == 7 and day("first", "second") == 24


def test_the_commands_train_measure_and_forecast(run, tmp_path):
    series, out = sines(), tmp_path / "model"
    dates = tuple(f"2020-01-{i // 24 + 1:02} {i % 24:02}:00" for i in range(400))
    write(tmp_path / "file.csv", replace(series, dates=dates))
    packed = tmp_path / "file.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "file.csv").read_bytes()))
    sizes = ["--context", 24, "--patch", 6, "--horizon", 6, "--steps", 60]
    status, said, told = run("series", "train", out, "--data", packed, *sizes)
    assert status == 0 and said.startswith("validation MSE") and "update    60" in told
    status, said, _ = run("series", "evaluate", out, "--data", packed)
    names = [line.split("  ")[0] for line in said.splitlines()[1:]]
    assert status == 0 and len(names) == 4
    assert names[:2] == ["Transformer", "linear"] and names[3] == "naive"
    status, said, _ = run("series", "forecast", out, tmp_path / "file.csv")
    head, first, *rest = said.splitlines()
    assert status == 0 and head == "date,load,heat" and len(rest) == 5
    assert first.startswith("2020-01-17 16:00:00,") and first.count(",") == 2


def test_bad_input_ends_in_one_line(run, tmp_path):
    def refused(words, *arguments):
        status, _, told = run("series", *arguments)
        assert status == 2 and words in told and len(told.splitlines()) == 1, told

    out, model, file = tmp_path / "out", tmp_path / "model", tmp_path / "file.csv"
    write(file, sines(100))
    scale = Scale(("load", "heat"), (0.0, 0.0), (1.0, 1.0))
    save_model(model, SeriesTransformer(SMALL), scale)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("dear")
    refused("no such file", "train", out, "--data", tmp_path / "nowhere.csv")
    refused("other files", "train", tmp_path / "full", "--data", file)
    refused("too few", "train", out, "--data", file)
    refused("whole patches", "train", out, "--data", file, "--patch", 25)
    refused("no forecaster", "forecast", "phrasebook-en-de", file)
    write(file, replace(sines(100), names=("a", "b")))
    refused("the columns are a, b", "forecast", model, file)
    refused("the columns are a, b", "evaluate", model, "--data", file)
    file.write_bytes(b"date,a\n1,\xff\n")
    refused("not UTF-8", "train", out, "--data", file)
    assert not out.exists()
