"""Costs: Table 3's parameters, FLOPs against PyTorch's counter, Table 1 and Table 2."""

from dataclasses import replace
from itertools import repeat

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from annotated_transformer.model.config import TransformerConfig, preset, table_3
from annotated_transformer.model.costs import (
    flops,
    flops_by_part,
    hardware_flops,
    layer_operations,
    layers_to_connect,
    parameter_count,
    parameters_by_part,
)
from annotated_transformer.model.transformer import Transformer

# The paper's own figures in millions, where it prints one.
PRINTED = {
    "base": 65,
    "B-16-keys": 58,
    "B-32-keys": 60,
    "C-2-layers": 36,
    "C-4-layers": 50,
    "C-8-layers": 80,
    "C-256-model": 28,
    "C-1024-model": 168,
    "C-1024-ff": 53,
    "C-4096-ff": 90,
    "big": 213,
}


def on_meta(config: TransformerConfig) -> Transformer:
    """A model with shapes and no values: instant at any size."""
    with torch.device("meta"):
        return Transformer(config)


@pytest.mark.parametrize("name", table_3())
def test_the_formula_counts_nearly_what_is_printed(name):
    count = parameter_count(table_3()[name])
    assert abs(count / 1e6 - PRINTED.get(name, 65)) < 5


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed_is_what_the_first_code_counts_but_for_big(name):
    """40,960 rows, biases in the projections, and 32 vectors for the languages."""
    config = replace(preset(name), src_vocab_size=40_960, tgt_vocab_size=40_960)
    biases = 3 * config.N * (config.h * (2 * config.d_k + config.d_v) + config.d_model)
    count = parameter_count(config) + biases + 32 * config.d_model
    assert (round(count / 1e6) == PRINTED[name]) == (name != "big")


@pytest.mark.parametrize("name", ["A-1-head", "C-256-model", "E-learned-positions"])
def test_the_formula_counts_the_model(name):
    config = replace(preset(name), N=2)
    model = on_meta(config)
    assert parameter_count(config) == sum(p.numel() for p in model.parameters())


def test_parts_match_the_modules():
    config = replace(
        preset("base"), positions="learned", shared_vocab=False, src_vocab_size=30000
    )
    parts, model = parameters_by_part(config), on_meta(config)

    def count(*words):
        return sum(
            p.numel()
            for name, p in model.named_parameters()
            if all(word in name for word in words)
        )

    assert parts["embedding"] == count("embedding")
    assert parts["positions"] == count("positions")
    for side, kind in (("encoder", "attention"), ("decoder", "self-attention")):
        expected = count(f"{side}.layers", "self_attention.W")
        assert parts[f"{side} {kind}"] == expected
    assert parts["decoder source attention"] == count("source_attention.W")
    assert parts["feed-forward"] == count("feed_forward.W")
    assert parts["norms"] == count(".norm.")


@pytest.mark.parametrize(
    "name, src_len, tgt_len",
    [("base", 31, 27), ("B-16-keys", 1, 50), ("big", 9, 7)],
)
def test_flops_equal_those_counted(name, src_len, tgt_len):
    config = replace(preset(name), N=2)
    model = on_meta(config)
    src, tgt = (
        torch.ones(1, n, dtype=torch.long, device="meta") for n in (src_len, tgt_len)
    )
    with FlopCounterMode(display=False) as forward:
        scores = model(src, tgt)
    with FlopCounterMode(display=False) as backward:
        scores.sum().backward()
    formula = flops(config, src_len, tgt_len)
    assert (
        formula.forward
        == forward.get_total_flops()
        == sum(flops_by_part(config, src_len, tgt_len).values())
    )
    assert formula.backward == backward.get_total_flops()


def test_table_1_operations():
    assert layer_operations(n=10, d=4, k=3, r=5) == {
        "self-attention": 800,
        "recurrent": 320,
        "convolutional": 480,
        "separable convolutional": 280,
        "restricted self-attention": 400,
    }


def window(n: int, width: int, dilation: int = 1) -> torch.Tensor:
    """True where a centred window of `width` positions, `dilation` apart, reaches, on a
    ring of n positions.
    """
    offsets = dilation * (torch.arange(width) - width // 2)
    reads = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        reads[i, (i + offsets) % n] = True
    return reads


def test_path_lengths():
    n = 81
    assert layers_to_connect(repeat(torch.ones(n, n, dtype=torch.bool))) == 1
    assert layers_to_connect(repeat(window(n, 3))) == (n - 1) // 2
    assert layers_to_connect(repeat(window(n, 9))) == (n - 1) // 8
    assert layers_to_connect(window(n, 3, 3**i) for i in range(10)) == 4, "log_3 of 81"


def test_layers_that_never_connect_are_an_error():
    with pytest.raises(ValueError, match="widen what a position reads"):
        layers_to_connect(repeat(torch.eye(5, dtype=torch.bool)))
    with pytest.raises(ValueError, match="add layers"):
        layers_to_connect([window(9, 3)])


def test_table_2_training_costs():
    assert f"{hardware_flops(12 * 3600.0, 8, 9.5e12):.1e}" == "3.3e+18"
    assert f"{hardware_flops(3.5 * 86400, 8, 9.5e12):.1e}" == "2.3e+19"
