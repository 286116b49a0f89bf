"""Train twins on tiny Shakespeare, one with the causal mask and one without.

    python -m benchmarks.after.mask_twins

Both have the same layers, first weights, batches and settings, and three seeds each;
tokens are characters. A held-out window's 33rd character is asked for twice: with the
whole window given, as in training, and with the 32 before it alone, as in use. Then
each writes, and reads again all that it has written for every new character.

The text is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
Takes five minutes of one core and writes results/after/mask-twins.json, for the chapter
on language models.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from annotated_transformer.after.language_model import (
    LanguageModel,
    LanguageModelConfig,
    characters,
    token_losses,
)
from annotated_transformer.after.text_generation import (
    LanguageModelTask,
    LanguageTraining,
)
from annotated_transformer.data.text_tokenizer import TextTokenizer
from annotated_transformer.data.texts import load_text
from annotated_transformer.training.task import train_task
from benchmarks.record import command_line, save

PLACE, SEEDS, GIVEN = "after/mask-twins.json", (1, 2, 3), 32
CONFIG = LanguageModelConfig(N=2, d_model=128, d_ff=512, vocab_size=65, max_length=64)
TRAINING = LanguageTraining(steps=1_000, batch=12, peak=2e-3)
PROMPT, LENGTH, TEMPERATURE = "ROMEO:\n", 120, 0.8


class Unmasked(LanguageModel):
    """The same model, with nothing hidden."""

    def forward(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocab"]:
        """A score for the token after each position, which saw all of them."""
        everything = torch.ones(1, 1, 1, ids.size(1), dtype=torch.bool)
        return self.embedding.logits(self.stack(self.embed(ids), everything))


TWINS = {"mask on": LanguageModel, "mask off": Unmasked}


@torch.inference_mode()
def given(model: LanguageModel, ids: Tensor, n: int) -> float:
    """The mean loss of each window's 33rd character, when its first n are read."""
    rows = ids[: len(ids) // CONFIG.max_length * CONFIG.max_length]
    windows = rows.view(-1, CONFIG.max_length)
    logits = model(windows[:, :n])[:, GIVEN - 1]
    return F.cross_entropy(logits, windows[:, GIVEN]).item()


@torch.inference_mode()
def write(model: LanguageModel, tokenizer: TextTokenizer, seed: int) -> str:
    """What goes on from the prompt; everything is read again for each character."""
    draw, ids = torch.Generator().manual_seed(seed), tokenizer.encode(PROMPT)
    for _ in range(LENGTH):
        logits = model(torch.tensor([ids[-CONFIG.max_length :]]))[0, -1]
        chances = (logits / TEMPERATURE).softmax(dim=0)
        ids.append(int(torch.multinomial(chances, 1, generator=draw)))
    return tokenizer.decode(ids)


def run(name: str, seed: int) -> dict[str, Any]:
    """One twin of one seed: its losses, and what it writes."""
    texts = load_text("tiny-shakespeare")
    tokenizer = characters("".join(texts))
    known, held = (torch.tensor(tokenizer.encode(text)) for text in texts)
    settings = LanguageTraining(**TRAINING.to_dict() | {"seed": seed})
    torch.manual_seed(seed)
    model = TWINS[name](CONFIG)
    for point in train_task(LanguageModelTask(model, tokenizer, known, held, settings)):
        last = point
    model.eval()
    return {
        "twin": name,
        "seed": seed,
        "trained": last["train"],
        "held_out": token_losses(model, held).mean().item(),
        "whole": given(model, held, CONFIG.max_length),
        "past": given(model, held, GIVEN),
        "writes": write(model, tokenizer, seed),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train all twins and write the record."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    runs = [run(name, seed) for seed in SEEDS for name in TWINS]
    about = {"architecture": CONFIG.to_dict(), "training": TRAINING.to_dict()}
    save(PLACE, about | {"given": GIVEN, "prompt": PROMPT, "runs": runs})


if __name__ == "__main__":
    main()
