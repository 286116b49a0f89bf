"""Train twins on tiny Shakespeare, one with the causal mask and one without.

    python -m benchmarks.after.mask_twins

Both have the same layers, first weights, batches and settings, and three seeds each;
tokens are characters. A held-out window's 17th character is asked for twice: with the
whole window given, as in training, and with the 16 before it alone, as in use. Then
each writes, and reads again all that it has written for every new character.

The text is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
Takes two minutes of one core and writes results/after/mask-twins.json, for the chapter
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
)
from annotated_transformer.after.text_generation import (
    LanguageModelTask,
    LanguageTraining,
)
from annotated_transformer.data.text_tokenizer import TextTokenizer, characters
from annotated_transformer.data.texts import load_text
from benchmarks.record import command_line, save
from benchmarks.train import train_task

PLACE, SEEDS, GIVEN = "after/mask-twins.json", (1, 2, 3), 16
CONFIG = LanguageModelConfig(N=2, d_model=64, d_ff=256, vocab_size=65, max_length=32)
TRAINING = LanguageTraining(steps=1_000, peak=3e-3, save_every=1_000)
PROMPT, LENGTH, TEMPERATURE = "ROMEO:\n", 120, 0.8


class Unmasked(LanguageModel):
    """The same model, with nothing hidden."""

    def forward(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocab"]:
        """A score for the token after each position, which saw all of them."""
        everything = torch.ones(1, 1, 1, ids.size(1), dtype=torch.bool)
        return self.embedding.logits(self.stack(self.embed(ids), everything))


TWINS = {"mask on": LanguageModel, "mask off": Unmasked}


@torch.inference_mode()
def losses(model: LanguageModel, ids: Tensor) -> dict[str, float]:
    """Mean losses on held-out windows: of all next characters, and of the 17th."""
    n = CONFIG.max_length
    windows = ids.unfold(0, n + 1, n)
    read, following = windows[:, :n], windows[:, 1:]
    whole, past = model(read), model(read[:, :GIVEN])[:, -1]
    asked = following[:, GIVEN - 1]
    return {
        "held_out": F.cross_entropy(whole.flatten(0, 1), following.flatten()).item(),
        "whole": F.cross_entropy(whole[:, GIVEN - 1], asked).item(),
        "past": F.cross_entropy(past, asked).item(),
    }


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
        **losses(model, held),
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
