"""Measure and ship the translator for everyday sentences.

    python -m benchmarks.paper.augmentation runs/pairs
    annotated-transformer train runs/pairs/train … --out runs/first
    annotated-transformer train … --from runs/first/model --out runs/second
    annotated-transformer train … --from runs/second/model --out runs/third
    annotated-transformer average runs/second/model runs/third/model --out runs/mean
    python -m benchmarks.paper.rare_pieces runs/mean runs/third/data/train runs/fewer
    python -m benchmarks.paper.augmentation runs/taught --teacher runs/mean --choices 4
    annotated-transformer train runs/taught/train … --from runs/fewer --out runs/fourth
    python -m benchmarks.paper.mean_of_pieces runs/mean runs/fourth/model runs/whole
    python -m benchmarks.paper.everyday runs/fourth --model runs/whole

The first run read pairs with fewer names (commit 1406938), the second none of two names
spliced (e698fb3), the third people's German, where the fourth reads a teacher's; all
have records in results/runs, and RUNS below has the settings.
The corpora are downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds
them. The model is the mean of the fourth run's, itself a mean of eight checkpoints, and
of the one before it, and translates the validation split better than the former. The
length penalty is chosen by BLEU (13a) on the validation split; the test sets are
translated once, with the weights as they are shipped, of one byte each, and the own
test split also with the package's own settings, and so once more with the weights
before they were rounded. Then come the measurements of robustness.py and two_hundred.py
beside this file. Takes ten minutes on two cores. Without a run, the card alone is
written anew, from the records. Writes record.json, robustness.json, two_hundred.json
and log.jsonl in results/runs/tatoeba-en-de, and annotated_transformer/models/
tatoeba-en-de with its card; with `--trial FOLDER` all of it there, from a few sentences
of each split.
"""

import json
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

import torch

from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.files import read_json, remove_folder, write_manifest
from annotated_transformer.model_names import find_folder
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import bleu, sides
from benchmarks.paper import two_hundred
from benchmarks.paper.robustness import NUMBERS, measure
from benchmarks.record import RESULTS, command, command_line, folder, save

SHIPPED = find_folder("tatoeba-en-de")
TESTS = {
    "Tatoeba": ("tatoeba", "test"),
    "Multi30k": ("multi30k", "test_2016_flickr"),
    "newstest2014": ("wmt14", "test"),
    "phrasebook": ("phrasebook", "test"),
}
EARLIER = [
    RESULTS / "runs" / f"tatoeba-en-de-{name}" / "record.json"
    for name in ("first", "second", "third")
]
ON_FILES = (
    "annotated-transformer train runs/{pairs}/train --src en --tgt de "
    "--valid runs/{pairs}/val "
)
GONE_ON = (
    ON_FILES + "--set batch_tokens=8192 "
    "--set precision=bf16 --set save_every=50 --set keep=8 --set patience=0 "
)
FIRST, TAUGHT = GONE_ON.format(pairs="pairs"), GONE_ON.format(pairs="taught")
RUNS = (
    "python -m benchmarks.paper.augmentation runs/pairs",
    ON_FILES.format(pairs="pairs") + "--recipe tatoeba-en-de --set normalize=true "
    "--out runs/first",
    FIRST + "--from runs/first/model --set steps=1800 --set warmup=200 "
    "--set peak=0.0007 --out runs/second",
    FIRST + "--from runs/second/model --set steps=1000 --set warmup=100 "
    "--set peak=0.0006 --out runs/third",
    "annotated-transformer average runs/second/model runs/third/model --out runs/mean",
    "python -m benchmarks.paper.rare_pieces runs/mean runs/third/data/train runs/fewer",
    "python -m benchmarks.paper.augmentation runs/taught --teacher runs/mean "
    "--choices 4",
    TAUGHT + "--from runs/fewer --set bpe_dropout=0.1 --set steps=1800 "
    "--set warmup=200 --set peak=0.0007 --out runs/fourth",
    "python -m benchmarks.paper.mean_of_pieces runs/mean runs/fourth/model runs/whole",
)
ALPHAS = (0.2, 0.6, 1.0)
TRIAL = 20  # sentences of each split
NAMES = {
    "phone": "telephone numbers",
    "price": "prices",
    "number": "numbers",
    "date": "dates",
    "time": "times",
    "email": "e-mail addresses",
    "web": "web addresses",
}
RECORDS = ("record", "robustness", "two_hundred")
MAKER = "benchmarks.paper.everyday"
KINDS = {kind: f"{kind}s" for kind in NUMBERS} | {"email": "e-mail addresses"}
CARD = """# tatoeba-en-de

Translates everyday sentences from English to German. {layers} + {layers} layers,
d_model {d_model}, {pieces} shared pieces, {updates} updates on two cores; the weights
are stored in one byte each.

**Data.** 163,957 sentence pairs of Tatoeba (the release of 2018-05-13 on
www.manythings.org/anki) and 40,989 phrases of the package's own phrasebook, six times
over and each time varied: with other names and numbers, the same on both sides; with
sentences about names, numbers and addresses between them; some joined with the next;
and, in English alone, some in lower case, with capitals, without stops or commas, or
with a typo. In the last {last} updates the German was what the model
before them had written, of four translations the one nearest to people's. Near copies
of the test sentences were left out before, as far as a sketch of their words finds
them; every fourth test sentence still shares 0.65 of its words or more with one of
training.

**Licence.** The sentences are by the contributors of tatoeba.org and come under CC BY
2.0 FR (https://creativecommons.org/licenses/by/2.0/fr/), collected by
www.manythings.org/anki. If you pass the model on, keep this attribution.

**Scores.** BLEU (13a, beam 4) on its own test split: {own} with the package's α =
0.6 ({whole} before the weights were rounded), {tatoeba} with α = {alpha}, which the
validation split chose; {exact} of those are exactly the reference. With the latter
{captions} on Multi30k's test_2016_flickr, captions of photographs, and {news} on
newstest2014 (brevity penalty {short:.2f}); of held-out phrases of the phrasebook
{phrases} are exact.

**What people type**, with α = 0.6. Right are {right} of {asked} sentences: {kinds}.
Of names that training never saw {names} come out whole. In {sentences} ordinary
sentences, written before any was tried (telephone numbers are copied only since they
were read), {arrive} of numbers, dates, prices and
addresses arrive ({arriving}); of the {lose} sentences that lose one, {warned} are
warned of, and {false} of the others. What noise does to BLEU, against the same
sentences without it: {noise}.

**What it can't do.** News, long sentences and rare words, as the scores say. Unusual
case, quotation marks, typos and sentences in a row (`--split` cuts them apart) cost
what the lines above say, and any name or number may come out wrong: compare them, above
all where a warning names one. It chooses between du, Sie and ihr as it likes, and
invents a translation where it knows none. Don't rely on it where a mistake would do
harm, as in medicine, in law, or about a person.

**Beside it.** Bergamot's English-German model for browsers, tiny11, has some 17 MB,
learned from a large model's translations of far more text (browsermt/students on
GitHub), and reaches 29.8 BLEU on newstest2014 (mozilla/firefox-translations-models,
evaluation/prod/results.md, commit 0b39a09).
"""


