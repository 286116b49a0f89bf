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

# What each row of Table 3 comes to with one shared vocabulary of 37,000, without
# attention biases.
PARAMETERS = {
    "base": 63_045_632,
    "A-1-head": 63_045_632,
    "A-4-heads": 63_045_632,
    "A-16-heads": 63_045_632,
    "A-32-heads": 63_045_632,
    "B-16-keys": 55_967_744,
    "B-32-keys": 58_327_040,
    "C-2-layers": 33_644_544,
    "C-4-layers": 48_345_088,
    "C-8-layers": 77_746_176,
    "C-256-model": 26_816_512,
    "C-1024-model": 163_815_424,
    "C-1024-ff": 50_450_432,
    "C-4096-ff": 88_236_032,
    "D-no-dropout": 63_045_632,
    "D-dropout-0.2": 63_045_632,
    "D-no-smoothing": 63_045_632,
    "D-smoothing-0.2": 63_045_632,
    "E-learned-positions": 63_569_920,
    "big": 214_171_648,
}
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


def test_table_3_has_twenty_rows():
    assert list(table_3()) == list(PARAMETERS) and len(PARAMETERS) == 20


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_parameters_of_each_row_from_formula_and_model(name):
    config = table_3()[name]
    assert parameter_count(config) == PARAMETERS[name]
    assert sum(p.numel() for p in on_meta(config).parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", list(PRINTED))
def test_parameters_are_within_five_million_of_the_printed(name):
    assert abs(parameter_count(table_3()[name]) / 1e6 - PRINTED[name]) < 5


def test_no_vocabulary_fits_all_printed_rows_but_one_fits_all_without_big():
    def fits(vocabulary, names):
        counts = (
            parameter_count(
                replace(
                    table_3()[n], src_vocab_size=vocabulary, tgt_vocab_size=vocabulary
                )
            )
            / 1e6
            for n in names
        )
        return all(
            abs(count - PRINTED[name]) <= 0.5
            for count, name in zip(counts, names, strict=True)
        )

    assert not any(
        fits(vocabulary, list(PRINTED)) for vocabulary in range(30_000, 45_000, 50)
    )
    all_but_big = [name for name in PRINTED if name != "big"]
    assert any(
        fits(vocabulary, all_but_big) for vocabulary in range(40_000, 42_000, 50)
    )


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
    assert parts["encoder attention"] == count("encoder.layers", "self_attention.W")
    assert parts["decoder self-attention"] == count(
        "decoder.layers", "self_attention.W"
    )
    assert parts["decoder source attention"] == count("source_attention.W")
    assert parts["feed-forward"] == count("feed_forward.W")
    assert parts["norms"] == count(".norm.")


@pytest.mark.parametrize(
    "name", ["base", "A-1-head", "B-16-keys", "C-2-layers", "C-256-model", "big"]
)
@pytest.mark.parametrize("src_len, tgt_len", [(31, 27), (1, 50)])
def test_flops_equal_those_counted(name, src_len, tgt_len):
    config = preset(name)
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
    at_d = layer_operations(n=512, d=512, k=3, r=64)
    assert at_d["self-attention"] == at_d["recurrent"], (
        "self-attention costs less than recurrence below n = d"
    )


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


def test_the_counter_misses_fused_attention_on_a_cpu():
    config = replace(preset("base"), N=1, d_model=64, d_ff=128, h=4, d_k=16, d_v=16)
    src, tgt = torch.ones(1, 31).long(), torch.ones(1, 27).long()
    with FlopCounterMode(display=False) as counter:
        Transformer(config)(src, tgt)
    missing = flops(config, 31, 27).forward - counter.get_total_flops()
    assert missing == flops_by_part(config, 31, 27)["scores and averages"]
