"""Greedy decoding over an exported folder, with onnxruntime and NumPy alone.

    graphs = open_graphs("exported/onnx")
    target_ids = greedy(graphs, source_ids)

But for the tokenizer it is all that a program in another language has to write.
"""

import json
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession


def open_graphs(folder):
    """The sessions of both graphs on the CPU, and config.json."""
    folder = Path(folder)
    encoder, decoder = (
        InferenceSession(str(folder / name), providers=["CPUExecutionProvider"])
        for name in ("encoder_model.onnx", "decoder_model_merged.onnx")
    )
    return encoder, decoder, json.loads((folder / "config.json").read_text("utf-8"))


def read(graphs, rows):
    """What the decoder graph needs beside tokens: the source read, and empty caches."""
    encoder, decoder, config = graphs
    pad, width = config["pad_token_id"], max(map(len, rows))
    ids = np.array([row + [pad] * (width - len(row)) for row in rows])
    mask = (ids != pad).astype(np.int64)
    (memory,) = encoder.run(None, {"input_ids": ids, "attention_mask": mask})
    state = {"encoder_hidden_states": memory, "encoder_attention_mask": mask}
    for each in decoder.get_inputs():
        if each.name.startswith("past_key_values"):
            _, heads, _, size = each.shape
            state[each.name] = np.zeros((len(rows), heads, 0, size), np.float32)
    return state


def step(graphs, state, tokens):
    """Scores after each of the tokens; the caches in `state` grow by them."""
    logits, *present = graphs[1].run(None, {"input_ids": tokens, **state})
    past = [name for name in state if name.startswith("past_key_values")]
    state.update(zip(past, present, strict=True))
    return logits


def greedy(graphs, rows):
    """The target ids of each row of source ids."""
    names = ["pad_token_id", "decoder_start_token_id", "eos_token_id"]
    pad, begin, end = (graphs[2][name] for name in names)
    most = graphs[2]["max_position_embeddings"]
    limits = [min(len(row) + 50, most) for row in rows]
    state = read(graphs, rows)
    token = np.full((len(rows), 1), begin)
    tokens = np.empty((len(rows), 0), dtype=np.int64)
    while tokens.shape[1] < max(limits) and not (tokens == end).any(axis=1).all():
        logits = step(graphs, state, token)
        logits[..., [pad, begin]] = -np.inf
        token = logits.argmax(axis=2)
        tokens = np.column_stack([tokens, token])
    cut = [row[:limit] for row, limit in zip(tokens.tolist(), limits, strict=True)]
    return [row[: row.index(end)] if end in row else row for row in cut]
