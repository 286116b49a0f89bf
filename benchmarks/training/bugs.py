"""Bugs planted in a working model, one line each, and what each of them does.

    python -m benchmarks.training.bugs

A small Transformer, nbs/my_transformer.py, learns 4,000 phrases with the loop of
bug_loop.py, once as it is and once for each bug: the same seed, batches and rates. One
bug lies in the package's own search, with the model that comes with it.
Takes some minutes of four processes and writes results/training/bugs.json, for
nbs/translation/when_it_fails.ipynb.
"""

import csv
import math
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import torch
from torch import nn

from annotated_transformer import load
from annotated_transformer.check.checks import CHECKS
from annotated_transformer.check.file import import_file
from annotated_transformer.data.phrasebook import different, meanings
from annotated_transformer.decoding import search
from annotated_transformer.decoding.options import SearchOptions
from benchmarks.record import ROOT, command_line, save_line

PLACE = "training/bugs.json"
MODEL = ROOT / "nbs" / "my_transformer.py"
LOOP = ROOT / "benchmarks" / "training" / "bug_loop.py"
SEARCH = ROOT / "annotated_transformer" / "decoding" / "search.py"
SIXTY = ROOT / "benchmarks" / "paper" / "sixty.tsv"
TOPICS = {"dates in words", "times", "sentences: times"}
PAIRS, FEW, HELD_OUT, ALONE = 4_000, 400, 100, 20
WORKERS = 4
SIZES = {"N": 2, "d_model": 64, "h": 4, "d_ff": 128, "dropout": 0.1}
PHRASES = [
    "the twenty-first of March",
    "the first of May, nineteen seventy-six",
    "4:55 PM",
    "The shop is closed on Saturday.",
    "The meeting starts on Monday at half past two.",
]


@dataclass(frozen=True)
class Bug:
    """A textual edit of one file."""

    name: str
    path: Path
    before: str
    after: str
    pairs: int = PAIRS

    @property
    def source(self) -> str:
        """The file with the bug. The line to change must be there once."""
        text = self.path.read_text(encoding="utf-8")
        assert text.count(self.before) == 1, self.name
        return text.replace(self.before, self.after)


ATTEND = "        scores = scores.masked_fill(~mask, -math.inf)\n"
SOFTMAX = "    return scores.softmax(dim=-1) @ value"
HEALTHY = Bug("healthy", MODEL, ATTEND, ATTEND)
BUGS = [
    Bug(
        "unshifted",
        MODEL,
        "model(src, tgt[:, :-1]), tgt[:, 1:],",
        "model(src, tgt), tgt,",
    ),
    Bug(
        "future",
        MODEL,
        "self.self_attention(y, y, causal_mask(y.size(1)))",
        "self.self_attention(y, y)",
    ),
    Bug("triu", MODEL, "dtype=torch.bool).tril()", "dtype=torch.bool).triu()"),
    Bug("weak", MODEL, ATTEND, ATTEND.replace("-math.inf", "-math.e")),
    Bug("inverted", MODEL, ATTEND, ATTEND.replace("~mask", "mask")),
    Bug(
        "after",
        MODEL,
        ATTEND + SOFTMAX,
        "        return (scores.softmax(dim=-1) * mask) @ value\n" + SOFTMAX,
    ),
    Bug(
        "residual",
        MODEL,
        "self.norm(x + self.dropout(sublayer_output))",
        "self.norm(self.dropout(sublayer_output))",
    ),
    Bug(
        "positions",
        MODEL,
        "self.dropout(x + sinusoids(ids.size(1), x.size(-1)))",
        "self.dropout(x)",
    ),
    Bug("padding", MODEL, "src_mask = padding_mask(src, PAD)", "src_mask = None"),
    Bug(
        "layers",
        MODEL,
        "(EncoderLayer(d_model, h, d_ff, dropout) for _ in range(N))",
        "[EncoderLayer(d_model, h, d_ff, dropout)] * N",
    ),
    Bug(
        "view",
        MODEL,
        "x.unflatten(-1, (self.h, -1)).transpose(1, 2)",
        "x.reshape(len(x), self.h, x.size(1), -1)",
    ),
    Bug(
        "wide",
        MODEL,
        "        self.W_O = nn.Linear(d_model, d_model, bias=False)\n",
        "        self.W_O = nn.Linear(d_model, d_model, bias=False)\n"
        "        nn.init.normal_(self.W_Q.weight), nn.init.normal_(self.W_K.weight)\n",
    ),
    Bug("zero_grad", MODEL, "    optimizer.zero_grad()\n", ""),
    Bug(
        "rate",
        LOOP,
        "rate = PEAK * min(step / WARMUP, (WARMUP / step) ** 0.5)",
        "rate = 10 * PEAK",
    ),
    Bug(
        "lost",
        LOOP,
        "    targets = [target for _, target in pairs]\n",
        "    targets = [target for _, target in pairs]\n    del targets[700]\n",
    ),
    Bug("adam", LOOP, "            optimizer.load_state_dict(saved)\n", ""),
    Bug(
        "end",
        LOOP,
        "rows([[BOS, *words.encode(line), EOS] for line in lines])",
        "rows([[BOS, *words.encode(line)] for line in lines])",
    ),
    Bug("eval", LOOP, "    model.eval()\n", ""),
    Bug("leak", LOOP, "train = pairs[held_out:]", "train = pairs", FEW),
]
CACHE = Bug(
    "cache",
    SEARCH,
    "(active[:, None] * size + parents[active]).flatten()",
    "(active[:, None] * size + torch.arange(size)).flatten()",
)


