"""What a small translator gains from a larger one's translations.

    python -m benchmarks.after.distillation [--workers 2]

The shipped everyday model translates the English side of Tatoeba's training split. Then
students with one layer of its three on each side learn from people's translations or
from the teacher's, for as many updates. All begin with the teacher's vocabulary, its
embedding and its first layers, since two cores would need hours from nothing. Rates are
tuned as benchmarks/after/studies.py says, by greedy BLEU on the validation split, and
each side is measured on the test split: BLEU with a beam of 4 (α = 0.6) and greedily,
and the loss on people's translations. Each worker has one thread.

Adds a line for each run to results/after/distillation.jsonl and writes
results/after/distillation.json, what the teacher made of the text;
nbs/after/distillation.ipynb shows both. Tatoeba is downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Keeps the teacher's
translations in runs/distillation. Takes three quarters of an hour on two cores.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from annotated_transformer import load
from annotated_transformer.after.distillation import DistilledPairs
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.text_files import read_lines
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.files import write_whole
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import fast
from annotated_transformer.performance.update import fast_training
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.trainer import train_translation, validation_loss
from annotated_transformer.translation.model_search import ModelSearch
from annotated_transformer.translation.options import SearchOptions
from annotated_transformer.translation.translator import Translator
from benchmarks.after.studies import TUNING_SEED, Case, Study, run_missing
from benchmarks.measure import bleu, sides
from benchmarks.record import command_line, save

PLACE, ABOUT = "after/distillation.jsonl", "after/distillation.json"
TEACHER, FOLDER = "tatoeba-en-de", Path("runs/distillation")
CORPUS, VALID, TEST = "tatoeba", "val", "test"
NAME, PEOPLE, TAUGHT = "text", "people", "the teacher"
STUDY = Study(
    {PEOPLE: (), TAUGHT: ()},
    rates=(0.001, 0.002, 0.004),
    updates=300,
    cost=lambda run: -run["validation_bleu"],
)
EXAMPLES = (
    "We have to stop it.",
    "You did that on purpose.",
    "She was anxious to know the entrance exam results.",
)
BEAM, GREEDY = SearchOptions(beam_size=4, alpha=0.6), SearchOptions(beam_size=1)
Pairs = list[tuple[str, str]]


# -- the texts -------------------------------------------------------------------------


@cache
def texts() -> dict[str, Pairs]:
    """People's translations and the teacher's, which are made once and kept."""
    people = list(load_corpus(CORPUS, "train", "en", "de"))
    kept = FOLDER / "distilled.tsv"
    if not kept.exists():
        rows = DistilledPairs(people, TEACHER, load(TEACHER)).distilled
        lines = "".join(f"{source}\t{output}\n" for source, output in rows)
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_whole(kept, lines.encode())
    both = (line.partition("\t") for line in read_lines(kept))
    return {PEOPLE: people, TAUGHT: [(source, output) for source, _, output in both]}


@cache
def teacher() -> Translator:
    """The shipped model, in its readable form."""
    return Translator.from_pretrained(TEACHER, device="cpu", engine="plain")


@cache
def data_of(side: str) -> TokenizedPairs:
    """A side's pairs in the teacher's vocabulary."""
    return TokenizedPairs.build(texts()[side], teacher().tokenizer)


def student() -> Transformer:
    """The teacher's embedding and the first of its layers on each side."""
    whole = teacher().model
    model = Transformer(replace(whole.config, N=1))
    weights = whole.state_dict()
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model


def about_texts() -> dict[str, Any]:
    """How often people give one source two translations, and what the teacher does."""
    by_source: dict[str, list[str]] = defaultdict(list)
    for source, target in texts()[PEOPLE]:
        if target not in by_source[source]:
            by_source[source].append(target)
    taught = dict(texts()[TAUGHT])
    same = sum(taught.get(source) in each for source, each in by_source.items())
    return {
        "teacher": TEACHER,
        "pairs": {name: len(each) for name, each in texts().items()},
        "sources": len(by_source),
        "with several": sum(len(each) > 1 for each in by_source.values()),
        "teacher writes what a person wrote": round(same / len(by_source), 4),
        "examples": {
            source: {PEOPLE: by_source[source], TAUGHT: taught.get(source)}
            for source in EXAMPLES
        },
    }


# -- one run ---------------------------------------------------------------------------


def run(case: Case) -> Case:
    """Train one student, and measure it."""
    began = time.process_time()
    settings = {"steps": STUDY.updates, "warmup": 100, "batch_tokens": 4_096}
    training = replace(
        recipe(TEACHER).training, peak=case["rate"], seed=case["seed"], **settings
    )
    train, model, tokenizer = data_of(case["side"]), student(), teacher().tokenizer
    objective = fast_training(model, training.label_smoothing)
    with torch.autocast("cpu", torch.bfloat16):
        *_, last = train_translation(objective, adam(model), train, training)
    seconds = round(time.process_time() - began)
    translator = Translator(model.eval(), tokenizer, ModelSearch(fast(model)))
    found = {
        "updates": last.step,
        "parameters": sum(each.numel() for each in model.parameters()),
        "training_seconds": seconds,
        "validation_bleu": scored(translator, VALID, GREEDY)["bleu"],
    }
    if case["seed"] != TUNING_SEED:
        test = TokenizedPairs.build(load_corpus(CORPUS, TEST, "en", "de"), tokenizer)
        found |= {"test": f"{CORPUS} {TEST}", **scored(translator, TEST, BEAM)}
        found["greedy_bleu"] = scored(translator, TEST, GREEDY)["bleu"]
        found["test_loss"] = round(validation_loss(objective, test, training), 5)
    return found | {"processor_seconds": round(time.process_time() - began)}


def scored(translator: Translator, split: str, options: SearchOptions) -> Case:
    """BLEU of a split's translations."""
    sources, targets = sides(CORPUS, split)
    return bleu(translator.translate(sources, options), targets)


def main(argv: Sequence[str] | None = None) -> None:
    """Translate the text once, and make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    workers = parser.parse_args(argv).workers
    save(ABOUT, about_texts())
    run_missing(PLACE, {NAME: STUDY}, run, workers)


if __name__ == "__main__":
    main()
