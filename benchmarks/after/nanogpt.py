"""nanoGPT itself, with its settings for a laptop, measured as our models are.

    python -m benchmarks.after.nanogpt CLONE

CLONE is a clone of Karpathy's nanoGPT. Its own program trains as its README says for a
laptop, with three seeds in place of its one, on the text as this package cuts it (the
same nine tenths); the last weights are kept. Adds a line for each seed to
results/after/language-model.jsonl: nanoGPT's own estimate of its loss, and the nats per
character over all of the held-out text, in windows side by side. The text is downloaded
unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Two minutes of one core
a seed.
"""

import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from types import ModuleType, SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn

from annotated_transformer.after.language_model import token_losses
from annotated_transformer.data.texts import load_text
from benchmarks.after.language_model import NAME, PLACE, SEEDS, Case
from benchmarks.record import add_run, command_line, folder, read_runs

SETTINGS = (  # as its README has them, but for the last two
    "config/train_shakespeare_char.py --device=cpu --compile=False --eval_iters=20 "
    "--log_interval=1 --block_size=64 --batch_size=12 --n_layer=4 --n_head=4 "
    "--n_embd=128 --max_iters=2000 --lr_decay_iters=2000 --dropout=0.0 "
    "--always_save_checkpoint=True --out_dir=measured"
).split()
ITS_SEED = "torch.manual_seed(1337 + seed_offset)"


class NextCharacter(nn.Module):
    """nanoGPT's model as a language model of this package."""

    def __init__(self, gpt: nn.Module):
        super().__init__()
        self.gpt, self.embedding = gpt, gpt.transformer.wte
        self.config = SimpleNamespace(max_length=gpt.config.block_size)

    def forward(self, ids: Tensor) -> Tensor:
        """Scores of each next character; without targets it gives the last alone."""
        return self.gpt(ids, targets=ids)[0]


def write_text(clone: Path) -> dict[str, int]:
    """Put the text where nanoGPT looks for it; the number of each character."""
    known, held = load_text(NAME)
    numbers = {letter: i for i, letter in enumerate(sorted({*known, *held}))}
    place = clone / "data" / "shakespeare_char"
    for split, text in {"train": known, "val": held}.items():
        ids = np.array([numbers[letter] for letter in text], dtype=np.uint16)
        ids.tofile(place / f"{split}.bin")
    (place / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": len(numbers)}))
    return numbers


def its_model(clone: Path) -> ModuleType:
    """Its module with the model."""
    spec = spec_from_file_location("nanogpt_model", clone / "model.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(clone: Path, seed: int) -> Case:
    """One training by its program, and its last weights on the held-out text."""
    numbers, program = write_text(clone), (clone / "train.py").read_text("utf-8")
    if ITS_SEED not in program:
        sys.exit(f"{clone}: its train.py has no line {ITS_SEED}")
    program = program.replace(
        ITS_SEED, f"torch.set_num_threads(1); torch.manual_seed({seed})"
    )
    command = [sys.executable, "-c", program, *SETTINGS]
    before = getrusage(RUSAGE_CHILDREN).ru_utime
    printed = subprocess.run(
        command, cwd=clone, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    spent = getrusage(RUSAGE_CHILDREN).ru_utime - before
    kept = torch.load(clone / "measured" / "ckpt.pt", weights_only=True)
    module = its_model(clone)
    sizes = kept["model_args"]
    gpt = module.GPT(module.GPTConfig(**sizes)).eval()
    gpt.load_state_dict(kept["model"])
    known, held = load_text(NAME)
    ids = torch.tensor([numbers[letter] for letter in held])
    read = kept["iter_num"] * kept["config"]["batch_size"] * sizes["block_size"]
    log = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    return {
        "nanogpt_commit": subprocess.check_output(log, text=True).strip(),
        "architecture": {"N": sizes["n_layer"], "d_model": sizes["n_embd"]},
        "parameters": sum(each.numel() for each in gpt.parameters()),
        "passes": read / len(known),
        "processor_seconds": round(spent),
        "own_estimate": float(re.findall(r"val loss ([\d.]+)", printed)[-1]),
        "nats": token_losses(NextCharacter(gpt), ids).mean().item(),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Make the runs that are missing."""
    parser = command_line(__doc__)
    parser.add_argument("clone", type=folder, metavar="CLONE")
    clone = parser.parse_args(argv).clone
    torch.set_num_threads(1)
    for seed in SEEDS:
        case: Case = {"study": "nanogpt", "side": "nanoGPT", "seed": seed}
        if not any(case.items() <= each.items() for each in read_runs(PLACE)):
            add_run(PLACE, case | run(clone, seed))


if __name__ == "__main__":
    main()
