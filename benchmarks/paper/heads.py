"""What the everyday model's heads look at, and what each of them is worth.

    python -m benchmarks.paper.heads [--limit 500]

Three measurements with the weights of the wheel's model `tatoeba-en-de`. Where each
head looks, on Tatoeba's test sentences with their references. How well attention to the
source aligns words, on the hand-aligned ComTrans sample of Europarl (files
wmt/europarl-comtrans.de-en.* below ANNOTATED_TRANSFORMER_DATA): pairs of at most 20
words, beside the diagonal and IBM model 1, learned from the whole sample. And BLEU
(13a) of greedy translations with one head, or one layer's heads, turned off. Writes
results/paper/heads.json, which nbs/translation/heads.ipynb shows.
"""

import os
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from annotated_transformer import load
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import moses_detokenize
from annotated_transformer.data.text_files import read_lines
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.translation.attention_weights import Attention
from annotated_transformer.translation.heads import (
    Links,
    align,
    alignment_error_rate,
    mean_distance,
    row_entropy,
    share_at,
    without_heads,
    words_of_tokens,
)
from annotated_transformer.translation.translator import Translator
from benchmarks.record import command_line, save
from benchmarks.significance import compare

MODEL, LONGEST = "tatoeba-en-de", 20
MEASURES: dict[str, Callable[[Tensor], Tensor]] = {
    "entropy": row_entropy,
    "distance": mean_distance,
    "before": lambda weights: share_at(weights, -1),
    "same": lambda weights: share_at(weights, 0),
    "after": lambda weights: share_at(weights, 1),
    "end": lambda weights: weights[..., -1].mean(-1),
}
Pair = tuple[list[str], list[str], Links]


def where_heads_look(translator: Translator, pairs: list[tuple[str, str]]) -> dict:
    """The mean of each measure by kind, layer and head."""
    found = [translator.attention(*pair) for pair in pairs]

    def mean(kind: str, measure: Callable[[Tensor], Tensor]) -> list:
        rows = torch.stack([measure(getattr(each, kind)) for each in found])
        return [[round(x, 3) for x in layer] for layer in rows.mean(0).tolist()]

    return {
        kind: {name: mean(kind, measure) for name, measure in MEASURES.items()}
        for kind in ("encoder", "decoder", "cross")
    }


def aligned_pairs() -> Iterator[Pair]:
    """English words, German words and the links between them, numbered from 0."""
    folder = Path(os.environ["ANNOTATED_TRANSFORMER_DATA"], "wmt")
    sides = (
        read_lines(folder / f"europarl-comtrans.de-en.{end}.gz")
        for end in ("en", "de", "align")
    )
    for english, german, links in zip(*sides, strict=True):
        pairs = (link.split("-") for link in links.split())
        yield english.split(), german.split(), {(int(e), int(g)) for g, e in pairs}


def attention_of(translator: Translator, pair: Pair) -> tuple[Attention, list, list]:
    """The attention for a pair, and the number of each token's word on both sides.

    Raises: ValueError where pieces and words don't spell the same text.
    """
    english, german = (" ".join(side) for side in pair[:2])
    (source,), (target,) = (
        moses_detokenize([english], "en"),
        moses_detokenize([german], "de"),
    )
    found = translator.attention(source, target, strict=True)
    return (
        found,
        words_of_tokens(found.source[:-1], pair[0]),
        words_of_tokens(found.target[:-1], pair[1]),
    )


def ibm_model_1(pairs: list[Pair], rounds: int = 5) -> Callable[[Pair], Links]:
    """Aligns each German word with the English one that it most probably translates.

    The probabilities are learned from the pairs by EM (Brown et al., 1993); no null
    word.
    """
    english, german = (
        {word: i for i, word in enumerate(sorted({w for p in pairs for w in p[side]}))}
        for side in (0, 1)
    )
    codes, place = [], 0
    for source, target, _ in pairs:
        e = np.array([english[word] for word in source])
        g = np.array([german[word] for word in target])
        rows = place + np.arange(len(g))
        place += len(g)
        codes.append(
            np.stack([np.tile(e, len(g)), g.repeat(len(e)), rows.repeat(len(e))])
        )
    e, g, row = np.concatenate(codes, axis=1)
    kept, code = np.unique(e * len(german) + g, return_inverse=True)
    of = kept // len(german)
    chance = np.ones(len(kept))
    for _ in range(rounds):
        weight = chance[code]
        weight /= np.bincount(row, weight)[row]
        counts = np.bincount(code, weight)
        chance = counts / np.bincount(of, counts)[of]
    table = dict(zip(kept.tolist(), chance.tolist(), strict=True))

    def best(pair: Pair) -> Links:
        source = [english[word] * len(german) for word in pair[0]]
        return {
            (max(range(len(source)), key=lambda i: table[source[i] + german[word]]), j)
            for j, word in enumerate(pair[1])
        }

    return best


