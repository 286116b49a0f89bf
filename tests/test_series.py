"""The forecaster: windows, parts, references, files, folders, and its commands."""

import json
import math
from dataclasses import replace

import pytest
import torch
from tiny_run import refused as assert_refused

from annotated_transformer import UserError, load
from annotated_transformer.after.forecasting import (
    Scale,
    SeriesForecaster,
    SeriesTask,
    SeriesTraining,
)
from annotated_transformer.after.series import (
    ETT,
    Ridge,
    SeriesConfig,
    SeriesTransformer,
    forecast_errors,
    forecaster,
    repeat_period,
    split_series,
    tuned_ridge,
    windows,
)
from annotated_transformer.data.series import Series
from annotated_transformer.training.checkpoint import save_model
from benchmarks.train import train_task

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
    squared, absolute = forecast_errors(repeat_period(2, 1), values, 1, 2)
    # 0 against 1 and 3, then 1 against 3 and 3
    assert squared == (1 + 9 + 4 + 4) / 4 and absolute == (1 + 3 + 2 + 2) / 4
    past = torch.arange(6.0)[None]
    assert repeat_period(5, 3)(past).tolist() == [[3, 4, 5, 3, 4]]


def test_parts_know_nothing_of_the_future():
    series = sines(100)
    train, valid, test, mean, spread = split_series(series, 10, 5)
    assert (len(train), len(valid), len(test)) == (60, 30, 30)
    assert torch.allclose(train.mean(0), torch.zeros(2), atol=1e-5)
    assert torch.allclose(train.std(0, correction=0), torch.ones(2), atol=1e-4)
    assert torch.equal(valid[:10], train[-10:])
    later = replace(series, values=series.values.clone())
    later.values[60:] += 99
    assert torch.equal(split_series(later, 10, 5)[0], train)
    with pytest.raises(UserError, match="too few"):
        split_series(series, 10, 21)


def test_the_usual_split_of_ett():
    dates = tuple(f"2016-07-01 {hour:02}:00:00" for hour in range(2))
    series = Series(ETT, dates, torch.rand(17420, 7))
    train, valid, test, *_ = split_series(series, 336, 96)
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
    found = Ridge(values, 8, 3).forecaster(0.5)(rows[:, :8].float())
    wanted = relative[:, :8] @ weights + rows[:, 7:8]
    assert torch.allclose(found.double(), wanted, atol=1e-4)


def test_sines_are_forecast_by_the_linear_model():
    linear, _ = tuned_ridge(sines(), 24, 6)
    own = split_series(sines(), 24, 6)[2]
    assert forecast_errors(linear, own, 24, 6)[0] < 1e-3


def test_patches_may_overlap():
    overlapping = replace(SMALL, stride=3)
    assert (SMALL.tokens, overlapping.tokens) == (4, 7)
    model, past = SeriesTransformer(overlapping), torch.rand(2, 24)
    read = []
    model.embed.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    assert model(past).shape == (2, 6)
    assert torch.equal(read[0][:, 0, 3:], read[0][:, 1, :3])
    with pytest.raises(UserError, match="stride 5.*whole patches"):
        replace(SMALL, stride=5)


def test_a_series_may_stand_still():
    series = replace(sines(), values=torch.ones(400, 2))
    train, valid, test, *_ = split_series(series, 24, 6)
    model = SeriesTransformer(SMALL)
    settings = SeriesTraining(steps=2, save_every=1)
    list(train_task(SeriesTask(model, None, train, valid, settings)))
    assert all(map(math.isfinite, forecast_errors(forecaster(model), test, 24, 6)))


def test_a_short_series_and_a_damaged_scale_are_refused(tmp_path):
    series, model = sines(), SeriesTransformer(SMALL)
    opened = SeriesForecaster(model, Scale(series.names, (1.0, 50.0), (2.0, 5.0)))
    with pytest.raises(UserError, match="20 rows"):
        opened.forecast(replace(series, values=series.values[:20]))
    opened.save_pretrained(tmp_path / "model")
    huge = {"names": ["a", "b"], "mean": [10**400, 1], "spread": [1, 1]}
    for damaged in ({}, huge):
        (tmp_path / "model" / "scale.json").write_text(json.dumps(damaged))
        with pytest.raises(UserError, match="scale.json is damaged"):
            load(tmp_path / "model")


def test_bad_input_ends_in_one_line(run, tmp_path):
    def refused(words, *arguments):
        assert_refused(run("series", *arguments), words)

    out, model, file = tmp_path / "out", tmp_path / "model", tmp_path / "file.csv"
    write(file, sines(100))
    scale = Scale(("load", "heat"), (0.0, 0.0), (1.0, 1.0))
    save_model(model, SeriesTransformer(SMALL), scale)
    refused("too few for context=336 and horizon=96", "train", file, "-o", out)
    refused("whole patches", "train", file, "-o", out, "--set", "patch=25")
    write(file, replace(sines(100), names=("a", "b")))
    refused("the columns are a, b", "forecast", model, file)
    refused("the columns are a, b", "evaluate", model, file)
    file.write_bytes(b"date,a\n1,\xff\n")
    refused("not UTF-8", "train", file, "-o", out)
    assert not out.exists()
