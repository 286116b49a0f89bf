"""Sentiment of IMDb's reviews: three classifiers of ours beside a linear model.

    python -m benchmarks.after.classifier [--sides learned linear]

The three differ in their attention alone: none, without parameters, learned. The linear
model is scikit-learn's logistic regression on TF-IDF. Each of the four gets eleven
trials, judged by the same validation part (a tenth of the training reviews, chosen by a
hash of the text): a network six rates and then five more values of dropout, the linear
model nine strengths and then two more lengths of its n-grams. Then each network is
trained with three seeds at what won, and reads the test reviews; the linear model does
so once.

IMDb is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it. A run
that is on record is left alone, so the same command finishes what is missing. Uses one
thread, and a GPU where there is one. Adds a line for each run to
results/after/classifier.jsonl, which nbs/after/classifier.ipynb shows; --out also saves
the models of the first seed.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from annotated_transformer.after.classifier import ClassifierModel, reliability
from annotated_transformer.after.classifier_parts import ClassifierConfig
from annotated_transformer.after.labelled_rows import (
    Rows,
    pieces,
    read_long,
    read_short,
)
from annotated_transformer.after.text_classification import (
    ClassifierTask,
    ClassifierTraining,
    TextClassifier,
    new_classifier,
)
from annotated_transformer.data.labelled_texts import Examples, imdb
from annotated_transformer.data.text_tokenizer import encode_texts
from annotated_transformer.devices import find_device
from annotated_transformer.model.attention import padding_mask
from annotated_transformer.model.config import EOS, PAD
from annotated_transformer.training.held_out import class_metrics
from benchmarks.after.tuning import Case, once, search
from benchmarks.record import command_line
from benchmarks.train import train_task

PLACE, EPOCHS, SEEDS = "after/classifier.jsonl", 4, (1, 2, 3)
NETWORKS = ("learned", "plain", "none")
RATES, DROPOUTS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2), (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
STRENGTHS, N_GRAMS = [4.0**i for i in range(-1, 8)], (1, 2, 3)
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


class Reviews:
    """IMDb's reviews in three parts, and what each model makes of them."""

    def __init__(self) -> None:
        whole, _ = imdb("train")
        train, valid = whole.divide()
        test, self.stars = imdb("test")
        self.parts = {"train": train, "valid": valid, "test": test}

    @cached_property
    def start(self) -> TextClassifier:
        """An untrained network, with a vocabulary of the training reviews."""
        return new_classifier(self.parts["train"].texts, ClassifierConfig())

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """The tokens of each part."""
        tokenizer = self.start.tokenizer
        return {n: encode_texts(tokenizer, p.texts) for n, p in self.parts.items()}

    @cache  # noqa: B019
    def counts(self, n: int) -> tuple[TfidfVectorizer, dict[str, Any]]:
        """The weighted counts of n-grams of up to `n` words in each part."""
        counter = TfidfVectorizer(ngram_range=(1, n), sublinear_tf=True, min_df=2)
        counter.fit(self.parts["train"].texts)
        return counter, {
            name: counter.transform(part.texts) for name, part in self.parts.items()
        }

    def judged(self, found: Tensor) -> Case:
        """The accuracy and the loss on the validation part."""
        metrics = class_metrics(found, torch.tensor(self.parts["valid"].labels))
        return {f"valid_{name}": value for name, value in metrics.items()}

    def scores(self, found: Tensor) -> Case:
        """Everything about the answers to the test."""
        return scores(found, self.parts["test"], self.stars)

    def about(self, case: Case) -> Case:
        """How many they are, and how long."""
        rows, most = self.rows["test"], self.start.model.config.max_length
        return {
            "reviews": {name: len(part) for name, part in self.parts.items()},
            "positive": {n: sum(p.labels) / len(p) for n, p in self.parts.items()},
            "tokens": sum(map(len, rows)) / len(rows),
            "cut": sum(len(row) > most for row in rows) / len(rows),
        }


# -- the linear model ------------------------------------------------------------------


def fitted(reviews: Reviews, case: Case) -> tuple[TfidfVectorizer, LogisticRegression]:
    """The counter of n-grams and the model, trained."""
    counter, inputs = reviews.counts(case["n"])
    model = LogisticRegression(C=case["C"], solver="liblinear", random_state=1)
    return counter, model.fit(inputs["train"], reviews.parts["train"].labels)


