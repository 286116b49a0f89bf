"""Which heads of the everyday model's encoder tie words together that belong together.

    python -m benchmarks.paper.head_relations [--limit 200]

The relations: from a particle to its verb ("took her coat off"), from "her" to "she",
"his" to "he", "my" to "I", and from a possessive to the word behind it ("her coat").
For each, the training sentences choose one head of the twelve, the one that beats
distance alone by most; validation and test sentences, which the model wasn't trained
on, then count for it. A pair is found if the head's largest weight goes from the one
word to the other. By distance: how often the same head looks first so many tokens away,
from all other words of these sentences. By others: how often they look at that very
word. Takes minutes and writes results/paper/head-relations.json, for the chapter on
heads.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from annotated_transformer import load
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import token_labels
from annotated_transformer.translation.attention_weights import recording_copy
from annotated_transformer.translation.translator import Translator
from benchmarks.record import command_line, save

MODEL, PLACE = "tatoeba-en-de", "paper/head-relations.json"
FARTHEST = 6  # tokens between a particle and its verb
VERBS = {
    "off": "take takes took taking taken turn turns turned turning put puts putting "
    "switch switched get got cut shut tear tore drop dropped let see saw call called",
    "on": "put puts putting turn turns turned turning try tried switch switched leave "
    "left keep kept",
    "up": "pick picks picked give gives gave given wake wakes woke look looked make "
    "made clean cleaned fill filled hang hung put bring brought call called set pull",
    "away": "throw threw thrown throwing take took taken put give gave send sent",
    "back": "give gives gave given bring brought take took call called get got put "
    "send sent pay paid want",
    "out": "take took taking throw threw put find found figure figured turn turned "
    "try tried let check checked point pointed leave left carry",
    "down": "turn turned put write wrote written take took shut let cut knock",
}
BEHIND = set(". , ! ? and because when before after if for with at in so".split())
OWNERS = {"my": "i", "his": "he", "her": "she"}
POSSESSIVES = {*OWNERS, "your", "our", "their"}
Pairs = Iterator[tuple[int, int]]


def words(tokens: list[str]) -> list[str]:
    """The tokens in small letters; "" for one that doesn't begin a word."""
    marks = {".", ",", "!", "?"}
    plain = (token.lower() for token in tokens)
    return [t[1:] if t[0] == "▁" else t if t in marks else "" for t in plain]


def particles(tokens: list[str]) -> Pairs:
    """From a particle that ends its clause to its verb, words between them."""
    found = words(tokens)
    for i, word in enumerate(found[:-1]):
        if word in VERBS and found[i + 1] in BEHIND:
            for j in range(i - 2, max(i - 2 - FARTHEST, -1), -1):
                if found[j] in VERBS[word].split():
                    yield i, j
                    break


def owners(possessive: str) -> Callable[[list[str]], Pairs]:
    """From a possessive to the nearest pronoun of its person before it."""
    owner = OWNERS[possessive]

    def pairs(tokens: list[str]) -> Pairs:
        found = words(tokens)
        for i, word in enumerate(found):
            if word == possessive and owner in found[: max(i - 1, 0)]:
                yield i, i - 1 - found[:i][::-1].index(owner)

    return pairs


def nouns(tokens: list[str]) -> Pairs:
    """From a possessive to the word behind it, which mostly is its noun."""
    found = words(tokens)
    for i, word in enumerate(found[:-1]):
        if word in POSSESSIVES and found[i + 1].isalpha():
            yield i, i + 1


RELATIONS: dict[str, Callable[[list[str]], Pairs]] = {
    "particle": particles,
    **{word: owners(word) for word in OWNERS},
    "noun": nouns,
}


Looker = Callable[[str], tuple[list[str], np.ndarray]]


