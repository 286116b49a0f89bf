"""Pretraining on reviews without labels, and what it is worth when labels are few.

    python -m benchmarks.after.masked_language_model
    python -m benchmarks.after.masked_language_model --keep runs/masked
    python -m benchmarks.after.masked_language_model --from runs/masked

An encoder learns from IMDb's training reviews without their labels. Then classifiers
are fine-tuned from it and, with the same architecture, trained from nothing, on 100 to
10,000 labelled reviews, three seeds each; a seed draws the labelled reviews, too.
Rates and dropout of each side are chosen at 1,000 labels, and the best pass of each
run, on the same 500 validation reviews; so are the settings of scikit-learn's logistic
regression on TF-IDF, which gets the same labels. All are tested on 2,500 of the test
reviews. IMDb is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds
it. Takes an hour of one core and writes results/after/masked-language-model.json, which
nbs/after/masked_language_model.ipynb reads; --keep saves the pretrained model, and
--from goes on from it, and keeps what the record says about the pretraining.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import process_time
from typing import Any

import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from annotated_transformer.after.classifier import (
    TextClassifier,
    read_whole,
)
from annotated_transformer.after.config import (
    ClassifierTraining,
    MaskedTraining,
)
from annotated_transformer.after.mask_filler import MaskFiller
from annotated_transformer.after.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    classifier_from,
    draw_examples,
    mask_tokenizer,
    text_rows,
)
from annotated_transformer.after.tasks import ClassifierTask, MaskedLanguageModelTask
from annotated_transformer.data.labelled_texts import Examples, imdb
from annotated_transformer.data.text_tokenizer import encode_texts
from annotated_transformer.data.texts import unlabelled
from annotated_transformer.training.task import train_task
from benchmarks.record import command_line, load, save

PLACE = "after/masked-language-model.json"
PRETRAINING = MaskedTraining(steps=8_000)
TEXTS = [
    "This film was a complete [MASK] of time.",
    "This is one of the [MASK] films I have ever seen.",
    "The acting was [MASK] and I fell asleep.",
    "The acting was [MASK] and I loved it.",
    "He gives the best [MASK] of his career.",
    "I have never [MASK] such a bad film.",
]
WORDS = ["awful", "boring", "great", "actor"]
SEEDS = (1, 2, 3)
SIDES = ("pretrained", "from nothing")
PASSES = {  # each of at least 1,000 texts: few labels are repeated
    "pretrained": {100: 4, 300: 4, 1_000: 4, 3_000: 4, 10_000: 2},
    "from nothing": {100: 6, 300: 6, 1_000: 6, 3_000: 4, 10_000: 2},
}
SMALLEST_PASS = 1_000
TUNED_AT = 1_000
RATES = (1e-3, 3e-3)
DROPOUTS = (0.0, 0.1, 0.3)
VALID, TEST = 500, 2_500


# -- pretraining -----------------------------------------------------------------------


def pretraining() -> tuple[MaskFiller, dict[str, Any]]:
    """Train on the reviews without their labels; the model, and its curve."""
    train, held = unlabelled()
    config = MaskedLanguageModelConfig()
    tokenizer = mask_tokenizer(train, config.vocab_size)
    rows, kept = (text_rows(tokenizer, t, config.max_length) for t in (train, held))
    torch.manual_seed(PRETRAINING.seed)
    model, begun, curve = MaskedLanguageModel(config), process_time(), []
    task = MaskedLanguageModelTask(model, tokenizer, rows, kept, PRETRAINING)
    for found in train_task(task):
        point = {"step": found["step"], "train": found["train"]}
        point |= {"valid": found["loss"], "right": found["accuracy"]}
        curve.append(point | {"processor_seconds": process_time() - begun})
        tell(curve[-1])
    return MaskFiller(model, tokenizer), {
        "architecture": config.to_dict(),
        "training": asdict(PRETRAINING),
        "parameters": count(model),
        "reviews": len(train),
        "held_out": len(held),
        "rows": len(rows),
        "tokens": sum(map(len, rows)),
        "curve": curve,
        "processor_seconds": process_time() - begun,
    }


def count(model: torch.nn.Module) -> int:
    """How many numbers a model has learned."""
    return sum(each.numel() for each in model.parameters())


def neighbours(filler: MaskFiller, word: str, most: int = 8) -> list[str]:
    """The tokens whose vectors are most similar to that of a word, by the cosine."""
    weight = filler.model.embedding.weight.detach()
    own = filler.tokenizer.token_to_id(f"▁{word}")
    order = torch.cosine_similarity(weight, weight[own : own + 1]).argsort()
    near = order.flip(0)[1 : most + 1].tolist()
    return [filler.tokenizer.id_to_token(i).strip("▁") for i in near]


# -- fine-tuning -----------------------------------------------------------------------


class FineTuning:
    """One pretrained model, and the reviews for choosing and for testing."""

    def __init__(self, filler: MaskFiller):
        self.filler = filler
        self.train, valid = imdb("train")[0].divide()
        self.valid, self.test = (
            draw_examples(valid, VALID, 0),
            draw_examples(imdb("test")[0], TEST, 0),
        )
        self.valid_rows, self.test_rows = map(self.rows, (self.valid, self.test))

    def rows(self, examples: Examples) -> list[list[int]]:
        """The reviews as ids."""
        return encode_texts(self.filler.tokenizer, examples.texts)

    def fit(
        self, side: str, labels: int, seed: int, peak: float, dropout: float
    ) -> tuple[TextClassifier, dict[str, Any]]:
        """A classifier of so many labelled reviews, and how its training went."""
        begun, train = process_time(), draw_examples(self.train, labels, seed)
        passes = PASSES[side][labels]
        settings = ClassifierTraining(
            epochs=passes, batch=32, peak=peak, word_dropout=dropout, seed=seed
        )
        torch.manual_seed(seed)
        start = self.filler.model
        if side != "pretrained":
            start = MaskedLanguageModel(start.config)
        model = classifier_from(start, ("negative", "positive"), dropout)
        copies = max(1, SMALLEST_PASS // labels)
        known = self.rows(train) * copies, train.labels * copies
        held = self.valid_rows, self.valid.labels
        curve = [
            [each["train"], each["accuracy"]]
            for each in train_task(ClassifierTask(model, None, known, held, settings))
        ]
        return model, {
            "passes": passes,
            "curve": curve,
            "valid": max(right for _, right in curve),
            "processor_seconds": process_time() - begun,
        }

    def tune(self, side: str) -> dict[str, Any]:
        """Rate and dropout for one side, by the validation reviews."""
        tried = []
        for peak in RATES:
            for dropout in DROPOUTS:
                _, found = self.fit(side, TUNED_AT, 1, peak, dropout)
                tried.append({"peak": peak, "dropout": dropout} | found)
                tell(side, tried[-1])
        best = max(tried, key=lambda each: each["valid"])
        return {"tried": tried, "peak": best["peak"], "dropout": best["dropout"]}

    def run(
        self, side: str, labels: int, seed: int, chosen: dict[str, Any]
    ) -> dict[str, Any]:
        """One point of the curve: fine-tune, and test on whole reviews."""
        settings = chosen["peak"], chosen["dropout"]
        model, found = self.fit(side, labels, seed, *settings)
        answers = read_whole(model, self.test_rows).argmax(-1)
        return found | {"test": right(answers, self.test)}

    def linear(self, labels: int, seed: int) -> dict[str, Any]:
        """Logistic regression on TF-IDF of the same labelled reviews, tuned."""
        train, tried = draw_examples(self.train, labels, seed), []
        for longest in (1, 2):
            counts = TfidfVectorizer(
                ngram_range=(1, longest), sublinear_tf=True, min_df=min(2, labels)
            )
            inputs = counts.fit_transform(train.texts)
            held, asked = (counts.transform(e.texts) for e in (self.valid, self.test))
            for strength in (1.0, 4.0, 16.0, 64.0):
                model = LogisticRegression(
                    C=strength, solver="liblinear", random_state=1
                )
                model.fit(inputs, train.labels)
                found = float(model.score(held, self.valid.labels))
                answers = torch.tensor(model.predict(asked))
                tried.append(
                    {
                        "n": longest,
                        "C": strength,
                        "valid": found,
                        "test": right(answers, self.test),
                    }
                )
        return max(tried, key=lambda each: each["valid"])


def right(answers: Tensor, examples: Examples) -> float:
    """The share of right answers."""
    return (answers == torch.tensor(examples.labels)).double().mean().item()


# -- the record ------------------------------------------------------------------------


def measure(filler: MaskFiller) -> None:
    """All points of the curve; each is in the record once it is there."""
    study = FineTuning(filler)
    tuned = {side: study.tune(side) for side in SIDES}
    points: list[dict[str, Any]] = []
    for labels in PASSES["pretrained"]:
        for seed in SEEDS:
            for side in (*SIDES, "linear"):
                if side == "linear":
                    found = study.linear(labels, seed)
                else:
                    found = study.run(side, labels, seed, tuned[side])
                points.append({"side": side, "labels": labels, "seed": seed} | found)
                tell(points[-1])
            write(tuned=tuned, points=points, tested_on=TEST, chosen_on=VALID)


def write(**found: Any) -> None:
    """Put a part into the record, and keep the others."""
    about = {"command": "python -m benchmarks.after.masked_language_model"}
    save(PLACE, load(PLACE) | about | found, "tokenizers", "scikit-learn")


def tell(*words: Any) -> None:
    """A line of progress."""
    print(*words, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Pretrain, fine-tune, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--keep", type=Path, help="save the pretrained model here")
    parser.add_argument("--from", type=Path, dest="kept", help="a model so saved")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if asked.kept:
        filler = MaskFiller.from_pretrained(asked.kept, device="cpu")
    else:
        filler, found = pretraining()
        write(pretraining=found, fills={})
    if asked.keep:
        filler.save_pretrained(asked.keep)
    write(
        fills={text: filler.fill(text) for text in TEXTS},
        neighbours={word: neighbours(filler, word) for word in WORDS},
    )
    measure(filler)


if __name__ == "__main__":
    main()
