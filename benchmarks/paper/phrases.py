"""Captions and everyday sentences translated without a network: copied, and by phrases
that were counted.

    python -m benchmarks.paper.phrases [--corpus multi30k tatoeba]

The trivial answer hands the English back. The simple rival is what came before neural
translation (Koehn et al., 2003): IBM model 1 aligns the training text's words both
ways, phrases of up to five words that agree with the links are counted, and a search
from left to right, without reordering, weighs their frequencies both ways, a trigram
model of German, and the number of words and of phrases. The weights are chosen on 200
pairs of the validation split. The corpora are downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds them; ten minutes of one
core. Writes its part of results/paper/phrases.json.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from heapq import nlargest
from itertools import chain, product
from math import log
from typing import Any

from annotated_transformer.after.n_grams import KneserNey
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import moses_detokenize, moses_tokenize
from annotated_transformer.translation.heads import Links
from benchmarks.measure import bleu, sides
from benchmarks.paper.heads import ibm_model_1
from benchmarks.record import command_line, load, provenance, save

PLACE = "paper/phrases.json"
LONGEST, OPTIONS, STACK, TUNED_ON = 5, 10, 30, 200
Words = tuple[str, ...]
Table = dict[Words, list[tuple[Words, float, float]]]


@dataclass(frozen=True)
class Task:
    """A corpus, its splits, and how it is scored."""

    corpus: str
    tests: tuple[str, ...]
    convention: str
    lowercase: bool


TASKS = {
    "multi30k": Task(
        "multi30k",
        ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"),
        "BLEU Moses, lower-cased",
        lowercase=True,
    ),
    "tatoeba": Task("tatoeba", ("test",), "BLEU 13a", lowercase=False),
}


@dataclass(frozen=True)
class Weights:
    """What each part of a translation's score counts; that of p(German | English) is 1.

    The chance backwards, the trigrams, and a bonus for each word and each phrase.
    """

    inverse: float = 0.5
    trigrams: float = 0.7
    word: float = 0.5
    phrase: float = 0.0


GRID = {
    "trigrams": (0.35, 0.5, 0.7, 1.0, 1.4),
    "word": (-0.5, 0.0, 0.5, 1.0),
    "inverse": (0.0, 0.5, 1.0, 2.0),
    "phrase": (-1.0, 0.0, 1.0, 2.0, 3.0, 4.0),
}


def tokens(task: Task, split: str) -> tuple[list[Words], list[Words]]:
    """Both sides of a split in Moses tokens."""
    both = zip(*load_corpus(task.corpus, split, "en", "de"), strict=True)
    english, german = (
        [tuple(line.split()) for line in moses_tokenize(side, lang, task.lowercase)]
        for lang, side in zip(("en", "de"), both, strict=True)
    )
    return english, german


# -- the phrase table ------------------------------------------------------------------


def grow(forward: Links, backward: Links) -> Links:
    """Links that both directions have, and their neighbours that one of them has.

    A neighbour is taken while one of its two words has no link yet.
    """
    links, either = forward & backward, forward | backward
    steps = [step for step in product((-1, 0, 1), repeat=2) if step != (0, 0)]
    fresh = sorted(links)
    while fresh:
        i, j = fresh.pop(0)
        for a, b in ((i + down, j + right) for down, right in steps):
            free = a not in {e for e, _ in links} or b not in {g for _, g in links}
            if (a, b) in either - links and free:
                links.add((a, b))
                fresh.append((a, b))
    return links


def phrases(
    english: Words, german: Words, links: Links
) -> Iterator[tuple[Words, Words]]:
    """Pairs of phrases none of whose words is linked to a word outside."""
    linked = {g for _, g in links}
    for begin in range(len(english)):
        for end in range(begin + 1, min(begin + LONGEST, len(english)) + 1):
            inside = {g for e, g in links if begin <= e < end}
            outside = {g for e, g in links if not begin <= e < end}
            if inside and not outside & {*range(min(inside), max(inside) + 1)}:
                for first, last in widened(
                    min(inside), max(inside), linked, len(german)
                ):
                    yield english[begin:end], german[first : last + 1]


def widened(first: int, last: int, linked: set[int], n: int) -> list[tuple[int, int]]:
    """A span, and each with words on either side that have no link."""
    begins, ends = [first], [last]
    while begins[-1] > 0 and begins[-1] - 1 not in linked:
        begins.append(begins[-1] - 1)
    while ends[-1] + 1 < n and ends[-1] + 1 not in linked:
        ends.append(ends[-1] + 1)
    return [(a, b) for a, b in product(begins, ends) if b - a < LONGEST]


def phrase_table(english: Sequence[Words], german: Sequence[Words]) -> Table:
    """The likeliest translations of each phrase, with both logarithms of chances."""
    there = [(list(e), list(g), set()) for e, g in zip(english, german, strict=True)]
    back = [(g, e, links) for e, g, links in there]
    forward, backward = ibm_model_1(there), ibm_model_1(back)
    counts: Counter[tuple[Words, Words]] = Counter()
    for pair, swapped in zip(there, back, strict=True):
        turned = {(e, g) for g, e in backward(swapped)}
        links = grow(forward(pair), turned)
        counts.update(phrases(tuple(pair[0]), tuple(pair[1]), links))
    of_english, of_german = Counter[Words](), Counter[Words]()
    for (e, g), count in counts.items():
        of_english[e] += count
        of_german[g] += count
    table: Table = defaultdict(list)
    for (e, g), count in counts.items():
        table[e].append((g, log(count / of_english[e]), log(count / of_german[g])))
    return {e: nlargest(OPTIONS, all_, lambda o: o[1]) for e, all_ in table.items()}


# -- the search ------------------------------------------------------------------------


class Trigrams:
    """Kneser–Ney over words, each of which is a character to it."""

    def __init__(self, sentences: Sequence[Words]):
        words = sorted(set(chain.from_iterable(sentences)))
        self.letter = {word: chr(0x10000 + i) for i, word in enumerate(words)}
        self.end = "\n"
        lines = ("".join(self.letter[w] for w in each) for each in sentences)
        self.model = KneserNey(self.end + self.end.join(lines) + self.end, order=3)
        self.unknown = log(1e-6)
        self.log_probability = cache(self.measure)

    def measure(self, before: str, letter: str) -> float:
        """The logarithm of the chance of a word after at most two others."""
        return log(self.model.probability(before, letter))

    def follow(self, before: str, words: Words) -> tuple[str, float]:
        """What a next word will see, and the logarithm of the chance of these."""
        total = 0.0
        for word in words:
            letter = self.letter.get(word)
            total += self.log_probability(before, letter) if letter else self.unknown
            before = (before + (letter or self.end))[-2:]
        return before, total


def translate(source: Words, table: Table, model: Trigrams, weights: Weights) -> Words:
    """The best translation that goes through the source from left to right."""
    stacks: list[dict[str, tuple[float, Words]]] = [{} for _ in range(len(source) + 1)]
    stacks[0][model.end] = 0.0, ()
    for place in range(len(source)):
        kept = nlargest(STACK, stacks[place].items(), lambda item: item[1][0])
        for end in range(place + 1, min(place + LONGEST, len(source)) + 1):
            piece = source[place:end]
            copied = [(piece, 0.0, 0.0)] if end == place + 1 else []
            for german, direct, inverse in table.get(piece, copied):
                fixed = direct + weights.inverse * inverse + weights.phrase
                fixed += weights.word * len(german)
                for before, (score, so_far) in kept:
                    after, chance = model.follow(before, german)
                    if end == len(source):
                        chance += model.log_probability(after, model.end)
                    found = score + fixed + weights.trigrams * chance, so_far + german
                    stacks[end][after] = max(stacks[end].get(after, found), found)
    return max(stacks[-1].values())[1]


class Translator:
    """What was counted on the training pairs, and what it translates."""

    def __init__(self, task: Task):
        self.task = task
        english, german = tokens(task, "train")
        self.table, self.model = phrase_table(english, german), Trigrams(german)

    def score(self, split: str, weights: Weights, limit: int | None = None) -> float:
        """BLEU on a split, or on its first pairs."""
        pairs = list(load_corpus(self.task.corpus, split, "en", "de"))[:limit]
        outputs = [
            " ".join(translate(source, self.table, self.model, weights))
            for source in tokens(self.task, split)[0][:limit]
        ]
        targets = [german for _, german in pairs]
        written = moses_detokenize(outputs, "de")
        return bleu(written, targets, self.task.convention)["bleu"]


def tune(translator: Translator) -> tuple[Weights, list[dict[str, float]]]:
    """The best weights, one changed at a time in two rounds, and all that was tried."""
    best, tried = Weights(), dict[Weights, float]()
    for name, values in [*GRID.items()] * 2:
        for weights in [replace(best, **{name: value}) for value in values]:
            if weights not in tried:
                tried[weights] = translator.score("val", weights, TUNED_ON)
                print(weights, tried[weights], flush=True)
        best = max(tried, key=tried.__getitem__)
    return best, [asdict(weights) | {"bleu": s} for weights, s in tried.items()]


def measured(task: Task) -> dict[str, Any]:
    """Count, choose the weights, translate the tests."""
    begun = time.process_time()
    translator = Translator(task)
    counted = time.process_time()
    weights, tried = tune(translator)
    handed_back = {
        split: bleu(*sides(task.corpus, split), task.convention)["bleu"]
        for split in task.tests
    }
    found = {
        "convention": task.convention,
        "weights": asdict(weights),
        "tried": tried,
        "copied": handed_back,
        "tests": {split: translator.score(split, weights) for split in task.tests},
    }
    seconds = {"counting": counted - begun, "in all": time.process_time() - begun}
    return found | {"seconds": {what: round(each) for what, each in seconds.items()}}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each corpus, and put it into the record."""
    parser = command_line(__doc__)
    parser.add_argument("--corpus", nargs="+", choices=TASKS, default=list(TASKS))
    for name in parser.parse_args(arguments).corpus:
        found = measured(TASKS[name])
        print(name, found["copied"], found["tests"], found["seconds"])
        record = load(PLACE)
        kept = {each: record[each] for each in TASKS if each in record}
        made = provenance("sacrebleu", "sacremoses")
        save(PLACE, kept | {name: made | found}, "sacrebleu", "sacremoses")


if __name__ == "__main__":
    main()
