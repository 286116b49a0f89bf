"""What a wrong step in the import of somebody else's model does, step by step.

    python -m benchmarks.after.broken_imports

A small Marian model, built, trained and saved by Hugging Face's code alone, learns the
numbers below 1,000 in words but for a hundred. It is imported rightly, and then with
one step of the import left out or wrong: how far the scores move, by how much the right
token leads the next at the closest choice (negative where another comes first), and how
many of the hundred are still translated word for word by greedy search. Of the right
import also the number of choices, the median lead, and how widely training spread the
biases of attention, which began at zero. Half a minute of one core; writes
results/after/broken-imports.json, for the chapter on other people's weights.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import sentencepiece
import torch
import transformers
from num2words import num2words
from torch import Tensor

from annotated_transformer.interop.marian import MarianTransformer, MarianTranslator
from annotated_transformer.interop.marian_weights import (
    reorder_stream,
    sines_first,
    weights_of,
)
from annotated_transformer.training.checkpoint import copy_weights
from benchmarks.record import command_line, save_line

PLACE = "after/broken-imports.json"
SHOWN = ["thirty-nine", "four hundred and twelve", "nine hundred and sixty-seven"]
UPDATES, D_MODEL = 300, 64
Weights = dict[str, Tensor]


def numbers() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs to train on, and a hundred that are kept back, those shown among them."""
    pairs = [(num2words(n), num2words(n, lang="de")) for n in range(1000)]
    Random(0).shuffle(pairs)
    pairs.sort(key=lambda pair: pair[0] not in SHOWN)
    return pairs[100:], pairs[:100]


