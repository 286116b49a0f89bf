"""How large vectors and first gradients are in 1 to 24 decoder layers, post-norm and
pre-norm.

    python -m benchmarks.model.depth

The layers have learned nothing; their weights are drawn by Glorot's rule, and the top
is asked to predict random tokens, as at the end of nbs/model/layers.ipynb, which shows
the record. Takes seconds and writes results/model/depth.json.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.layers import DecoderLayer, EncoderLayer
from benchmarks.record import command_line, save_line

PLACE = "model/depth.json"
DEEPEST, SIZE, TOKENS = 24, 128, 50
WAYS = {
    "post-norm": lambda x, sublayer, norm: norm(x + sublayer(x)),
    "pre-norm": lambda x, sublayer, norm: x + sublayer(norm(x)),
}


def layers(kind: type[nn.Module], N: int) -> nn.ModuleList:
    """N untrained layers of a kind."""
    config = TransformerConfig(
        TOKENS, TOKENS, N=N, d_model=SIZE, d_ff=512, h=4, dropout=0.0
    )
    stack = nn.ModuleList(kind(config) for _ in range(N))
    for matrix in stack.parameters():
        if matrix.dim() > 1:
            nn.init.xavier_uniform_(matrix)
    return stack


def encode(layer: EncoderLayer, x: Tensor, join: Callable) -> Tensor:
    """One encoder layer, joined in some way."""
    attend = layer.self_attention
    x = join(x, lambda z: attend(z, z), layer.after_attention.norm)
    return join(x, layer.feed_forward, layer.after_feed_forward.norm)


def decode(layer: DecoderLayer, y: Tensor, memory: Tensor, join: Callable) -> Tensor:
    """One decoder layer, joined in some way."""
    own, source = layer.self_attention, layer.source_attention
    norm = layer.after_self_attention.norm
    y = join(y, lambda z: own(z, z, is_causal=True), norm)
    y = join(y, lambda z: source(z, memory), layer.after_source_attention.norm)
    return join(y, layer.feed_forward, layer.after_feed_forward.norm)


def run(way: str, N: int) -> dict[str, list[float]]:
    """How large a decoder's vectors are after each layer, and the gradients of W_2."""
    torch.manual_seed(0)
    join, encoder, decoder = WAYS[way], layers(EncoderLayer, N), layers(DecoderLayer, N)
    x, y = torch.randn(16, 15, SIZE), torch.randn(16, 20, SIZE)
    for layer in encoder:
        x = encode(layer, x, join)
    memory, sizes = F.layer_norm(x, (SIZE,)), []
    for layer in decoder:
        y = decode(layer, y, memory, join)
        sizes.append(y.std())
    logits = F.layer_norm(y, (SIZE,)) @ torch.randn(TOKENS, SIZE).T / math.sqrt(SIZE)
    F.cross_entropy(logits.flatten(0, 1), torch.randint(TOKENS, (320,))).backward()
    found = [layer.feed_forward.W_2.weight.grad.norm() for layer in decoder]
    return {"sizes": rounded(sizes), "gradients": rounded(found)}


def rounded(values: list[Tensor]) -> list[float]:
    """Three digits of each."""
    return [float(f"{value.item():.3g}") for value in values]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    runs = {way: [run(way, N) for N in range(1, DEEPEST + 1)] for way in WAYS}
    save_line(PLACE, {"runs": runs})


if __name__ == "__main__":
    main()
