"""What the tests of exports share: a random model, its inputs, and the shipped one."""

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import torch

from annotated_transformer import load
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.model.config import BOS, EOS, TransformerConfig
from annotated_transformer.model.transformer import Transformer

PHRASES = [source for source, _ in phrasebook("en", "de", "test", 20)]
PAIRS = list(phrasebook("en", "de", "train", 200))


@cache
def shipped():
    """The phrasebook model that ships with the package."""
    return load("phrasebook-en-de", device="cpu", engine="plain")


@cache
def greedy_texts():
    return shipped().translate(PHRASES, SearchOptions(beam_size=1))


@cache
def beam_texts():
    """Beam 4 without length penalty, where every engine's beam means the same."""
    return shipped().translate(PHRASES, SearchOptions(alpha=0.0))


@cache
def two_vocabularies():
    """A tokenizer with a vocabulary for each language."""
    return train_tokenizer(PAIRS, "en", "de", 150, joint=False)


def random_model(tokenizer, **changes):
    """A small model with random weights everywhere, biases and norms included, and
    separate embeddings.
    """
    torch.manual_seed(3)
    sizes = dict(N=2, d_model=16, d_ff=24, h=2, d_k=8, d_v=8, max_length=48)
    vocab = (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size)
    model = Transformer(
        TransformerConfig(*vocab, shared_vocab=False, **(sizes | changes))
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def batch(model):
    """Three rows of source ids, two of them padded, and target rows that begin."""
    torch.manual_seed(4)
    src = torch.randint(4, model.config.src_vocab_size, (3, 9))
    src[1, 6:], src[2, 3:] = 0, 0
    src[0, 8], src[1, 5], src[2, 2] = EOS, EOS, EOS
    tgt = torch.randint(4, model.config.tgt_vocab_size, (3, 7))
    tgt[:, 0] = BOS
    return src, tgt


@torch.inference_mode()
def logits_of(model, src, tgt):
    return model(src, tgt)


def close(theirs, ours, atol=1e-4):
    torch.testing.assert_close(
        torch.as_tensor(np.asarray(theirs, dtype=np.float32)), ours, atol=atol, rtol=0
    )


def run_elsewhere(package, program, *arguments, **settings):
    """The lines that a program prints which needs `package`, in the Python that
    OTHERS_PYTHON names if it does: optimum wants older libraries than we do.
    """
    python = os.environ.get("OTHERS_PYTHON", sys.executable)
    asked = [python, "-c", f"import {package}"]
    if subprocess.run(asked, capture_output=True, **settings).returncode:
        pytest.skip(f"{package} isn't installed, nor where OTHERS_PYTHON points")
    command = [python, "-c", program, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, **settings
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