def write_tokenizer(folder: Path, pairs: Sequence[tuple[str, str]]) -> Any:
    """Their tokenizer: SentencePiece for each side, one table of ids for both."""
    paths = [folder / "source.spm", folder / "target.spm"]
    for side, path in enumerate(paths):
        with path.open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([pair[side] for pair in pairs]),
                model_writer=file,
                vocab_size=65,
                hard_vocab_limit=False,
                character_coverage=1.0,
                minloglevel=2,
            )
    both = [sentencepiece.SentencePieceProcessor(model_file=str(p)) for p in paths]
    pieces = dict.fromkeys(
        p.id_to_piece(i) for p in both for i in range(3, p.get_piece_size())
    )
    names = ["</s>", "<unk>", *pieces, "<pad>"]
    table = folder / "vocab.json"
    table.write_text(json.dumps({name: i for i, name in enumerate(names)}))
    tokenizer = transformers.MarianTokenizer(
        *map(str, [*paths, table]), source_lang="en", target_lang="de"
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_stranger(folder: Path, pairs: Sequence[tuple[str, str]]) -> Any:
    """Their model, trained by their code and saved; the inputs of eight sentences."""
    tokenizer = write_tokenizer(folder, pairs)
    size = len(tokenizer)
    torch.manual_seed(0)
    shape = dict(d_model=D_MODEL, encoder_layers=2, decoder_layers=1, init_std=0.1)
    shape |= {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
    shape |= {f"{side}_ffn_dim": 128 for side in ("encoder", "decoder")}
    ids = dict.fromkeys(("pad_token_id", "decoder_start_token_id"), size - 1)
    shape |= dict(activation_function="swish", scale_embedding=True, dropout=0.0)
    shape |= dict(max_position_embeddings=64, vocab_size=size) | ids
    model = transformers.MarianMTModel(transformers.MarianConfig(**shape))
    sources, targets = zip(*pairs, strict=True)
    src = tokenizer(list(sources), return_tensors="pt", padding=True)
    labels = tokenizer(
        text_target=list(targets), return_tensors="pt", padding=True
    ).input_ids
    labels = labels.masked_fill(labels == size - 1, -100)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, UPDATES)
    for _ in range(UPDATES):
        rows = torch.randint(len(pairs), (64,))
        batch = {name: tensor[rows] for name, tensor in src.items()}
        model(**batch, labels=labels[rows]).loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    with torch.no_grad():  # zeros wouldn't show whether they are imported
        model.final_logits_bias += 0.1 * torch.randn(size)
    model.eval().save_pretrained(folder)
    return model


def exchanged(weights: Weights, first: str, second: str) -> Weights:
    """Two parts in each other's place, in every layer."""
    swap = {first: second, second: first}
    found = {}
    for name, weight in weights.items():
        part = next((each for each in swap if each in name), None)
        found[name.replace(part, swap[part]) if part else name] = weight
    return found


def without(weights: Weights, *parts: str) -> Weights:
    """Zeros in the place of these parts."""
    return {
        name: torch.zeros_like(weight)
        if any(part in name for part in parts)
        else weight
        for name, weight in weights.items()
    }


def broken(weights: Weights) -> dict[str, Weights]:
    """Weights of imports in which one step is wrong."""
    biases = [f"W_{each}.bias" for each in "QKVO"]
    return {
        "order": reorder_stream(weights, sines_first(D_MODEL)),
        "queries": exchanged(weights, "W_Q", "W_K"),
        "activation": weights,  # read with another configuration
        "biases": without(weights, *biases),
        "output": without(weights, "logits_bias"),
        "keys": without(weights, "W_K.bias"),
    }


def rows(tokenizer: Any, config: Any, pair: tuple[str, str]) -> tuple[Tensor, Tensor]:
    """A source, and what the decoder reads, each as one row of ids."""
    src, tgt = tokenizer.encode_source([pair[0]]), tokenizer.encode_target([pair[1]])
    return torch.tensor(src), torch.tensor([[config.bos_id, *tgt[0]]])


def leads(scores: Tensor, tokens: Tensor) -> Tensor:
    """By how much the right token leads the best of the others, at each position."""
    right = scores.gather(-1, tokens[..., None])
    others = scores.scatter(-1, tokens[..., None], -torch.inf)
    return (right[..., 0] - others.amax(-1)).flatten()


def spread(weights: Weights, part: str) -> float:
    """The root mean square of all tensors of this name, rounded."""
    values = torch.cat([w.flatten() for name, w in weights.items() if part in name])
    return float(f"{values.square().mean().sqrt().item():.2g}")


def broken_imports() -> dict[str, Any]:
    """The right import and each broken one: difference, lead, exact of 100, texts."""
    torch.set_num_threads(1)
    train, held_out = numbers()
    sources, targets = map(list, zip(*held_out, strict=True))
    with TemporaryDirectory() as name:
        folder = Path(name)
        stranger = write_stranger(folder, train)
        right = MarianTranslator.from_pretrained(folder, device="cpu", engine="plain")
    tokenizer, config = right.tokenizer, right.model.config
    asked = [rows(tokenizer, config, pair) for pair in held_out]
    with torch.inference_mode():
        theirs = [stranger(src, decoder_input_ids=tgt).logits for src, tgt in asked]
    answers = [  # what each position should write: the next token, then the end
        torch.cat([tgt[:, 1:], torch.tensor([[config.eos_id]])], -1) for _, tgt in asked
    ]
    found, whole = {}, weights_of(right.model)
    attention = [f"W_{each}" for each in "QKVO"]
    first = right.translate(sources, beam_size=1)
    for step, weights in ({"none": whole} | broken(whole)).items():
        relu = step == "activation"
        model = MarianTransformer(
            replace(config, activation="relu") if relu else config
        )
        copy_weights(model.eval(), weights, Path(step))
        with torch.inference_mode():
            scores = [model(*each) for each in asked]
        moved = [
            (after - before).abs().max().item()
            for after, before in zip(scores, theirs, strict=True)
        ]
        lead = torch.cat([*map(leads, scores, answers)])
        if step == "none":
            choices = {
                "number": len(lead),
                "median_lead": round(lead.median().item(), 1),
            }
        texts = MarianTranslator(model, tokenizer).translate(sources, beam_size=1)
        found[step] = {
            "difference": float(f"{max(moved):.2g}"),
            "lead": float(f"{lead.min().item():.2g}"),
            "as_right": sum(a == b for a, b in zip(texts, first, strict=True)),
            "exact": sum(a == b for a, b in zip(texts, targets, strict=True)),
            "texts": [texts[sources.index(each)] for each in SHOWN],
        }
    return {
        "sources": SHOWN,
        "imports": found,
        "choices": choices,
        "biases": {name: spread(whole, f"{name}.bias") for name in attention},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    save_line(PLACE, broken_imports(), "transformers", "sentencepiece")


if __name__ == "__main__":
    main()
