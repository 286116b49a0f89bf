"""What eight bits change, on a processor that adds products exactly and on one that may
not.

    python -m benchmarks.speed.eight_bits

CTranslate2 has oneDNN multiply its 8-bit numbers. Without the instructions of VNNI two
products are added in 16 bits, where the sum may be cut off (oneDNN's "Nuances of int8
computations"). oneDNN reads from the environment which instructions it may use, so each
limit has a process of its own: AVX2, AVX-512 without VNNI, and with it. Translated are
Tatoeba's test split, English to German, by the shipped model, and 220 phrases by the
phrasebook's, by greedy search. The interval is of the difference in BLEU, 8 bits minus
32, in 1,000 draws of sentences; p counts 10,000 trials of approximate randomisation.
Of the translations that change, those nearer to their reference have the larger chrF;
the first three of the split are kept. How far a score moves is as in
benchmarks.speed.serving. Needs the corpora, and Linux on a processor with AVX-512 VNNI;
three minutes of a core. Writes speed/eight-bits.json in results.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from sacrebleu import sentence_chrf

from annotated_transformer import load
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.interop.ctranslate2 import export_ctranslate2
from benchmarks.measure import alone, sides
from benchmarks.paper.search_grid import bleu, counts
from benchmarks.record import command_line, save
from benchmarks.significance import compare
from benchmarks.speed.serving import AT_ONCE, moved, translate

FORMATS, DRAWS, TRIALS, PHRASES = ("float32", "int8"), 1_000, 10_000, 220
LIMITS = {
    "AVX2": "AVX2",
    "AVX-512 without VNNI": "AVX512_CORE",
    "AVX-512 with VNNI": "AVX512_CORE_VNNI",
}


def changed(model: str, texts: list[str]) -> tuple[list[list[str]], list[list[str]]]:
    """Translations in each format, and the rows that differ: source, 32 bits, 8."""
    outputs = [
        translate(
            load(model, device="cpu", engine="ctranslate2", dtype=bits), texts, AT_ONCE
        )
        for bits in FORMATS
    ]
    rows = zip(texts, *outputs, strict=True)
    return outputs, [list(row) for row in rows if row[1] != row[2]]


def scores(outputs: list[list[str]], targets: list[str]) -> dict[str, Any]:
    """BLEU of both, their difference, its interval, and the p-value."""
    first, second = tables = [counts(each, targets) for each in outputs]
    size = len(targets)
    draws = np.random.default_rng(0).multinomial(size, [1 / size] * size, DRAWS)
    apart = [bleu(draw @ second) - bleu(draw @ first) for draw in draws]
    whole = [bleu(table.sum(0)) for table in tables]
    return {
        "bleu": [round(each, 2) for each in whole],
        "difference": round(whole[1] - whole[0], 2),
        "interval": np.percentile(apart, [2.5, 97.5]).round(2).tolist(),
        "p": round(compare(*outputs, targets, samples=TRIALS).p_value, 3),
    }


def moves(outputs: list[list[str]], targets: list[str]) -> dict[str, int]:
    """How many translations that 8 bits change come nearer to their reference."""
    far = [
        sentence_chrf(eight, [target]).score - sentence_chrf(whole, [target]).score
        for whole, eight, target in zip(*outputs, targets, strict=True)
        if whole != eight
    ]
    return {"nearer": sum(x > 0 for x in far), "farther": sum(x < 0 for x in far)}


def measure() -> dict[str, Any]:
    """What eight bits change in this process."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="line .* the translation lacks")
    pairs = sides("tatoeba", "test")
    outputs, rows = changed("tatoeba-en-de", pairs[0])
    plain = load(device="cpu", engine="plain")
    with TemporaryDirectory() as name:
        folder = Path(name) / "int8"
        export_ctranslate2(plain.model, plain.tokenizer, folder, "int8")
        far = moved(plain, folder, pairs)
    phrases = [source for source, _ in phrasebook("en", "de", "test", PHRASES)]
    return {
        "changed": len(rows),
        **moves(outputs, pairs[1]),
        "changed_first": rows[:3],
        **scores(outputs, pairs[1]),
        "moved": float(f"{far:.2g}"),
        "changed_phrases": changed("phrasebook-en-de", phrases)[1],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure under each limit, and write the record."""
    parser = command_line(__doc__)
    parser.parse_args(arguments)
    about = Path("/proc/cpuinfo")
    if not about.exists() or "avx512_vnni" not in about.read_text(encoding="utf-8"):
        parser.error("this needs Linux on a processor with AVX-512 VNNI")
    found = {
        name: alone(measure, ONEDNN_MAX_CPU_ISA=limit, CT2_USE_MKL="0")
        for name, limit in LIMITS.items()
    }
    record = {"sentences": len(sides("tatoeba", "test")[0]), "phrases": PHRASES}
    record |= {"limits": LIMITS, "processors": found}
    save("speed/eight-bits.json", record, "ctranslate2", "sacrebleu")


if __name__ == "__main__":
    main()
