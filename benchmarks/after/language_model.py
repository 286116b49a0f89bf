"""Train small language models on tiny Shakespeare and on WikiText-2, and measure them
on text that they never saw.

    python -m benchmarks.after.language_model
    python -m benchmarks.after.language_model --text wikitext-2 --keep models
    python -m benchmarks.after.language_model --xz

Takes about ten minutes of one core in all and writes results/after/language-model.json,
which nbs/after/language_model.ipynb draws. `--keep` saves the models in a folder, too;
`--xz` only measures what the compressor xz makes of the same texts, in seconds.
The texts are downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds
them.
"""

import lzma
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from annotated_transformer.after.config import LanguageTraining
from annotated_transformer.after.language_model import (
    LanguageModel,
    LanguageModelConfig,
    byte_pairs,
    characters,
)
from annotated_transformer.after.tasks import LanguageModelTask
from annotated_transformer.after.text_generator import TextGenerator
from annotated_transformer.data.texts import TEXTS, load_text
from annotated_transformer.training.task import train_task
from benchmarks.record import command_line, load, save

PLACE = "after/language-model.json"
SIZES = {
    "tiny-shakespeare": dict(d_model=128, d_ff=512),
    "wikitext-2": dict(d_model=128, d_ff=512, dropout=0.1, vocab_size=2_000),
}
SETTINGS = {
    "tiny-shakespeare": LanguageTraining(steps=2_000, batch=16),
    "wikitext-2": LanguageTraining(steps=700, batch=16, save_every=100),
}
PROMPT = {"tiny-shakespeare": "\n", "wikitext-2": " The history of"}


def train(name: str, keep: Path | None) -> dict:
    """Train on a named text; the curve, the scores, and what the model writes."""
    train, valid = load_text(name)
    sizes, settings = dict(SIZES[name]), SETTINGS[name]
    if "vocab_size" in sizes:
        tokenizer = byte_pairs(train, sizes["vocab_size"])
    else:
        tokenizer = characters(train + valid)
    config = LanguageModelConfig(**sizes | {"vocab_size": tokenizer.size})
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
        writer.save_pretrained(keep / name)
    return {
        "architecture": config.to_dict(),
        "training": asdict(settings),
        "parameters": sum(each.numel() for each in model.parameters()),
        "tokens": {"train": len(ids[0]), "held out": len(ids[1])},
        "processor seconds": seconds,
        "curve": curve,
        "held out": score(writer, valid),
        "writes": writer.generate(PROMPT[name], 300, temperature=0.8, seed=1),
    }


def score(writer: TextGenerator, text: str) -> dict:
    """What a text costs, in the units that papers use."""
    found = writer.measure(text)
    return asdict(found) | {
        "nats per token": found.nats_per_token,
        "bits per character": found.bits_per_character,
        "perplexity per word": found.perplexity_per_word,
    }


def xz_bits(name: str) -> float:
    """Bits per character that xz needs for the held-out text after the other."""
    known, held = load_text(name)
    sizes = [len(lzma.compress(text.encode())) for text in (known, known + held)]
    return 8 * (sizes[1] - sizes[0]) / len(held)


def main(argv: Sequence[str] | None = None) -> None:
    """Train what is asked for, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--text", choices=[*TEXTS], help="this text alone")
    parser.add_argument("--keep", type=Path, help="save the models in this folder")
    parser.add_argument("--xz", action="store_true", help="train nothing")
    asked = parser.parse_args(argv)
    torch.set_num_threads(1)
    names = [asked.text] if asked.text else [*TEXTS]
    for name in () if asked.xz else names:
        trained = load(PLACE).get("texts", {}) | {name: train(name, asked.keep)}
        write(texts=trained)
    packed = {name: xz_bits(name) for name in names}
    write(xz=load(PLACE).get("xz", {}) | packed)


def write(**found: dict) -> None:
    """Put a part into the record, and keep the others."""
    about = {"command": "python -m benchmarks.after.language_model"}
    parts = {name: load(PLACE).get(name, {}) for name in ("texts", "xz")}
    save(PLACE, about | parts | found)


if __name__ == "__main__":
    main()
