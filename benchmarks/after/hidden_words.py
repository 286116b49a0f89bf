"""Masked language models of one layer that learn from phrases, step by step.

    python -m benchmarks.after.hidden_words

The phrases are the phrasebook's, each in one of six languages. Models of three seeds
learn with BERT's dice, 80 % hidden, 10 % wrong and 10 % untouched, and three with all
chosen tokens hidden. Both are asked for the same tokens of phrases that they haven't
read: hidden, replaced by another token, and untouched. Of the first, every hundred
updates, what it would put into each gap of a phrase is kept.

Takes five minutes of one core. Writes results/after/hidden-words.json and
results/after/gaps.json, for the chapter on masked language models.
"""

import random
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from tokenizers import Tokenizer
from torch import Tensor

from annotated_transformer.after.mask_filling import (
    MaskedLanguageModelTask,
    MaskedTraining,
)
from annotated_transformer.after.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    hide,
)
from annotated_transformer.after.masked_texts import (
    mask_tokenizer,
    predictions,
    text_rows,
)
from annotated_transformer.data.batching import pad_rows
from annotated_transformer.data.phrasebook_slots import SLOTS, say
from annotated_transformer.model.config import UNK
from benchmarks.record import command_line, save, save_line
from benchmarks.train import train_task

PLACE, GAPS, SEEDS = "after/hidden-words.json", "after/gaps.json", (1, 2, 3)
LANGUAGES = "en de fr es it nl".split()
KINDS = "day_in_words weekday_span things ago hence".split()
PHRASE, SHOWN = "the twenty-first of March", 6
VOCABULARY, DICE = 1_000, {"80, 10, 10": 0.8, "always [MASK]": 1.0}
TRAINING = MaskedTraining(steps=1_200, batch=64, peak=8e-3, save_every=100)


def phrases(count: int, seed: int) -> list[str]:
    """Random phrases, each in one of the languages."""
    rng, texts = random.Random(seed), []
    for _ in range(count):
        kind, language = rng.choice(KINDS), rng.choice(LANGUAGES)
        texts.append(say(kind, SLOTS[kind].values.draw(rng), language))
    return texts


KNOWN = phrases(6_000, seed=1)
HELD = [text for text in phrases(1_500, seed=2) if text not in {*KNOWN}]


@torch.inference_mode()
def fills(model: MaskedLanguageModel, tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """For each token of the phrase, hidden alone: the likeliest, and its own chance."""
    ids = tokenizer.encode(PHRASE).ids[:-1]
    end, found = tokenizer.encode(PHRASE).ids[-1:], []
    for place, own in enumerate(ids):
        shown = [*ids[:place], model.config.mask_id, *ids[place + 1 :], *end]
        chances = model.eval()(torch.tensor([shown]))[0, place].softmax(dim=0)
        best = chances.topk(SHOWN)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        likeliest = [[tokenizer.id_to_token(i), round(p, 4)] for i, p in pairs]
        found.append({"likeliest": likeliest, "own": round(chances[own].item(), 4)})
    return found


def asked(texts: Int[Tensor, "batch n"], mask_id: int) -> dict[str, Any]:
    """The chosen places of held-out phrases, and what is shown in each of the ways."""
    draw = torch.Generator().manual_seed(5)
    _, chosen = hide(texts, mask_id, draw)
    others = torch.randint(UNK + 1, mask_id, texts.shape, generator=draw)
    return {
        "chosen": chosen,
        "hidden": texts.masked_fill(chosen, mask_id),
        "wrong": torch.where(chosen, others, texts),
        "untouched": texts,
    }


@torch.inference_mode()
def named(model: MaskedLanguageModel, texts: Tensor) -> dict[str, float]:
    """How often the likeliest token of a chosen place is the true one, by way."""
    ways = asked(texts, model.config.mask_id)
    chosen = ways.pop("chosen")
    return {
        way: (model.eval()(ids)[chosen].argmax(-1) == texts[chosen])
        .double()
        .mean()
        .item()
        for way, ids in ways.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the models and write both records."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    tokenizer = mask_tokenizer(KNOWN, VOCABULARY)
    size = tokenizer.get_vocab_size()
    config = MaskedLanguageModelConfig(N=1, d_ff=128, vocab_size=size, max_length=32)
    rows, held = (text_rows(tokenizer, texts, 32) for texts in (KNOWN, HELD))
    runs, steps = [], []
    for seed in SEEDS:
        for dice, masked in DICE.items():
            given = TRAINING.to_dict() | {"masked": masked, "seed": seed}
            torch.manual_seed(seed)
            model = MaskedLanguageModel(config)
            first = not runs
            if first:
                loss, right = predictions(model, held)
                start = {"step": 0, "loss": loss, "accuracy": right}
                before = named(model, pad_rows(held))
                steps.append(start | {"gaps": fills(model, tokenizer)})
            task = MaskedLanguageModelTask(
                model, tokenizer, rows, held, MaskedTraining(**given)
            )
            for point in train_task(task):
                if first:
                    kept = {name: point[name] for name in ("step", "loss", "accuracy")}
                    steps.append(kept | {"gaps": fills(model, tokenizer)})
            shares = named(model, pad_rows(held))
            about = {"dice": dice, "seed": seed, "loss": point["loss"]}
            runs.append(about | {"named": shares})
    about = {"architecture": config.to_dict(), "training": TRAINING.to_dict()}
    save(
        PLACE,
        about
        | {"phrases": len(KNOWN), "held": len(HELD), "before": before, "runs": runs},
    )
    tokens = tokenizer.encode(PHRASE).tokens[:-1]
    save_line(GAPS, {"tokens": tokens, "steps": steps})


if __name__ == "__main__":
    main()
