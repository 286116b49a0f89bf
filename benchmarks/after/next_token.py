"""Train language models of byte pairs on tiny Shakespeare, and keep what one of them
expects next.

    python -m benchmarks.after.next_token

The settings are those of the side `laptop` in results/after/language-model.jsonl, whose
tokens are characters; here they are 1,000 byte pairs. Three seeds are measured on
the last tenth of the text. The first writes with several settings, and the probability
of each token after a prompt is kept.

The text is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
Takes ten minutes of one core. Writes results/after/byte-pairs.json and
results/after/next-token.json, for the chapter on language models.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from annotated_transformer.after.language_model import LanguageModel, byte_pairs
from annotated_transformer.after.text_generation import (
    LanguageModelTask,
    TextGenerator,
)
from annotated_transformer.data.texts import load_text
from annotated_transformer.training.task import train_task
from benchmarks.after.language_model import NAME, PLANS, SEEDS
from benchmarks.record import command_line, save, save_line

PLACE, NEXT = "after/byte-pairs.json", "after/next-token.json"
VOCABULARY, PROMPTS = 1_000, ("Give me my", "Wherefore art")
CONFIG, TRAINING = PLANS["laptop"]
HOW: dict[str, dict[str, Any]] = {
    "k = 1": {"top_k": 1},
    "T = 0.5": {"temperature": 0.5},
    "p = 0.9": {"top_p": 0.9},
    "T = 1": {},
    "T = 2": {"temperature": 2.0},
}


def trained(seed: int) -> TextGenerator:
    """A model of byte pairs."""
    known, held = load_text(NAME)
    tokenizer = byte_pairs(known, VOCABULARY)
    torch.manual_seed(seed)
    model = LanguageModel(replace(CONFIG, vocab_size=tokenizer.size))
    train, valid = (torch.tensor(tokenizer.encode(text)) for text in (known, held))
    settings = replace(TRAINING, seed=seed)
    list(train_task(LanguageModelTask(model, tokenizer, train, valid, settings)))
    model.eval()
    return TextGenerator(model, tokenizer)


def measured(writer: TextGenerator, seed: int) -> dict[str, Any]:
    """What the held-out text costs a model, and what the model is."""
    known, held = load_text(NAME)
    loss: Any = writer.measure(held)
    length = len(writer.tokenizer.encode(known))
    read = TRAINING.steps * TRAINING.batch * CONFIG.max_length
    return {
        "seed": seed,
        "parameters": sum(each.numel() for each in writer.model.parameters()),
        "passes": read / length,
        "nats": loss.nats,
        "tokens": loss.tokens,
        "characters": loss.characters,
    }


@torch.inference_mode()
def expected(writer: TextGenerator, prompt: str) -> dict[str, Any]:
    """Every token after a prompt with its log-probability, the likeliest first."""
    ids = torch.tensor([writer.tokenizer.encode(prompt)])
    found = writer.model(ids)[0, -1].log_softmax(dim=0).sort(descending=True)
    names = [writer.tokenizer.decode([token]) for token in found.indices.tolist()]
    return {
        "prompt": prompt,
        "tokens": names,
        "log_probs": [round(each, 3) for each in found.values.tolist()],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the models and write both records."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    writers = {seed: trained(seed) for seed in SEEDS}
    runs = [measured(writer, seed) for seed, writer in writers.items()]
    first = writers[SEEDS[0]]
    about = {"architecture": first.model.config.to_dict()}
    about |= {"training": TRAINING.to_dict(), "runs": runs}
    texts = {
        name: first.generate(PROMPTS[0], 40, seed=2, **how) for name, how in HOW.items()
    }
    save(PLACE, about | {"prompt": PROMPTS[0], "writes": texts}, "tokenizers")
    save_line(
        NEXT, {"prompts": [expected(first, each) for each in PROMPTS]}, "tokenizers"
    )


if __name__ == "__main__":
    main()
