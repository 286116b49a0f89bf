"""The model for the page "Live": a folder with weights of one byte, as one file.

    python tools/live.py MODEL_FOLDER OUT_FOLDER

writes `model.packed`, a safetensors file packed by gzip, and, since a page that was
opened from a disk may not read files, the same bytes in base64 as scripts
`model-00.js`, `model-01.js`, …

The metadata of the safetensors file hold the configuration and the tokenizer. The same
folder always gives the same bytes.
"""

import argparse
import base64
import gzip
import json
from pathlib import Path

import torch
from safetensors.numpy import save
from safetensors.torch import load_file

from annotated_transformer.errors import UserError
from annotated_transformer.files import read_json, write_file

PART = 256 * 1024 // 3 * 3  # bytes in a script: no padding but in the last one


def page_file(folder: Path) -> bytes:
    """The safetensors file of a model folder.

    Raises: UserError for a model of a kind that the page doesn't know, or whose weights
    take more than a byte.
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
    if not text["joint"]:
        merges = read_json(folder / "target_tokenizer.json")["model"]["merges"]
        about["target"] = {"model": {"merges": merges}}
    words = json.dumps(about, ensure_ascii=False, separators=(",", ":"))
    tensors = load_file(folder / "model.safetensors")
    if torch.int8 not in {each.dtype for each in tensors.values()}:
        raise UserError(f"{folder}: save_model it with torch.int8, a byte for a weight")
    # One entry, since the library writes several in any order.
    arrays = {name: each.numpy() for name, each in tensors.items()}
    return save(arrays, {"about": words})


def scripts(data: bytes) -> list[str]:
    """The bytes in base64, as scripts that hand their part to the page."""
    parts = [data[start : start + PART] for start in range(0, len(data), PART)]
    return [
        f'LivePart({number}, {len(parts)}, "{base64.b64encode(part).decode()}");\n'
        for number, part in enumerate(parts)
    ]


def write(folder: Path, out: Path) -> list[Path]:
    """Write what the page loads of a model folder to `out`; the files that it wrote."""
    data = gzip.compress(page_file(folder), mtime=0)
    files = {"model.packed": data}
    for number, script in enumerate(scripts(data)):
        files[f"model-{number:02}.js"] = script.encode()
    for old in out.glob("model-*.js"):
        if old.name not in files:
            old.unlink()
    for name, content in files.items():
        if not (out / name).exists() or (out / name).read_bytes() != content:
            write_file(out / name, content)
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
