"""Counted n-grams of characters: the rival that a language model has to beat."""

import math
from collections import Counter

# Counts of n-grams; of a context's n-grams the sum, and how many kinds; the discount.
Level = tuple[Counter[str], Counter[str], Counter[str], float]


class KneserNey:
    """An n-gram model of characters with interpolated Kneser–Ney smoothing."""

    def __init__(self, text: str, order: int = 6):
        grams = Counter(text[i : i + order] for i in range(len(text) - order + 1))
        self.letters = len(set(text))
        self.levels: list[Level] = []  # by length of context
        for _ in range(order):
            once, twice = (list(grams.values()).count(n) for n in (1, 2))
            discount = max(once, 1) / max(once + 2 * twice, 2)  # as Ney estimates it
            totals: Counter[str] = Counter()
            for gram, count in grams.items():
                totals[gram[:-1]] += count
            kinds = Counter(gram[:-1] for gram in grams)
            self.levels.insert(0, (grams, totals, kinds, discount))
            grams = Counter(gram[1:] for gram in grams)

    def probability(self, before: str, letter: str) -> float:
        """That of a character after at most `order` − 1 others."""
        p = 1 / self.letters
        for n, (grams, totals, kinds, discount) in enumerate(self.levels):
            context = before[len(before) - n :]
            if n > len(before) or not totals[context]:
                break
            own = max(grams[context + letter] - discount, 0)
            p = (own + discount * kinds[context] * p) / totals[context]
        return p

    def bits_per_character(self, text: str) -> float:
        """The mean of −log₂ p over a text."""
        reach = len(self.levels) - 1
        positions = range(len(text))
        chances = (
            self.probability(text[max(0, i - reach) : i], text[i]) for i in positions
        )
        return -sum(map(math.log2, chances)) / len(text)
