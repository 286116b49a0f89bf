"""The peers of the benchmarks compute what our model computes: the same loss, and
gradients of the shared embedding.
"""

import pytest
import torch

from annotated_transformer.data.batch import Batch
from annotated_transformer.model.config import TransformerConfig

peers = pytest.importorskip("benchmarks.speed.peers")

ARCHITECTURE = TransformerConfig(
    60, 60, N=2, d_model=32, d_ff=64, h=4, d_k=8, d_v=8, dropout=0.0, max_length=32
)


def batch() -> Batch:
    """Three pairs of uneven length, padded on both sides."""
    generator = torch.Generator().manual_seed(0)
    src, tgt_out = (torch.randint(4, 60, (3, n), generator=generator) for n in (7, 9))
    src[1, 4:], tgt_out[1, 6:], tgt_out[2, 3:] = 0, 0, 0
    tgt_in = torch.cat([torch.ones(3, 1, dtype=torch.long), tgt_out[:, :-1]], dim=1)
    return Batch(src, tgt_in, tgt_out)


@pytest.mark.parametrize("name", peers.NAMES[1:])
def test_a_peer_has_our_loss_and_our_gradient(name):
    results = []
    for each in ("ours", name):
        model = peers.build(each, ARCHITECTURE).train()
        loss = model(batch())
        loss.backward()
        norms = [
            parameter.grad.norm()
            for key, parameter in model.named_parameters()
            if parameter.grad is not None and ("embedding" in key or "shared" in key)
        ]
        results.append((loss.item(), max(norms).item()))
    assert results[1] == pytest.approx(results[0], rel=1e-5)