def diagonal(pair: Pair) -> Links:
    """Each German word with the English one at the same share of the sentence."""
    source, target, _ = pair
    return {(int((j + 0.5) * len(source) / len(target)), j) for j in range(len(target))}


def alignments(translator: Translator, limit: int) -> dict:
    """Error rates of heads, layers and baselines on the same pairs."""
    everything = list(aligned_pairs())
    short = [p for p in everything if max(len(p[0]), len(p[1])) <= LONGEST]
    model_1 = ibm_model_1(everything)
    guesses: dict[str, list[Links]] = {}
    wanted: list[Links] = []
    for pair in short:
        if len(wanted) == limit:
            break
        try:
            found, source, target = attention_of(translator, pair)
        except ValueError:  # an unknown character, or another spelling of a mark
            continue
        wanted.append(pair[2])
        guesses.setdefault("diagonal", []).append(diagonal(pair))
        guesses.setdefault("IBM model 1", []).append(model_1(pair))
        for name, weights in rows_of(found.cross).items():
            links = align(weights[:, :-1], source, target)
            guesses.setdefault(name, []).append(links)
    return {
        "pairs": len(wanted),
        "of": len(short),
        "longest": LONGEST,
        "rates": {
            name: round(alignment_error_rate(found, wanted), 4)
            for name, found in guesses.items()
        },
    }


def rows_of(cross: Tensor) -> dict[str, Tensor]:
    """Weights (target, source) by name: heads, means of a layer, and the mean of all.

    "writing" is the row that writes a token, "reading" the one that has just read it.
    """
    layers, heads = cross.shape[:2]
    chosen = {
        f"layer {i + 1}, head {j + 1}": cross[i, j]
        for i, j in product(range(layers), range(heads))
    }
    chosen |= {f"layer {i + 1}": cross[i].mean(0) for i in range(layers)}
    chosen["all"] = cross.mean((0, 1))
    return {f"{name}, writing": w[:-1] for name, w in chosen.items()} | {
        f"{name}, reading": w[1:] for name, w in chosen.items()
    }


def bleu_without(translator: Translator, pairs: list[tuple[str, str]]) -> dict:
    """BLEU (13a) with a head, or a layer's heads, turned off.

    `p` is the chance of a difference as large between two systems that are equally
    good.
    """
    sources, targets = map(list, zip(*pairs, strict=True))
    greedy = SearchOptions(beam_size=1)
    config = translator.model.config
    found: dict[str, dict] = {}
    outputs = {"whole": translator.translate(sources, greedy)}
    groups = [(head,) for head in range(config.h)] + [tuple(range(config.h))]
    for kind, layer in product(("encoder", "decoder", "cross"), range(config.N)):
        for heads in groups:
            name = f"{kind} {layer + 1} {heads[0] + 1 if len(heads) == 1 else 'all'}"
            model = without_heads(translator.model, kind, layer, heads)
            changed = Translator(model, translator.tokenizer)
            outputs[name] = changed.translate(sources, greedy)
    for name, lines in outputs.items():
        both = compare(outputs["whole"], lines, targets, samples=1_000)
        found[name] = {"bleu": round(both.system, 2), "p": round(both.p_value, 3)}
        print(name, found[name], flush=True)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Measure all three and write the record."""
    parser = command_line(__doc__)
    parser.add_argument(
        "--limit", type=int, default=500, help="sentences for each part"
    )
    limit = parser.parse_args(arguments).limit
    translator = load(MODEL, engine="plain", device="cpu")
    pairs = list(islice(load_corpus("tatoeba", "test", "en", "de"), limit))
    record = {"model": MODEL, "sentences": len(pairs)}
    record["look"] = where_heads_look(translator, pairs)
    record["alignment"] = alignments(translator, 4 * limit)
    print(record["alignment"], flush=True)
    record["bleu"] = bleu_without(translator, pairs)
    save("paper/heads.json", record)


if __name__ == "__main__":
    main()
