"""Measure Table 1: time and memory of five kinds of layer over length and width.

    python -m benchmarks.paper.table1

Each layer takes n vectors of size d, of one sentence, and is timed forward and back
together: self-attention as Table 1 counts it, with its projections, and restricted; a
plain recurrence and a GRU; a convolution and a separable one. Beside them stands
attention whose scores are dot products or a small network's. The layers take turns;
times are processor seconds of one thread, the least of all turns, since other work can
only slow them; memory is what autograd keeps for the way back. Takes some minutes and
writes results/paper/table1.json, which nbs/model/costs.ipynb, nbs/model/attention.ipynb
and nbs/before/recurrent.ipynb show. What the ledger has of Table 1 is counted below, on
layers that run.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from math import log2

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotated_transformer.before.graph import longest_chain
from annotated_transformer.model.attention import MultiHeadAttention, attention
from annotated_transformer.model.costs import layer_operations, layers_to_connect
from benchmarks.measure import in_turn
from benchmarks.record import command_line, save

LENGTHS, WIDTHS = (16, 32, 64, 128, 256, 512, 1024, 2048), (64, 256, 512)
KERNEL, NEAR, REPEATS = 3, 32, 5


class Layer(nn.Module):
    """A function of n vectors, and of the modules that it uses."""

    def __init__(self, function: Callable[..., Tensor], *parts: nn.Module):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, x: Tensor) -> Tensor:
        """As many vectors as came in."""
        return self.function(x, *self.parts)


def bare(x: Tensor) -> Tensor:
    """Self-attention as Table 1 counts it: no projections."""
    return attention(x, x, x)[0]


def nearby(x: Tensor, near: int = NEAR) -> Tensor:
    """The same, restricted to blocks: each looks at its own and the one before."""
    half = near // 2
    if x.size(1) <= half:
        return bare(x)
    blocks = x.unflatten(1, (-1, half))
    before = F.pad(blocks, (0, 0, 0, 0, 1, 0))[:, :-1]
    keys = torch.cat([before, blocks], dim=2)
    return attention(blocks, keys, keys)[0].flatten(1, 2)


def layers(d: int) -> dict[str, Layer]:
    """One layer of each kind for vectors of size d."""
    heads = MultiHeadAttention(d, d // 64, 64, 64)
    plain, gated = nn.RNN(d, d, batch_first=True), nn.GRU(d, d, batch_first=True)
    wide = nn.Conv1d(d, d, KERNEL, padding=KERNEL // 2)
    deep = nn.Conv1d(d, d, KERNEL, padding=KERNEL // 2, groups=d)
    return {
        "self-attention": Layer(bare),
        "self-attention with projections": Layer(lambda x, own: own(x, x), heads),
        "restricted self-attention": Layer(nearby),
        "recurrent": Layer(lambda x, own: own(x)[0], plain),
        "GRU": Layer(lambda x, own: own(x)[0], gated),
        "convolutional": Layer(lambda x, own: own(x.mT).mT, wide),
        "separable convolutional": Layer(
            lambda x, own, point: point(own(x.mT).mT), deep, nn.Linear(d, d)
        ),
    }


def dot(x: Tensor, W: nn.Module, U: nn.Module) -> Tensor:
    """Attention of one head by dot products."""
    return attention(W(x), U(x), x)[0]


def additive(x: Tensor, W: nn.Module, U: nn.Module, v: nn.Module) -> Tensor:
    """The same by a small network with one hidden vector for each pair."""
    hidden = torch.tanh(W(x)[:, :, None] + U(x)[:, None])
    return v(hidden).squeeze(-1).softmax(dim=-1) @ x


def scorers(d: int) -> dict[str, Layer]:
    """Both ways to score, for a head of size d."""
    W, U = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
    return {
        "dot products": Layer(dot, W, U),
        "additive": Layer(additive, W, U, nn.Linear(d, 1, bias=False)),
    }


def kept(layer: Layer, x: Tensor) -> int:
    """Bytes that autograd keeps between the two ways, input and weights left out."""
    given = {each.untyped_storage().data_ptr() for each in (x, *layer.parameters())}
    sizes: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in given:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = layer(x)
    out.sum().backward()
    return sum(sizes.values())


def measured(found: dict[str, Layer], n: int, d: int, repeats: int) -> list[dict]:
    """All layers of one width on n vectors: the best of its turns, and what is kept."""
    x = torch.randn(1, n, d, requires_grad=True)
    passes = {
        name: lambda layer=layer: layer(x).sum().backward()
        for name, layer in found.items()
    }
    times = in_turn(passes, repeats)
    return [
        {
            "layer": name,
            "n": n,
            "d": d,
            "seconds": min(times[name]),
            "kept_bytes": kept(layer, x),
        }
        for name, layer in found.items()
    ]


# -- counted, for the ledger -----------------------------------------------------------


def exponents(layer: str) -> str:
    """How the operations grow with n, d and, if at all, k and r: from doubling each."""
    sizes = {"n": 1 << 14, "d": 64, "k": 3, "r": 32}
    once = layer_operations(*sizes.values())[layer]
    grown = {}
    for name in sizes:
        twice = layer_operations(*(sizes | {name: 2 * sizes[name]}).values())[layer]
        grown[name] = round(log2(twice / once), 2)
    powers = [f"{name}^{power:g}" for name, power in grown.items() if power]
    return f"{' · '.join(powers)}, counted"


def chain(layer: str, n: int) -> int:
    """The longest chain of operations that wait for each other."""
    x, W = torch.randn(1, n, 8, requires_grad=True), torch.randn(8, 8)
    if layer == "recurrent":
        state = torch.zeros(1, 8)
        for step in x.unbind(1):
            state = step @ W + state @ W
        return longest_chain(state)
    if layer == "convolutional":
        return longest_chain(F.conv1d(x.mT, torch.randn(8, 8, 3)))
    return longest_chain(nearby(x, 8) if "restricted" in layer else bare(x))


def ring(n: int, width: int, gap: int = 1) -> torch.Tensor:
    """Which positions of a ring a window around each reads."""
    offsets = gap * (torch.arange(width) - width // 2)
    reads = torch.zeros(n, n, dtype=torch.bool)
    return reads.scatter_(1, (torch.arange(n)[:, None] + offsets) % n, True)


def counted() -> dict[str, str]:
    """Operations, chains and paths of Table 1's layers, as the ledger has them."""
    everything = torch.ones(81, 81, dtype=torch.bool)
    dilated = (ring(81, 3, 3**layer) for layer in range(81))
    paths = {
        "self-attention": layers_to_connect(repeat(everything)),
        "recurrent": None,
        "convolutional": layers_to_connect(dilated),
        "restricted self-attention": layers_to_connect(repeat(ring(81, 9))),
    }
    found = {}
    for layer, reached in paths.items():
        waits = ", ".join(f"{chain(layer, n)} for n = {n}" for n in (16, 64))
        path = f"{reached} layer{'s' * (reached > 1)}" if reached else "80 steps"
        found[f"{layer}: complexity"] = exponents(layer)
        found[f"{layer}: sequential operations"] = waits
        found[f"{layer}: maximum path length"] = f"{path} for n = 81"
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every length and width, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows, scored = [], []
    for d in WIDTHS:
        found = layers(d)
        for n in LENGTHS:
            rows += measured(found, n, d, given.repeats)
            print(n, d, flush=True)
    for n in (32, 64, 128, 256, 512):
        scored += measured(scorers(64), n, 64, given.repeats)
    about = {"kernel": KERNEL, "near": NEAR, "repeats": given.repeats, "threads": 1}
    save("paper/table1.json", about | {"layers": rows, "scores": scored})


if __name__ == "__main__":
    main()
