"""What heads look at: measures, alignment, and heads turned off."""

import pytest
import torch

from annotated_transformer import load
from annotated_transformer.translation.heads import (
    align,
    alignment_error_rate,
    without_heads,
    words_of_tokens,
)


@pytest.fixture(scope="module")
def model():
    return load("phrasebook-en-de", engine="plain", device="cpu").model


def test_tokens_find_their_words():
    tokens = ["▁ein", "undzwanzig", "▁März", "▁", "."]
    assert words_of_tokens(tokens, ["einundzwanzig", "März", "."]) == [0, 0, 1, 1, 2]
    with pytest.raises(ValueError, match="Mai"):
        words_of_tokens(tokens, ["einundzwanzig", "Mai", "."])


def test_weights_of_a_words_tokens_are_added():
    weights = torch.tensor([[0.4, 0.3, 0.3], [0.1, 0.2, 0.7]])
    assert align(weights, [0, 1, 1], [0, 1]) == {(1, 0), (1, 1)}
    assert align(weights, [0, 1, 2], [0, 0]) == {(2, 0)}


def test_the_error_rate_counts_over_all_sentences():
    wanted = [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    assert alignment_error_rate(wanted, wanted) == 0
    assert alignment_error_rate([{(1, 0)}, {(1, 0)}], wanted) == 1
    assert alignment_error_rate([{(1, 0)}, wanted[1]], wanted) == pytest.approx(1 / 4)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_head_turned_off_adds_nothing(model, kind):
    part = {"cross": "decoder.layers.1.source_attention"}
    name = part.get(kind, f"{kind}.layers.1.self_attention")
    d_v, ids = model.config.d_v, torch.tensor([[152, 176, 8, 850, 160, 378, 2]])

    def silence(module, arguments):
        heads = arguments[0].clone()
        heads[..., 3 * d_v : 4 * d_v] = 0
        return heads

    off = without_heads(model, kind, 1, [3])(ids, ids)
    assert not torch.allclose(off, model(ids, ids), atol=1e-3)
    hook = model.get_submodule(name).W_O.register_forward_pre_hook(silence)
    assert torch.allclose(off, model(ids, ids), atol=1e-5)
    hook.remove()
