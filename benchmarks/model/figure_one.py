"""What passes through Figure 1, box by box.

    python -m benchmarks.model.figure_one

The shipped phrasebook model reads the running example and the beginning of its
translation. Each step holds the box of the figure, the shape of what leaves it, and the
token that the output layer would make of every position's vector; an attention also
the weights of its heads, and the last step the likeliest next tokens. Takes seconds and
writes results/model/figure-one.json, which nbs/model/transformer.ipynb shows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from annotated_transformer import load
from annotated_transformer.data.pair_tokenizer import PairTokenizer, token_labels
from annotated_transformer.model.attention import causal_mask
from annotated_transformer.model.transformer import Transformer
from benchmarks.record import command_line, save_line

PLACE = "model/figure-one.json"
SOURCE, TARGET = "the twenty-first of March", "der einundzwanzigste März"
LIKELY = 3  # tokens of the last distribution
Step = dict[str, Any]


def rows(values: Tensor) -> list[list[float]]:
    """A table of numbers to two digits."""
    return [[round(x, 2) for x in row] for row in values.tolist()]


def step(box: str, out: Tensor, layer: int = 0, weights: Tensor | None = None) -> Step:
    """What leaves a box of the figure, of a batch of one."""
    found = {"box": box, "shape": [*out.shape[1:]], "out": out}
    found |= {"layer": layer} if layer else {}
    heads = [] if weights is None else [rows(head) for head in weights[0]]
    return found | ({"weights": heads} if heads else {})


def encoder_steps(model: Transformer, src: Tensor) -> Iterator[Step]:
    """The left half of the figure, from the embedding up."""
    x = model.src_embedding(src)
    yield step("src-embedding", x)
    x = model.positions(x)
    yield step("src-positions", x)
    for number, layer in enumerate(model.encoder.layers, 1):
        attended, weights = (
            layer.self_attention(x, x),
            layer.self_attention.weights(x, x),
        )
        yield step("enc-attention", attended, number, weights)
        x = layer.after_attention(x, attended)
        yield step("enc-norm-1", x, number)
        fed = layer.feed_forward(x)
        yield step("enc-feed-forward", fed, number)
        x = layer.after_feed_forward(x, fed)
        yield step("enc-norm-2", x, number)


def decoder_steps(model: Transformer, tgt: Tensor, memory: Tensor) -> Iterator[Step]:
    """The right half, up to the scores."""
    y, mask = model.tgt_embedding(tgt), causal_mask(tgt.size(1))
    yield step("tgt-embedding", y)
    y = model.positions(y)
    yield step("tgt-positions", y)
    for number, layer in enumerate(model.decoder.layers, 1):
        own, source = layer.self_attention, layer.source_attention
        attended = own(y, y, mask)
        yield step("dec-attention", attended, number, own.weights(y, y, mask))
        y = layer.after_self_attention(y, attended)
        yield step("dec-norm-1", y, number)
        attended = source(y, memory)
        yield step("cross-attention", attended, number, source.weights(y, memory))
        y = layer.after_source_attention(y, attended)
        yield step("dec-norm-2", y, number)
        fed = layer.feed_forward(y)
        yield step("dec-feed-forward", fed, number)
        y = layer.after_feed_forward(y, fed)
        yield step("dec-norm-3", y, number)


def likely(logits: Tensor, tokenizer: PairTokenizer, count: int) -> list[list[Any]]:
    """The likeliest tokens after each position, with their probabilities."""
    best = logits[0].softmax(-1).topk(count)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [
        [
            [token_labels(tokenizer.target, [i])[0], round(p, 3)]
            for i, p in zip(*row, strict=True)
        ]
        for row in pairs
    ]


@torch.inference_mode()
def figure() -> dict[str, Any]:
    """The tokens, and what leaves each box in turn."""
    translator = load("phrasebook-en-de", engine="plain")
    model, tokenizer = translator.model, translator.tokenizer
    (source,), (target,) = (
        tokenizer.encode_source([SOURCE]),
        tokenizer.encode_target([TARGET]),
    )
    src = torch.tensor([source])
    tgt = torch.tensor([[model.config.bos_id, *target[:-1]]])
    memory, _ = model.encode(src)
    logits = model(src, tgt)
    steps = [*encoder_steps(model, src), *decoder_steps(model, tgt, memory)]
    for each in steps:
        each["likely"] = likely(model.logits(each.pop("out")), tokenizer, 1)
    shape = [*logits.shape[1:]]
    for box, count in (("linear", 1), ("softmax", LIKELY)):
        best = likely(logits, tokenizer, count)
        steps.append({"box": box, "shape": shape, "likely": best})
    return {
        "source": tokenizer.source_tokens(SOURCE),
        "target": ["<s>", *tokenizer.target_tokens(TARGET)[:-1]],
        "steps": steps,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the record."""
    command_line(__doc__).parse_args(arguments)
    save_line(PLACE, figure())


if __name__ == "__main__":
    main()