def evaluate(
    translator: Translator,
    corpus: str,
    split: str,
    options: SearchOptions,
    limit: int | None = None,
) -> dict:
    """BLEU (13a) and the share of exact translations of a split."""
    both = sides(corpus, split, limit)
    sources, targets = both if translator.tokenizer.src_lang == "en" else both[::-1]
    outputs = translator.translate(sources, options, split=True)
    exact = sum(a == b for a, b in zip(outputs, targets, strict=True)) / len(sources)
    return {
        "split": f"{corpus} {split}",
        "sentences": len(sources),
        **bleu(outputs, targets),
        "exact": round(exact, 4),
    }


def options(alpha: float) -> SearchOptions:
    """A beam of four with this length penalty."""
    return SearchOptions(beam_size=4, alpha=alpha)


def choose(translator: Translator, limit: int | None) -> list[dict]:
    """BLEU on the validation split with each length penalty, the best first."""
    rows = [
        {"alpha": alpha} | evaluate(translator, "tatoeba", "val", options(alpha), limit)
        for alpha in ALPHAS
    ]
    return sorted(rows, key=lambda row: -row["bleu"])


def per_cent(share: float) -> str:
    """A share as the card writes it."""
    return f"{share:.1%}".replace("%", "\N{NO-BREAK SPACE}%")


def copied(rows: dict[str, dict]) -> str:
    """The share of several kinds together that came out whole."""
    whole = sum(row["copied"] * row["sentences"] for row in rows.values())
    return per_cent(whole / sum(row["sentences"] for row in rows.values()))


def card(text: str, found: dict, typed: dict, **more: object) -> str:
    """What a model says about itself, with the scores of both records."""
    tests, sizes = found["tests"], found["run"]["architecture"]
    numbers = (
        f"of {KINDS[kind]} {per_cent(row['copied'])}"
        for kind, row in typed["copying"]["numbers"].items()
    )
    changes = (
        f"{kind} {row['difference']:+.1f}" for kind, row in typed["noise"].items()
    )
    text = text.format(
        layers=sizes["N"],
        d_model=sizes["d_model"],
        pieces=f"{sizes['tgt_vocab_size']:,}",
        updates=f"{found['earlier_updates'] + found['updates']:,}",
        last=f"{found['updates']:,}",
        alpha=found["chosen"]["alpha"],
        own=found["as_shipped"]["bleu"],
        whole=found["float32"]["bleu"],
        tatoeba=tests["Tatoeba"]["bleu"],
        exact=per_cent(tests["Tatoeba"]["exact"]),
        captions=tests["Multi30k"]["bleu"],
        news=tests["newstest2014"]["bleu"],
        short=tests["newstest2014"]["brevity_penalty"],
        phrases=per_cent(tests["phrasebook"]["exact"]),
        names=copied(typed["copying"]["names"]),
        numbers=", ".join(numbers),
        noise=", ".join(changes).replace("-", "−"),
        **more,
    )
    parts = (
        textwrap.fill(part, 88, break_on_hyphens=False) for part in text.split("\n\n")
    )
    return "\n\n".join(parts) + "\n"


