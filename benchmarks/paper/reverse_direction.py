"""Measure the translator of the reverse direction, and put it into models/.

    python -m benchmarks.paper.augmentation runs/german --langs de en
    annotated-transformer train runs/german/train … --out runs/reverse
    python -m benchmarks.paper.reverse_direction runs/reverse

The settings of the run are RUN below. All is measured as by `benchmarks.paper.everyday`
and `benchmarks.paper.robustness`, with German for English and the other way round, and
in German sentences of its own; there are no sixty sentences. Takes eight minutes on two
cores. Writes record.json, robustness.json and log.jsonl in results/runs/tatoeba-de-en,
and models/tatoeba-de-en, outside the package, with its card; with `--trial FOLDER` all
of it there, from a few sentences of each split.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from annotated_transformer.files import read_json
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import bleu, sides
from benchmarks.paper.everyday import TRIAL, card, keep, measured, publish, ship
from benchmarks.paper.robustness import (
    SENTENCES,
    copying,
    noise,
    numbers,
    translated,
    unseen_names,
)
from benchmarks.record import RESULTS, ROOT, command, command_line, folder

NAME = "tatoeba-de-en"
FORWARD = RESULTS / "runs" / "tatoeba-en-de-second" / "record.json"
RUN = (
    "python -m benchmarks.paper.augmentation runs/german --langs de en; "
    "annotated-transformer train runs/german/train --src de --tgt en "
    "--valid runs/german/val --from tatoeba-en-de --set steps=2400 "
    "--set batch_tokens=8192 --set precision=bf16 --set warmup=400 "
    "--set peak=0.0015 --set log_every=50 --set save_every=50 "
    "--set keep=8 --set patience=0"
)
PERSONS = (
    "Ich kenne {} seit Jahren.",
    "{} hat wieder die Schlüssel vergessen.",
    "Niemand versteht {}.",
    "Wir warten auf {}.",
)
# Sentences for names and numbers; none is in frames.tsv.
CARRIERS = {
    "first name": PERSONS,
    "surname": (
        "Herr {} ist unser Nachbar.",
        "Ich habe einen Brief von Frau {} bekommen.",
        "Spricht Dr. {} Deutsch?",
    ),
    "city": (
        "Wir haben den ganzen Winter in {} verbracht.",
        "{} ist nicht weit von der Grenze.",
        "Mein Onkel arbeitet in {}.",
    ),
    "invented": PERSONS,
    "number": ("Auf dem Dach saßen {} Vögel.", "Er hat {} Briefe geschrieben."),
    "price": ("Der Stuhl kostet {} $.", "Sie hat {} € für das Fahrrad bezahlt."),
    "time": ("Der Film beginnt um {} Uhr.", "Weck mich bitte um {}."),
    "year": ("Die Brücke wurde {} gebaut.", "Im Jahr {} zog sie aufs Land."),
    "email": ("Ihre Adresse ist {}.", "Schick die Fotos bitte an {}."),
}
CARD = """# tatoeba-de-en

Translates everyday sentences from German to English. {layers} + {layers} layers,
d_model {d_model}, {pieces} shared pieces. It began with the weights of tatoeba-en-de,
the other direction, after its {earlier} updates, and made {steps} of its own on two
cores; the weights are stored in one byte each.

**Data.** Those of tatoeba-en-de, the other way round: 163,957 sentence pairs of Tatoeba
(the release of 2018-05-13 on www.manythings.org/anki) and 40,989 phrases of the
package's own phrasebook, six times over and each time varied, with slips in the German
alone. Near copies of the test sentences were left out before, as far as a sketch of
their words finds them.

**Licence.** The sentences are by the contributors of tatoeba.org and come under CC BY
2.0 FR (https://creativecommons.org/licenses/by/2.0/fr/), collected by
www.manythings.org/anki. If you pass the model on, keep this attribution.

**Scores.** BLEU (13a, beam 4) on its own test split: {own} with the package's α =
0.6 ({whole} before the weights were rounded), {tatoeba} with α = {alpha}, which the
validation split chose; {exact} of those are exactly the reference. With the latter
{captions} on Multi30k's test_2016_flickr, captions of photographs, and {news} on
newstest2014 (brevity penalty {short:.2f}); of held-out phrases of the phrasebook
{phrases} are exact.

**What people type**, with α = 0.6. Of names that training never saw {names} come out
whole; {numbers}. What noise does to BLEU, against the same sentences without it:
{noise}.

**What it can't do.** News, long sentences and rare words, as the scores say. Any name
or number may come out wrong: compare them. It invents a translation where it knows
none. Don't rely on it where a mistake would do harm, as in medicine, in law, or about
a person.
"""


def typed(shipped: Path, limit: int | None) -> dict:
    """Noise, names and numbers, with the package's own settings."""
    translator, count = Translator.from_pretrained(shipped), limit or SENTENCES
    english, german = sides("tatoeba", "test")
    chosen = Random("robustness").sample(list(zip(german, english, strict=True)), count)
    sources, targets = ([pair[side] for pair in chosen] for side in (0, 1))
    clean = translated(translator, sources)
    rng, known = Random("copying"), " ".join(sides("tatoeba", "all")[1])
    asked = {
        "names": unseen_names(rng, known, count, CARRIERS),
        "numbers": numbers(rng, count, CARRIERS),
    }
    return {
        "without_noise": {"sentences": count, **bleu(clean, targets)},
        "noise": noise(translator, sources, targets, clean),
        "copying": {what: copying(translator, rows) for what, rows in asked.items()},
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Store, score, and write the records."""
    parser = command_line(__doc__)
    parser.add_argument("run", type=folder, help="the folder that the training wrote")
    parser.add_argument("--trial", type=Path, help="a folder to write in instead")
    given = parser.parse_args(argv)
    results, shipped, limit = RESULTS / "runs" / NAME, ROOT / "models" / NAME, None
    if given.trial:
        results, shipped, limit = given.trial, given.trial / "model", TRIAL
    results.mkdir(parents=True, exist_ok=True)
    ship(given.run / "model", shipped)
    forward = read_json(FORWARD)
    found = {
        "command": f"{RUN} --out {given.run}; {command()}",
        "earlier_updates": forward["earlier_updates"] + forward["updates"],
        **measured(given.run, given.run / "model", shipped, limit),
    }
    robust = typed(shipped, limit)
    updates = {
        name: f"{found[key]:,}"
        for name, key in {"earlier": "earlier_updates", "steps": "updates"}.items()
    }
    text = card(CARD, found, robust, **updates)
    publish(shipped, text, "benchmarks.paper.reverse_direction")
    keep(given.run, results, record=found, robustness=robust)


if __name__ == "__main__":
    main()
