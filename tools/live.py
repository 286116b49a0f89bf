"""The weights for the page "Live": a model folder as one file with weights of one byte.

    python tools/live.py MODEL_FOLDER OUT_FOLDER

writes `model.safetensors` and, since a page that was opened from a disk may not read
files, the same bytes in base64 as scripts `model-00.js`, `model-01.js`, …

A matrix W becomes whole numbers q from -127 to 127 and one scale s for each row (that
is, for each output, or for each token of the vocabulary), so that W ≈ s q with the
largest entry of each row met exactly. Biases and norms stay float32. The file's
metadata hold the configuration and the tokenizer. The same folder always gives the same
bytes.
"""

import argparse
import base64
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save
from safetensors.torch import load_file

from annotated_transformer.errors import UserError
from annotated_transformer.files import read_json, write_whole
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import load_model

PART = 256 * 1024 // 3 * 3  # bytes in a script: no padding but in the last one


def quantise(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers from -127 to 127, and the factor of each of their rows."""
    weight = weight.astype(np.float32)
    scale = np.abs(weight).max(axis=1) / np.float32(127)
    scale[scale == 0] = 1  # a row of zeros
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def quantised(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices as `quantise` has them, scales under NAME.scale; vectors float32."""
    found = {}
    for name, tensor in tensors.items():
        if tensor.ndim == 2:
            found[name], found[f"{name}.scale"] = quantise(tensor)
        else:
            found[name] = tensor.astype(np.float32)
    return found


def dequantised(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the page computes with: the weights of `quantised` as float32 again."""
    return {
        name: tensor.astype(np.float32) * tensors[f"{name}.scale"][:, None]
        if tensor.dtype == np.int8
        else tensor
        for name, tensor in tensors.items()
        if not name.endswith(".scale")
    }


def page_model(folder: Path) -> Transformer:
    """A model in Python with exactly the weights that the page computes with."""
    model, _ = load_model(folder)
    found = dequantised(quantised(weights(folder)))
    model.load_state_dict({name: torch.from_numpy(w) for name, w in found.items()})
    return model.eval()


def page_file(folder: Path) -> bytes:
    """The safetensors file of a model folder.

    Raises: UserError for a model of a kind that the page doesn't know.
    """
    config = read_json(folder / "config.json")
    text = read_json(folder / "text.json")
    if not config["shared_vocab"] or config["positions"] != "sinusoidal":
        raise UserError(
            f"{folder}: the page needs a shared vocabulary and sinusoidal positions"
        )
    if text["moses"]:
        raise UserError(f"{folder}: the page doesn't cut text by Moses' rules")
    tokenizer = read_json(folder / "tokenizer.json")
    about = {"config": config, "text": text, "tokenizer": tokenizer}
    words = json.dumps(about, ensure_ascii=False, separators=(",", ":"))
    # One entry, since the library writes several in any order.
    return save(quantised(weights(folder)), {"about": words})


def weights(folder: Path) -> dict[str, np.ndarray]:
    """A model folder's weights in float32; numpy itself doesn't know bfloat16."""
    tensors = load_file(folder / "model.safetensors")
    return {name: tensor.float().numpy() for name, tensor in tensors.items()}


def scripts(data: bytes) -> list[str]:
    """The bytes in base64, as scripts that hand their part to the page."""
    parts = [data[start : start + PART] for start in range(0, len(data), PART)]
    return [
        f'LivePart({number}, {len(parts)}, "{base64.b64encode(part).decode()}");\n'
        for number, part in enumerate(parts)
    ]


def write(folder: Path, out: Path) -> list[Path]:
    """Write what the page loads of a model folder to `out`; the files that it wrote."""
    data = page_file(folder)
    files = {"model.safetensors": data}
    for number, script in enumerate(scripts(data)):
        files[f"model-{number:02}.js"] = script.encode()
    for old in out.glob("model-*.js"):
        if old.name not in files:
            old.unlink()
    for name, content in files.items():
        if not (out / name).exists() or (out / name).read_bytes() != content:
            write_whole(out / name, content)
    return [out / name for name in files]


def main() -> None:
    """The command line."""
    assert __doc__
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="a model folder")
    parser.add_argument("out", type=Path, help="the folder to write to")
    arguments = parser.parse_args()
    for path in write(arguments.model, arguments.out):
        print(path, f"{path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
