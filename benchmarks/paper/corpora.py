"""Two measures of Tatoeba's English and German pairs: how much of a random test set is
known from training, and how many right answers a sentence has.

    python -m benchmarks.paper.corpora

Takes a minute and writes results/paper/corpora.json, which nbs/data/pairs.ipynb shows.
The pairs are downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds
them.
"""

from collections import defaultdict
from collections.abc import Sequence
from random import Random

from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.near_copies import NearCopies, sketch
from annotated_transformer.translation.scores import scores
from benchmarks.record import command_line, save

Pairs = list[tuple[str, str]]
ALIKE = "Go away.", "Beat it."  # two that share no word and many a translation


def leaks(pairs: Pairs, held: int = 1_692) -> dict:
    """Of so many pairs at random: how many have a side that the rest has, letter for
    letter and as a near copy.
    """
    pairs = pairs.copy()
    Random(0).shuffle(pairs)
    test, train = pairs[:held], pairs[held:]
    same, near = set(), set()
    for side, lang in enumerate(("en", "de")):
        texts = {pair[side] for pair in train}
        copies = NearCopies(sketch(text, lang) for text in texts)
        same |= {n for n, pair in enumerate(test) if pair[side] in texts}
        near |= {n for n, pair in enumerate(test) if sketch(pair[side], lang) in copies}
    return {"held out": held, "same text": len(same), "near copy": len(near)}


def answers(pairs: Pairs) -> dict:
    """How many German translations the English sentences have, and BLEU of one of them
    against another, drawn for each that has several.
    """
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for english, german in pairs:
        found[english][german] = None
    several = {each: list(texts) for each, texts in found.items() if len(texts) > 1}
    most = max(several, key=lambda each: len(several[each]))
    draw = Random(0)
    sides = zip(*(draw.sample(texts, 2) for texts in several.values()), strict=True)
    bleu = scores(*map(list, sides), "de")[0]
    return {
        "English sentences": len(found),
        "with several translations": len(several),
        "of": {each: several[each] for each in (most, *ALIKE)},
        "one against another": {
            "bleu": round(bleu.value, 1),
            "signature": bleu.signature,
        },
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure both and write the record."""
    command_line(__doc__).parse_args(argv)
    pairs = list(load_corpus("tatoeba", "all", "en", "de"))
    record = {
        "pairs": len(pairs),
        "at random": leaks(pairs),
        "answers": answers(pairs),
    }
    save("paper/corpora.json", record)
    print(record)


if __name__ == "__main__":
    main()
