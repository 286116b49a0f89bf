"""Three models of one size learn to reverse words, on the same batches.

    python -m benchmarks.paper.reversal

A GRU whose encoder hands over one vector, the same with additive attention, and the
Transformer of nbs/my_transformer.py. Each has the best of seven peak learning rates,
by the words that one seed gets right, and then learns from three other seeds. Runs that
the record has already are kept.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from annotated_transformer.before.recurrent import AdditiveAttention
from annotated_transformer.check.file import import_file
from benchmarks import record

RECORD = "paper/reversal.json"
mine: Any = import_file(record.ROOT / "nbs" / "my_transformer.py")

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCAB = 3 + len(LETTERS)
STEPS, EVERY, BATCH, WARMUP = 400, 40, 64, 100
RATES = [5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3]
TUNING_SEED, SEEDS = 0, (1, 2, 3)


class Recurrent(nn.Module):
    """A GRU encoder and a GRU decoder, with one vector between them or attention."""

    def __init__(self, d: int, attends: bool):
        super().__init__()
        width = 2 * d if attends else d
        self.embedding = nn.Embedding(VOCAB, d)
        self.encoder = nn.GRU(d, d, batch_first=True)
        self.decoder, self.output = nn.GRUCell(width, d), nn.Linear(width, VOCAB)
        self.attention = AdditiveAttention(d) if attends else None

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Logits for the letter after each target letter."""
        memory, _ = self.encoder(self.embedding(src))
        mask = src != mine.PAD
        state = memory[torch.arange(len(src)), mask.sum(dim=1) - 1]
        keys = self.attention.U(memory) if self.attention else None
        outputs = []
        for letter in self.embedding(tgt).unbind(dim=1):
            found = []
            if self.attention is not None:
                found = [self.attention(state, memory, keys, mask)[0]]
            state = self.decoder(torch.cat([letter, *found], dim=-1), state)
            outputs.append(self.output(torch.cat([state, *found], dim=-1)))
        return torch.stack(outputs, dim=1)


def transformer() -> nn.Module:
    """The hundred-line file's model, as large as the file makes it."""
    return mine.Transformer(VOCAB, N=2, d_model=64, h=4, d_ff=256, dropout=0.0)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "GRU, one vector": lambda: Recurrent(136, attends=False),
    "GRU with attention": lambda: Recurrent(115, attends=True),
    "Transformer": transformer,
}


def size(model: nn.Module) -> int:
    """The number of its trained values."""
    return sum(p.numel() for p in model.parameters())


def unseen_words() -> list[tuple[str, str]]:
    """300 words and their reversals that no training meets."""
    draw = mine.words(1, LETTERS)
    return [("attention", "noitnetta"), *(next(draw) for _ in range(299))]


def right_words(model: nn.Module, pairs: list[tuple[str, str]]) -> float:
    """The share that greedy search reverses to the last letter."""
    sources, targets = zip(*pairs, strict=True)
    rows = mine.greedy_search(model.eval(), mine.encode(sources, LETTERS), 12)
    model.train()
    found = [mine.decode(row, LETTERS) for row in rows]
    return sum(map(str.__eq__, found, targets)) / len(pairs)


def learn(name: str, peak: float, seed: int) -> dict[str, Any]:
    """The right words after every 40 updates, and the processor's seconds."""
    torch.manual_seed(seed)
    model, test, curve = MODELS[name](), unseen_words(), {}
    met = (pair for pair in mine.words(seed + 100, LETTERS) if pair not in test)
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    seconds = 0.0
    for step in range(1, STEPS + 1):
        rate = peak * min(step / WARMUP, (WARMUP / step) ** 0.5)
        adam.param_groups[0]["lr"] = rate
        sources, targets = zip(*(next(met) for _ in range(BATCH)), strict=True)
        batch = mine.encode(sources, LETTERS), mine.encode(targets, LETTERS)
        start = time.process_time()
        mine.training_step(model, adam, *batch)
        seconds += time.process_time() - start
        if step % EVERY == 0:
            curve[str(step)] = right_words(model, test)
    return {"peak": peak, "seed": seed, "curve": curve, "seconds": round(seconds, 1)}


def race(name: str, known: dict[str, Any]) -> dict[str, Any]:
    """One contender: all runs, those that chose its rate and those that count."""
    runs = {(r["peak"], r["seed"]): r for part in known.values() for r in part}

    def run(peak: float, seed: int) -> dict[str, Any]:
        found = runs.get((peak, seed)) or learn(name, peak, seed)
        print(name, peak, seed, [*found["curve"].values()], flush=True)
        return found

    tuning = [run(peak, TUNING_SEED) for peak in RATES]
    best = max(tuning, key=lambda run: statistics.mean(run["curve"].values()))
    return {"tuning": tuning, "runs": [run(best["peak"], seed) for seed in SEEDS]}


def main(arguments: Sequence[str] | None = None) -> None:
    """All three, one after the other."""
    record.command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    earlier = record.load(RECORD).get("contenders", {})
    found = {}
    for name, make in MODELS.items():
        each = earlier.get(name, {})
        known = {part: each.get(part, []) for part in ("tuning", "runs")}
        found[name] = {"parameters": size(make())} | race(name, known)
    record.save(RECORD, {"contenders": found}, "torch")


if __name__ == "__main__":
    main()
