"""How far a file is: each part of the reader's module checked."""

import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from ..errors import UserError
from . import heads, learning, stacks, sublayers
from .verdict import NOT_YET, Verdict

# What a reader writes, in the order of the chapters.
CHECKS = {
    "attention": heads.attention,
    "padding_mask": heads.padding_mask,
    "causal_mask": heads.causal_mask,
    "MultiHeadAttention": heads.multi_head_attention,
    "FeedForward": sublayers.feed_forward,
    "Embedding": sublayers.embedding,
    "sinusoids": sublayers.sinusoids,
    "AddNorm": sublayers.add_norm,
    "EncoderLayer": stacks.encoder_layer,
    "DecoderLayer": stacks.decoder_layer,
    "Encoder": stacks.encoder,
    "Decoder": stacks.decoder,
    "Transformer": stacks.transformer,
    "smoothed_cross_entropy": learning.smoothed_cross_entropy,
    "training_step": learning.training_step,
    "greedy_search": learning.greedy_search,
}


def progress(path: str | Path) -> dict[str, Verdict]:
    """The verdict on each part, by the name that it has in the file.

    The file is run, as an import runs it. Raises: UserError for one that can't be.
    """
    module = import_file(Path(path))
    return {
        name: check(getattr(module, name)) if hasattr(module, name) else NOT_YET
        for name, check in CHECKS.items()
    }


def import_file(path: Path) -> ModuleType:
    """A file as a module, with its folder in the path while it is imported.

    Raises: UserError that names the file and, for an error in it, the line.
    """
    if not path.is_file():
        raise UserError(f"{path} is no file: name the one that you write")
    spec = spec_from_file_location(f"checked_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is no Python file: its name should end in .py")
    module = sys.modules[spec.name] = module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        last = " ".join(traceback.format_exception_only(error)[-1].split())
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(path)
        ]
        lines += [error.lineno] if isinstance(error, SyntaxError) else []
        where = f", line {lines[-1]}" if lines else ""
        raise UserError(f"{path}{where} can't be imported ({last})") from None
    finally:
        sys.path.remove(str(path.parent))
    return module
