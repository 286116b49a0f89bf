"""What becomes of numbers, dates, prices and addresses in ordinary sentences.

    python -m benchmarks.paper.two_hundred

Two hundred everyday sentences, written before any of them was translated, stand in
two_hundred.tsv, each with the forms in which its things may arrive in German: `|`
between those that do, `+` between parts that have to stand there both, `*` for any
ending, and of a telephone number its digits. The shipped model translates them with the
package's own settings: first the best hypothesis of each alone, as the search ranks
them, then as `translate` does, which takes another where that has what the best lacks.
Counted are the things that arrive, the sentences that lose one, and of the latter those
of which `missing` warns; it warns falsely of a sentence that has everything. One minute
of one core. Writes
results/runs/tatoeba-en-de/two_hundred.json; `python -m benchmarks.paper.everyday` then
writes the model's card anew.
"""

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from annotated_transformer import load
from annotated_transformer.model_names import SHIPPED
from annotated_transformer.translation.missing import missing
from benchmarks.record import command_line, save

FILE = Path(__file__).with_name("two_hundred.tsv")
PLACE = "runs/tatoeba-en-de/two_hundred.json"


def sentences(limit: int | None = None) -> list[tuple[str, list[str]]]:
    """The sentences, each with its things."""
    lines = FILE.read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines[:limit]]
    return [(source, things.split(" ; ")) for source, things in rows]


def pattern(kind: str, form: str) -> str:
    """The regular expression of one form of a thing."""
    if kind == "phone":
        return rf"(?<!\d){'[ ()/.–-]*'.join(form)}(?!\d)"
    if kind in ("email", "web"):
        return rf"(?<![\w.]){re.escape(form)}(?![\w/]|[.-]\w)"
    word = re.escape(form.removesuffix("*"))
    if not re.search(r"\d", form):
        return rf"(?i){word}" if form[-1] in "*€£$" else rf"(?i)(?<!\w){word}(?!\w)"
    if kind in ("date", "time"):  # of which 06 Uhr is one
        return rf"(?<!\d)0?{word}(?!\d)"
    return rf"(?<!\d)(?<!\d[.,]){word}(?![.,:]?\d)"


def arrives(thing: str, translation: str) -> bool:
    """Whether a thing stands in a translation, in one of its forms."""
    kind, _, parts = thing.partition(":")
    kinds = [kind, "sign"]
    return all(
        any(re.search(pattern(kind, form), translation) for form in part.split("|"))
        for kind, part in zip(kinds, parts.split(" + "), strict=False)
    )


def judged(rows: list[tuple[str, list[str]]], outputs: list[str]) -> dict:
    """What arrives in these translations, and which losses `missing` tells."""
    things, here, told = Counter[str](), Counter[str](), Counter[tuple[bool, bool]]()
    failures = []
    for (source, wanted), output in zip(rows, outputs, strict=True):
        lost = [thing for thing in wanted if not arrives(thing, output)]
        things.update(thing.partition(":")[0] for thing in wanted)
        here.update(thing.partition(":")[0] for thing in wanted if thing not in lost)
        warned = missing(source, output)
        told[bool(lost), bool(warned)] += 1
        if lost or warned:
            row = {"source": source, "output": output, "lost": lost, "warned": warned}
            failures.append(row)
    return {
        "things": things.total(),
        "arrive": round(here.total() / things.total(), 3),
        "kinds": {kind: f"{here[kind]} of {things[kind]}" for kind in things},
        "sentences_that_lose": told[True, True] + told[True, False],
        "of_them_warned": told[True, True],
        "false_warnings": told[False, True],
        "failures": failures,
    }


def measure(model: str | Path, limit: int | None = None) -> dict:
    """Both with one model, in one thread; `limit` is for a trial."""
    torch.set_num_threads(1)
    translator, rows = load(model, device="cpu", engine="torch"), sentences(limit)
    texts = [source for source, _ in rows]
    with warnings.catch_warnings(action="ignore"):
        ranked = translator.n_best(texts, beam_size=4, n_best=4)
        chosen = translator.translate(texts)
    return {
        "sentences": len(texts),
        "settings": {"beam_size": 4, "alpha": 0.6},
        "best_hypothesis": judged(rows, [best.text for best, *_ in ranked]),
        "chosen": judged(rows, chosen),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and write the record."""
    command_line(__doc__).parse_args(argv)
    found = measure(SHIPPED)
    save(PLACE, found, "tokenizers")
    for name in ("best_hypothesis", "chosen"):
        print({key: value for key, value in found[name].items() if key != "failures"})


if __name__ == "__main__":
    main()
