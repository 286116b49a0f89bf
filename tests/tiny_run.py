"""A tiny training run for the tests, in this process or in another: python tiny_run.py
FOLDER [name=value …].
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch
from torch import nn

from annotated_transformer import load
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import (
    adam_moments,
    save_model,
    write_checkpoint,
)
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.distributed import join_world
from annotated_transformer.training.run import Run, fit
from annotated_transformer.translation.task import TranslationTask
from annotated_transformer.translation.translator import Translator

SETTINGS = {
    "steps": 12,
    "batch_tokens": 48,
    "warmup": 4,
    "log_every": 1,
    "save_every": 4,
    "keep": 2,
}


def sentences() -> list[tuple[str, str]]:
    """Seeded nonsense of uneven length; the longest fills a batch of its own."""
    rng = random.Random(0)
    words = ["ba", "du", "ki", "lo", "me", "na"]
    sides = [[rng.choice(words) for _ in range(rng.randint(1, 7))] for _ in range(60)]
    sides.append([rng.choice(words) for _ in range(40)])
    return [(" ".join(side), " ".join(reversed(side))) for side in sides]


@lru_cache
def data() -> tuple[PairTokenizer, TokenizedPairs, TokenizedPairs]:
    """The tokenizer, the training and the validation pairs."""
    tokenizer = train_tokenizer(sentences(), "en", "de", vocab_size=40)
    return (
        tokenizer,
        TokenizedPairs.build(sentences(), tokenizer),
        TokenizedPairs.build(sentences()[:10], tokenizer),
    )


def task(dropout: float = 0.1, **settings: int | float | str) -> TranslationTask:
    """The training of a model with 16 entries to a vector."""
    tokenizer, train, valid = data()
    size = tokenizer.src_vocab_size
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(
            size, size, N=1, d_model=16, d_ff=32, h=2, d_k=8, d_v=8, dropout=dropout
        )
    )
    config = TrainingConfig(**(SETTINGS | settings))
    texts = sentences()[: config.translate]
    return TranslationTask(model, tokenizer, train, valid, config, texts=texts)


def start(
    folder: Path,
    dropout: float = 0.1,
    report: Callable[[dict], None] = lambda record: None,
    **settings: int | float | str,
) -> Run:
    """A run of it."""
    made = task(dropout, **settings)
    return Run(made, folder, join_world(made.config.timeout, "cpu"), report)


def random_model(folder: Path, lowercase: bool = False, **sizes: int) -> Path:
    """A model folder with random weights: enough but for good translations."""
    torch.manual_seed(0)
    pairs = phrasebook("en", "de", "train", 300)
    tokenizer = train_tokenizer(pairs, "en", "de", 300, lowercase=lowercase)
    size = tokenizer.src_vocab_size
    small = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "max_length": 64} | sizes
    save_model(folder, Transformer(TransformerConfig(size, size, **small)), tokenizer)
    return folder


def opened(folder: Path) -> Translator:
    """What a folder holds, on the CPU, searching by the book's own model."""
    translator: Translator = load(folder, device="cpu", engine="plain")
    return translator


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    tokenizer: PairTokenizer,
    optimizer: torch.optim.Optimizer,
    progress: dict,
) -> None:
    """A checkpoint as a run writes it."""
    weights, moments = dict(model.named_parameters()), adam_moments(model, optimizer)
    write_checkpoint(folder, (weights, model.config, tokenizer), moments, progress)


def write_pairs(folder: Path) -> Path:
    """Phrases to train on and to validate with: train and valid, in en and de."""
    for split, (part, count) in {"train": ("test", 60), "valid": ("val", 10)}.items():
        for language, texts in zip(
            ("en", "de"),
            zip(*phrasebook("en", "de", part, count), strict=True),
            strict=True,
        ):
            text = "".join(f"{each}\n" for each in texts)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    return folder


def refused(result: tuple[int, str, str], *words: object) -> None:
    """One line on standard error that holds the words, status 2, and no traceback."""
    status, _, err = result
    assert status == 2, result
    assert err.startswith("error: ") and err.count("\n") == 1, err
    for word in words:
        assert str(word) in err, f"{word!r} is missing from {err!r}"


def train_arguments(folder: Path, out: Path, settings: str = "") -> list[object]:
    """`train` on the files train and valid of a folder, by words such as "N=1 h=2"."""
    given = [word for each in settings.split() for word in ("--set", each)]
    files = folder / "train", "--src", "en", "--tgt", "de", "--valid", folder / "valid"
    return ["train", *files, "--device", "cpu", *given, "--out", out]


def losses(folder: Path) -> list[tuple[str, int, float]]:
    """The losses that a run logged."""
    records = [
        json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()
    ]
    return [
        (record["event"], record["step"], record["loss"])
        for record in records
        if "loss" in record
    ]


def wait_for_lines(folder: Path, count: int, process: subprocess.Popen) -> None:
    """Until the log has so many lines, or the process has ended."""
    log = folder / "log.jsonl"
    while process.poll() is None and (
        not log.exists() or log.read_text().count("\n") < count
    ):
        time.sleep(0.005)


def main() -> None:
    """Train; `pause` is the time in seconds after each record, so that a test can
    strike in between.
    """
    torch.set_num_threads(1)
    settings = {
        name: json.loads(value)
        for name, value in (word.split("=") for word in sys.argv[2:])
    }
    pause = settings.pop("pause", 0)
    run = start(Path(sys.argv[1]), report=lambda record: time.sleep(pause), **settings)
    print(fit(run))
    if run.world.size > 1 and run.world.first:
        held = [
            (getattr(p, "to_local", lambda p=p: p)().numel(), p.numel())
            for p in run.model.parameters()
        ]
        print(
            f"holds {sum(own for own, _ in held) / sum(every for _, every in held)} of "
            "the model"
        )


if __name__ == "__main__":
    main()