def own_card(found: dict, typed: dict, ordinary: dict) -> str:
    """The shipped model's card, of its three records."""
    judged, chosen = typed["sixty"], ordinary["chosen"]
    kinds = ", ".join(f"{kind} {count}" for kind, count in judged["kinds"].items())
    return card(
        CARD,
        found,
        typed,
        right=judged["right"],
        asked=judged["sentences"],
        kinds=kinds,
        sentences=ordinary["sentences"],
        arrive=per_cent(chosen["arrive"]),
        arriving=", ".join(f"{NAMES[k]} {v}" for k, v in chosen["kinds"].items()),
        lose=chosen["sentences_that_lose"],
        warned=chosen["of_them_warned"],
        false=chosen["false_warnings"],
    )


def ship(model: Path, shipped: Path) -> None:
    """Put the model into the folder, a byte for each weight."""
    if shipped.exists():
        remove_folder(shipped)
    trained = Translator.from_pretrained(model, device="cpu", engine="plain")
    trained.save_pretrained(shipped, torch.int8)


def measured(run: Path, model: Path, shipped: Path, limit: int | None) -> dict:
    """What the record says of the run, and of the shipped model on the test sets."""
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    log = [json.loads(line) for line in lines]
    translator = Translator.from_pretrained(shipped, engine="torch")
    float32 = Translator.from_pretrained(model, engine="torch")
    own = ("tatoeba", "test", SearchOptions(), limit)
    tried = choose(float32, limit)
    alpha = tried[0]["alpha"]
    return {
        "run": read_json(run / "run.json"),
        "updates": log[-1]["step"],
        "seconds": log[-1]["seconds"],
        "validation": [row for row in log if row["event"] == "validation"][-1],
        "tests": {
            title: evaluate(translator, *place, options(alpha), limit)
            for title, place in TESTS.items()
        },
        "as_shipped": evaluate(translator, *own),
        "float32": evaluate(float32, *own),
        "bytes": sum(file.stat().st_size for file in shipped.iterdir()),
        "tried_on_val": tried,
        "chosen": {"beam_size": 4, "alpha": alpha},
    }


def publish(shipped: Path, text: str, maker: str) -> None:
    """Put the card beside the model, and a manifest that says who made them."""
    (shipped / "card.md").write_text(text, encoding="utf-8")
    write_manifest(shipped, maker)
    print(text)


def keep(run: Path, results: Path, **records: dict) -> None:
    """Write the records, and the run's log beside them."""
    for name, record in records.items():
        save(f"{results.resolve()}/{name}.json", record, "tokenizers", "sacrebleu")
    shutil.copy(run / "log.jsonl", results)


def main(argv: Sequence[str] | None = None) -> None:
    """Ship, score, and write the records."""
    parser = command_line(__doc__)
    parser.add_argument(
        "run", type=folder, nargs="?", help="the folder that the training wrote"
    )
    parser.add_argument("--model", type=folder, help="its folder, if not the run's own")
    parser.add_argument("--trial", type=Path, help="a folder to write in instead")
    given = parser.parse_args(argv)
    results, shipped, limit = RESULTS / "runs" / "tatoeba-en-de", SHIPPED, None
    if not given.run:
        records = (read_json(results / f"{name}.json") for name in RECORDS)
        return publish(shipped, own_card(*records), MAKER)
    if given.trial:
        results, shipped, limit = given.trial, given.trial / "model", TRIAL
    results.mkdir(parents=True, exist_ok=True)
    model = given.model or given.run / "model"
    ship(model, shipped)
    found = {
        "command": "; ".join((*RUNS, command())),
        "earlier_updates": sum(read_json(each)["updates"] for each in EARLIER),
        **measured(given.run, model, shipped, limit),
        "run's_own_on_val": choose(
            Translator.from_pretrained(given.run / "model", engine="torch"), limit
        ),
    }
    typed, ordinary = measure(shipped, limit), two_hundred.measure(shipped, limit)
    publish(shipped, own_card(found, typed, ordinary), MAKER)
    keep(given.run, results, record=found, robustness=typed, two_hundred=ordinary)


if __name__ == "__main__":
    main()
