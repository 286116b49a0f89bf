"""Choose, measure and ship the translator for everyday sentences.

    annotated-transformer train tatoeba-en-de --out runs/tatoeba-en-de
    python -m benchmarks.paper.everyday runs/tatoeba-en-de

The corpora are downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds
them. How many of the last checkpoints are averaged, and then the length penalty, are
chosen by BLEU (13a) on the validation split; the test sets are translated once, with
the weights as they are shipped, in bfloat16, and the own test split with float32, too.
Writes results/runs/tatoeba-en-de/record.json and log.jsonl, and
annotated_transformer/models/tatoeba-en-de with its card.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from annotated_transformer.files import read_json, remove_folder, write_manifest
from annotated_transformer.model_names import find_folder
from annotated_transformer.training.averaging import average_checkpoints
from annotated_transformer.training.checkpoint import (
    checkpoints,
    load_model,
    save_model,
)
from annotated_transformer.translation.options import SearchOptions
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import bleu, sides
from benchmarks.record import RESULTS, command, command_line, folder, save

SHIPPED = find_folder("tatoeba-en-de")
TESTS = {
    "Tatoeba": ("tatoeba", "test"),
    "Multi30k": ("multi30k", "test_2016_flickr"),
    "newstest2014": ("wmt14", "test"),
    "phrasebook": ("phrasebook", "test"),
}
TRAINED = "annotated-transformer train tatoeba-en-de"
COUNTS, ALPHAS = (1, 2, 4, 8), (0.2, 0.6, 1.0)
# Sentences that anyone might type, each with the translations that count as right,
# written down before any model had seen them.
ORDINARY = {
    "Where is the station?": [
        "Wo ist der Bahnhof?",
        "Wo ist die Haltestelle?",
        "Wo ist die Station?",
        "Wo befindet sich der Bahnhof?",
    ],
    "I would like a cup of coffee.": [
        "Ich möchte eine Tasse Kaffee.",
        "Ich hätte gern eine Tasse Kaffee.",
        "Ich hätte gerne eine Tasse Kaffee.",
        "Ich möchte gern eine Tasse Kaffee.",
        "Ich möchte gerne eine Tasse Kaffee.",
    ],
    "My brother is older than me.": [
        "Mein Bruder ist älter als ich.",
    ],
    "It is raining today.": [
        "Heute regnet es.",
        "Es regnet heute.",
    ],
    "Can you help me, please?": [
        "Kannst du mir bitte helfen?",
        "Können Sie mir bitte helfen?",
        "Könnt ihr mir bitte helfen?",
        "Könntest du mir bitte helfen?",
        "Könnten Sie mir bitte helfen?",
        "Kannst du mir helfen, bitte?",
        "Können Sie mir helfen, bitte?",
    ],
    "We went to the cinema yesterday.": [
        "Wir sind gestern ins Kino gegangen.",
        "Gestern sind wir ins Kino gegangen.",
        "Wir gingen gestern ins Kino.",
        "Gestern gingen wir ins Kino.",
        "Wir waren gestern im Kino.",
        "Gestern waren wir im Kino.",
    ],
    "The book is on the table.": [
        "Das Buch liegt auf dem Tisch.",
        "Das Buch ist auf dem Tisch.",
    ],
    "I don't know where she lives.": [
        "Ich weiß nicht, wo sie wohnt.",
        "Ich weiß nicht, wo sie lebt.",
    ],
    "How much does this shirt cost?": [
        "Wie viel kostet dieses Hemd?",
        "Wieviel kostet dieses Hemd?",
        "Was kostet dieses Hemd?",
        "Wie viel kostet das Hemd?",
        "Was kostet das Hemd?",
    ],
    "The children are playing in the garden.": [
        "Die Kinder spielen im Garten.",
        "Die Kinder spielen gerade im Garten.",
    ],
}


CARD = """# tatoeba-en-de

Translates everyday sentences from English to German. {layers} + {layers} layers,
d_model {d_model}, {pieces} shared pieces, {updates} updates on two cores; the weights
are stored as bfloat16.

**Data.** 163,957 sentence pairs of Tatoeba (the release of 2018-05-13 on
www.manythings.org/anki) and 40,989 phrases of the package's own phrasebook. Near copies
of the test sentences were left out.

