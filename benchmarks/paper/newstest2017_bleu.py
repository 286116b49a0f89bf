"""Score the eleven newstest2017 German-English system outputs by every convention.

    python -m benchmarks.paper.newstest2017_bleu

Needs ANNOTATED_TRANSFORMER_DATA, the folder of the corpora with the outputs in
reference/wmt-system-outputs. Takes about two minutes and writes
results/paper/newstest2017-systems.json, which nbs/translation/bleu.ipynb plots.
"""

import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from sacrebleu.metrics import BLEU

from annotated_transformer.translation.bleu import moses_tokens
from annotated_transformer.translation.scores import scores
from benchmarks.record import command_line, corpora, save
from benchmarks.significance import compare


def read_lines(path: Path) -> list[str]:
    """The lines of a gzipped file, split at line feeds only."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def join(lines: list[str]) -> list[str]:
    """Every two lines as one."""
    return [
        f"{first} {second}"
        for first, second in zip(lines[::2], lines[1::2], strict=True)
    ]


def score_systems(data: Path) -> dict:
    """Scores, intervals and neighbour comparisons of all systems, best system first."""
    entries = json.loads(
        (data / "reference/wmt-system-outputs/published-scores.json").read_text(
            encoding="utf-8"
        )
    )
    entries.sort(key=lambda entry: -entry["published"]["bleu"])
    references = read_lines(data / entries[0]["reference"])
    outputs = {
        entry["system"].split(".")[1]: read_lines(data / entry["file"])
        for entry in entries
    }
    moses, twice = moses_tokens(references, "en"), BLEU(force=True)
    systems = {}
    for entry, (name, output) in zip(entries, outputs.items(), strict=True):
        boot = BLEU().corpus_score(output, [references], n_bootstrap=1000)
        systems[name] = {
            "submission": entry["system"],
            "published": entry["published"]["bleu"],
            "interval": round(boot._ci, 4),
            "joined_in_pairs": round(
                BLEU().corpus_score(join(output), [join(references)]).score, 4
            ),
            "tokenised_twice": round(
                twice.corpus_score(moses_tokens(output, "en"), [moses]).score, 4
            ),
            "scores": {
                score.name: _rounded(asdict(score))
                for score in scores(output, references, "en")
            },
        }
    neighbours = [
        {
            "baseline": a,
            "system": b,
            "p_value": round(compare(outputs[a], outputs[b], references).p_value, 6),
        }
        for a, b in pairwise(outputs)
    ]
    return {"systems": systems, "neighbours": neighbours}


def _rounded(score: dict) -> dict:
    del score["name"]
    return {
        **score,
        "value": round(score["value"], 4),
        "precisions": [round(p, 4) for p in score["precisions"]],
    }


FIELDS = {
    "published": "mteval-v13a -c, as listed in sacreBLEU's test.sh",
    "interval": "half the width of the 95 % bootstrap interval of BLEU 13a, 1000 draws",
    "joined_in_pairs": "BLEU 13a with every two lines joined into one, in output and "
    "reference",
    "tokenised_twice": "BLEU 13a of Moses-tokenised output and reference",
    "p_value": "approximate randomisation of BLEU 13a, 10,000 trials, each system "
    "against the next better one",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Score the systems and write the record."""
    parser = command_line(__doc__)
    parser.parse_args(argv)
    data = corpora(parser)
    what = "eleven WMT17 system outputs, newstest2017 German to English, 3004 sentences"
    found = {"what": what, "fields": FIELDS} | score_systems(data)
    save("paper/newstest2017-systems.json", found, "sacrebleu", "sacremoses")


if __name__ == "__main__":
    main()
