"""Whole right files in styles other than the book's: each part of them is right."""

from pathlib import Path

import pytest

from annotated_transformer import check
from annotated_transformer.check.file import import_file, names_in

STYLES = Path(__file__).parent / "styles"
OWN_AXES = ("batch_second", "torch_heads")  # called in a way of their own


def parts_of(path):
    module = import_file(path)
    return {name: name for name in check.CHECKS if hasattr(module, name)}


@pytest.mark.parametrize(
    "path", sorted(STYLES.glob("*.py")), ids=lambda path: path.stem
)
def test_a_right_file_of_another_style_passes(path):
    parts = parts_of(path)
    assert len(parts) >= len(check.CHECKS) - 1, "a whole file"
    found = check.progress(path, parts if path.stem in OWN_AXES else None)
    assert {name: found[name].sentence for name in parts if not found[name]} == {}


@pytest.mark.parametrize("style", ["dicts", "fused_qkv"])
def test_what_uses_a_wrong_attention_through_helpers_and_bases_waits_for_it(
    style, tmp_path
):
    source = (STYLES / f"{style}.py").read_text("utf-8")
    path = tmp_path / "mine.py"
    path.write_text(
        source.replace("~mask", "mask").replace("attn_mask=mask", "attn_mask=None"),
        "utf-8",
    )
    found = check.progress(path)
    waiting = {name for name, verdict in found.items() if verdict.waits_for}
    stacks = "MultiHeadAttention EncoderLayer DecoderLayer Encoder Decoder Transformer"
    assert waiting == set(stacks.split()) and not found["attention"].waits_for


def test_a_name_of_an_attribute_is_no_use_of_a_part():
    module = import_file(STYLES / "fused_qkv.py")
    assert "attention" in names_in(module.Encoder)
    assert "MultiHeadAttention" not in names_in(module.Embedding)
    assert "embedding" not in names_in(import_file(STYLES / "einsum.py").Transformer)
