"""Sentiment of IMDb's reviews: three classifiers of ours beside a linear model.

    python -m benchmarks.after.classifier

The three differ in their attention alone: none, without parameters, learned. The linear
model is scikit-learn's logistic regression on TF-IDF, tuned on the same validation part
(a tenth of the training reviews, chosen by a hash of the text). IMDb is downloaded
unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Takes about twelve
minutes of one core and writes results/after/classifier.json, which
nbs/after/classifier.ipynb reads; --out also saves the three models.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from annotated_transformer.after.classifier import (
    ClassifierConfig,
    Rows,
    TextClassifier,
    pieces,
    probabilities_of,
    read_whole,
    reliability,
)
from annotated_transformer.after.config import ClassifierTraining
from annotated_transformer.after.tasks import ClassifierTask
from annotated_transformer.after.text_classifier import Classifier, new_classifier
from annotated_transformer.data.labelled_texts import Examples, imdb
from annotated_transformer.data.text_tokenizer import encode_texts
from annotated_transformer.model.attention import padding_mask
from annotated_transformer.model.config import EOS, PAD
from annotated_transformer.training.task import train_task
from benchmarks.record import command_line, save

PHRASES = [
    "The film is good.",
    "The film is not good.",
    "The film is bad.",
    "The film is not bad.",
    "I expected to love this film.",
    "I expected to hate this film, but I loved it.",
]
LENGTHS = [0, 100, 150, 200, 300, 450, 700, 10**6]  # words of a review


def scores(found: Tensor, test: Examples, stars: Sequence[int]) -> dict[str, Any]:
    """Accuracy and its parts: by class, length and stars; log loss; calibration."""
    labels = torch.tensor(test.labels)
    right = (found.argmax(-1) == labels).double()
    words = torch.tensor([len(text.split()) for text in test.texts])
    parts = list(zip(LENGTHS, LENGTHS[1:], strict=False))
    by_length = [
        {
            "from": low,
            "below": high,
            "reviews": int(here.sum()),
            "right": mean(right, here),
        }
        for low, high in parts
        for here in [(words >= low) & (words < high)]
    ]
    rated = torch.tensor(stars)
    return {
        "accuracy": right.mean().item(),
        "log_loss": F.nll_loss(found.clamp_min(1e-9).log(), labels).item(),
        "said_positive": (found.argmax(-1) == 1).double().mean().item(),
        "by_class": [mean(right, labels == each) for each in (0, 1)],
        "by_stars": {str(s): mean(right, rated == s) for s in sorted(set(stars))},
        "by_length": by_length,
        "reliability": reliability(found, test.labels),
    }


def mean(values: Tensor, where: Tensor) -> float:
    """The mean over some of the reviews."""
    return values[where].mean().item()


# -- the linear model ------------------------------------------------------------------


def linear(train: Examples, valid: Examples, test: Examples) -> dict[str, Any]:
    """Tune on validation over n-grams and C, and say what the best does on test."""
    tried, best = [], (0.0, None, None)
    start = process_time()
    for longest in (1, 2):
        counts = TfidfVectorizer(
            ngram_range=(1, longest), sublinear_tf=True, min_df=2, strip_accents=None
        )
        inputs = counts.fit_transform(train.texts)
        held = counts.transform(valid.texts)
        for strength in (1.0, 4.0, 16.0, 64.0):
            model = LogisticRegression(C=strength, solver="liblinear", random_state=1)
            model.fit(inputs, train.labels)
            accuracy = float(model.score(held, valid.labels))
            tried.append({"n": longest, "C": strength, "valid_accuracy": accuracy})
            print(tried[-1], flush=True)
            if accuracy > best[0]:
                best = accuracy, counts, model
    accuracy, counts, model = best
    seconds = process_time() - start
    found = torch.tensor(model.predict_proba(counts.transform(test.texts)))
    names, weights = counts.get_feature_names_out(), model.coef_[0]
    order = weights.argsort()
    words = [[str(names[i]), float(weights[i])] for i in [*order[:12], *order[-12:]]]
    return {
        "tried": tried,
        "valid_accuracy": accuracy,
        "features": len(names),
        "n": counts.ngram_range[1],
        "C": model.C,
        "processor_seconds": seconds,
        "words": words,
        "found": found.float(),
    }


# -- ours ------------------------------------------------------------------------------


def ours(
    start: Classifier,
    attention: str,
    rows: dict[str, Rows],
    labels: dict[str, list[int]],
    epochs: int,
) -> tuple[TextClassifier, dict[str, Any]]:
    """Train one classifier from nothing; its curve and its answers to the test."""
    config = replace(start.model.config, attention=attention)
    training = ClassifierTraining(epochs=epochs)
    torch.manual_seed(training.seed)
    model, curve, begun = TextClassifier(config), [], process_time()
    sides = [(rows[side], labels[side]) for side in ("train", "valid")]
    points = train_task(ClassifierTask(model, None, *sides, training))
    for number, point in enumerate(points, 1):
        seconds = process_time() - begun
        curve.append([number, point["train"], point["accuracy"], seconds])
        print(attention, curve[-1], flush=True)
    return model, {
        "parameters": sum(each.numel() for each in model.parameters()),
        "curve": curve,
        "processor_seconds": process_time() - begun,
        "valid_accuracy": max(point[2] for point in curve),
        "found": read_whole(model, rows["test"]),
        "found_cut": probabilities_of(model, rows["test"]),
    }


# -- a look inside ---------------------------------------------------------------------


@torch.no_grad()
def inside(classifier: Classifier, rows: Rows) -> dict[str, Any]:
    """Which words move the score, and which are looked at, in whole reviews.

    A word's share of the score is for positive, less that for negative.
    """
    model, most = classifier.model, classifier.model.config.max_length
    difference = model.output.weight[1] - model.output.weight[0]
    pushes: dict[int, list[float]] = defaultdict(list)
    looks: dict[int, list[float]] = defaultdict(list)
    for ids in (piece for row in rows for piece in pieces(row, most)):
        push = model.vectors(torch.tensor([ids]))[0] @ difference
        look = attention_received(model, ids)
        for i, token in enumerate(ids):
            pushes[token].append(push[i].item())
            looks[token].append(look[i].item())
    name = classifier.tokenizer.id_to_token
    means = {t: sum(v) / len(v) for t, v in pushes.items() if len(v) >= 40 and t != EOS}
    order = sorted(means, key=means.__getitem__)
    seen = {t: sum(v) / len(v) for t, v in looks.items() if len(v) >= 40}
    looked = sorted(seen, key=seen.__getitem__)
    return {
        "reviews": len(rows),
        "words": [[name(t), means[t]] for t in [*order[:12], *order[-12:]]],
        "attention": [[name(t), seen[t]] for t in [*looked[:12], *looked[-12:]]],
    }


def attention_received(model: TextClassifier, ids: list[int]) -> Tensor:
    """How much attention each token gets from all, as a multiple of an equal share."""
    inputs = torch.tensor([ids])
    x = model.positions(model.embedding(inputs))
    layer = model.stack.layers[0]
    weights = layer.self_attention.weights(x, x, padding_mask(inputs, PAD))
    return weights[0].mean(dim=(0, 1)) * len(ids)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line(__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a folder for the three models")
    chosen = parser.parse_args(arguments)
    whole, _ = imdb("train")
    test, stars = imdb("test")
    train, valid = whole.divide()
    parts = {"train": train, "valid": valid, "test": test}
    start = new_classifier(train.texts, ClassifierConfig())
    rows = {
        side: encode_texts(start.tokenizer, each.texts) for side, each in parts.items()
    }
    labels = {side: each.labels for side, each in parts.items()}
    record: dict[str, Any] = {
        "seed": ClassifierTraining().seed,
        "reviews": {side: len(each) for side, each in parts.items()},
        "positive": {
            side: sum(each.labels) / len(each) for side, each in parts.items()
        },
        "tokens": sum(map(len, rows["test"])) / len(test),
        "cut": sum(len(row) > start.model.config.max_length for row in rows["test"])
        / len(test),
        "architecture": start.model.config.to_dict(),
        "models": {},
    }

    def measure(attention: str) -> None:
        model, found = ours(start, attention, rows, labels, chosen.epochs)
        answers, short = found.pop("found"), found.pop("found_cut")
        record["models"][attention] = found | scores(answers, test, stars)
        record["models"][attention]["cut"] = scores(short, test, stars)
        trained = Classifier(model, start.tokenizer)
        asked = trained.probabilities(PHRASES)[:, 1].tolist()
        record["models"][attention]["phrases"] = dict(zip(PHRASES, asked, strict=True))
        if chosen.out:
            trained.save_pretrained(chosen.out / attention)
        if attention == "learned":
            record["inside"] = inside(trained, rows["valid"][::2])
        save("after/classifier.json", record, "tokenizers", "scikit-learn")

    measure("learned")
    found = linear(train, valid, test)
    others = found.pop("found")
    record["models"]["linear"] = found | scores(others, test, stars)
    for attention in ("none", "plain"):
        measure(attention)


if __name__ == "__main__":
    main()
