"""The everyday model on what people type: sixty sentences, noise, names and numbers.

    python -m benchmarks.paper.robustness
    python -m benchmarks.paper.robustness --model runs/tatoeba-en-de

All is translated with the package's own settings. The regular expressions of sixty.tsv
judge sixty sentences. Noise of each kind is put on 500 test sentences, and BLEU (13a)
compared with that of the same sentences without it. Names that no training saw, numbers
and addresses are put into plain sentences, and counted where they come out whole. Speed
is of one thread's processor time. The corpus is downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds it; two minutes of one core. Writes
results/runs/tatoeba-en-de/robustness.json.
"""

import csv
import re
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random

import torch

from annotated_transformer import load
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.model_names import SHIPPED
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import bleu, sides
from benchmarks.paper.augmentation import (
    Names,
    invented_word,
    names,
    title_case,
    typo,
    without_stop,
)
from benchmarks.record import command_line, save

SIXTY = Path(__file__).with_name("sixty.tsv")
SENTENCES = 500  # for noise, and as many each of names and of numbers
Noise = Callable[[str, Random], str]
NOISE: dict[str, Noise] = {
    "lower case": lambda text, rng: text.lower(),
    "capitals": lambda text, rng: text.upper(),
    "title case": lambda text, rng: title_case(text),
    "no final stop": lambda text, rng: without_stop(text),
    "curly quotes": lambda text, rng: curly(text),
    "doubled spaces": lambda text, rng: text.replace(" ", "  "),
    "one typo": typo,
}
Carriers = Mapping[str, Sequence[str]]
# Sentences for names and numbers; none is in frames.tsv.
PERSONS = (
    "I have known {} for years.",
    "{} forgot the keys again.",
    "Nobody understands {}.",
    "We are waiting for {}.",
    "{}'s car is very old.",
)
CARRIERS: Carriers = {
    "first name": PERSONS,
    "surname": (
        "Mr. {} is our neighbour.",
        "I got a letter from Mrs. {}.",
        "Does Dr. {} speak German?",
        "They asked Mr. {} for help.",
    ),
    "city": (
        "We spent the whole winter in {}.",
        "{} is not far from the border.",
        "They want to move to {}.",
        "My uncle works in {}.",
        "Do you like {}?",
    ),
    "invented": PERSONS,
    "number": ("There were {} birds on the roof.", "He has written {} letters."),
    "price": ("The chair costs ${}.", "She paid €{} for the bike."),
    "time": ("The film begins at {}.", "Wake me up at {}, please."),
    "year": ("The bridge was built in {}.", "In {} she moved to the country."),
    "email": ("Her address is {}.", "Send the photos to {}, please."),
}
NUMBERS = ("number", "price", "time", "year", "email")
Asked = tuple[str, str, str]  # the kind, the English sentence, what has to come out


def translated(translator: Translator, texts: list[str]) -> list[str]:
    """The translations; characters never seen, and a search cut off, pass unwarned."""
    with warnings.catch_warnings(action="ignore"):
        return translator.translate(texts)


def curly(text: str) -> str:
    """With the apostrophes and quotation marks that word processors put."""
    return re.sub(r'"(.*?)"', r"“\1”", text).replace("'", "’")


# -- sixty sentences -------------------------------------------------------------------


def sixty(translator: Translator, limit: int | None = None) -> dict:
    """The sixty sentences: which were translated right, and how many of each kind."""
    with SIXTY.open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)][:limit]
    outputs = translated(translator, [row["source"] for row in rows])
    judged = [
        {
            "kind": row["kind"],
            "source": row["source"],
            "output": output,
            "right": bool(re.fullmatch(row["right"], output)),
        }
        for row, output in zip(rows, outputs, strict=True)
    ]
    right = Counter(row["kind"] for row in judged if row["right"])
    kinds = Counter(row["kind"] for row in judged)
    return {
        "right": right.total(),
        "sentences": len(judged),
        "kinds": {kind: f"{right[kind]} of {count}" for kind, count in kinds.items()},
        "outputs": judged,
    }


# -- noise -----------------------------------------------------------------------------


def compared(
    noisy: list[str], clean: list[str], targets: list[str]
) -> dict[str, float]:
    """BLEU of the translations of noisy text beside those of clean text."""
    with_noise, without = bleu(noisy, targets)["bleu"], bleu(clean, targets)["bleu"]
    return {
        "sentences": len(targets),
        "bleu": with_noise,
        "clean": without,
        "difference": round(with_noise - without, 2),
    }


def noise(
    translator: Translator, sources: list[str], targets: list[str], clean: list[str]
) -> dict[str, dict]:
    """Each kind of noise, on those sentences that it changes."""
    found = {}
    for kind, put in NOISE.items():
        rng = Random(kind)
        noisy = [put(text, rng) for text in sources]
        rows = [i for i, text in enumerate(sources) if noisy[i] != text]
        if not rows:  # in a trial
            continue
        outputs = translated(translator, [noisy[i] for i in rows])
        found[kind] = compared(
            outputs, [clean[i] for i in rows], [targets[i] for i in rows]
        )
    for count, kind in {2: "two in a row", 3: "three in a row"}.items():
        outputs = translated(translator, in_rows(sources, count))
        found[kind] = compared(outputs, in_rows(clean, count), in_rows(targets, count))
    return found