def linear(reviews: Reviews, case: Case) -> Case:
    """Train it, and score it on validation; on the test if the case asks for it."""
    start, (_, inputs) = process_time(), reviews.counts(case["n"])
    counter, model = fitted(reviews, case)
    found = {
        name: torch.tensor(model.predict_proba(inputs[name]))
        for name in ("valid", "test")
    }
    result = reviews.judged(found["valid"]) | {
        "parameters": len(counter.vocabulary_) + 1,
        "processor_seconds": round(process_time() - start, 1),
    }
    if "reads" not in case:
        return result
    names, weights = counter.get_feature_names_out(), model.coef_[0]
    order = weights.argsort()
    ends = [*order[:12], *order[-12:]]
    words = [[str(names[i]), float(weights[i])] for i in ends]
    return result | {"words": words} | reviews.scores(found["test"].float())


# -- ours ------------------------------------------------------------------------------


def trained(
    reviews: Reviews, case: Case
) -> tuple[TextClassifier, list[dict[str, float]]]:
    """A network trained from nothing, and its measurements pass by pass."""
    settings = {"attention": case["side"], "dropout": case["dropout"]}
    config = replace(reviews.start.model.config, **settings)
    training = ClassifierTraining(epochs=EPOCHS, peak=case["rate"], seed=case["seed"])
    torch.manual_seed(training.seed)
    model, rows, parts = ClassifierModel(config), reviews.rows, reviews.parts
    train, valid = ((rows[side], parts[side].labels) for side in ("train", "valid"))
    model = model.to(find_device())
    points = list(train_task(ClassifierTask(model, None, train, valid, training)))
    return TextClassifier(model, reviews.start.tokenizer), points


def network(reviews: Reviews, out: Path | None, case: Case) -> Case:
    """Train one from nothing; on the test as it reads whole, and as it reads cut."""
    begun = perf_counter()
    classifier, points = trained(reviews, case)
    model, rows = classifier.model, reviews.rows
    best = min(points, key=lambda point: point["loss"])  # whose weights it now has
    result = {
        "passes": EPOCHS,
        "parameters": sum(each.numel() for each in model.parameters()),
        "curve": [[p["train"], p["loss"], p["accuracy"]] for p in points],
        "valid_accuracy": best["accuracy"],
        "valid_loss": best["loss"],
        "device": find_device().type,
        "seconds": round(perf_counter() - begun, 1),
    }
    if "reads" not in case:
        return result
    result |= {"architecture": model.config.to_dict()}
    result |= reviews.scores(read_long(model, rows["test"]))
    result["cut"] = reviews.scores(read_short(model, rows["test"]))
    model.cpu()
    asked = classifier.probabilities(PHRASES)[:, 1].tolist()
    result["phrases"] = dict(zip(PHRASES, asked, strict=True))
    if case["side"] == "learned" and case["seed"] == SEEDS[0]:
        result["inside"] = inside(classifier, rows["valid"][::2])
    if out and case["seed"] == SEEDS[0]:
        classifier.save_pretrained(out / case["side"])
    return result


# -- a look inside ---------------------------------------------------------------------


@torch.no_grad()
def inside(classifier: TextClassifier, rows: Rows) -> dict[str, Any]:
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


def attention_received(model: ClassifierModel, ids: list[int]) -> Tensor:
    """How much attention each token gets from all, as a multiple of an equal share."""
    inputs = torch.tensor([ids])
    x = model.positions(model.embedding(inputs))
    layer = model.stack.layers[0]
    weights = layer.self_attention.weights(x, x, padding_mask(inputs, PAD))
    return weights[0].mean(dim=(0, 1)) * len(ids)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the runs of the sides asked for, as far as they are missing."""
    parser = command_line(__doc__)
    known = [*NETWORKS, "linear"]
    parser.add_argument("--sides", nargs="+", choices=known, default=known)
    parser.add_argument("--out", type=Path, help="a folder for three models")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # plain attention has many weights of about e⁻⁹⁰
    reviews = Reviews()

    def run(make: Callable[[Case], Case], case: Case) -> Case:
        return once(PLACE, case, make, "tokenizers", "scikit-learn")

    for side in chosen.sides:
        first: Case = {"side": side}
        if side == "linear":
            trial = partial(run, partial(linear, reviews))
            best = search(first | {"n": 2}, {"C": STRENGTHS, "n": N_GRAMS}, trial)
            trial(best | {"reads": "test"})
            continue
        trial = partial(run, partial(network, reviews, chosen.out))
        first |= {"seed": SEEDS[0], "dropout": 0.3}
        best = search(first, {"rate": RATES, "dropout": DROPOUTS}, trial)
        for seed in SEEDS:
            trial(best | {"seed": seed, "reads": "test"})
        if side == "learned":
            run(reviews.about, {"side": "data"})


if __name__ == "__main__":
    main()
