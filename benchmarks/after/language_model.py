"""Train small language models on tiny Shakespeare, and measure them on the last tenth,
which they never saw, beside n-grams of the same text.

    python -m benchmarks.after.language_model
    python -m benchmarks.after.language_model large

`small` has nanoGPT's sizes for a laptop: layers, context, batch and updates are its
own. `large` is about what two cores learn in an hour. `tries` chooses the rate and the
dropout of `large` on the last tenth of the training text, and `n-grams` their order,
with as many tries; they have Kneser–Ney smoothing. Runs on a GPU where there is one.
Writes results/after/language-model.json, which nbs/after/language_model.ipynb shows, a
part as soon as it is there. The text is downloaded unless ANNOTATED_TRANSFORMER_DATA
names a folder that holds it.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

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
from annotated_transformer.devices import find_device
from annotated_transformer.training.task import train_task
from benchmarks.record import command_line, load, provenance, save

PLACE, COMMAND = (
    "after/language-model.json",
    "python -m benchmarks.after.language_model",
)
NAME = "tiny-shakespeare"
SEEDS, TRIAL_SEED = (1, 2, 3), 0
ORDERS = (2, 3, 4, 5, 6, 7, 8, 9, 10)
RATES, DROPOUTS = (1e-3, 2e-3, 4e-3), (0.1, 0.2, 0.3)
SMALL = LanguageModelConfig(d_model=128, d_ff=512, max_length=64)
LARGE = LanguageModelConfig(N=6, d_model=192, d_ff=768, h=6, max_length=256)
SMALL_TRAINING = LanguageTraining(steps=2_000, batch=12, peak=1e-3)
LARGE_TRAINING = LanguageTraining(steps=4_000, batch=16)
Record = dict[str, Any]


def train(
    config: LanguageModelConfig,
    settings: LanguageTraining,
    known: Tensor,
    held: Tensor,
) -> tuple[TextGenerator, Record]:
    """Train on the ids of a text; the model, its curve, and how long it took."""
    tokenizer = characters("".join(load_text(NAME)))
    torch.manual_seed(settings.seed)
    model = LanguageModel(replace(config, vocab_size=tokenizer.size))
    model.to(find_device())
    began, curve = time.perf_counter(), []
    for point in train_task(LanguageModelTask(model, tokenizer, known, held, settings)):
        curve.append(
            {"step": point["step"], "train": point["train"], "valid": point["loss"]}
        )
    print(settings, curve[-1], file=sys.stderr, flush=True)
    return TextGenerator(model, tokenizer), {
        "architecture": model.config.to_dict(),
        "training": asdict(settings),
        "seed": settings.seed,
        "parameters": sum(each.numel() for each in model.parameters()),
        "tokens": {"train": len(known), "held out": len(held)},
        "seconds": round(time.perf_counter() - began, 1),
        "curve": curve,
    }


def score(writer: TextGenerator, text: str) -> Record:
    """What a text costs, in the units that papers use."""
    found = writer.measure(text)
    return asdict(found) | {
        "nats per token": found.nats_per_token,
        "bits per character": found.bits_per_character,
        "perplexity per word": found.perplexity_per_word,
    }


def encoded(*texts: str) -> list[Tensor]:
    """Texts as ids of their characters."""
    tokenizer = characters("".join(load_text(NAME)))
    return [torch.tensor(tokenizer.encode(text)) for text in texts]


def runs(config: LanguageModelConfig, settings: LanguageTraining) -> list[Record]:
    """A run of each seed, with its score on the plays held out, and what it writes."""
    texts, found = load_text(NAME), []
    for seed in SEEDS:
        own = replace(settings, seed=seed)
        writer, run = train(config, own, *encoded(*texts))
        written = writer.generate("\n", 300, temperature=0.8, seed=1)
        found.append(run | {"held out": score(writer, texts[1]), "writes": written})
    return found


def small() -> list[Record]:
    """Of nanoGPT's sizes for a laptop."""
    return runs(SMALL, SMALL_TRAINING)


def large() -> list[Record]:
    """Of the rate and the dropout that the tries found best."""
    best = min(load(PLACE)["tries"], key=lambda each: each["valid"])
    config = replace(LARGE, dropout=best["dropout"])
    return runs(config, replace(LARGE_TRAINING, peak=best["rate"]))


def tries() -> list[Record]:
    """What each rate and dropout of `large` reaches on the end of the training text."""
    known = load_text(NAME)[0]
    sides, found = encoded(*parted(known)), []
    for rate, dropout in product(RATES, DROPOUTS):
        settings = replace(LARGE_TRAINING, peak=rate, seed=TRIAL_SEED)
        _, run = train(replace(LARGE, dropout=dropout), settings, *sides)
        least = min(point["valid"] for point in run["curve"])
        found.append({"rate": rate, "dropout": dropout, "valid": least})
    return found


def parted(text: str) -> tuple[str, str]:
    """The beginning of the training text, and its last tenth."""
    cut = int(0.9 * len(text))
    return text[:cut], text[cut:]


def n_grams() -> Record:
    """Bits per character of n-grams: by order in the search, and of the best one."""
    known, held = load_text(NAME)
    before, after = parted(known)
    tried = {
        order: KneserNey(before, order).bits_per_character(after) for order in ORDERS
    }
    order = min(tried, key=lambda each: tried[each])
    return {
        "tries": tried,
        "order": order,
        "bits per character": KneserNey(known, order).bits_per_character(held),
    }


PARTS = {"n-grams": n_grams, "small": small, "tries": tries, "large": large}


def main(argv: Sequence[str] | None = None) -> None:
    """Make the parts, and write each into the record."""
    parser = command_line(__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; or all")
    asked = parser.parse_args(argv)
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part {min(unknown)!r}: choose from {', '.join(PARTS)}")
    for name in asked.parts or PARTS:
        found = PARTS[name]()
        made = load(PLACE).get("made", {}) | {name: provenance()}
        kept = {part: row for part, row in load(PLACE).items() if part in PARTS}
        save(PLACE, {"command": COMMAND, "made": made} | kept | {name: found})


if __name__ == "__main__":
    main()
