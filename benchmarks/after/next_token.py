"""Train a language model of byte pairs on tiny Shakespeare, and keep what it expects.

    python -m benchmarks.after.next_token

The settings are those of benchmarks/after/mask_twins.py, whose tokens are characters;
here they are 1,000 byte pairs, and there is one seed. The model is measured on the last
tenth of the text and writes with several settings, and the probability of each token
after a prompt is kept.

The text is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
Takes half a minute of one core. Writes results/after/byte-pairs.json and
results/after/next-token.json, for the chapter on language models.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from annotated_transformer.after.language_model import LanguageModel
from annotated_transformer.after.text_generation import (
    LanguageModelTask,
    TextGenerator,
)
from annotated_transformer.data.text_tokenizer import byte_pairs
from annotated_transformer.data.texts import load_text
from benchmarks.after.mask_twins import CONFIG, TRAINING
from benchmarks.record import command_line, save, save_line
from benchmarks.train import train_task

PLACE, NEXT = "after/byte-pairs.json", "after/next-token.json"
VOCABULARY, SEED, PROMPTS = 1_000, 1, ("Give me my", "Wherefore art")
HOW: dict[str, dict[str, Any]] = {
    "k = 1": {"top_k": 1},
    "T = 0.5": {"temperature": 0.5},
    "p = 0.9": {"top_p": 0.9},
    "T = 1": {},
    "T = 2": {"temperature": 2.0},
}


def trained() -> TextGenerator:
    """The model."""
    known, held = load_text("tiny-shakespeare")
    tokenizer = byte_pairs(known, VOCABULARY)
    torch.manual_seed(SEED)
    model = LanguageModel(replace(CONFIG, vocab_size=tokenizer.size))
    train, valid = (torch.tensor(tokenizer.encode(text)) for text in (known, held))
    settings = replace(TRAINING, seed=SEED, save_every=TRAINING.steps)
    list(train_task(LanguageModelTask(model, tokenizer, train, valid, settings)))
    model.eval()
    return TextGenerator(model, tokenizer)


def measured(writer: TextGenerator) -> dict[str, Any]:
    """What the held-out text costs, and what the model is."""
    known, held = load_text("tiny-shakespeare")
    loss: Any = writer.measure(held)
    read = TRAINING.steps * TRAINING.batch * CONFIG.max_length
    return {
        "architecture": writer.model.config.to_dict(),
        "training": TRAINING.to_dict(),
        "parameters": sum(each.numel() for each in writer.model.parameters()),
        "passes": read / len(writer.tokenizer.encode(known)),
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
    """Train the model and write both records."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    writer, prompt = trained(), PROMPTS[0]
    writes = {
        name: writer.generate(prompt, 40, seed=2, **how) for name, how in HOW.items()
    }
    found = measured(writer) | {"prompt": prompt, "writes": writes}
    save(PLACE, found, "tokenizers")
    found = {"prompts": [expected(writer, each) for each in PROMPTS]}
    save_line(NEXT, found, "tokenizers")


if __name__ == "__main__":
    main()
