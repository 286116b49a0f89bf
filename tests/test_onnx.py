"""ONNX: two graphs with our scores and our translations, which optimum opens.

They are exported in a process of their own, as the checks of shapes that these tests
add can't be traced.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from exporting import (
    PHRASES,
    batch,
    beam_texts,
    close,
    greedy_texts,
    logits_of,
    random_model,
    run_elsewhere,
    shipped,
    two_vocabularies,
)
from tiny_run import opened, refused

from annotated_transformer.check.file import import_file
from annotated_transformer.decoding.search import greedy
from annotated_transformer.files import read_json
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
    """By command line: the shipped model, and a random one (learned positions, uneven
    heads).
    """
    pytest.importorskip("onnxruntime")
    top = tmp_path_factory.mktemp("onnx")
    model = random_model(two_vocabularies(), N=1, positions="learned", d_k=3, d_v=5)
    save_model(top / "model", model, two_vocabularies())
    shipped = ["--out", "shipped", "--model", "phrasebook-en-de"]
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


@pytest.mark.parametrize("name", ["shipped", "random"])
def test_onnx_gives_our_scores_at_once_and_step_by_step(onnx, onnx_folders, name):
    model = shipped().model
    if name == "random":
        model = opened(onnx_folders / "model").model
    graphs, (src, tgt) = onnx.open_graphs(onnx_folders / name), batch(model)
    for rows in (src, src[:1, :1]):
        tokens = tgt[: len(rows)]
        ours = logits_of(model, rows, tokens)
        state = onnx.read(graphs, rows.tolist())
        with torch.inference_mode():
            close(state["encoder_hidden_states"], model.encode(rows)[0])
        first, at_once = dict(state), dict(state)
        close(onnx.step(graphs, at_once, tokens.numpy()), ours)
        for end in range(tokens.size(1)):
            found = onnx.step(graphs, first, tokens[:, end : end + 1].numpy())
            close(found[:, 0], ours[:, end])
            assert first["past_key_values.0.decoder.key"].shape[2] == end + 1
            assert first["past_key_values.0.encoder.key"].shape[2] == rows.size(1)


OPTIMUM = """
from optimum.onnxruntime import ORTModelForSeq2SeqLM
from transformers import AutoTokenizer
import json, sys
model = ORTModelForSeq2SeqLM.from_pretrained("shipped")
tokenizer = AutoTokenizer.from_pretrained("shipped")
rows = tokenizer(sys.argv[1:], return_tensors="pt", padding=True)
searches = [{"num_beams": 1}, {"num_beams": 4, "length_penalty": 0.0}]
for search in (*searches, searches[0] | {"use_cache": False}):
    found = model.generate(**rows, **search)
    print(json.dumps(tokenizer.batch_decode(found, skip_special_tokens=True)))
"""


def test_optimum_opens_the_folder_and_translates_as_we_do(onnx_folders):
    found = run_elsewhere("optimum.onnxruntime", OPTIMUM, *PHRASES, cwd=onnx_folders)
    wanted = [greedy_texts(), beam_texts(), greedy_texts()]
    assert list(map(json.loads, found)) == wanted


def test_the_folder_has_the_names_that_optimum_reads(onnx, onnx_folders):
    encoder, decoder, config = onnx.open_graphs(onnx_folders / "shipped")

    def names(parts):
        return [each.name for each in parts]

    past = [
        f"{layer}.{side}.{part}"
        for layer in range(config["decoder_layers"])
        for side in ("decoder", "encoder")
        for part in ("key", "value")
    ]
    assert names(encoder.get_inputs()) == ["input_ids", "attention_mask"]
    assert names(encoder.get_outputs()) == ["last_hidden_state"]
    fixed = ["input_ids", "encoder_hidden_states", "encoder_attention_mask"]
    wanted = [*fixed, *(f"past_key_values.{name}" for name in past)]
    assert names(decoder.get_inputs()) == wanted
    wanted = ["logits", *(f"present.{name}" for name in past)]
    assert names(decoder.get_outputs()) == wanted
    assert config["model_type"] == "marian"
    settings = read_json(onnx_folders / "shipped" / "generation_config.json")
    assert settings["decoder_start_token_id"] == BOS


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
