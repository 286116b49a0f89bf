"""How sure a model is: of a given translation by token, and of its own by word."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..data.batching import pad_rows
from ..data.pair_tokenizer import PairTokenizer
from ..decoding.checks import check_numbers
from ..decoding.model_search import teacher_forcing
from ..decoding.options import length_batches
from .lines import RowHypotheses, restore_unknown
from .missing import missing

# One right translation in twenty has a word below it, by results/paper/confidence.json.
DOUBTFUL = 0.23
WORD = re.compile("[^ ]+")


@dataclass(frozen=True)
class ForcedScore:
    """How probable a given translation is, in natural logarithms, the end included."""

    total: float
    tokens: list[str]
    token_log_probabilities: list[float]


def teacher_forced_batches(
    model: Any, sources: list[list[int]], targets: list[list[int]], batch_tokens: int
) -> list[list[float]]:
    """The log-probability of each target token, by row, in batches by length."""
    device, pad_id = model.tgt_embedding.weight.device, model.config.pad_id
    results: dict[int, list[float]] = {}
    longer = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
    for indices in length_batches(longer, batch_tokens):
        chosen = [targets[index] for index in indices]
        src = pad_rows([sources[index] for index in indices], device, pad_id)
        scores = teacher_forcing(model, src, pad_rows(chosen, device, pad_id))
        check_numbers(scores)
        for index, row, target in zip(indices, scores.tolist(), chosen, strict=True):
            results[index] = row[: len(target)]
    return [results[index] for index in range(len(sources))]


@dataclass(frozen=True)
class Confidence:
    """A translation, and the probability of each of its words.

    A word has the smallest probability among its tokens, each given the source and what
    stands before it. `log_probability` is that of the whole and `tokens` their number,
    the end included; `missing` has what the translation lacks of its source, as
    `missing` of missing.py.
    """

    text: str
    words: list[tuple[str, float]]
    log_probability: float
    tokens: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def probability(self) -> float:
        """The geometric mean of its tokens' probabilities; 1 if there is none.

        It tells wrong translations better than the least probable word does.
        """
        return math.exp(self.log_probability / self.tokens) if self.tokens else 1.0

    @property
    def marked(self) -> str:
        """The text with words below `DOUBTFUL` in brackets: Ich heiße [Elke?]."""
        parts, start = [], 0
        for word, probability in self.words:
            at = self.text.index(word, start)
            shown = in_brackets(word) if probability < DOUBTFUL else word
            parts += [self.text[start:at], shown]
            start = at + len(word)
        return "".join(parts) + self.text[start:]


def in_brackets(word: str) -> str:
    """A word with a question mark in brackets, its outer punctuation outside."""
    before, core, after = re.findall(r"^(\W*)(.*?)(\W*)$", word)[0]
    return f"{before}[{core}?]{after}" if core else f"[{word}?]"


def word_probabilities(
    tokenizer: PairTokenizer, text: str, ids: list[int], log_probs: list[float]
) -> list[tuple[str, float]]:
    """The words of a decoded text, each with its smallest token's probability.

    A token belongs to the words that have its letters, counted without spaces, which
    Moses' rules move; one without letters, to the word that follows.
    """
    words = WORD.findall(text)
    owners = [number for number, word in enumerate(words) for _ in word]
    lowest, start = [1.0] * len(words), 0
    prefixes = [ids[:count] for count in range(1, len(ids) + 1)]
    decoded = tokenizer.decode(prefixes, detokenize=False)
    for prefix, log_prob in zip(decoded, log_probs, strict=False):  # no end in ids
        end, first = len(prefix.replace(" ", "")), min(start, len(owners) - 1)
        for number in owners[first : max(end, first + 1)] if owners else []:
            lowest[number] = min(lowest[number], math.exp(log_prob))
        start = end
    return list(zip(words, lowest, strict=True))


def confidences(
    model: Any, tokenizer: PairTokenizer, lines: list[RowHypotheses], batch_tokens: int
) -> Iterator[Confidence]:
    """That of the best translation of each line, by one more pass of the model."""
    best = [(row, hypotheses[0]) for _, parts in lines for row, hypotheses in parts]
    sources = [row for row, _ in best]
    targets = [each.tokens + [model.config.eos_id] * each.finished for _, each in best]
    scores = iter(teacher_forced_batches(model, sources, targets, batch_tokens))
    for line, parts in lines:
        texts, words, total, count = [], [], 0.0, 0
        for _, hypotheses in parts:
            ids, log_probs = hypotheses[0].tokens, next(scores)
            (text,) = tokenizer.decode([ids])
            texts.append(text)
            words += word_probabilities(tokenizer, text, ids, log_probs)
            total, count = total + sum(log_probs), count + len(log_probs)
        # A telephone number that is put back may have spaces and is one word.
        apart = " ".join(texts).replace(" ", "\n")
        whole = restore_unknown(apart, line, tokenizer)
        translation = whole.replace("\n", " ")
        probabilities = (probability for _, probability in words)
        named = zip(filter(None, whole.split("\n")), probabilities, strict=True)
        languages = tokenizer.src_lang, tokenizer.tgt_lang
        lost = missing(line, translation, *languages)
        yield Confidence(translation, list(named), total, count, lost)
