"""What each word adds to a verdict on a film, and whether "not" turns the verdict.

    python -m benchmarks.after.word_shares

Trains the classifier with learned attention anew and the linear model, both at the
settings that won in `benchmarks.after.classifier`. Both read a few reviews of our own,
with every choice of their words, and 24 sentences with and without "not". Needs IMDb;
takes five minutes on one core, and writes results/after/word-shares.json, for the
chapter on classification.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from annotated_transformer.after.text_classification import TextClassifier
from benchmarks.after.classifier import PLACE as RUNS
from benchmarks.after.classifier import SEEDS, Reviews, fitted, trained
from benchmarks.record import command_line, read_runs, save_line

PLACE = "after/word-shares.json"
REVIEWS = (
    "The film is not good.",
    "Great actors, great music, and a terrible script.",
    "I expected to hate it, but loved it.",
    "Not bad at all: I enjoyed every minute.",
)
PRAISE = (
    "good great wonderful excellent funny brilliant beautiful moving clever charming "
    "superb enjoyable"
).split()
BLAME = (
    "bad boring terrible awful dull stupid poor weak silly predictable slow horrible"
).split()
Positive = Callable[[Sequence[str]], list[float]]


def shares(classifier: TextClassifier, words: Sequence[str]) -> list[int]:
    """What each word, and at last the end token with the bias, adds to the score of
    positive less that of negative, in hundredths.
    """
    tokens, added = classifier.contributions(" ".join(words))
    bias = classifier.model.output.bias.detach()
    pushes = (added[:, 1] - added[:, 0]).tolist()
    sums, at = [0.0] * len(words), -1
    for token, push in zip(tokens[:-1], pushes[:-1], strict=True):
        at += token.startswith("▁")
        sums[at] += push
    assert at == len(words) - 1, (words, tokens)
    rest = pushes[-1] + float(bias[1] - bias[0])
    return [round(100 * each) for each in (*sums, rest)]


def review(text: str, classifier: TextClassifier, counted: Positive) -> dict[str, Any]:
    """A review's words; for each choice of them, by its bits, what each word adds, and
    what the linear model gives "positive", in thousandths.
    """
    words = text.split()
    chosen = [
        [word for i, word in enumerate(words) if bits >> i & 1]
        for bits in range(2 ** len(words))
    ]
    by_counts = counted([" ".join(each) for each in chosen])
    return {
        "words": words,
        "shares": [shares(classifier, each) for each in chosen],
        "counted": [round(1000 * each) for each in by_counts],
    }


def negated(ask: Positive) -> dict[str, list[float]]:
    """The probability of "positive" for each word, without "not" and with it."""
    words = (*PRAISE, *BLAME)
    plain, turned = (
        ask([f"The film is {extra}{word}." for word in words]) for extra in ("", "not ")
    )
    return {
        word: [round(each, 4) for each in pair]
        for word, *pair in zip(words, plain, turned, strict=True)
    }


def positive(classifier: TextClassifier, texts: Sequence[str]) -> list[float]:
    """What the classifier gives "positive" for each text."""
    found: list[float] = classifier.probabilities(texts)[:, 1].tolist()
    return found


def won(side: str) -> dict[str, Any]:
    """The settings of a side's test runs."""
    run = next(r for r in read_runs(RUNS) if r["side"] == side and "reads" in r)
    names = ("side", "dropout", "rate", "n", "C")
    return {name: run[name] for name in names if name in run}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, ask, and write the record."""
    command_line(__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    imdb = Reviews()
    counter, model = fitted(imdb, won("linear"))

    def counted(texts: Sequence[str]) -> list[float]:
        rows = counter.transform(texts)
        found: list[float] = model.predict_proba(rows)[:, 1].tolist()
        return found

    classifier, _ = trained(imdb, won("learned") | {"seed": SEEDS[0]})
    classifier.model.cpu().eval()
    ours, test = partial(positive, classifier), imdb.parts["test"]
    right = classifier.probabilities(test.texts).argmax(-1) == torch.tensor(test.labels)
    record = {
        "reviews": [review(text, classifier, counted) for text in REVIEWS],
        "accuracy": right.double().mean().item(),
        "negated": {"ours": negated(ours), "linear": negated(counted)},
    }
    save_line(PLACE, record, "tokenizers", "scikit-learn")


if __name__ == "__main__":
    main()
