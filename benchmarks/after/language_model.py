"""Train a small language model on tiny Shakespeare, and measure it on the last tenth,
which it never saw, beside n-grams of the same text.

    python -m benchmarks.after.language_model

The n-grams have Kneser–Ney smoothing, and the order that is best on the last tenth of
the training text. Takes about five minutes of one core and writes
results/after/language-model.json, which nbs/after/language_model.ipynb draws. `--keep`
saves the model in a folder, too. The text is downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from annotated_transformer.after.config import LanguageTraining
from annotated_transformer.after.language_model import (
    KneserNey,
    LanguageModel,
    LanguageModelConfig,
    characters,
)
from annotated_transformer.after.tasks import LanguageModelTask
from annotated_transformer.after.text_generator import TextGenerator
from annotated_transformer.data.texts import load_text
from annotated_transformer.training.task import train_task
from benchmarks.record import command_line, save

PLACE = "after/language-model.json"
NAME = "tiny-shakespeare"
SETTINGS = LanguageTraining(steps=2_000, batch=16)
ORDERS = (3, 4, 5, 6, 7, 8)


def train(keep: Path | None) -> dict:
    """Train on the text; the curve, the scores, and what the model writes."""
    train, valid = load_text(NAME)
    settings, tokenizer = SETTINGS, characters(train + valid)
    config = LanguageModelConfig(d_model=128, d_ff=512, vocab_size=tokenizer.size)
    torch.manual_seed(settings.seed)
    model = LanguageModel(config)
    ids = [torch.tensor(tokenizer.encode(text)) for text in (train, valid)]
    began, curve = time.process_time(), []
    for point in train_task(LanguageModelTask(model, tokenizer, *ids, settings)):
        curve.append(
            {"step": point["step"], "train": point["train"], "valid": point["loss"]}
        )
        print(point, file=sys.stderr, flush=True)
    seconds, writer = time.process_time() - began, TextGenerator(model, tokenizer)
    if keep:
        writer.save_pretrained(keep / NAME)
    return {
        "architecture": config.to_dict(),
        "training": asdict(settings),
        "parameters": sum(each.numel() for each in model.parameters()),
        "tokens": {"train": len(ids[0]), "held out": len(ids[1])},
        "processor seconds": seconds,
        "curve": curve,
        "held out": score(writer, valid),
        "writes": writer.generate("\n", 300, temperature=0.8, seed=1),
    }


def score(writer: TextGenerator, text: str) -> dict:
    """What a text costs, in the units that papers use."""
    found = writer.measure(text)
    return asdict(found) | {
        "nats per token": found.nats_per_token,
        "bits per character": found.bits_per_character,
        "perplexity per word": found.perplexity_per_word,
    }


def n_grams() -> dict:
    """Bits per character of n-grams: by order in the search, and of the best one."""
    known, held = load_text(NAME)
    cut = int(0.9 * len(known))
    tries = {
        order: KneserNey(known[:cut], order).bits_per_character(known[cut:])
        for order in ORDERS
    }
    order = min(tries, key=lambda each: tries[each])
    return {
        "tries": tries,
        "order": order,
        "bits per character": KneserNey(known, order).bits_per_character(held),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Train, count, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--keep", type=Path, help="save the model in this folder")
    asked = parser.parse_args(argv)
    torch.set_num_threads(1)
    save(PLACE, {"n-grams": n_grams(), "text": train(asked.keep)})


if __name__ == "__main__":
    main()
