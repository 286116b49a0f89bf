"""Train language models on tiny Shakespeare, and measure them on the last tenth, which
they never saw, beside n-grams of the same text.

    python -m benchmarks.after.language_model [--workers 2]

- `n-grams` have Kneser–Ney smoothing, and the order that is best on the last tenth of
  the training text.
- `laptop` has nanoGPT's settings for a laptop: sizes, context, batch, updates and rate
  are its own; the layers and the optimizer's constants are this package's.
- `ours` is what a core learns in half an hour, with rotary positions, the part that
  gains most in the study `decoder-only` of results/after/since_2017.jsonl. Its rate is
  chosen by shorter runs, on the last tenth of the training text, as
  benchmarks/after/studies.py says.

Each worker has one thread. A run that is on record is left alone, and one that was
interrupted goes on, so the same command finishes what is missing. Adds a line for each
run to results/after/language-model.jsonl, which nbs/after/language_model.ipynb shows.
The text is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
Takes two hours of one core.
"""

import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from annotated_transformer.after.language_model import (
    LanguageModel,
    LanguageModelConfig,
    token_losses,
)
from annotated_transformer.after.n_grams import KneserNey
from annotated_transformer.after.parts_by_name import exchange_parts
from annotated_transformer.after.text_generation import (
    LanguageModelTask,
    LanguageTraining,
    TextGenerator,
)
from annotated_transformer.data.text_tokenizer import characters
from annotated_transformer.data.texts import load_text
from annotated_transformer.training.run import fit, start_run
from benchmarks.after.studies import TUNING_SEED, Case, Study, run_missing
from benchmarks.record import add_run, command_line, read_runs

PLACE, RUNS = "after/language-model.jsonl", Path("runs/language-model")
NAME, SEEDS = "tiny-shakespeare", (1, 2, 3)
ORDERS, RATES = (4, 5, 6, 7), (1e-3, 2e-3, 4e-3)
UPDATES, OF_TRIALS = 3_500, 625
PARTS = {"laptop": (), "ours": ("rotary",)}
Plan = tuple[LanguageModelConfig, LanguageTraining]
PLANS: dict[str, Plan] = {
    "laptop": (
        LanguageModelConfig(N=4, d_model=128, d_ff=512, h=4, max_length=64),
        LanguageTraining(steps=2_000, batch=12, peak=1e-3),
    ),
    "ours": (
        LanguageModelConfig(
            N=4, d_model=192, d_ff=768, h=3, dropout=0.1, max_length=256
        ),
        LanguageTraining(steps=UPDATES, batch=16, precision="bf16"),
    ),
}
STUDIES = {"ours": Study({"ours": PARTS["ours"]}, RATES, UPDATES, SEEDS)}


def parted(text: str) -> tuple[str, str]:
    """The beginning of the training text, and its last tenth."""
    cut = int(0.9 * len(text))
    return text[:cut], text[cut:]


def curve(folder: Path) -> list[dict[str, float]]:
    """The loss of each validation of a run."""
    rows = map(json.loads, (folder / "log.jsonl").read_text("utf-8").splitlines())
    return [
        {"step": row["step"], "loss": row["loss"]}
        for row in rows
        if row["event"] == "validation"
    ]


def run(case: Case) -> Case:
    """Train a model; a trial on the beginning of the training text alone."""
    side, trial = case["side"], case["seed"] == TUNING_SEED
    texts = load_text(NAME)
    known, held = parted(texts[0]) if trial else texts
    config, settings = PLANS[side]
    settings = replace(
        settings,
        steps=OF_TRIALS if trial else settings.steps,
        peak=case["rate"],
        seed=case["seed"],
    )
    tokenizer = characters("".join(texts))
    train, valid = (torch.tensor(tokenizer.encode(text)) for text in (known, held))
    torch.manual_seed(settings.seed)
    model = LanguageModel(replace(config, vocab_size=tokenizer.size))
    exchange_parts(model, PARTS[side])
    task = LanguageModelTask(model, tokenizer, train, valid, settings)
    folder = RUNS / "-".join(map(str, case.values()))
    begun, fresh = time.process_time(), not folder.exists()
    if fit(start_run(task, folder, device="cpu")) == "interrupted":
        sys.exit(130)
    spent = round(time.process_time() - begun)
    model.eval()
    loss = token_losses(model, torch.tensor(tokenizer.encode(held))).mean().item()
    found: Case = {
        "architecture": model.config.to_dict(),
        "parts": PARTS[side],
        "training": settings.to_dict(),
        "parameters": sum(each.numel() for each in model.parameters()),
        "passes": settings.steps * settings.batch * config.max_length / len(known),
        "processor_seconds": spent if fresh else None,
        "curve": curve(folder),
        ("validation_loss" if trial else "nats"): loss,
    }
    if not trial:
        writer = TextGenerator(model, tokenizer)
        found["writes"] = writer.generate("\n", 300, temperature=0.8, seed=1)
    return found


def n_grams() -> Case:
    """Nats per character by order in the search, and of the best one."""
    known, held = load_text(NAME)
    before, after = parted(known)

    def nats(order: int, text: str, asked: str) -> float:
        return math.log(2) * KneserNey(text, order).bits_per_character(asked)

    begun = time.process_time()
    tried = {order: nats(order, before, after) for order in ORDERS}
    order = min(tried, key=lambda each: tried[each])
    found = {"tried": tried, "order": order, "nats": nats(order, known, held)}
    return found | {"processor_seconds": round(time.process_time() - begun)}


def main(argv: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args(argv)
    torch.set_num_threads(1)
    there = read_runs(PLACE)
    if not any(each["side"] == "n-grams" for each in there):
        add_run(PLACE, {"study": "n-grams", "side": "n-grams"} | n_grams())
    for seed in SEEDS:
        rate = PLANS["laptop"][1].peak
        case: Case = {"study": "laptop", "side": "laptop", "rate": rate, "seed": seed}
        if not any(case.items() <= each.items() for each in there):
            add_run(PLACE, case | run(case))
    run_missing(PLACE, STUDIES, run, asked.workers)


if __name__ == "__main__":
    main()
