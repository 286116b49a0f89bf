"""Tokens per sentence of Multi30k for vocabularies of growing size, recorded in results/vocabulary.json.

Run: ANNOTATED_TRANSFORMER_DATA=... python benchmarks/vocabulary.py   (without the variable, Multi30k is downloaded)
"""

import json
import time
from pathlib import Path

from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.tokenizer import moses_tokenize, train_tokenizer

SIZES = [250, 500, 1000, 2000, 4000, 8000, 16000]


def tokens_per_sentence(pairs: list[tuple[str, str]], size: int, joint: bool) -> tuple[float, float]:
    """Mean number of tokens, [eos] not counted, of the English and the German side."""
    tokenizer = train_tokenizer(pairs, "en", "de", size, joint=joint)
    sides = tokenizer.encode_source([en for en, _ in pairs]), tokenizer.encode_target([de for _, de in pairs])
    return tuple(sum(len(row) - 1 for row in rows) / len(pairs) for rows in sides)


if __name__ == "__main__":
    start = time.perf_counter()
    pairs = list(load_corpus("multi30k", "train", "en", "de"))
    shared = [tokens_per_sentence(pairs, size, joint=True) for size in SIZES]
    separate = [tokens_per_sentence(pairs, size, joint=False) for size in SIZES]
    curves = {
        "German, shared": [de for _, de in shared],
        "German, its own": [de for _, de in separate],
        "English, shared": [en for en, _ in shared],
        "English, its own": [en for en, _ in separate],
    }
    words = {
        name: sum(len(line.split()) for line in moses_tokenize([pair[side] for pair in pairs], lang)) / len(pairs)
        for side, (name, lang) in enumerate([("English", "en"), ("German", "de")])
    }
    record = {"command": "python benchmarks/vocabulary.py", "corpus": "Multi30k train, en and de", "sizes": SIZES,
              "curves": curves, "words": words, "seconds": round(time.perf_counter() - start, 1)}  # fmt: skip
    path = Path(__file__).parents[1] / "results" / "vocabulary.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))