def looker(translator: Translator) -> Looker:
    """Gives a sentence's tokens, and where each head looks first, (layer, head, token).

    The decoder reads nothing but `<s>`, since only the encoder is asked.
    """
    model, weights = recording_copy(translator.model)
    names = [
        f"encoder.layers.{i}.self_attention" for i in range(len(model.encoder.layers))
    ]

    @torch.inference_mode()
    def look(sentence: str) -> tuple[list[str], np.ndarray]:
        (ids,) = translator.tokenizer.encode_source([sentence])
        model(torch.tensor([ids]), torch.tensor([[model.config.bos_id]]))
        found = torch.cat([weights[name] for name in names]).argmax(-1)
        return token_labels(translator.tokenizer.source, ids), found.numpy()

    return look


def counted(
    found: Iterable[tuple[list[str], np.ndarray]], pairs: Callable[[list[str]], Pairs]
) -> dict[str, Any]:
    """How often each head looks from one to the other, and by distance alone."""
    hits, distances, elsewhere, others = 0, [], [], []
    for tokens, top in found:
        asked = list(pairs(tokens))
        for i, j in asked:
            hits = hits + (top[..., i] == j)
            distances.append(j - i)
        rows = sorted(set(range(len(tokens))) - {i for i, _ in asked})
        elsewhere += [(top[..., i] - i, i, len(tokens)) for i in rows]
        others += [(top[..., rows] == j).mean(-1) for _, j in asked]
    share = {
        step: np.mean(
            [at == step for at, i, size in elsewhere if 0 <= i + step < size], axis=0
        )
        for step in set(distances)
    }
    shares = [share[step] for step in distances]
    return {
        "pairs": len(distances),
        "found": np.asarray(hits).tolist(),
        "by others": np.sum(others, axis=0).round(1).tolist(),
        "by distance": np.sum(shares, axis=0).round(1).tolist(),
        "p": chance(np.asarray(hits), np.stack(shares)).tolist(),
    }


def chance(hits: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """How probable at least so many hits are, each with its share, head by head."""
    found = np.zeros(hits.shape)
    for head in np.ndindex(hits.shape):
        ways = np.ones(1)
        for share in shares[(slice(None), *head)]:
            ways = np.convolve(ways, [1 - share, share])
        found[head] = ways[hits[head] :].sum()
    return found


def english(*splits: str) -> list[str]:
    """At most 20,000 or so of the sentences, evenly from all: they come by length."""
    lines = [
        en for split in splits for en, _ in load_corpus("tatoeba", split, "en", "de")
    ]
    lines = list(dict.fromkeys(lines))  # some have several references
    return lines[:: max(1, len(lines) // 20_000)]


def some(
    lines: list[str], pairs: Callable[[list[str]], Pairs], limit: int
) -> list[str]:
    """At most so many of the sentences with such a pair, evenly from all."""
    found = [line for line in lines if any(pairs(roughly(line)))]
    return found[:: -(-len(found) // limit)]


def roughly(sentence: str) -> list[str]:
    """Words and marks as tokens would be, of a sentence without rare words."""
    for mark in ".,!?":
        sentence = sentence.replace(mark, f" {mark}")
    return [t if t in ".,!?" else f"▁{t}" for t in sentence.split()] + ["</s>"]


def relation(
    look: Looker, pairs: Callable[[list[str]], Pairs], known: list[str], new: list[str]
) -> dict[str, Any]:
    """The head that the known sentences choose, and what the new ones say of it."""
    chosen_on = counted(map(look, known), pairs)
    beyond = np.subtract(chosen_on["found"], chosen_on["by distance"])
    layer, head = np.unravel_index(beyond.argmax(), beyond.shape)
    return {
        "head": [int(layer), int(head)],
        "chosen on": chosen_on,
        "counted on": counted(map(look, new), pairs),
        "sentences": new[:40],
    }


def main(arguments: list[str] | None = None) -> None:
    """Count all three and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--limit", type=int, default=200, help="sentences a count")
    limit = parser.parse_args(arguments).limit
    look = looker(load(MODEL, engine="plain", device="cpu"))
    known, new, found = english("train"), english("val", "test"), {}
    for name, pairs in RELATIONS.items():
        both = (some(lines, pairs, limit) for lines in (known, new))
        found[name] = relation(look, pairs, *both)
        print(name, found[name]["head"], flush=True)
    save(PLACE, {"model": MODEL, "relations": found})


if __name__ == "__main__":
    main()
