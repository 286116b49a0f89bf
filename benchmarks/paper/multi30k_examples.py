"""Twenty translations of captions, good and bad, by a model that anyone can make.

    python -m benchmarks.paper.multi30k_examples train runs/captions
    python -m benchmarks.paper.multi30k_examples show runs/captions 12 345 …

The weights of the full runs on Multi30k weren't kept. So the first command takes the
model in the wheel, which knows everyday sentences, and trains it on the captions for at
most 200 updates of 2,048 tokens, about two minutes of one core; it writes the model
after every 25, and may be stopped at any of them. The second translates the test set of
2016 with a beam of 5 and α = 1, scores it, and keeps twenty examples: ten at the 5 %,
15 %, … 95 % quantiles of sentence BLEU, and the lines that the command names, picked by
hand for their kinds of error. It writes results/runs/multi30k-examples/record.json, for
nbs/translation/multi30k.ipynb, and all outputs to outputs.txt of the folder. The
corpus is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it.
"""

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

from annotated_transformer import load
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import moses_tokenize
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.files import read_json, write_json
from annotated_transformer.performance.update import fast_training
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.schedule import adam, peak_factor
from annotated_transformer.translation.bleu import bleu
from annotated_transformer.translation.scores import scores
from benchmarks.measure import sides
from benchmarks.record import command_line, save
from benchmarks.train import train_translation

PLACE = "runs/multi30k-examples"
SPLIT, CONVENTION = "test_2016_flickr", "BLEU Moses, lower-cased"
SEARCH = SearchOptions(beam_size=5, alpha=1.0)
RARE = ("bushy", "bay")  # words that the chapter speaks of
QUANTILES = range(5, 100, 10)  # in per cent
SETTINGS = TrainingConfig(
    steps=200, batch_tokens=2_048, warmup=30, lr_factor=peak_factor(8e-4, 256, 30)
)


def train_on_captions(folder: Path) -> None:
    """Go on with the model in the wheel, and keep what it is after every 25 updates."""
    translator = load(engine="plain")
    tokenizer, model = translator.tokenizer, translator.model
    texts = load_corpus("multi30k", "train", "en", "de")
    pairs = TokenizedPairs.build(texts, tokenizer)
    objective = fast_training(model, SETTINGS.label_smoothing)
    folder.mkdir(parents=True, exist_ok=True)
    begin, seen = time.process_time(), 0
    with (folder / "log.jsonl").open("w", encoding="utf-8") as log:
        for update in train_translation(
            objective, adam(model, fused=True), pairs, SETTINGS
        ):
            seen += update.tokens
            if update.step % 25 == 0:
                row = {
                    "event": "update",
                    "step": update.step,
                    "loss": update.loss.item() / update.tokens,
                    "tokens": seen,
                    "processor_seconds": round(time.process_time() - begin, 1),
                }
                print(json.dumps(row), file=log, flush=True)
                save_model(folder / f"model-{update.step}", model, tokenizer)
                write_json(folder / "last.json", row)


def sentence_bleu(outputs: list[str], targets: list[str]) -> list[float]:
    """BLEU of each line by lower-cased Moses tokens."""
    files = [
        moses_tokenize(lines, "de", lowercase=True) for lines in (outputs, targets)
    ]
    return [bleu([a], [b]) for a, b in zip(*files, strict=True)]


def examples(
    sources: list[str], targets: list[str], outputs: list[str], picked: list[int]
) -> list[dict]:
    """Those at the quantiles, worst first, then those picked by hand, as picked."""
    found = sentence_bleu(outputs, targets)
    ranked = sorted(range(len(found)), key=lambda line: found[line])
    chosen = [(f"{q} %", ranked[len(ranked) * q // 100]) for q in QUANTILES]
    chosen += [("by hand", line - 1) for line in picked]
    return [
        {
            "why": why,
            "line": line + 1,
            "source": sources[line],
            "reference": targets[line],
            "output": outputs[line],
            "bleu": round(found[line], 1),
        }
        for why, line in chosen
    ]


def translated(folder: Path, sources: list[str]) -> list[str]:
    """The outputs of the last model, kept in outputs.txt once they are there."""
    kept = folder / "outputs.txt"
    if not kept.exists():
        step = read_json(folder / "last.json")["step"]
        translator = load(folder / f"model-{step}", engine="torch")
        outputs = translator.translate(sources, SEARCH)
        kept.write_text("\n".join(outputs), encoding="utf-8")
    return kept.read_text(encoding="utf-8").split("\n")


def captions_with(word: str) -> int:
    """How many English captions of the training text have a word."""
    captions, _ = sides("multi30k", "train")
    return sum(word in re.findall(r"\w+", caption.lower()) for caption in captions)


def show(folder: Path, picked: list[int]) -> None:
    """Translate the test set, score it, write the record."""
    last = read_json(folder / "last.json")
    sources, targets = sides("multi30k", SPLIT)
    outputs = translated(folder, sources)
    named = {each.name: round(each.value, 2) for each in scores(outputs, targets, "de")}
    module, place = (
        "python -m benchmarks.paper.multi30k_examples",
        f"runs/{folder.name}",
    )
    lines = " ".join(map(str, picked))
    record = {
        "command": f"{module} train {place}; {module} show {place} {lines}",
        "training": SETTINGS.to_dict(),
        "updates": last["step"],
        "tokens": last["tokens"],
        "processor_seconds": last["processor_seconds"],
        "test": {"split": SPLIT}
        | {name: named[name] for name in (CONVENTION, "BLEU 13a")},
        "captions_with": {word: captions_with(word) for word in RARE},
        "examples": examples(sources, targets, outputs, picked),
    }
    save(f"{PLACE}/record.json", record, "tokenizers", "sacrebleu", "sacremoses")


def main(argv: Sequence[str] | None = None) -> None:
    """Train, or show."""
    parser = command_line(__doc__)
    parser.add_argument("what", choices=["train", "show"])
    parser.add_argument("folder", type=Path, help="where the model is kept")
    parser.add_argument("lines", nargs="*", type=int, help="of the test set, from 1")
    given = parser.parse_args(argv)
    if given.what == "train":
        train_on_captions(given.folder)
    else:
        show(given.folder, given.lines)


if __name__ == "__main__":
    main()
