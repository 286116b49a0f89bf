"""The growth benchmark: its memory counter, what it counts, its record; and the GPU
script where there is no GPU.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from annotated_transformer.cli.plan import change
from annotated_transformer.training.recipes import recipe
from benchmarks.scale import gpu, growth

ROOT = Path(__file__).resolve().parent.parent
RECORD = json.loads(
    (ROOT / "results" / "scale" / "growth.json").read_text(encoding="utf-8")
)
AXES = {
    ("layer", "layer"): ("n", growth.LENGTHS, 2),
    ("length", "update"): ("n", growth.LENGTHS, 3),
    ("vocabulary", "update"): ("vocabulary", growth.VOCABULARIES, 2),
    ("depth", "update"): ("N", growth.DEPTHS, 1),
    ("decoding", "token"): ("prefix", growth.PREFIXES, 2),
}


def curve(section: str, rows: str, form: str, value: str) -> dict[int, float]:
    """One recorded curve."""
    axis = AXES[section, rows][0]
    return {
        row[axis]: row[value] for row in RECORD[section][rows] if row["form"] == form
    }


def exponent(points: dict[int, float]) -> float:
    """Of the last doubling."""
    (x, y), (u, v) = list(points.items())[-2:]
    return float(np.log(v / y) / np.log(u / x))


def test_the_counter_sees_what_lives_at_the_same_time():
    def one_after_the_other():
        for _ in range(3):
            torch.ones(1000)

    def together():
        return [torch.ones(1000) for _ in range(3)]

    assert growth.peak_bytes(one_after_the_other) == 4_000
    assert growth.peak_bytes(together) == 12_000


def test_what_lived_before_does_not_count():
    held = torch.ones(50_000)
    assert growth.peak_bytes(lambda: held.neg()) == 200_000
    assert growth.peak_bytes(lambda: held.add_(torch.ones(50_000))) == 200_000


def layer_bytes(form: str, n: int) -> int:
    """Of a layer with little besides attention, after a first step."""
    config = replace(growth.SMALL, d_model=8, d_ff=8, h=4, d_k=8, d_v=8, dropout=0.0)
    step = growth.with_attention(form, growth.layer_step(config, n))
    step()
    return growth.peak_bytes(step)


def test_explicit_attention_has_three_tables_at_its_height_and_the_fused_form_none():
    tables = 4 * 4 * 512**2
    assert 3 * tables < layer_bytes("explicit", 512) < 3.3 * tables
    assert layer_bytes("fused", 512) < 0.5 * tables


def test_the_fused_form_is_linear_in_memory():
    assert layer_bytes("fused", 512) / layer_bytes("fused", 256) == pytest.approx(
        2, rel=0.05
    )


def test_the_causal_mask_is_a_square_that_its_name_saves():
    def update_bytes(form):
        step = growth.with_attention(
            form,
            growth.training_step(replace(growth.SMALL, d_model=8, d_ff=8), 1, 1_024),
        )
        step()
        return growth.peak_bytes(step)

    saved = update_bytes("fused") - update_bytes("fused, causal by name")
    assert saved == pytest.approx(4 * 1_024**2, rel=0.05)


@pytest.mark.parametrize("form", ["explicit", "fused, causal by name"])
def test_each_form_of_attention_gives_the_same_loss(form):
    torch.manual_seed(0)
    config = replace(growth.SMALL, dropout=0.0)
    objective = growth.Objective(growth.Transformer(config), 0.1)
    batch, losses = growth.random_batch(config, 2, 16), []
    growth.with_attention("fused", lambda: losses.append(objective(*batch).item()))()
    growth.with_attention(form, lambda: losses.append(objective(*batch).item()))()
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_filled_cache_steps_as_one_that_was_filled_by_steps():
    config = replace(growth.SMALL, dropout=0.0)
    model = growth.Transformer(config).eval()
    src, tokens, _ = growth.random_batch(config, 1, 6)
    with torch.inference_mode():
        cache = model.start(src)
        for place in range(4):
            model.step(tokens[:, place], cache)
        ready = growth.filled(model.start(src), 4, config)
        for layer, full in zip(ready.layers, cache.layers, strict=True):
            assert (
                layer.key.shape == full.key.shape
                and layer.value.shape == full.value.shape
            )
            layer.key, layer.value = full.key, full.value
        assert torch.equal(
            model.step(tokens[:, 4], ready), model.step(tokens[:, 4], cache)
        )


def test_generated_pairs_are_whole_and_their_beginning_is_theirs(tmp_path):
    pairs = growth.generated(500, tmp_path)
    assert (
        len(pairs) == 500
        and pairs.src_lengths.min() >= 2
        and len(pairs.tgt_tokens) == pairs.tgt_offsets[-1]
    )
    part = growth.beginning(pairs, 20)
    assert len(part) == 20 and all(
        np.array_equal(a, b) for a, b in zip(part[19], pairs[19], strict=True)
    )
    assert 20 < pairs.tgt_lengths.mean() < 30


@pytest.mark.parametrize(("section", "rows"), list(AXES))
def test_the_record_is_complete(section, rows):
    axis, places, forms = AXES[section, rows]
    found = RECORD[section][rows]
    assert [row[axis] for row in found] == [
        place for place in places for _ in range(forms)
    ]
    assert all(row["seconds"] > 0 and row["bytes"] > 0 for row in found)


def test_the_record_says_on_what_it_was_made():
    assert (
        RECORD["threads"] == 1
        and {"python", "torch", "numpy"} <= RECORD["versions"].keys()
        and RECORD["machine"]
    )
    assert [row["pairs"] for row in RECORD["corpus"]["epoch"]] == growth.CORPORA
    assert len(RECORD["workers"]["loaders"]) == 1 + len(growth.WORKERS)


UPDATE = ("length", "update", "fused")
EXPONENTS = {
    ("layer", "layer", "explicit", "bytes"): (1.8, 2.05),
    ("layer", "layer", "fused", "bytes"): (0.95, 1.05),
    (*UPDATE, "bytes"): (1.2, 2.0),
    (*UPDATE, "seconds"): (1.4, 2.3),
    ("vocabulary", "update", "all logits", "bytes"): (0.9, 1.05),
    ("depth", "update", "fused", "bytes"): (0.9, 1.05),
    ("decoding", "token", "cached", "seconds"): (0.0, 0.6),
    ("decoding", "token", "whole prefix", "seconds"): (0.8, 1.3),
}


@pytest.mark.parametrize("where", EXPONENTS, ids=" ".join)
def test_the_recorded_exponents_are_those_of_the_chapter(where):
    low, high = EXPONENTS[where]
    assert low < exponent(curve(*where)) < high


def run_gpu(*arguments: str) -> subprocess.CompletedProcess:
    """Run the GPU script."""
    command = [sys.executable, "-m", "benchmarks.scale.gpu", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="says that there is no GPU")
def test_without_a_gpu_the_script_says_so_in_one_line():
    done = run_gpu()
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "no CUDA device" in done.stderr


def test_the_script_refuses_what_it_does_not_know():
    done = run_gpu("--device", "cpu", "--tiny", "--only", "decode")
    assert (
        done.returncode == 2
        and "decode" in done.stderr
        and done.stderr.count("\n") == 1
    )


@pytest.mark.parametrize("beam_size", [1, 4])
def test_our_timed_search_writes_as_many_tokens_as_are_counted(beam_size):
    objective = gpu.build("ours", gpu.TOY, torch.device("cpu"))
    with torch.no_grad():
        objective.model.tgt_embedding.weight[gpu.TOY.eos_id] = 0
    src = gpu.random_batch(gpu.TOY, 3, 8, torch.device("cpu"))[0]
    found = gpu.our_search(objective.model.bfloat16().eval(), src, beam_size, 6)()
    best = [row[0] if beam_size > 1 else row for row in found]
    assert [(len(row.tokens), row.finished) for row in best] == [(6, False)] * 3


def test_operations_of_an_update_are_six_for_each_parameter_and_token_and_the_scores():
    config, n = gpu.preset("base"), 48
    matrices = (
        gpu.parameter_count(config) - 37_000 * 512 - 12 * (2_048 + 512) - 30 * 1_024
    )
    # Encoder parameters meet source tokens, decoder parameters target tokens (or source
    # ones, for keys and values).
    both = 6 * n * matrices + 6 * n * 37_000 * 512 + 3 * 6 * 2 * 8 * 128 * 3 * n**2
    assert sum(gpu.flops(config, n, n)) == both


def test_what_fails_leaves_the_round_and_says_why():
    setting = gpu.Setting(torch.device("cpu"), True, 1, float("inf"))

    def fail():
        raise RuntimeError("out of memory\nand more")

    found = gpu.medians(setting, {"good": lambda: None, "bad": fail}, 2)
    assert found["bad"] == "RuntimeError: out of memory" and found["good"] >= 0


def test_nothing_is_begun_after_the_deadline():
    setting = gpu.Setting(torch.device("cpu"), True, 1, 0.0)
    assert gpu.medians(setting, {"late": lambda: pytest.fail("was begun")}, 2) == {
        "late": "not measured: no time left"
    }


def test_seeds_and_rows_gather_and_short_sections_are_replaced():
    old = {"multi30k": {"seed 1": {}}, "decoding": {"rows": [1]}}
    assert gpu.join(old, {"multi30k": {"seed 2": {}}}) == {
        "multi30k": {"seed 1": {}, "seed 2": {}}
    }
    assert gpu.join(old, {"decoding": {"rows": []}}) == {"decoding": {"rows": []}}


def test_decoding_runs_at_toy_size():
    done = run_gpu("--device", "cpu", "--tiny", "--only", "decoding")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["decoding"]["rows"]
    ours = [row for row in rows if row["by"] == "ours"]
    assert len(ours) == 4 and all(row["tokens_per_second"] > 0 for row in ours)
    assert {row["by"] for row in rows} == {
        "ours",
        "ours, prepared",
        "CTranslate2",
        "transformers",
    }


def test_the_long_runs_ask_for_settings_that_there_are():
    assert len(gpu.ROWS) == 20
    for changes in gpu.ROWS.values():
        settings = ["seed=2", "steps=2000", *changes.split()]
        change(recipe("multi30k-en-de-tiny"), settings)


@pytest.mark.slow
def test_every_section_runs_at_toy_size(tmp_path):
    names = "correctness,training-base,decoding,multi30k,tatoeba,table-3"
    for sections, seed in ((names, "1"), ("table-3", "2")):
        out = str(tmp_path / "gpu.json")
        done = run_gpu(
            "--device",
            "cpu",
            "--tiny",
            "--only",
            sections,
            "--out",
            out,
            "--seed",
            seed,
        )
        assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "gpu.json").read_text())
    assert set(names.split(",")) <= record.keys()
    assert record["correctness"]["float32"]["gradient"] < 1e-5
    assert record["correctness"]["update_waits_for"] is None
    assert record["correctness"]["bfloat16"]["gradient"] < 0.05
    assert list(record["table-3"]) == ["base, seed 1", "base, seed 2"]
    assert (
        record["training-base"]["contenders"]["ours, compiled"]["tokens_per_second"] > 0
    )
