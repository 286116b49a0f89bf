"""The growth benchmark: its memory counter, and what it counts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.scale import growth


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
    tables, fused = 4 * 4 * 512**2, layer_bytes("fused", 512)
    assert 3 * tables < layer_bytes("explicit", 512) < 3.3 * tables
    assert fused < 0.5 * tables
    assert fused / layer_bytes("fused", 256) == pytest.approx(2, rel=0.05)


def test_the_causal_mask_is_a_square_that_its_name_saves():
    def update_bytes(form):
        config = replace(growth.SMALL, d_model=8, d_ff=8)
        step = growth.with_attention(form, growth.training_step(config, 1, 1_024))
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
    growth.with_attention("fused", lambda: losses.append(objective(batch).item()))()
    growth.with_attention(form, lambda: losses.append(objective(batch).item()))()
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_filled_cache_steps_as_one_that_was_filled_by_steps():
    config = replace(growth.SMALL, dropout=0.0)
    model = growth.Transformer(config).eval()
    batch = growth.random_batch(config, 1, 6)
    src, tokens = batch.src, batch.tgt_in
    with torch.inference_mode():
        cache = model.start(src)
        for place in range(4):
            model.step(tokens[:, place], cache)
        ready = growth.filled(model.start(src), 4, config)
        for (ours, _), (full, _) in zip(ready.layers, cache.layers, strict=True):
            assert ours.length == full.length == 4
            ours.key, ours.value = full.key, full.value
        assert torch.equal(
            model.step(tokens[:, 4], ready), model.step(tokens[:, 4], cache)
        )


def test_generated_pairs_are_whole_and_their_beginning_is_theirs(tmp_path):
    pairs = growth.generated(500, tmp_path)
    assert len(pairs) == 500 and pairs.src_lengths.min() >= 2
    assert len(pairs.tgt_tokens) == pairs.tgt_offsets[-1]
    assert 20 < pairs.tgt_lengths.mean() < 30
    part = growth.beginning(pairs, 20)
    assert len(part) == 20
    assert all(map(np.array_equal, part[19], pairs[19]))