class Words:
    """The shipped tokenizer, cut down to the tokens of a few phrases."""

    def __init__(self, pairs: Sequence[tuple[str, str]]):
        self.tokenizer = load("phrasebook-en-de").tokenizer
        self.ids = sorted(
            {i for pair in pairs for side in pair for i in self._of(side)}
        )
        self.numbers = {token: number for number, token in enumerate(self.ids, 3)}

    def _of(self, line: str) -> list[int]:
        return self.tokenizer.target.encode(line).ids

    def encode(self, line: str) -> list[int]:
        return [self.numbers[token] for token in self._of(line)]

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode([[self.ids[i - 3] for i in ids if i > 2]])[0]


def phrases(split: str, count: int) -> list[tuple[str, str]]:
    """Different phrases of a few topics, none of them one of ours."""
    wanted = (p for p in meanings(split) if p.pattern.topic in TOPICS)
    pairs = ((phrase.say("en"), phrase.say("de")) for phrase in wanted)
    others = (pair for pair in different(pairs) if pair[0] not in PHRASES)
    return list(islice(others, count))


def planted(bug: Bug, path: Path) -> ModuleType:
    """One of the two files, with the bug if it lies there."""
    if bug.path != path:
        return import_file(path)
    with TemporaryDirectory() as folder:
        copy = Path(folder, f"{path.stem}_{bug.name}.py")
        copy.write_text(bug.source, encoding="utf-8")
        return import_file(copy)


def planted_search() -> ModuleType:
    """The package's search with the bug of the cache."""
    module = ModuleType(f"{search.__package__}.planted")
    module.__package__ = search.__package__
    sys.modules[module.__name__] = module
    exec(compile(CACHE.source, SEARCH, "exec"), module.__dict__)
    return module


def first_complaint(mine: ModuleType) -> str:
    """What the check says of the first part that isn't right."""
    verdicts = ((name, check(getattr(mine, name))) for name, check in CHECKS.items())
    wrong = (f"{name}: {verdict.sentence}" for name, verdict in verdicts if not verdict)
    return next(wrong, "")


