"""What a small translator gains from a larger one's translations.

    python -m benchmarks.after.distillation [--workers 2]

The shipped everyday model translates the English side of Tatoeba's training split. Then
students of a sixth of its size learn from people's translations or from the teacher's,
for as many updates; both sides share one vocabulary. Rates are tuned as
benchmarks/after/studies.py says, by greedy BLEU on the validation split, and each side
is measured on the test split: BLEU with a beam of 4 (α = 0.6) and greedily, and the
loss on people's translations. Each worker has one thread.

Adds each run to distillation.jsonl in results/after, and writes there in
distillation.json what the teacher made of the text, which nbs/after/distillation.ipynb
shows. Tatoeba is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds
it. Keeps the teacher's translations in runs/distillation. Takes an hour and a half on
two cores.
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
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.data.text_files import read_lines
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.decoding.model_search import ModelSearch
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.files import write_file
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import fast
from annotated_transformer.performance.update import fast_training
from annotated_transformer.training.recipes import Recipe, recipe
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.sentence_pairs import validation_loss
from annotated_transformer.training.update import seed_update
from annotated_transformer.translation.prepared_data import prepare_data
from annotated_transformer.translation.translator import Translator
from benchmarks.after.studies import TUNING_SEED, Case, Study, run_missing
from benchmarks.measure import bleu, sides
from benchmarks.record import command_line, save
from benchmarks.train import train_translation

PLACE, ABOUT = "after/distillation.jsonl", "after/distillation.json"
TEACHER, FOLDER = "tatoeba-en-de", Path("runs/distillation")
CORPUS, VALID, TEST = "tatoeba", "val", "test"
NAME, PEOPLE, TAUGHT = "text", "people", "the teacher"
STUDY = Study(
    {PEOPLE: (), TAUGHT: ()},
    rates=(0.003, 0.006, 0.012),
    updates=2_000,
    cost=lambda run: -run["validation_bleu"],
)
SHOWN = 5  # of people's translations of each example
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
        teacher = load(TEACHER)
        rows = DistilledPairs(people, TEACHER, teacher).distilled
        lines = "".join(f"{source}\t{output}\n" for source, output in rows)
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_file(kept, lines.encode())
    both = (line.partition("\t") for line in read_lines(kept))
    return {PEOPLE: people, TAUGHT: [(source, output) for source, _, output in both]}


def student(rate: float, seed: int) -> Recipe:
    """The everyday recipe for a model of a sixth of the size."""
    plan = recipe(TEACHER)
    sizes = {"N": 2, "d_model": 128, "d_ff": 512, "d_k": 32, "d_v": 32}
    made = {"steps": STUDY.updates, "warmup": 200, "batch_tokens": 4_096}
    return replace(
        plan,
        corpus=CORPUS,
        vocab_size=4_000,
        architecture=replace(plan.architecture, **sizes),
        training=replace(plan.training, peak=rate, seed=seed, **made),
    )


@cache
def data_of(side: str) -> tuple[PairTokenizer, TokenizedPairs, TokenizedPairs]:
    """The vocabulary, of people's text, a side's pairs and the validation's."""
    plan, valid = student(STUDY.rates[0], 1), load_corpus(CORPUS, VALID, "en", "de")
    folder = FOLDER / "data"
    tokenizer, train, held, _ = prepare_data(plan, folder, texts()[PEOPLE], valid)
    if side == TAUGHT:
        train = TokenizedPairs.build(texts()[TAUGHT], tokenizer)
    return tokenizer, train, held


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
        "teacher's losses": teacher_losses(),
        "examples": {
            source: {
                PEOPLE: by_source[source][:SHOWN],
                "in all": len(by_source[source]),
                TAUGHT: taught.get(source),
            }
            for source in EXAMPLES
        },
    }


def teacher_losses() -> dict[str, float]:
    """The teacher's loss on translations of 500 validation sentences, nats a token.

    People's translations, its own by beam search, and its own as it draws them.
    """
    teacher = load(TEACHER, device="cpu", engine="torch")
    sources, targets = sides(CORPUS, VALID, 500)
    written = {
        PEOPLE: targets,
        "beam search": teacher.translate(sources, BEAM),
        "sampling": teacher.translate(sources, temperature=1.0, seed=1),
    }
    losses = {}
    for name, outputs in written.items():
        scores = teacher.score(sources, outputs)
        tokens = sum(len(score.tokens) for score in scores)
        losses[name] = round(-sum(score.total for score in scores) / tokens, 3)
    return losses


# -- one run ---------------------------------------------------------------------------


def run(case: Case) -> Case:
    """Train one student, and measure it."""
    began = time.process_time()
    plan = student(case["rate"], case["seed"])
    tokenizer, train, _ = data_of(case["side"])
    seed_update(case["seed"], 0)
    vocabulary = tokenizer.tgt_vocab_size
    sizes = {"src_vocab_size": vocabulary, "tgt_vocab_size": vocabulary}
    model = Transformer(replace(plan.architecture, **sizes))
    objective = fast_training(model, plan.training.label_smoothing)
    # Its cache would keep the weights as they were before the first update.
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        *_, last = train_translation(objective, adam(model), train, plan.training)
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
        found["test_loss"] = round(validation_loss(objective, test, plan.training), 5)
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
    data_of(PEOPLE)  # made once, before anybody reads it
    run_missing(PLACE, {NAME: STUDY}, run, workers)


if __name__ == "__main__":
    main()