def in_rows(lines: list[str], count: int) -> list[str]:
    """So many lines joined to one; the rest is left out."""
    parts = [lines[start::count] for start in range(count)]
    return [" ".join(part) for part in zip(*parts, strict=False)]


# -- copying ---------------------------------------------------------------------------


def unseen_names(
    rng: Random, known: str, count: int, carriers: Carriers = CARRIERS
) -> list[Asked]:
    """Sentences with names that training held out and its text lacks, by kind.

    A quarter of each kind where there are so many, and invented ones for the rest.
    """
    words, found = set(re.findall(r"\w+", known)), []
    of_kind = {kind: names(kind, held_out=True) for kind in ("surname", "city")}
    of_kind["first name"] = names("female", True) + names("male", True)
    for kind, both in of_kind.items():
        new = [name for name in both if not words >= set(re.findall(r"\w+", name[0]))]
        asked = [
            (kind, text.format(english), german)
            for text, (english, german) in product(carriers[kind], new)
        ]
        found += rng.sample(asked, min(len(asked), count // 4))
    while len(found) < count:
        word = invented_word(rng)
        if word not in words:
            text = rng.choice(carriers["invented"])
            found.append(("invented", text.format(word), word))
    return found


def numbers(rng: Random, count: int, carriers: Carriers = CARRIERS) -> list[Asked]:
    """Sentences with numbers, prices, times, years and addresses."""
    values, found = Names(rng), []
    for place in range(count):
        kind = NUMBERS[place % len(NUMBERS)]
        value, _ = values.fill("number" if kind == "price" else kind)
        found.append((kind, rng.choice(carriers[kind]).format(value), value))
    return found


def copied(value: str, output: str) -> bool:
    """Whether it came out whole; an ending of German is set aside.

    A time may have a stop for its colon, and a number one after its thousands.
    """
    whole = re.escape(value).replace(":", "[:.]")
    if re.fullmatch(r"\d{4}", value):
        whole = rf"{value[0]}\.?{value[1:]}"
    ending = r"(?:['’]?s|['’]|e?n)?(?![\w@]|[.,:-]\w)"
    return bool(re.search(rf"(?<![\w@])(?<!\w[.,:-]){whole}{ending}", output))


def copying(translator: Translator, asked: list[Asked]) -> dict[str, dict]:
    """The share of each kind that comes out whole, and what became of others."""
    outputs = translated(translator, [source for _, source, _ in asked])
    kinds: dict[str, list] = defaultdict(list)
    for (kind, source, value), output in zip(asked, outputs, strict=True):
        kinds[kind].append((value, source, output, copied(value, output)))
    return {
        kind: {
            "sentences": len(rows),
            "different": len({value for value, *_ in rows}),
            "copied": round(sum(whole for *_, whole in rows) / len(rows), 3),
            "failures": [row[1:3] for row in rows if not row[3]][:5],
        }
        for kind, rows in kinds.items()
    }


# -- all of it -------------------------------------------------------------------------


def measure(model: str | Path, limit: int | None = None) -> dict:
    """Everything above with one model, in one thread; `limit` is for a trial."""
    torch.set_num_threads(1)
    translator, count = load(model, device="cpu"), limit or SENTENCES
    pairs = list(zip(*sides("tatoeba", "test"), strict=True))
    chosen = Random("robustness").sample(pairs, count)
    sources, targets = [english for english, _ in chosen], [de for _, de in chosen]
    translated(translator, sources[:50])
    start = time.process_time()
    clean = translated(translator, sources)
    seconds = time.process_time() - start
    rng, known = Random("copying"), " ".join(sides("tatoeba", "all")[0])
    asked = {"names": unseen_names(rng, known, count), "numbers": numbers(rng, count)}
    return {
        "engine": translator.engine_name,
        "settings": {
            "beam_size": SearchOptions.beam_size,
            "alpha": SearchOptions.alpha,
        },
        "sixty": sixty(translator, limit),
        "without_noise": {"sentences": count, **bleu(clean, targets)},
        "noise": noise(translator, sources, targets, clean),
        "copying": {what: copying(translator, rows) for what, rows in asked.items()},
        "sentences_a_second": round(count / seconds, 1),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one model and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--model", default=SHIPPED, help="a name or a folder")
    parser.add_argument("--limit", type=int, help="sentences of each sort, for a trial")
    given = parser.parse_args(argv)
    found = measure(given.model, given.limit)
    save("runs/tatoeba-en-de/robustness.json", found, "tokenizers", "sacrebleu")
    print(found["sixty"]["right"], "of", found["sixty"]["sentences"], "right")
    for kind, row in found["noise"].items():
        print(kind, row)
    for rows in found["copying"].values():
        for kind, row in rows.items():
            print(kind, row["sentences"], row["copied"])
    print(found["sentences_a_second"], "sentences a second")


if __name__ == "__main__":
    main()
