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
    encoder, step = (
        InferenceSession(str(folder / name), providers=["CPUExecutionProvider"])
        for name in ("encoder.onnx", "decoder_step.onnx")
    )
    return encoder, step, json.loads((folder / "config.json").read_text("utf-8"))


def greedy(graphs, rows):
    """The target ids of each row of source ids."""
    encoder, step, config = graphs
    pad, bos, eos = (config[f"{name}_id"] for name in ("pad", "bos", "eos"))
    width = max(map(len, rows))
    src = np.array([row + [pad] * (width - len(row)) for row in rows])
    limits = [min(len(row) + 50, config["max_length"]) for row in rows]
    names = ["mask", "memory_keys", "memory_values"]
    state = dict(zip(names, encoder.run(names, {"ids": src}), strict=True))
    for name in ("keys", "values"):
        state[name] = state[f"memory_{name}"][:, :, :, :0]
    token = np.full(len(rows), bos, dtype=np.int64)
    tokens = np.empty((len(rows), 0), dtype=np.int64)
    outputs = ["logits", "new_keys", "new_values"]
    while tokens.shape[1] < max(limits) and not (tokens == eos).any(axis=1).all():
        feed = {"token": token, **state}
        logits, state["keys"], state["values"] = step.run(outputs, feed)
        logits[:, [pad, bos]] = -np.inf
        token = logits.argmax(axis=1)
        tokens = np.column_stack([tokens, token])
    cut = [row[:limit] for row, limit in zip(tokens.tolist(), limits, strict=True)]
    return [row[: row.index(eos)] if eos in row else row for row in cut]
