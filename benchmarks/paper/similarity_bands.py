"""The everyday model's BLEU by how close a test sentence is to the training text.

    python -m benchmarks.paper.similarity_bands

How close is the word Jaccard index of its English with the nearest training sentence:
shared words divided by all words of both. The test split is translated by the shipped
model, with the package's own settings and with those that the validation split chose.
The whole split has intervals, and a score that takes each English sentence once, with
all the translations that people gave of it. Needs the corpora, which are downloaded
unless ANNOTATED_TRANSFORMER_DATA names a folder that holds them; minutes of one core.
Writes results/runs/tatoeba-en-de/bands.json.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from sacrebleu.metrics import BLEU

from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import bleu, sides
from benchmarks.record import command_line, save
from benchmarks.significance import compare

BANDS = (0.0, 0.35, 0.5, 0.65, 1.01)
SETTINGS = {"as shipped": SearchOptions(), "chosen": SearchOptions(4, 1.0)}


def words(text: str) -> frozenset[str]:
    """The words of a sentence in lower case."""
    return frozenset(re.findall(r"\w+", text.lower()))


def nearest(tests: Sequence[str], train: Iterable[str]) -> list[float]:
    """The word Jaccard index of each sentence with the nearest of the others."""
    known = list({words(text) for text in train})
    places = defaultdict(list)
    for place, those in enumerate(known):
        for word in those:
            places[word].append(place)
    found = []
    for text in tests:
        own = words(text)
        shared = Counter(place for word in own for place in places.get(word, ()))
        indices = (n / len(own | known[place]) for place, n in shared.items())
        found.append(max(indices, default=0.0))
    return found


def with_all_references(
    sources: Sequence[str], targets: Sequence[str], outputs: Sequence[str]
) -> dict[str, float]:
    """BLEU 13a of each source's first output, with all the targets that it has."""
    own, known = dict[str, str](), defaultdict(list)
    for source, target, output in zip(sources, targets, outputs, strict=True):
        own.setdefault(source, output)
        known[source].append(target)
    references = list(zip_longest(*known.values()))
    score = BLEU().corpus_score(list(own.values()), references).score
    return {"sentences": len(own), "bleu": round(score, 2)}


def main(argv: Sequence[str] | None = None) -> None:
    """Translate, sort into bands, score each, write the record."""
    command_line(__doc__).parse_args(argv)
    sources, targets = sides("tatoeba", "test")
    close = nearest(sources, sides("tatoeba", "train")[0])
    translator = Translator.from_pretrained("tatoeba-en-de", engine="torch")
    outputs = {
        name: translator.translate(sources, options, split=True)
        for name, options in SETTINGS.items()
    }
    whole = {name: bleu(lines, targets) for name, lines in outputs.items()}
    shipped, chosen = outputs.values()
    apart = compare(shipped, chosen, targets, samples=1_000)
    intervals = apart.baseline_interval, apart.system_interval
    for scores, interval in zip(whole.values(), intervals, strict=True):
        scores["interval"] = round(interval, 2)
    every = with_all_references(sources, targets, shipped)
    bands = []
    for low, high in zip(BANDS, BANDS[1:], strict=False):
        rows = [i for i, value in enumerate(close) if low <= value < high]
        band = {"from": low, "below": high, "sentences": len(rows)}
        for name, lines in outputs.items():
            scored = bleu([lines[i] for i in rows], [targets[i] for i in rows])
            band[name] = scored["bleu"]
        bands.append(band)
        print(band)
    print(whole, every)
    found = {"whole": whole, "all references": every, "bands": bands}
    save("runs/tatoeba-en-de/bands.json", found, "tokenizers", "sacrebleu")


if __name__ == "__main__":
    main()
