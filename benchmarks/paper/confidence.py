"""Whether a translator knows when it guesses: wrong translations found by their scores.

    python -m benchmarks.paper.confidence [--model NAME_OR_FOLDER] [--sentences 1000]

Translates English sentences of Tatoeba's test split. A translation is right if it is
one of the German references that Tatoeba has for its sentence, all of which are in the
same split, or has a chrF of at least 70 with the best of them; below 40 it is wrong,
and in between left out. Three scores of each are compared: the smallest probability of
a word, the geometric mean of the tokens' probabilities, and agreement, the smallest
share of the four best translations that have a word of the best. A translation is
flagged below a threshold, set where it flags 5 % of the right ones; AUC is the share of
pairs of a right and a wrong one in which the wrong one has the lower score. Needs
Tatoeba, which is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds
it; a minute of one core. Writes results/paper/confidence.json.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from sacrebleu import CHRF

from annotated_transformer.translation.translator import Translator
from benchmarks.measure import sides
from benchmarks.record import command_line, save

RIGHT, WRONG, FALSE_ALARMS = 70.0, 40.0, 0.05
Scores = dict[str, list[float]]


def references() -> dict[str, list[str]]:
    """The German references of each English sentence of the test split."""
    found = defaultdict(list)
    for english, german in zip(*sides("tatoeba", "test"), strict=True):
        found[english].append(german)
    return found


def agreement(texts: Sequence[str]) -> float:
    """The smallest share of texts, over the first one's words, that have the word."""
    known = [set(text.split()) for text in texts]
    shares = [sum(word in each for each in known) / len(known) for word in known[0]]
    return min(shares, default=1.0)


def scored(translator: Translator, sources: list[str]) -> tuple[list[str], Scores]:
    """The translations, and the three scores of each."""
    sure = translator.confidence(sources)
    outputs = [each.text for each in sure]
    lowest = [min((p for _, p in each.words), default=1.0) for each in sure]
    several = translator.n_best(sources, n_best=4)
    return outputs, {
        "smallest word probability": lowest,
        "mean probability of a token": [each.probability for each in sure],
        "agreement": [agreement([each.text for each in found]) for found in several],
    }


def qualities(outputs: list[str], targets: list[list[str]]) -> np.ndarray:
    """The chrF of each output with the best of its references; 100 if it equals one."""
    metric = CHRF()
    return np.array(
        [
            100.0 if output in refs else metric.sentence_score(output, refs).score
            for output, refs in zip(outputs, targets, strict=True)
        ]
    )


def told_apart(right: np.ndarray, wrong: np.ndarray) -> dict[str, Any]:
    """How well a score that is low for wrong ones tells the two apart."""
    threshold = np.sort(right)[int(FALSE_ALARMS * len(right))]
    lower, equal = wrong[:, None] < right, wrong[:, None] == right
    return {
        "threshold": round(float(threshold), 4),
        "right flagged": round(float((right < threshold).mean()), 4),
        "wrong flagged": round(float((wrong < threshold).mean()), 4),
        "auc": round(float((lower + equal / 2).mean()), 4),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Translate, judge, compare the scores, write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--model", default="tatoeba-en-de")
    parser.add_argument("--sentences", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(argv)
    known = references()
    sources = random.Random(given.seed).sample(sorted(known), given.sentences)
    translator = Translator.from_pretrained(given.model, engine="torch")
    outputs, scores = scored(translator, sources)
    quality = qualities(outputs, [known[source] for source in sources])
    right, wrong = quality >= RIGHT, quality < WRONG
    found: dict[str, Any] = {
        "model": given.model,
        "sentences": len(sources),
        "right": int(right.sum()),
        "wrong": int(wrong.sum()),
        "left out": int((~right & ~wrong).sum()),
        "scores": {
            name: told_apart(np.array(row)[right], np.array(row)[wrong])
            for name, row in scores.items()
        },
    }
    print(found)
    save("paper/confidence.json", found, "tokenizers", "sacrebleu")


if __name__ == "__main__":
    main()
