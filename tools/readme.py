"""Fill the README's table of results from the recorded runs in results/.    readme.py
[--check]

Each row is read from one record; a record that isn't there gives no row. With --check
nothing is written, and the exit status says whether the README is in step.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = (
    "<!-- results: begin (make readme writes this table) -->",
    "<!-- results: end -->",
)
HEAD = ["| what | result | to compare | record |", "|---|---|---|---|"]
# Transformer-Tiny's published scores, lower-cased and Moses-tokenised (Wu et al.,
# 2021).
PUBLISHED = {
    "test_2016_flickr": 41.02,
    "test_2017_flickr": 33.36,
    "test_2017_mscoco": 29.88,
}
NAMES = {"fp32": "float32", "bf16": "bfloat16"}


def phrasebook(record: dict) -> Iterator[list[str]]:
    """The model that the wheel holds."""
    best = max(record["held_out"], key=lambda row: row["exact"])
    yield [
        f"phrasebook en→de, the shipped model ({record['bytes'] / 1e6:.1f} MB), "
        f"{best['pairs']:,} held-out pairs",
        f"{best['exact']:.1%} exact with a beam of {best['beam_size']}",
        f"trained in {record['seconds']:.0f} s ({record['machine']})",
    ]


def multi30k(record: dict) -> Iterator[list[str]]:
    """Three systems of one run on the three test sets, by the convention of the
    published scores.
    """
    systems = (
        ("as the published script averages and searches", record["as_published"]),
        ("as chosen on the validation split", record["chosen"]),
        ("by ten checkpoints where the recipe's patience ends it", record),
    )
    training = record["run"]["training"]
    settings = (
        f"{training['buckets']} buckets, {NAMES[training['precision']]}, seed "
        f"{training['seed']}"
    )
    each = []
    for name, system in systems:
        tests = (
            system["tests"][split]["scores"]["BLEU Moses, lower-cased"]["value"]
            for split in PUBLISHED
        )
        each.append(
            f"{' / '.join(f'{value:.2f}' for value in tests)} {name}, "
            f"{system['end']:,} updates"
        )
    yield [
        f"Multi30k en→de, BLEU lower-cased, {' / '.join(PUBLISHED)}; {settings}",
        "; ".join(each),
        f"{' / '.join(f'{value:.2f}' for value in PUBLISHED.values())} published, "
        "at most 8,000 updates of as many tokens",
    ]


def fresh_clone(record: dict) -> Iterator[list[str]]:
    """How long a newcomer waits."""
    minutes = {name: step["seconds"] / 60 for name, step in record["steps"].items()}
    yield [
        "`make book` in a fresh clone with its set-up, then `make test`, minutes "
        f"({record['machine']})",
        f"{minutes['book, cold']:.1f} and {minutes['test, cold']:.1f}",
        f"once more: {minutes['book, again']:.1f} and {minutes['test, again']:.1f}",
    ]


def newstest(record: dict) -> Iterator[list[str]]:
    """The published scores that our BLEU gives again."""
    systems = record["systems"].values()
    same = sum(
        round(system["scores"]["BLEU 13a"]["value"], 2) == system["published"]
        for system in systems
    )
    yield [
        "newstest2017 de→en system outputs whose BLEU is the published one to the last "
        "digit",
        f"{same} of {len(systems)}",
        "scores of the WMT 2017 campaign",
    ]


def memory(record: dict) -> Iterator[list[str]]:
    """What a WMT-sized corpus needs."""
    text = (
        f"{record['peak_gib']:.2f} GiB at most, "
        f"{record['epoch']['padding_share']:.1%} padding"
    )
    what = (
        f"{record['pairs']:,} pairs with {record['distinct_words'] / 1e6:.1f} "
        "million distinct words"
    )
    yield [
        f"{what}: vocabulary learned, tokenised, batched and read once",
        text,
        "4 GiB allowed",
    ]


def training_step(record: dict) -> Iterator[list[str]]:
    """How many times the speed of the fastest of three libraries, by size."""
    for precision, processor, sizes in (
        ("fp32", "with AMX", record["sizes"]),
        ("bf16", "with AMX", record["sizes"]),
        ("fp32", "without AMX", record["float32"]),
    ):
        ratios = [
            f"{size} {row['against_best_peer'][precision]:.2f} ×"
            for size, row in sizes.items()
        ]
        yield [
            f"training step in {NAMES[precision]} on one core {processor}",
            "; ".join(ratios),
            "fastest of nn.Transformer, MarianMTModel and x-transformers",
        ]


def speeds(cells: list[dict], *engines: str) -> str:
    """Tokens a second of each engine, cell by cell."""
    rows = (
        "; ".join(f"{cell[name]['tokens_per_second']:,.0f}" for cell in cells)
        for name in engines
    )
    return ". ".join(
        f"{name.removeprefix('ours ')}: {row}"
        for name, row in zip(engines, rows, strict=True)
    )


def translation_speed(record: dict) -> Iterator[list[str]]:
    """Tokens a second on one thread, ours in each precision beside the other engines."""
    searches = {
        "greedy, 1": "greedy alone",
        "greedy, 64": "greedy, 64",
        "beam 4, 1": "beam of four alone",
        "beam 4, 64": "beam of four, 64",
    }
    models = {
        "base": "base size, random weights, 24 tokens",
        "trained": "trained Multi30k model",
    }
    for size, model in models.items():
        for processor in ("", ", without AMX"):
            cells = [
                record["threads"]["1"][size + processor][search]["engines"]
                for search in searches
            ]
            yield [
                f"tokens a second on one thread{processor or ', with AMX'}, {model}: "
                f"{'; '.join(searches.values())}",
                speeds(cells, "ours float32", "ours bfloat16", "ours int8"),
                speeds(
                    cells, "Hugging Face", "CTranslate2 float32", "CTranslate2 int8"
                ),
            ]


def race(record: dict) -> Iterator[list[str]]:
    """Minutes of training to 35 BLEU, beside the baseline's, or where that was stopped."""
    ours, theirs = (
        next((point for point in record[side] if point["bleu"] >= 35), record[side][-1])
        for side in ("ours", "hugging_face")
    )
    what = (
        "minutes of training on two cores to 35 BLEU, Multi30k test_2016_flickr "
        "(13a, lower-cased, greedy)"
    )
    yield [
        what,
        f"{ours['seconds'] / 60:.1f} in bfloat16 ({ours['bleu']:.1f} BLEU)",
        f"Hugging Face's Trainer in float32: {theirs['bleu']:.1f} BLEU after "
        f"{theirs['seconds'] / 60:.1f}",
    ]


ROWS = {
    "runs/phrasebook-en-de/record.json": phrasebook,
    "runs/multi30k-en-de-tiny-ends/record.json": multi30k,
    "runs/multi30k-en-de-tiny-seed2/record.json": multi30k,
    "runs/multi30k-en-de-tiny-seed3/record.json": multi30k,
    "paper/newstest2017-systems.json": newstest,
    "scale/memory-5m-pairs.json": memory,
    "speed/training-step.json": training_step,
    "speed/time-to-quality.json": race,
    "speed/translation-speed.json": translation_speed,
    "speed/fresh-clone.json": fresh_clone,
}


def table() -> str:
    """The table of all records that exist."""
    lines = list(HEAD)
    for name, rows in ROWS.items():
        path = ROOT / "results" / name
        if path.exists():
            for row in rows(json.loads(path.read_text(encoding="utf-8"))):
                lines.append(f"| {' | '.join(row)} | [{name}](results/{name}) |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Write or check the table."""
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    new = f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"
    if "--check" not in arguments:
        path.write_text(new, encoding="utf-8")
    elif new != text:
        print(
            "README.md is not in step with results/: run make readme", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