**Licence.** The sentences are by the contributors of tatoeba.org and come under CC BY
2.0 FR (https://creativecommons.org/licenses/by/2.0/fr/), collected by
www.manythings.org/anki. If you pass the model on, keep this attribution.

**Scores.** BLEU (13a, beam 4, α = {alpha}): {tatoeba} on its own test split, of which
{exact} are exactly the reference ({float32} with float32 weights); {captions} on
Multi30k's test_2016_flickr, captions of photographs; {news} on newstest2014. Of
held-out phrases of the phrasebook {phrases} are exact, and {right} of {asked} ordinary
sentences right.

**What it can't do.** News, long sentences and rare words, as the scores say; text of
several sentences at once, beyond what it can cut at full stops. It chooses between du,
Sie and ihr as it likes, and invents a translation where it knows none. Don't rely on it
where a mistake would do harm.
"""


def evaluate(
    translator: Translator,
    corpus: str,
    split: str,
    options: SearchOptions,
    limit: int | None = None,
) -> dict:
    """BLEU (13a) and the share of exact translations of a split."""
    sources, targets = sides(corpus, split, limit)
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


def ordinary(translator: Translator, found: SearchOptions) -> list[dict]:
    """The ordinary sentences, and whether each was translated right."""
    outputs = translator.translate(list(ORDINARY), found)
    return [
        {"source": source, "output": output, "right": output in right}
        for (source, right), output in zip(ORDINARY.items(), outputs, strict=True)
    ]


def choose(run: Path, scratch: Path, limit: int | None) -> tuple[int, float, list]:
    """How many checkpoints and which length penalty are best on the val split."""
    found, rows = checkpoints(run), []

    def tried(count: int, alpha: float) -> float:
        translator = Translator.from_pretrained(scratch / f"{count}", engine="torch")
        result = evaluate(translator, "tatoeba", "val", options(alpha), limit)
        row = {"checkpoints": count, "alpha": alpha, "bleu": result["bleu"]}
        rows.append(row)
        return result["bleu"]

    counts = [count for count in COUNTS if count <= len(found)]
    for count in counts:
        average_checkpoints(found[-count:], scratch / f"{count}")
    count = max(counts, key=lambda each: tried(each, 0.6))
    others = {alpha: tried(count, alpha) for alpha in ALPHAS if alpha != 0.6}
    others[0.6] = max(row["bleu"] for row in rows[: len(counts)])
    return count, max(others, key=lambda alpha: others[alpha]), rows


def ship(model: Path) -> None:
    """Put the model among the shipped ones in bfloat16."""
    if SHIPPED.exists():
        remove_folder(SHIPPED)
    save_model(SHIPPED, *load_model(model), dtype=torch.bfloat16)


def card(found: dict) -> str:
    """What the shipped model says about itself, with the scores of the record."""
    tests, sizes = found["tests"], found["run"]["architecture"]
    right = sum(row["right"] for row in found["ordinary"])
    return CARD.format(
        layers=sizes["N"],
        d_model=sizes["d_model"],
        pieces=f"{sizes['tgt_vocab_size']:,}",
        updates=f"{found['updates']:,}",
        alpha=found["chosen"]["alpha"],
        tatoeba=tests["Tatoeba"]["bleu"],
        exact=f"{tests['Tatoeba']['exact']:.1%}".replace("%", " %"),
        float32=found["float32"]["bleu"],
        captions=tests["Multi30k"]["bleu"],
        news=tests["newstest2014"]["bleu"],
        phrases=f"{tests['phrasebook']['exact']:.1%}".replace("%", " %"),
        right=right,
        asked=len(found["ordinary"]),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Choose on the validation split, ship, score the tests, write the record."""
    parser = command_line(__doc__)
    parser.add_argument("run", type=folder, help="the folder that the training wrote")
    parser.add_argument("--limit", type=int, help="of each split, for a trial")
    given = parser.parse_args(argv)
    run, limit = given.run, given.limit
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    log = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        count, alpha, rows = choose(run, scratch, limit)
        exact = Translator.from_pretrained(scratch / f"{count}", engine="torch")
        as_trained = evaluate(exact, "tatoeba", "test", options(alpha), limit)
        ship(scratch / f"{count}")
    translator = Translator.from_pretrained(SHIPPED, engine="torch")
    tests = {
        title: evaluate(translator, *place, options(alpha), limit)
        for title, place in TESTS.items()
    }
    found = {
        "command": f"{TRAINED} --out {run}; {command()}",
        "run": read_json(run / "run.json"),
        "updates": log[-1]["step"],
        "seconds": log[-1]["seconds"],
        "validation": [row for row in log if row["event"] == "validation"][-1],
        "tried_on_val": rows,
        "chosen": {"checkpoints": count, "beam_size": 4, "alpha": alpha},
        "tests": tests,
        "float32": as_trained,
        "ordinary": ordinary(translator, options(alpha)),
        "bytes": sum(file.stat().st_size for file in SHIPPED.iterdir()),
    }
    (SHIPPED / "card.md").write_text(card(found), encoding="utf-8")
    write_manifest(SHIPPED, "benchmarks.paper.everyday")
    save("runs/tatoeba-en-de/record.json", found, "tokenizers", "sacrebleu")
    shutil.copy(run / "log.jsonl", RESULTS / "runs" / "tatoeba-en-de" / "log.jsonl")
    for title, result in {**tests, "Tatoeba, float32": as_trained}.items():
        print(title, result["bleu"], result["exact"])
    print(sum(row["right"] for row in found["ordinary"]), "of", len(ORDINARY), "right")


if __name__ == "__main__":
    main()
