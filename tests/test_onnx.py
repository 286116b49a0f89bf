"""ONNX: two graphs with our scores, our translations and our attention weights.

They are exported in a process of their own, as the checks of shapes that these tests
add can't be traced.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from exporting import (
    PHRASES,
    batch,
    close,
    greedy_texts,
    logits_of,
    random_model,
    shipped,
    two_vocabularies,
)
from tiny_run import opened, refused

from annotated_transformer.check.file import import_file
from annotated_transformer.decoding.search import greedy
from annotated_transformer.model.config import BOS
from annotated_transformer.training.checkpoint import save_model

NBS = Path(__file__).resolve().parent.parent / "nbs"


@pytest.fixture(scope="module")
def onnx():
    """The chapter's loop around the graphs."""
    pytest.importorskip("onnxruntime")
    return import_file(NBS / "onnx_greedy.py")


@pytest.fixture(scope="module")
def onnx_folders(tmp_path_factory):
    """By command line: the shipped model with attention, and a random one (learned
    positions, uneven heads) without.
    """
    pytest.importorskip("onnxruntime")
    top = tmp_path_factory.mktemp("onnx")
    model = random_model(two_vocabularies(), N=1, positions="learned", d_k=3, d_v=5)
    save_model(top / "model", model, two_vocabularies())
    shipped = ["--out", "shipped", "--attention", "--model", "phrasebook-en-de"]
    calls = [shipped, ["--out", "random", "--model", str(top / "model")]]
    program = "import sys; from annotated_transformer.cli import app\n" + "\n".join(
        f"app(['export', 'onnx', *{call}], standalone_mode=False)" for call in calls
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=top,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.splitlines()[0].startswith("wrote shipped")
    return top


def steps(parts, src, tgt):
    """Every output of the encoder graph, then of each step of the decoder graph, by
    name.
    """
    encoder, step, _ = parts

    def run(session, feed):
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(None, feed), strict=True))

    state = run(encoder, {"ids": src.numpy()})
    yield state
    feed = {name: state[name] for name in ("mask", "memory_keys", "memory_values")}
    feed |= {name: feed[f"memory_{name}"][:, :, :, :0] for name in ("keys", "values")}
    for token in tgt.T.numpy():
        found = run(step, {"token": token, **feed})
        feed["keys"], feed["values"] = found["new_keys"], found["new_values"]
        yield found


@pytest.mark.parametrize("name", ["shipped", "random"])
def test_onnx_gives_our_scores_step_by_step(onnx, onnx_folders, name):
    model = shipped().model
    if name == "random":
        model = opened(onnx_folders / "model").model
    parts, (src, tgt) = onnx.open_graphs(onnx_folders / name), batch(model)
    for rows in (src, src[:1, :1]):
        first, *rest = steps(parts, rows, tgt[: len(rows)])
        with torch.inference_mode():
            close(first["memory"], model.encode(rows)[0])
        ours = logits_of(model, rows, tgt[: len(rows)])
        for place, found in enumerate(rest):
            close(found["logits"], ours[:, place])
            assert found["new_keys"].shape[3] == place + 1


def test_onnx_returns_every_heads_attention_when_asked(onnx, onnx_folders):
    parts = onnx.open_graphs(onnx_folders / "shipped")
    text = PHRASES[0]
    inside = shipped().attention(text)
    src = torch.tensor(shipped().tokenizer.encode_source([text]))
    target = shipped().tokenizer.encode_target([shipped().translate(text)])
    tgt = torch.tensor([[BOS, *target[0][:-1]]])
    first, *rest = steps(parts, src, tgt)
    close(first["attention"][:, 0], inside.encoder)
    for place, found in enumerate(rest):
        close(found["source_attention"][:, 0], inside.cross[:, :, place])
        close(found["self_attention"][:, 0], inside.decoder[:, :, place, : place + 1])
    for silent in onnx.open_graphs(onnx_folders / "random")[:2]:
        names = [output.name for output in silent.get_outputs()]
        assert not any("attention" in name for name in names)


def test_onnx_greedy_gives_our_translations(onnx, onnx_folders):
    rows = shipped().tokenizer.encode_source(PHRASES)
    found = onnx.greedy(onnx.open_graphs(onnx_folders / "shipped"), rows)
    assert shipped().tokenizer.decode(found) == greedy_texts()


def test_onnx_greedy_stops_where_our_search_stops(onnx, onnx_folders):
    """A random model seldom ends, so the limits end it: source + 50, or the model's
    positions (48).
    """
    model = opened(onnx_folders / "model").model
    src, _ = batch(model)
    rows = [[i for i in row if i] for row in src.tolist()]
    found = onnx.greedy(onnx.open_graphs(onnx_folders / "random"), rows)
    assert found == [hypothesis.tokens for hypothesis in greedy(model, src)]
    assert max(map(len, found)) == 48


def test_a_model_is_not_opened_from_its_graphs(run, onnx_folders, tmp_path):
    folder = onnx_folders / "shipped"
    asked = ["translate", "March 3", "-m", folder], ["info", folder]
    for each in (*asked, ["import", folder, "-o", tmp_path / "back"]):
        refused(run(*each), folder, "an export for programs that run ONNX", "made from")
    assert not (tmp_path / "back").exists()
