"""The benchmark for a GPU, at toy sizes where there is none."""

import pytest
import torch

from benchmarks.scale import gpu

CPU = torch.device("cpu")


@pytest.mark.parametrize("beam_size", [1, 4])
def test_our_timed_search_writes_as_many_tokens_as_are_counted(beam_size):
    model = gpu.peers.build("ours", gpu.TOY).model
    with torch.no_grad():
        model.tgt_embedding.weight[gpu.TOY.eos_id] = 0
    src = gpu.random_batch(gpu.TOY, 3, 8, CPU).src
    found = gpu.our_search(model.bfloat16().eval(), src, beam_size, 6)
    best = [row[0] if beam_size > 1 else row for row in found]
    assert [(len(row.tokens), row.finished) for row in best] == [(6, False)] * 3


def test_decoding_is_measured_at_toy_size():
    pytest.importorskip("transformers")
    rows = gpu.decoding(CPU)["rows"]
    assert len(rows) == 12 and all(row["tokens_per_second"] > 0 for row in rows)
