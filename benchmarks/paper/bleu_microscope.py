"""One output file under every convention of BLEU, for eleven systems of WMT 2017.

    python -m benchmarks.paper.bleu_microscope

Needs ANNOTATED_TRANSFORMER_DATA, the folder of the corpora with the outputs in
reference/wmt-system-outputs. Besides the conventions of `scores` there are those that
the paper's authors and their readers used, and three mistakes that people make. Takes
about four minutes and writes results/paper/bleu-microscope.json, which
nbs/translation/bleu.ipynb shows.
"""

import json
from collections.abc import Sequence
from statistics import mean

from sacrebleu.metrics import BLEU
from sacremoses import MosesPunctNormalizer

from annotated_transformer.data.pair_tokenizer import moses_tokenize
from annotated_transformer.translation.bleu import moses_tokens, split_compounds
from benchmarks.paper.newstest2017_bleu import read_lines
from benchmarks.record import command_line, corpora, save

Files = list[list[str]]  # an output and its reference
FIELDS = {
    "13a": "sacreBLEU's default",
    "13a, lower-cased": "the same, case ignored",
    "intl": "sacreBLEU, tokenize=intl",
    "intl, lower-cased": "the same, case ignored",
    "Moses": "sacremoses tokens, counted as multi-bleu.perl does",
    "Moses, lower-cased": "lower-cased, punctuation normalised, then Moses tokens",
    "Moses, compounds split": 'Moses tokens, then (\\S)-(\\S) → "$1 ##AT##-##AT## $2"',
    "the authors' script": "Unicode punctuation replaced in output and reference, "
    "Moses tokens, compounds split: get_ende_bleu.sh of Tensor2Tensor",
    "characters": "sacreBLEU, tokenize=char",
    "spaces only": "whatever stands between spaces in the plain text",
    "tokenised twice": "13a of Moses tokens on both sides",
    "one side tokenised": "13a of plain output against a reference in Moses tokens",
    "mean of sentences": "the mean of each sentence's BLEU 13a, which isn't BLEU",
}


def counted(files: Files, tokenize: str = "none", **options: bool) -> float:
    """BLEU of an output and its reference, unsmoothed where they come as tokens."""
    smooth = "none" if tokenize == "none" else "exp"
    metric = BLEU(tokenize=tokenize, smooth_method=smooth, force=True, **options)
    return metric.corpus_score(files[0], [files[1]]).score


def straight(lines: list[str]) -> list[str]:
    """Typographic quotes, dashes and the like as ASCII, as the authors' script has
    them.
    """
    normalizer = MosesPunctNormalizer("en")
    return [normalizer.replace_unicode_punct(line) for line in lines]


def split(files: Files) -> Files:
    """Moses tokens with hyphenated compounds in three."""
    return [[split_compounds(line) for line in file] for file in files]


def mean_of_sentences(files: Files) -> float:
    """The mean of each sentence's own BLEU 13a."""
    metric = BLEU(effective_order=True)
    pairs = zip(*files, strict=True)
    return mean(metric.sentence_score(line, [other]).score for line, other in pairs)


def microscope(output: list[str], reference: list[str]) -> dict[str, float]:
    """BLEU of one output file by every convention, in the order of `FIELDS`."""
    plain = [output, reference]
    moses = [moses_tokens(file, "en") for file in plain]
    lowered = [moses_tokenize(file, "en", lowercase=True) for file in plain]
    replaced = [moses_tokens(straight(file), "en") for file in plain]
    values = [
        counted(plain, "13a"),
        counted(plain, "13a", lowercase=True),
        counted(plain, "intl"),
        counted(plain, "intl", lowercase=True),
        counted(moses),
        counted(lowered),
        counted(split(moses)),
        counted(split(replaced)),
        counted(plain, "char"),
        counted(plain),
        counted(moses, "13a"),
        counted([output, moses[1]], "13a"),
        mean_of_sentences(plain),
    ]
    rounded = [round(value, 4) for value in values]
    return dict(zip(FIELDS, rounded, strict=True))


def main(argv: Sequence[str] | None = None) -> None:
    """Score the systems, best first, and write the record."""
    parser = command_line(__doc__)
    parser.parse_args(argv)
    data = corpora(parser)
    listed = data / "reference/wmt-system-outputs/published-scores.json"
    entries = json.loads(listed.read_text(encoding="utf-8"))
    entries.sort(key=lambda entry: -entry["published"]["bleu"])
    reference = read_lines(data / entries[0]["reference"])
    systems = {
        entry["system"].split(".")[1]: microscope(
            read_lines(data / entry["file"]), reference
        )
        for entry in entries
    }
    found = {
        "what": "newstest2017 German to English, 3004 sentences, eleven systems",
        "fields": FIELDS,
        "systems": systems,
    }
    save("paper/bleu-microscope.json", found, "sacrebleu", "sacremoses")


if __name__ == "__main__":
    main()