def run(bug: Bug) -> dict[str, Any]:
    """Train with the bug, and look at what came of it."""
    torch.set_num_threads(1)
    mine, loop, sound = planted(bug, MODEL), planted(bug, LOOP), import_file(LOOP)
    held_out, fresh = phrases("val", HELD_OUT), phrases("test", HELD_OUT)
    everything = phrases("train", PAIRS)
    words = Words([*held_out, *fresh, *everything])
    train, test = loop.split([*held_out, *everything[: bug.pairs]], HELD_OUT)
    torch.manual_seed(0)
    model = mine.Transformer(3 + len(words.ids), **SIZES)
    losses = loop.learn(mine, model, train, words)
    print(bug.name, tens(losses)[-1], file=sys.stderr)
    lines, right = [source for source, _ in test], [target for _, target in test]
    found = loop.translate(mine, model, lines, words)
    again = loop.translate(mine, model, lines, words)
    alone = [loop.translate(mine, model, [line], words)[0] for line in lines[:ALONE]]
    use = loop.translate(mine, model, [source for source, _ in fresh], words)
    return {
        "name": bug.name,
        "file": bug.path.name,
        "before": bug.before,
        "after": bug.after,
        "check": first_complaint(mine),
        "losses": tens(losses),
        "start": number(losses[0]),
        "says": loop.translate(mine, model, PHRASES, words),
        "right": agree(found, right),
        "fresh": agree(use, [target for _, target in fresh]),
        "twice": agree(found, again),
        "alone": agree(found[:ALONE], alone),
        "length": round(sum(map(len, found)) / len(found), 1),
        "different": len(set(found)),
        "weights": sum(each.numel() for each in model.parameters()),
        **judged(mine, model.eval(), sound, test, words),
    }


def agree(found: Sequence[str], other: Sequence[str]) -> int:
    """How many are equal."""
    return sum(a == b for a, b in zip(found, other, strict=True))


def number(value: float) -> float | None:
    """Three decimals; nothing for NaN, which JSON lacks."""
    return round(value, 3) if math.isfinite(value) else None


def tens(losses: Sequence[float]) -> list[float | None]:
    """The mean of each ten."""
    return [number(sum(losses[i : i + 10]) / 10) for i in range(0, len(losses), 10)]


@torch.no_grad()
def judged(
    mine: ModuleType, model: nn.Module, loop: ModuleType, test: Any, words: Words
) -> dict[str, Any]:
    """The share of next tokens that are right after the right ones, and two losses:
    with each source, and with its neighbour's.
    """
    src = loop.source_rows([source for source, _ in test], words)
    tgt = loop.target_rows([target for _, target in test], words)
    logits, target = model(src, tgt[:, :-1]), tgt[:, 1:]
    real = target != loop.PAD
    forced = (logits.argmax(-1) == target)[real].double().mean().item()
    other = model(src.roll(1, dims=0), tgt[:, :-1])
    losses = [
        mine.smoothed_cross_entropy(x, target, 0.1).item() for x in (logits, other)
    ]
    return {
        "forced": round(forced, 3),
        "loss": number(losses[0]),
        "shuffled": number(losses[1]),
    }


def searches() -> Iterator[dict[str, Any]]:
    """Greedy search and two beams of the everyday model, on sixty sentences."""
    torch.set_num_threads(1)
    with SIXTY.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))[:40]
    everyday, sick = load(), planted_search()
    ways = {
        "greedy": (search, SearchOptions(beam_size=1)),
        "beam": (search, SearchOptions()),
        "cache": (sick, SearchOptions()),
    }
    for name, (module, options) in ways.items():
        found = []
        for row in rows:
            src = torch.tensor(everyday.tokenizer.encode_source([row["source"]]))
            best = module.beam(everyday.model, src, options)[0][0]
            found.append(everyday.tokenizer.decode([best.tokens])[0])
        good = sum(
            bool(re.fullmatch(row["right"], text))
            for row, text in zip(rows, found, strict=True)
        )
        yield {
            "name": name,
            "right": good,
            "of": len(rows),
            "sources": [row["source"] for row in rows],
            "says": found,
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    with ProcessPoolExecutor(WORKERS) as pool:
        found = list(pool.map(run, [HEALTHY, *BUGS]))
    sides = {"file": SEARCH.name, "before": CACHE.before, "after": CACHE.after}
    save_line(
        PLACE,
        {
            "phrases": PHRASES,
            "held_out": HELD_OUT,
            "alone_of": ALONE,
            "vocabulary": vocabulary(),
            "runs": found,
            "searches": list(searches()),
            "cache": sides,
        },
    )


def vocabulary() -> int:
    """How many tokens the small model knows."""
    pairs = [phrases(split, HELD_OUT) for split in ("val", "test")]
    return 3 + len(Words([*pairs[0], *pairs[1], *phrases("train", PAIRS)]).ids)


if __name__ == "__main__":
    main()
