"""Exchange one part of a language model at a time, and measure it on tiny Shakespeare.

    python -m benchmarks.after.decoder_only_parts [--workers 2]

The study `decoder-only` of nbs/after/parts.ipynb, beside those that
benchmarks/after/since_2017.py makes of the translator: the same parts in a decoder of
nanoGPT's sizes for a laptop, 300 updates of 16 windows of 64 characters. Rates are
tuned as benchmarks/after/studies.py says, on the last tenth of the training text; then
each side is measured on the plays held out, whose characters are each predicted once.
Each worker has one thread. Adds a line for each run to results/after/since_2017.jsonl.
The text is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
Takes an hour of one core.
"""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from annotated_transformer.after.language_model import (
    LanguageModel,
    LanguageModelConfig,
    token_losses,
)
from annotated_transformer.after.parts_by_name import exchange_parts
from annotated_transformer.after.text_generation import (
    LanguageModelTask,
    LanguageTraining,
)
from annotated_transformer.data.text_tokenizer import characters
from annotated_transformer.data.texts import load_text
from benchmarks.after.since_2017 import (
    PARTS,
    PLACE,
    RATES,
    TRAINING_PARTS,
    finite,
)
from benchmarks.after.studies import TUNING_SEED, Case, Study, run_missing
from benchmarks.record import command_line
from benchmarks.train import train_task

UPDATES = 300
SIZES = LanguageModelConfig(N=4, d_model=128, d_ff=512, h=4, max_length=64)
SIDES = {side: parts for side, parts in PARTS.items() if side not in TRAINING_PARTS}
STUDY = {"decoder-only": Study(SIDES, RATES, UPDATES)}


def run(case: Case) -> Case:
    """Train one side at one rate from one seed, and measure it."""
    began, (known, held) = time.process_time(), load_text("tiny-shakespeare")
    tokenizer, cut = characters(known + held), int(0.9 * len(known))
    train, valid, test = (
        torch.tensor(tokenizer.encode(text))
        for text in (known[:cut], known[cut:], held)
    )
    settings = LanguageTraining(
        steps=UPDATES, save_every=UPDATES, peak=case["rate"], seed=case["seed"]
    )
    torch.manual_seed(case["seed"])
    sizes = SIZES.to_dict() | {"vocab_size": tokenizer.size}
    model = LanguageModel(LanguageModelConfig.from_dict(sizes))
    parts = SIDES[case["side"]]
    exchange_parts(model, parts)
    list(train_task(LanguageModelTask(model, tokenizer, train, valid, settings)))

    def loss(ids: Tensor) -> float:
        return finite(token_losses(model, ids).mean().item())

    found = {
        "parts": parts,
        "updates": UPDATES,
        "parameters": sum(each.numel() for each in model.parameters()),
        "validation_loss": loss(valid),
    }
    if case["seed"] != TUNING_SEED:
        found["test_loss"] = loss(test)
    return found | {"processor_seconds": round(time.process_time() - began)}


def main(argv: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    run_missing(PLACE, STUDY, run, parser.parse_args(argv).workers)


if __name__ == "__main__":
    main()
